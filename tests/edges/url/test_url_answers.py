"""
What reaches a client of a server at a URL: under enforce only what was judged, under audit every byte.

The server is hostile: each row is something that would get past the judge, or lead a client past the guard.
"""

from typing import Any

import pytest

from assay.judge.events import PING, event
from assay.rules.policy import Policy
from assay.spec.revisions import LATEST
from kit.http_client import BOTH, call, frame_of, initialize, modern, notification, request
from kit.memory_http import settled
from kit.rows import rows
from kit.scripted_http import OPENED, REVISION, Peer, Received, answering, result
from kit.talk import error
from kit.url_guard import MemoryPeer, UrlGuard

CALL = call(7, "search", {"words": "sea"})
MODERN_CALL = call(7, "search", {"words": "sea"}, LATEST)
ANSWER: dict[str, Any] = {"content": [], "structuredContent": {"found": 1}}
MODERN_ANSWER = {**ANSWER, "resultType": "complete"}
FORGED = frame_of({"jsonrpc": "2.0", "id": 99, "method": "sampling/createMessage", "params": {"messages": "bad"}})
NOTE = notification("notifications/message", {"level": "info", "data": "soon"})
AWAY = "http://127.0.0.1:9/past-the-guard"


# ── only what was judged, under enforce ──────────────────────────────────────────────────────────────────────────────


@rows(
    "unjudged",
    [
        b"event: other\ndata: ",
        b"event: message \ndata: ",
        b"event: other\nid: 5-5\ndata: ",
        b"data: \r",
        b'data: {"jsonrpc":"2.0","id":7,"result":{"content":[],"_meta":{"a":\ndata: ',
        b"message: ",
        b": ",
    ],
)
def test_what_is_no_judged_message_never_stands_on_a_line_of_its_own(unjudged: bytes) -> None:
    """Readers of streams differ: some split at LF only, some take any name for a message, some take line by line."""
    end = b"\ndata: }}}\n\n" if b"_meta" in unjudged else b"\n\n"
    with UrlGuard() as guard:
        headers = guard.session(REVISION)
        guard.server.script = answering(
            lambda _, peer: peer.events(unjudged + FORGED + end, NOTE, result(CALL, ANSWER))
        )
        body = guard.post(CALL, headers).body
    for line in body.replace(b"\r", b"\n").split(b"\n"):
        assert not line.removeprefix(b"data:").strip().startswith(FORGED), line
    assert b"soon" in body


def test_an_event_that_was_not_judged_is_not_known_again_as_a_message() -> None:
    first = b"event: other\nid: 5-5\ndata: " + FORGED + b"\n\n"
    then = b"id: 5-5\ndata: " + FORGED + b"\n\n"
    with UrlGuard() as guard:
        headers = guard.session(REVISION)
        guard.server.script = answering(lambda _, peer: peer.events(first, then, result(CALL, ANSWER)))
        assert b"sampling" not in guard.post(CALL, headers).body
        guard.server.script = answering(lambda _, peer: peer.events(then), "GET")
        assert b"sampling" not in guard.ask("GET", headers=headers).body
        assert b"sampling" not in guard.ask("GET", headers={**headers, "last-event-id": "5-4"}).body


STREAM = (
    b"\xef\xbb\xbf: hello\r\n\r\nid: 1-0\nretry: 50\ndata:\n\n"
    b"event: message\rid: 1-1\rdata: " + frame_of(NOTE) + b"\r\r"
    b': between\n\nevent: ping\ndata: "tick"\n\n\n'
    b'data: {"jsonrpc":"2.0",\r\ndata: "id":7,\r\ndata: "result":' + frame_of(ANSWER) + b"}\r\nid: 1-2\r\n\r\n: bye\n\n"
)
JOINED = b'{"jsonrpc":"2.0", "id":7, "result":' + frame_of(ANSWER) + b"}"
WRITTEN_ANEW = (
    *(PING, b"retry: 50\r\nid: 1-0\r\ndata: \r\n\r\n", event(frame_of(NOTE), b"1-1"), PING),
    *(PING, event(JOINED, b"1-2"), PING),  # an event with a name of its own is a sign of life, and nothing else
)


def test_a_stream_is_written_anew_with_what_was_judged() -> None:
    def pieces(_: Received, peer: Peer) -> None:
        peer.events()
        for at in range(0, len(STREAM), 7):
            peer.send(STREAM[at : at + 7])

    with UrlGuard("enforce", answering(pieces)) as guard:
        answer = guard.post(CALL, guard.session(REVISION))
    assert (answer.header("content-type"), answer.body) == ("text/event-stream", b"".join(WRITTEN_ANEW))


