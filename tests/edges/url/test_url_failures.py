"""A server at a URL that is late, breaks off or says too much: the client gets one answer, and the guard goes on."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from assay.edges import url_backend
from assay.spec.revisions import LATEST
from kit.http_client import call, frame_of, modern, notification, request
from kit.memory_http import settled
from kit.rows import rows
from kit.scripted_http import REVISION, TOOL, Peer, Received, answering, good, result
from kit.url_guard import BEARERS, MemoryPeer, UrlGuard

CALL = call(7, "search", {"words": "sea"})
MODERN_CALL = call(7, "search", {"words": "sea"}, LATEST)
ANSWER: dict[str, Any] = {"content": [], "structuredContent": {"found": 1}, "resultType": "complete"}


def sends(data: bytes, status: int = 200, **headers: str) -> Any:
    """A server that answers with *data*, whatever it is asked."""

    def script(_: Received, peer: Peer) -> None:
        peer.head(status, **headers)
        peer.send(data)

    return script


JSON: dict[str, Any] = {"content_type": "application/json"}
UNANSWERED = [
    (lambda *_: None, 502, None),
    (sends(b'{"id":7,', content_length="1000", **JSON), 200, b'{"id":7,'),
    (sends(b"oops, no JSON", **JSON), 200, b"oops, no JSON"),
    (sends(b'{"ok":true}', **JSON), 200, b'{"ok":true}'),
    (sends(b"<html>Sign in", content_type="text/html"), 200, b"<html>Sign in"),
    (sends(b"", content_length="0"), 200, b""),
    (sends(b"", 202, content_length="0", **JSON), 202, b""),
    (sends(b"<html>Down", 503, content_type="text/html"), 503, b"<html>Down"),
    (sends(b"\x1f\x8b\x08", content_encoding="gzip", **JSON), 200, b"\x1f\x8b\x08"),
    (sends(b"", 307, location="http://away.example/mcp/", content_length="0"), 307, b""),
    (sends(b"{}", 999, content_length="2", **JSON), 502, None),
]


@rows(("script", "status", "body"), UNANSWERED)
def test_a_request_without_an_answer_fails_by_its_id_and_under_audit_comes_what_the_server_said(
    script: Any, status: int, body: bytes | None
) -> None:
    """In a session it fails with 200: the libraries of that era never look into the body of anything else."""
    with UrlGuard() as guard:
        for message, session, expected in ((MODERN_CALL, modern(MODERN_CALL), 502), (CALL, None, 200)):
            guard.server.script = good
            headers = session or guard.session(REVISION)
            guard.server.script = script
            answer = guard.post(message, headers)
            assert (answer.status, answer.json()["id"]) == (expected, 7)
            assert answer.error()["code"] in {-31010, -31011}
        guard.server.script = lambda received, peer: peer.json(result(received.message, ANSWER))
        assert guard.post(MODERN_CALL, modern(MODERN_CALL)).json()["result"] == ANSWER
    with UrlGuard("audit", script) as guard:
        answer = guard.post(MODERN_CALL, modern(MODERN_CALL))
    assert answer.status == status
    if body is None:
        assert (answer.json()["id"], answer.error()["code"]) == (7, -31011)
    else:
        assert answer.body == body


@rows(
    "stream", [notification("notifications/message", {"level": "info", "data": "a"}), b'data: {"jsonrpc":"2.0","id":7']
)
def test_a_stream_that_ends_without_the_answer_ends_with_an_error(stream: Any) -> None:
    with UrlGuard("enforce", answering(lambda _, peer: peer.events(stream))) as guard:
        answer = guard.post(CALL, guard.session(REVISION))
    [last] = [each for each in answer.events() if '"id"' in each["data"]]
    assert '"id":7,"error":{"code":-31011' in last["data"]


def test_under_enforce_half_a_refusal_is_a_whole_one_of_the_guard() -> None:
    """The status is known, and what the body says of it is written anew, as far as it came."""
    half = sends(b"half", 403, content_type="text/plain", content_length="1000")
    with UrlGuard("enforce", half) as guard:
        answer = guard.post(MODERN_CALL, modern(MODERN_CALL))
    assert (answer.status, answer.json()["id"]) == (403, 7)
    assert answer.error()["data"]["detail"] == "the server answered with HTTP status 403: half"


def test_of_a_session_whose_server_is_lost_the_last_messages_are_kept_once(tmp_path: Path) -> None:
    with UrlGuard(flights=str(tmp_path / "flights")) as guard:
        headers = guard.session(REVISION)
        for broken in (sends(b"<html>", content_type="text/html"), lambda *_: None):
            guard.server.script = broken
            guard.post(CALL, headers)
    [flight] = (tmp_path / "flights").iterdir()
    lines = [json.loads(line) for line in flight.read_text().splitlines()]
    methods = [json.loads(each["msg"]).get("method") for each in lines if "msg" in each]
    assert methods == ["initialize", None, "notifications/initialized", "tools/call", "tools/call"]


# ── time: the clock of the loop moves when everything waits ──────────────────────────────────────────────────────────


def test_progress_gives_a_server_more_time_and_so_does_a_client_that_reads_slowly() -> None:
    async def steady(received: Received, peer: MemoryPeer) -> None:
        peer.events()
        for step in range(10):
            await asyncio.sleep(5)
            peer.event(notification("notifications/progress", {"progressToken": "t", "progress": step}))
        peer.event(result(received.message, ANSWER))

    async def slow_reader() -> None:
        exchange = await guard.begun("POST", body=message, headers=modern(message))
        await exchange.until(b"notifications/progress")
        exchange.reads.clear()
        await asyncio.sleep(100)
        exchange.reads.set()
        assert b'"found":1' in (await exchange.answer()).body

    params = {"name": "search", "arguments": {"words": "sea"}, "_meta": {"progressToken": "t"}}
    message = request(7, "tools/call", params, LATEST)
    with UrlGuard("enforce", answering(steady), timeout=6.0) as guard:
        answer = guard.post(request(1, "tools/call", params), guard.session(REVISION))
        assert '"result"' in answer.events()[-1]["data"]
        assert len(answer.events()) == 11
        guard.run(slow_reader())


def test_who_comes_back_for_an_answer_waits_no_longer_than_for_any_other() -> None:
    async def breaks_off(received: Received, peer: MemoryPeer) -> None:
        if received.method == "GET":
            peer.events(b"id: 1-1\ndata:\n\n")
            await peer.wait()
        elif received.message.get("method") == "tools/call":
            peer.events(b"id: 1-0\ndata:\n\n")
        else:
            good(received, peer)

    with UrlGuard("enforce", breaks_off, timeout=6.0) as guard:
        headers = guard.session(REVISION)
        assert len(guard.post(CALL, headers).events()) == 1
        answer = guard.ask("GET", headers={**headers, "last-event-id": "1-0"})
    assert '"id":7,"error":{"code":-31012' in answer.events()[-1]["data"]


# ── bytes ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_body_or_an_event_without_end_is_not_read_to_it() -> None:
    sent = 0

    async def endless(received: Received, peer: MemoryPeer) -> None:
        nonlocal sent
        if received.header("mcp-session-id"):
            peer.events()
            peer.send(b'data: {"jsonrpc":"2.0","id":7,"result":{"content":[],"text":"')
        else:
            peer.head(200, content_type="application/json")
            peer.send(b'{"jsonrpc":"2.0","id":7,"result":{"content":[],"text":"')
        while sent < 2 << 20:
            peer.send(b"x" * 65536)
            sent += 65536
            await peer.taken()
        peer.send(b'"}}\n\n')

    with UrlGuard("enforce", answering(endless), frame_bytes=100_000) as guard:
        answer = guard.post(MODERN_CALL, modern(MODERN_CALL))
        assert (answer.status, answer.json()["id"], answer.error()["code"]) == (502, 7, -31010)
        assert sent < 1 << 20
        answer = guard.post(CALL, guard.session(REVISION))
        assert '"id":7,"error":{"code":-31010' in answer.events()[0]["data"]
        assert len(answer.body) < 10_000


@rows("mode", ["enforce", "audit"])
def test_long_answers_of_one_principal_fail_no_other(mode: Any) -> None:
    """The one who holds most loses its longest answer; under audit that goes on unjudged."""
    described = {"description": "x" * 100, "inputSchema": {"type": "object"}}
    listed = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    tools = [{"name": f"tool-{number}", **described} for number in range(150)]

    async def slowly(received: Received, peer: MemoryPeer) -> None:
        ident = received.message["id"]
        frame = frame_of(result(received.message, {**listed, "tools": tools if ident == 9 else []}))
        peer.head(200, content_type="application/json")
        if ident != 9:
            # Those of the others are short, so that only what they hold meanwhile counts.
            peer.send(b" " * 30_000)
            await peer.wait()
        for at in range(0, len(frame), 500):
            peer.send(frame[at : at + 500])

    def listing(ident: int, principal: str) -> dict[str, Any]:
        message = request(ident, "tools/list", {}, LATEST)
        return {"body": message, "headers": {**modern(message), **BEARERS[principal]}}

    async def scenario() -> tuple[Any, list[Any]]:
        bobs = [await guard.begun("POST", **listing(number, "bob")) for number in range(3)]
        await settled()
        assert guard.backend._held.total == 90_000
        answer = await guard.asked("POST", **listing(9, "alice"))
        guard.server.released.set()
        return answer.json(), [(await each.answer()).json() for each in bobs]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(url_backend, "HELD_BYTES", 100_000)
        with UrlGuard(mode, slowly, keys=True) as guard:
            answer, bobs = guard.run(scenario())
    assert answer["result"]["tools"] == tools
    failed = [each for each in bobs if "error" in each]
    assert len(failed) == (1 if mode == "enforce" else 0)
    assert all("too many long answers" in each["error"]["message"] for each in failed)
    assert not [line for line in guard.said if "protocol/unanswered" in line], "the server is not to blame"


# ── the guard's own request for the tools ────────────────────────────────────────────────────────────────────────────


def lists_by(lists: Any, *, mode: Any = "enforce") -> UrlGuard:
    """A guard in front of a server that answers the guard's own list by *lists*."""
    guard = UrlGuard(mode, answering(lambda received, peer: lists(received.message, peer), "tools/list"))
    guard.server.shows_lists = True
    return guard


