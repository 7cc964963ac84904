"""The head of a request: one value for each header, or a refusal. And which headers go on to a server at a URL."""

from assay.edges.http.forwarding import Forwarding, is_credential, read_upstream_head
from assay.edges.http.heads import HeadRefusal, RequestHead, is_utf8, read_head, shown_name
from assay.spec.revisions import LATEST
from kit.rows import rows

JSON = (b"content-type", b"application/json")


def head_of(*pairs: tuple[bytes, bytes], method: str = "POST") -> RequestHead:
    """The head of a request that is good."""
    found = read_head(method, pairs)
    assert isinstance(found, RequestHead), found
    return found


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


@rows(
    ("kind", "good"),
    [
        (b"application/json", True),
        (b"application/json; charset=utf-8", True),
        (b'application/json; Charset="UTF-8"', True),
        (b"application/json; charset=utf8", True),
        (b"application/json; charset=utf-7", False),
        (b"application/json; charset = utf-16", False),
        (b"application/json;charset=iso-8859-1", False),
        (b"application/json; charset=utf-8; charset=utf-7", False),
        (b"application/json; x=y; charset=latin1", False),
        (b"application/json; charset=", True),
    ],
)
def test_a_charset_is_utf8_or_none(kind: bytes, good: bool) -> None:
    assert is_utf8(kind) == good
    assert isinstance(read_head("POST", [(b"content-type", kind)]), RequestHead if good else HeadRefusal)


@rows(
    ("name", "yes"),
    [
        (b"authorization", True),
        (b"x-api-key", True),
        (b"apikey", True),
        (b"x-figma-token", True),
        (b"x-goog-api-key", True),
        (b"access-token", True),
        (b"x-http-method-override", False),
        (b"x-forwarded-for", False),
        (b"proxy-authorization", False),
        (b"cookie", False),
        (b"x-token-other", False),
    ],
)
def test_a_credential_is_known_by_its_name(name: bytes, yes: bool) -> None:
    assert is_credential(name) == yes


def test_under_enforce_a_short_list_goes_on() -> None:
    head = head_of(
        (b"content-type", b"application/json; charset=utf-8"),
        (b"accept", b"application/json;q=1, */*"),
        (b"user-agent", b"me\xff"),
        (b"x-api-key", b"k"),
        (b"authorization", b"Bearer t"),
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
        b"x-api-key": b"k",
        b"authorization": b"Bearer t",
        b"mcp-session-id": b"s",
    }
    assert Forwarding(enforcing=True).dropped(head) == [b"user-agent", b"x-unknown"]
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


def test_names_are_shown_as_people_write_them() -> None:
    assert shown_name(b"mcp-session-id") == "Mcp-Session-Id"
    assert shown_name(b"mcp-protocol-version") == "MCP-Protocol-Version"
    assert shown_name(b"last-event-id") == "Last-Event-ID"
    assert "\x1b" not in shown_name(b"\xff\xfe")