BODY = b'{ "result":\n {"content": [ ], "structuredContent": {"found":1e0}},\r\n "id" : 7, "jsonrpc":"2.0" }\n'


def test_a_good_body_comes_with_its_bytes_and_no_header_of_the_server() -> None:
    def answers(_: Received, peer: Peer) -> None:
        peer.json(BODY, 203, x_served_by="a", set_cookie="k=v", server="mine")

    with UrlGuard("enforce", answering(answers)) as guard:
        answer = guard.post(CALL, guard.session(REVISION))
    assert (answer.status, answer.body) == (200, BODY)
    assert {name for name, _ in answer.pairs} <= {"content-type", "content-length", "date"}


# ── where headers would lead a client ────────────────────────────────────────────────────────────────────────────────


@rows("status", [200, 300, 302, 307, 399, 404])
def test_no_header_of_the_server_leads_a_client_anywhere(status: int) -> None:
    names = ("location", "refresh", "alt-svc", "set-cookie", "link", "x-anything", "clear-site-data")
    leading = {name.replace("-", "_"): AWAY for name in names}
    with UrlGuard("enforce", answering(lambda _, peer: peer.json(result(CALL, ANSWER), status, **leading))) as guard:
        answer = guard.post(CALL, guard.session(REVISION))
    assert [answer.header(name) for name in names] == [None] * len(names)
    if 300 <= status < 400:
        assert (answer.status, answer.error()["code"]) == (200, -31011)


def test_where_a_server_redirects_to_is_logged_once_and_without_secrets() -> None:
    tokens = iter(range(100))

    def redirects(_: Received, peer: Peer) -> None:
        peer.head(307, location=f"https://me:hunter2@books.example/mcp?token=hunter2{next(tokens)}")

    with UrlGuard("enforce", redirects) as guard:
        for _ in range(3):
            guard.post(MODERN_CALL, modern(MODERN_CALL))
    log = "\n".join(guard.said)
    assert log.count("assay: the server redirects to https://books.example/mcp,") == log.count("redirects to") == 1
    assert "hunter2" not in log


@rows(
    "twice",
    [
        ["content-encoding: gzip", "content-encoding: identity"],
        ["content-type: application/json", "content-type: text/event-stream"],
        ["content-type: application/json; charset=utf-16"],
        ["content-type: application/json", "content-encoding: deflate"],
        ["content-type: application/json", "mcp-session-id: a", "mcp-session-id: b"],
    ],
)
def test_an_answer_that_can_be_read_in_two_ways_is_none(twice: list[str]) -> None:
    frame = frame_of(result(CALL, ANSWER))

    def doubtful(_: Received, peer: Peer) -> None:
        lines = ["HTTP/1.1 200 OK", f"content-length: {len(frame)}", *twice, "", ""]
        peer.send("\r\n".join(lines).encode() + frame)

    with UrlGuard("enforce", answering(doubtful)) as guard:
        answer = guard.post(CALL, guard.session(REVISION))
    assert (answer.status, answer.error()["code"]) == (200, -31011)
    assert {name for name, _ in answer.pairs} == {"content-type", "content-length"}


@rows("session", [b"a b", b"a\xffb", b"x" * 5000, b"a\tb"])
def test_a_session_id_that_no_header_can_carry_back_is_none(session: bytes) -> None:
    def gives(received: Received, peer: Peer) -> None:
        frame = frame_of(result(received.message, OPENED))
        lines = [b"HTTP/1.1 200 OK", b"content-type: application/json", b"mcp-session-id: " + session]
        peer.send(b"\r\n".join([*lines, b"content-length: %d" % len(frame), b"", b""]) + frame)

    with UrlGuard("enforce", gives) as guard:
        answer = guard.post(initialize(REVISION), BOTH)
    assert (answer.error()["code"], answer.header("mcp-session-id")) == (-31011, None)


# ── what is stopped, and what comes in its place ─────────────────────────────────────────────────────────────────────