async def late_list(message: Any, peer: MemoryPeer) -> None:
    await peer.wait()
    peer.json(result(message, {"tools": [TOOL]}))


@rows("wrong", ["another-id", "no-json", "batch"])
def test_an_answer_that_is_not_that_of_the_list_is_not_asked_for_again(wrong: str) -> None:
    def lists(message: Any, peer: Peer) -> None:
        right = result(message, {"tools": [TOOL]})
        if wrong == "no-json":
            peer.head(200, content_type="text/html", content_length="2")
            peer.send(b"no")
        else:
            peer.json({**right, "id": "other"} if wrong == "another-id" else [right])

    with lists_by(lists) as guard:
        assert "result" in guard.post(CALL, guard.session(REVISION)).json()
        assert guard.server.asked().count("tools/list") == 1


@rows("streamed", [False, True])
def test_a_call_is_judged_by_the_list_that_the_guard_has_asked_for(streamed: bool) -> None:
    """Other messages before it are passed over, even one with the id of the request in it."""

    def lists(message: Any, peer: Peer) -> None:
        log = notification("notifications/message", {"level": "info", "data": f'"id":"{message["id"]}"'})
        if streamed:
            peer.events(log, result(message, {"tools": [TOOL]}))
        else:
            peer.json(result(message, {"tools": [TOOL]}))

    with lists_by(lists) as guard:
        assert guard.post(call(1, "search", {"words": 5}), guard.session(REVISION)).json()["result"]["isError"] is True
        assert guard.server.asked().count("tools/call") == 0


