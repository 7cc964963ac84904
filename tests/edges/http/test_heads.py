"""The head of a request: one value for each header, or a refusal. And which headers go on to a server at a URL."""

from typing import Any

import pytest

from assay.edges.http.forwarding import Forwarding, read_upstream_head
from assay.edges.http.heads import HeadRefusal, RequestHead, check_accept, read_head
from assay.spec.revisions import LATEST, REVISIONS
from kit.rows import rows

JSON = (b"content-type", b"application/json")
CREDENTIALS = (b"authorization", b"x-api-key", b"apikey", b"x-figma-token", b"x-goog-api-key", b"access-token")
Pair = tuple[bytes, bytes]


def head_of(*pairs: Pair) -> RequestHead:
    """The head of a POST that is good."""
    found = read_head("POST", pairs)
    assert isinstance(found, RequestHead), found
    return found


def refused(*pairs: Pair) -> HeadRefusal:
    """Why a POST with these headers is refused."""
    found = read_head("POST", pairs)
    assert isinstance(found, HeadRefusal), found
    return found


@rows("kind", [None, b"", b"application/x-www-form-urlencoded"])
def test_curl_need_not_say_what_it_sends_and_a_page_has_to(kind: bytes | None) -> None:
    """A page may send a form anywhere without asking first; it cannot leave out its origin."""
    given = [] if kind is None else [(b"content-type", kind)]
    assert isinstance(read_head("POST", given), RequestHead)
    assert refused(*given, (b"origin", b"http://localhost")).status == 415


@rows(
    ("accept", "json", "stream"),
    [
        (None, True, True), (b"*/*", True, True), (b"application/json", True, False),
        (b"APPLICATION/JSON;q=0.5", True, False), (b"application/*", True, False),
        (b"text/html, application/json", True, False), (b"text/event-stream, application/json", True, True),
        (b"*/*;q=0, application/json; q=0.001", True, False), (b"text/event-stream", False, True),
        (b"text/*", False, True), (b"text/html", False, False), (b"application/xml, image/*", False, False),
        (b"", False, False), (b"application/json;q=0, */*;q=0.1", False, True), (b"*/*;q=0", False, False),
        (b"application/json ; Q=0.000", False, False),
    ],
)  # fmt: skip
def test_what_a_client_accepts_is_read_from_its_list(accept: bytes | None, json: bool, stream: bool) -> None:
    """RFC 9110, 12.5.1: the most specific entry counts, and a weight of 0 is a no."""
    head = read_head("POST", [JSON, *([] if accept is None else [(b"accept", accept)])])
    assert isinstance(head, RequestHead)
    assert (head.as_json, head.as_stream) == (json, stream)
    assert (check_accept(head) is None) is (json or stream)


@rows(
    ("pairs", "status", "code"),
    [
        pytest.param([(b"mcp_session_id", b"a")], 400, "INVALID_ENVELOPE", id="underscores"),
        pytest.param([(b"mcp-session_id", b"a")], 400, "INVALID_ENVELOPE", id="an-underscore"),
        pytest.param([(b"content_type", b"text/plain")], 400, "INVALID_ENVELOPE", id="underscored-type"),
        pytest.param([(b"last-event-id", b"a b")], 400, "INVALID_ENVELOPE", id="two-words"),
        pytest.param([(b"mcp-method", b"ping pong")], 400, "HEADER_MISMATCH", id="two-methods"),
        pytest.param([(b"mcp-method", b"")], 400, "HEADER_MISMATCH", id="no-method"),
        pytest.param([(b"authorization", b"Bearer \xe4")], 400, "INVALID_ENVELOPE", id="token-beyond-ascii"),
        pytest.param([(b"connection", b"close, Mcp-Session-Id")], 400, "INVALID_ENVELOPE", id="hop-by-hop-session"),
        pytest.param([(b"content-encoding", b"gzip")], 415, "INVALID_ENVELOPE", id="compressed"),
        pytest.param([(b"content-type", b"application/json")], 415, "INVALID_ENVELOPE", id="two-types"),
        *(
            pytest.param([(b"mcp-session-id", value)], 400, "INVALID_ENVELOPE", id=f"session-{value[:3]!r}")
            for value in (b"", b"a b", b"a\tb", b"\xff\xfe", b"x" * 5000)
        ),
        *(
            pytest.param([(name, b"a"), (name, value)], 400, code, id=f"{name.decode()}-twice-{value.decode()}")
            for name, code in (
                (b"mcp-session-id", "INVALID_ENVELOPE"), (b"authorization", "INVALID_ENVELOPE"),
                (b"host", "INVALID_ENVELOPE"), (b"origin", "INVALID_ENVELOPE"), (b"traceparent", "INVALID_ENVELOPE"),
                (b"mcp-protocol-version", "HEADER_MISMATCH"), (b"mcp-method", "HEADER_MISMATCH"),
                (b"mcp-name", "HEADER_MISMATCH"), (b"mcp-param-x", "HEADER_MISMATCH"),
            )
            for value in (b"a", b"b")
        ),
    ],
)  # fmt: skip
def test_a_head_that_can_be_read_in_two_ways_is_refused(pairs: list[Pair], status: int, code: str) -> None:
    """2026-07-28, streamable-http, Server Validation: one reader takes the first, another one the last."""
    assert refused(JSON, *pairs)[::2] == (status, code)