@rows(("status", "streamed"), [(200, False), (200, True), (404, False)])
def test_a_repaired_error_has_the_status_that_the_server_gave_it_and_a_result_200(status: int, streamed: bool) -> None:
    def answer(received: Received, peer: Peer) -> None:
        message = error(received.message["id"], -32002, "Not found")
        if received.message["method"] == "tools/list":
            peer.json(result(received.message, {"tools": []}))
        elif streamed:
            peer.events(message)
        else:
            peer.json(message, status)

    message, listing = request(3, "resources/read", {"uri": "a:b"}, LATEST), request(4, "tools/list", {}, LATEST)
    with UrlGuard("enforce", answer, policy=Policy(repairs=["protocol/*"])) as guard:
        got = guard.post(message, modern(message))
        assert (got.status, b'"code":-32602' in got.body.replace(b" ", b"")) == (status, True)
        got = guard.post(listing, modern(listing))
        expected = {"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        assert (got.status, got.json()["result"]) == (200, expected)


# ── what a policy lets pass does no harm to the guard itself ─────────────────────────────────────────────────────────

DISCOVER = request(1, "server/discover", {}, LATEST)


def test_a_bad_list_of_revisions_that_may_pass_does() -> None:
    bad = {"resultType": "complete", "supportedVersions": 5}
    script = answering(lambda _, peer: peer.json(result(DISCOVER, bad)), "server/discover")
    with UrlGuard("enforce", script, policy=Policy({"protocol/result": "pass"})) as guard:
        assert guard.post(DISCOVER, modern(DISCOVER)).json()["result"] == bad


def test_the_revisions_of_a_server_are_learned_from_an_answer_that_is_only_reported() -> None:
    """Without its resultType the answer is a complete one, and names the revisions of the server."""
    spoken = {"supportedVersions": [LATEST], "capabilities": {}, "ttlMs": 0, "cacheScope": "public"}
    script = answering(lambda _, peer: peer.json(result(DISCOVER, spoken)), "server/discover")
    unknown = request(2, "tools/list", {}, "2030-01-01")
    with UrlGuard("enforce", script) as guard:
        assert guard.post(DISCOVER, modern(DISCOVER)).json()["result"] == spoken
        assert guard.post(unknown, modern(unknown)).json()["error"]["data"]["supported"] == [LATEST]


# ── under audit a body goes on as it comes ───────────────────────────────────────────────────────────────────────────

LIMIT = 65536


@rows(
    ("message", "findings"),
    [
        pytest.param(result(CALL, MODERN_ANSWER), (), id="good"),
        pytest.param(result(CALL, {**MODERN_ANSWER, "content": 5}), ("/result/content",), id="bad"),
        pytest.param(
            {**result(CALL, MODERN_ANSWER), "id": 8},
            ("[protocol/unsolicited]", "[protocol/unanswered]"),
            id="another-answer",
        ),
        pytest.param(
            result(CALL, {**MODERN_ANSWER, "more": "x" * LIMIT}), (f"at most {LIMIT:,} bytes",), id="too-long"
        ),
    ],
)
def test_under_audit_a_body_goes_on_before_it_is_whole_and_is_judged_at_its_end(
    message: object, findings: tuple[str, ...]
) -> None:
    whole = frame_of(message)
    half = len(whole) // 2

    async def in_two_parts(_: Received, peer: MemoryPeer) -> None:
        peer.head(200, content_type="application/json", content_length=str(len(whole)))
        peer.send(whole[:half])
        await peer.wait()
        peer.send(whole[half:])

    async def scenario() -> bytes:
        exchange = await guard.begun("POST", body=MODERN_CALL, headers=modern(MODERN_CALL))
        assert (await exchange.until(whole[:half]), guard.log) == (whole[:half], [])
        guard.server.released.set()
        return (await exchange.answer()).body

    with UrlGuard("audit", in_two_parts, frame_bytes=LIMIT) as guard:
        assert guard.run(scenario()) == whole
    assert all(each in "\n".join(guard.log) for each in findings)
    assert findings or not guard.log


@rows("mode", ["audit", "enforce"])
def test_a_body_that_never_ends_is_given_up_with_its_client(mode: Any) -> None:
    """Under audit it is passed on piece by piece: a server that answers with several values is wrong, but heard."""

    async def endless(_: Received, peer: MemoryPeer) -> None:
        peer.head(200, content_type="application/json")
        peer.send(b'{"one":1}\n')
        await peer.wait()

    async def scenario() -> None:
        exchange = await guard.begun("POST", body=MODERN_CALL, headers=modern(MODERN_CALL))
        assert exchange.body == (b'{"one":1}\n' if mode == "audit" else b"")
        await exchange.leave()
        await settled()

    with UrlGuard(mode, answering(endless)) as guard:
        guard.run(scenario())
        assert guard.server.answers[-1].is_closed