def test_the_tools_of_a_client_without_a_session_are_kept_once_the_server_has_accepted_it() -> None:
    listed = {"tools": [TOOL], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    with lists_by(lambda message, peer: peer.json(result(message, listed))) as guard:
        for token in ("Bearer good", "Bearer good", "Bearer other"):
            guard.post(MODERN_CALL, modern(MODERN_CALL, authorization=token))
        assert guard.server.asked().count("tools/list") == 2
        guard.server.script = answering(
            lambda received, peer: peer.json(result(received.message, listed)), "tools/list", sends(b"", 401)
        )
        for _ in range(2):
            guard.post(MODERN_CALL, modern(MODERN_CALL, authorization="Bearer refused"))
        assert guard.server.asked().count("tools/list") == 4


def test_of_what_the_guard_itself_has_to_say_to_a_server_only_so_much_waits() -> None:
    """Here it refuses bad requests of a server that does not take its answers."""

    async def asks(received: Received, peer: MemoryPeer) -> None:
        if received.message.get("method") == "tools/call":
            bad = [request(f"r{number}", "sampling/createMessage", {"messages": "none"}) for number in range(9)]
            peer.events(*bad, result(CALL, ANSWER))
        elif "method" in received.message:
            good(received, peer)
        else:
            await peer.wait()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(url_backend, "MOST_BESIDE", 2)
        with UrlGuard("enforce", asks) as guard:
            assert len(guard.post(CALL, guard.session(REVISION, {"sampling": {}})).events()) == 1
            assert len([each for each in guard.server.seen if "method" not in each.message]) == 2
    assert len([line for line in guard.said if "some were dropped" in line]) == 1


def test_a_call_whose_client_has_gone_before_the_list_came_is_not_forwarded() -> None:
    async def scenario() -> Any:
        gone = await guard.begun("POST", body=CALL, headers=headers)
        await gone.leave()
        guard.server.released.set()
        return (await guard.asked("POST", body=call(3, "search", {"words": "again"}), headers=headers)).json()

    with lists_by(late_list) as guard:
        headers = guard.session(REVISION)
        assert "result" in guard.run(scenario())
        called = [each.message for each in guard.server.seen if each.body and each.message["method"] == "tools/call"]
    assert [each["params"]["arguments"] for each in called] == [{"words": "again"}]