@rows("version", [b"", b"2025-11-25, 2025-11-25", b"\xff"])
def test_a_version_that_is_no_word_is_refused_with_the_ones_there_are(version: bytes) -> None:
    found = refused(JSON, (b"mcp-protocol-version", version))
    assert (found.status, found.code) == (400, "UNSUPPORTED_REVISION")
    data: Any = found.data
    assert (data["supported"], data["requested"]) == (list(REVISIONS), version.decode("latin-1"))


@rows(
    ("kind", "good"),
    [
        (b"Application/JSON", True), (b"application/json ; x=y", True), (b"application/json; charset=utf-8", True),
        (b'application/json; Charset="UTF-8"', True), (b"application/json; charset=utf8", True),
        (b"application/json; charset=", True), (b"application/json; charset=utf-7", False),
        (b"application/json; charset = utf-16", False), (b"application/json;charset=iso-8859-1", False),
        (b"application/json; charset=utf-8; charset=utf-7", False), (b"application/json; x=y; charset=latin1", False),
        (b"text/plain", False), (b"text/json", False), (b"multipart/form-data", False), (b"json", False),
        (b"application", False), (b"text/plain; application/json", False), (b"text/plain, application/json", False),
        (b"application/json-seq", False), (b"application/jsonl", False), (b"application/json-patch+json", False),
    ],
)  # fmt: skip
def test_json_in_utf8_is_taken_however_that_is_spelt_and_any_other_type_is_415(kind: bytes, good: bool) -> None:
    head = read_head("POST", [(b"content-type", kind), (b"x_forwarded_for", b"a")])
    assert isinstance(head, RequestHead) if good else head[::2] == (415, "INVALID_ENVELOPE")


# ── what is read of a good one, and what goes on ─────────────────────────────────────────────────────────────────────


def test_values_are_stripped_once_for_everybody() -> None:
    head = head_of(JSON, (b"mcp-session-id", b" abc\t"), (b"mcp-protocol-version", b" 2025-11-25 "))
    assert (head.session, head.revision) == (b"abc", "2025-11-25")
    assert head.headers[b"mcp-session-id"] == b"abc"
    assert (b"mcp-session-id", b"abc") in head.pairs


def test_a_revision_without_sessions_has_none() -> None:
    named = (b"mcp-protocol-version", LATEST.encode())
    head = head_of(JSON, (b"mcp-session-id", b"abc"), (b"last-event-id", b"1"), named)
    assert head.is_stateless
    assert (head.session, head.last_event) == (None, None)
    sent = Forwarding(enforcing=False).headers(head)
    assert [name for name, _ in sent if name in {b"mcp-session-id", b"last-event-id"}] == []


def test_an_unknown_revision_does_not_take_a_session_away() -> None:
    """Else a made-up revision would be a way around its owner."""
    head = head_of(JSON, (b"mcp-session-id", b"abc"), (b"mcp-protocol-version", b"2099-01-01"))
    assert (head.session, head.is_stateless) == (b"abc", False)


def test_lists_are_joined_and_what_nobody_decides_by_may_come_twice() -> None:
    head = head_of(JSON, (b"accept", b"text/html"), (b"accept", b"application/json"), (b"x-a", b"1"), (b"x-a", b"2"))
    assert head.headers[b"accept"] == b"text/html, application/json"
    assert head.as_json
    assert b"\n" in head.headers[b"x-a"]


def test_under_enforce_a_short_list_goes_on() -> None:
    head = head_of(
        (b"content-type", b"application/json; charset=utf-8"),
        (b"accept", b"application/json;q=1, */*"),
        (b"user-agent", b"me\xff"),
        *((name, b"k") for name in CREDENTIALS),
        (b"x-token-other", b"k"),
        (b"x-unknown", b"u"),
        (b"cookie", b"c"),
        (b"mcp-name", b"n"),
        (b"mcp-session-id", b"s"),
        (b"last-event-id", b"1"),
        (b"connection", b"x-hop"),
        (b"x-hop", b"h"),
    )
    assert dict(Forwarding(enforcing=True).headers(head)) == {
        b"content-type": b"application/json",
        b"accept": b"application/json, text/event-stream",
        **dict.fromkeys(CREDENTIALS, b"k"),
        b"mcp-session-id": b"s",
    }
    assert Forwarding(enforcing=True).dropped(head) == [b"user-agent", b"x-token-other", b"x-unknown"]
    gated = Forwarding(enforcing=True, tokens=False, names=(b"x-unknown", b"cookie"))
    assert {b"authorization", b"x-unknown", b"cookie"} & set(dict(gated.headers(head))) == {b"x-unknown", b"cookie"}
    hosted = Forwarding(enforcing=False, cookies=False)
    assert b"cookie" not in dict(hosted.headers(head))


def test_an_answer_keeps_only_what_leads_nowhere() -> None:
    pairs = [
        (b"location", b"http://away.example"),
        (b"set-cookie", b"a=b"),
        (b"retry-after", b"3"),
        (b"allow", b"POST"),
        (b"www-authenticate", b"Bearer"),
        (b"www-authenticate", b"Basic\x01"),
        (b"x-listed", b"1"),
        (b"mcp-session-id", b" s "),
    ]
    head = read_upstream_head(405, pairs)
    written = Forwarding(enforcing=True, cookies=False, answers=(b"x-listed", b"set-cookie")).answer(
        head, pairs, head.challenges
    )
    assert sorted(written) == [
        (b"allow", b"POST"),
        (b"mcp-session-id", b"s"),
        (b"retry-after", b"3"),
        (b"www-authenticate", b"Bearer"),
        (b"x-listed", b"1"),
    ]
