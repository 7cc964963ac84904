"""What passes between a client and a server at a URL: sessions, streams, requests either way, byte for byte."""

import json
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from assay.edges.awaited_exchange import SOON
from assay.edges.url_sessions import REMEMBERED
from assay.ladder.events import PING, event
from assay.spec.revisions import LATEST
from kit import journals
from kit.http_client import BOTH, Service, call, events, frame_of, initialize, modern, notification, request, until
from kit.scripted_http import REVISION, SESSION, TOOL, Liar, Peer, Received, good, guarding, lying, result

Where = tuple[Service, Liar]


@pytest.fixture(scope="module", params=["enforce", "audit"])
def _guard(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Where]:
    with lying() as liar, guarding(tmp_path_factory.mktemp("guard"), liar.url, "--mode", request.param) as guard:
        yield guard, liar


@pytest.fixture
def either(_guard: Where) -> Iterator[Where]:
    """A guard in either mode."""
    _guard[1].forget()
    yield _guard
    _guard[1].forget()


@pytest.fixture(scope="module")
def _enforcing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Where]:
    with lying() as liar, guarding(tmp_path_factory.mktemp("guard"), liar.url, "--mode", "enforce") as guard:
        yield guard, liar


@pytest.fixture(scope="module")
def _auditing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Where]:
    with lying() as liar, guarding(tmp_path_factory.mktemp("guard"), liar.url) as guard:
        yield guard, liar


@pytest.fixture
def auditing(_auditing: Where) -> Iterator[Where]:
    """A guard that only looks."""
    _auditing[1].forget()
    yield _auditing
    _auditing[1].forget()


@pytest.fixture
def enforcing(_enforcing: Where) -> Iterator[Where]:
    """A guard that stops what is wrong."""
    _enforcing[1].forget()
    yield _enforcing
    _enforcing[1].forget()


CALL = call(7, "search", {"words": "sea"})
NOTE = notification("notifications/message", {"level": "info", "data": "soon"})
ANSWER = {"content": [], "structuredContent": {"found": 1}}


def answering(script: Any, method: str = "tools/call") -> Any:
    """A good server, but for one method, or for GET, which *script* answers."""

    def scripted(received: Received, peer: Peer) -> None:
        named = received.message.get("method") if received.body else received.method
        (script if named == method else good)(received, peer)

    return scripted


# ── byte for byte ────────────────────────────────────────────────────────────────────────────────────────────────────


BODY = b'{ "result":\n {"content": [ ], "structuredContent": {"found":1e0}},\r\n "id" : 7, "jsonrpc":"2.0" }\n'


def test_under_audit_a_body_comes_with_the_bytes_the_status_and_the_headers_it_was_sent_with(auditing: Where) -> None:
    guard, liar = auditing
    liar.script = answering(lambda _, peer: peer.json(BODY, 203, x_served_by="a", set_cookie="k=v", server="mine"))
    answer = guard.post(CALL, guard.session(REVISION))
    assert (answer.status, answer.body) == (203, BODY)
    assert [answer.header(name) for name in ("x-served-by", "set-cookie", "server")] == ["a", "k=v", "mine"]


def test_under_enforce_a_good_body_comes_with_its_bytes_and_headers_of_the_guard(enforcing: Where) -> None:
    guard, liar = enforcing
    liar.script = answering(lambda _, peer: peer.json(BODY, 203, x_served_by="a", set_cookie="k=v", server="mine"))
    answer = guard.post(CALL, guard.session(REVISION))
    assert (answer.status, answer.body) == (200, BODY)
    assert {name for name, _ in answer.pairs} == {"content-type", "content-length", "date"}


def test_under_audit_a_request_reaches_the_server_with_its_bytes_headers_and_query(auditing: Where) -> None:
    guard, liar = auditing
    headers = {**guard.session(REVISION), "x-custom": "a b", "authorization": "Bearer client", "connection": "x-hop"}
    liar.forget()
    frame = (
        b'{"id":7.0 , "method":"tools/call","params":{"arguments":{"words":"\\u0061"},"name":"search"},"jsonrpc":"2.0"}'
    )
    guard.ask("POST", "/mcp?tenant=1", frame, {**headers, "x-hop": "secret"})
    received = liar.next("tools/call")
    assert (received.body, received.path) == (frame, "/mcp?tenant=1")
    assert received.header("x-custom") == "a b"
    assert received.header("authorization") == "Bearer client"
    assert received.header("host") == liar.url.split("/")[2]
    assert received.header("accept-encoding") == "identity"
    assert received.header("x-hop") is None


STREAM = (
    b"\xef\xbb\xbf: hello\r\n\r\nid: 1-0\nretry: 50\ndata:\n\n"
    b"event: message\rid: 1-1\rdata: " + frame_of(NOTE) + b"\r\r"
    b': between\n\nevent: ping\ndata: "tick"\n\n\n'
    b'data: {"jsonrpc":"2.0",\r\ndata: "id":7,\r\ndata: "result":' + frame_of(ANSWER) + b"}\r\nid: 1-2\r\n\r\n: bye\n\n"
)


BROKEN_LINE = 'data: {"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"a\u2028id: 9\u2029\x85b"}}\n\n'


def test_under_enforce_no_character_of_a_message_ends_a_line_of_its_event(enforcing: Where) -> None:
    guard, liar = enforcing
    liar.script = answering(lambda _, peer: peer.events(BROKEN_LINE.encode()))
    body = guard.post(CALL, guard.session(REVISION)).body.decode()
    assert body.splitlines() == body.split("\r\n")[:-1]
    assert json.loads(events(body.encode())[0]["data"])["error"]["message"] == "a\u2028id: 9\u2029\x85b"


def test_under_audit_an_event_keeps_characters_that_some_readers_split_at(auditing: Where) -> None:
    guard, liar = auditing
    liar.script = answering(lambda _, peer: peer.events(BROKEN_LINE.encode()))
    assert guard.post(CALL, guard.session(REVISION)).body == BROKEN_LINE.encode()


def test_under_audit_a_stream_comes_byte_for_byte(auditing: Where) -> None:
    guard, liar = auditing

    def pieces(_: Received, peer: Peer) -> None:
        peer.events()
        for at in range(0, len(STREAM), 7):
            peer.send(STREAM[at : at + 7])

    liar.script = answering(pieces)
    answer = guard.post(CALL, guard.session(REVISION))
    assert answer.header("content-type") == "text/event-stream"
    assert answer.body == STREAM


def test_under_enforce_a_stream_is_written_anew_with_what_was_judged(enforcing: Where) -> None:
    """One line of data for a message; of the rest, ids, retry times and signs of life."""
    guard, liar = enforcing

    def pieces(_: Received, peer: Peer) -> None:
        peer.events()
        for at in range(0, len(STREAM), 7):
            peer.send(STREAM[at : at + 7])

    liar.script = answering(pieces)
    body = guard.post(CALL, guard.session(REVISION)).body
    joined = b'{"jsonrpc":"2.0", "id":7, "result":' + frame_of(ANSWER) + b"}"
    assert body == b"".join(
        [
            PING,
            b"retry: 50\r\nid: 1-0\r\ndata: \r\n\r\n",
            event(frame_of(NOTE), b"1-1"),
            PING,
            PING,  # an event with a name of its own is a sign of life, and nothing else
            event(joined, b"1-2"),
            PING,
        ]
    )


def test_an_event_is_not_held_back_for_the_next(either: Where) -> None:
    guard, liar = either
    headers = guard.session(REVISION)

    def one(_: Received, peer: Peer) -> None:
        peer.events(NOTE)
        peer.wait()
        peer.event(result(CALL, ANSWER))

    liar.script = answering(one)
    with guard.open() as wire:
        wire.say("POST", "/mcp", frame_of(CALL), headers)
        assert wire.head().status == 200
        assert json.loads(events(wire.chunk())[0]["data"]) == NOTE
        liar.released.set()
        assert b'"found":1' in wire.chunk()


# ── what is stopped ──────────────────────────────────────────────────────────────────────────────────────────────────


def failed_by(result: dict[str, Any]) -> str:
    """What a failed result of a tool says of the rule that was broken."""
    assert result["isError"] is True
    text: str = result["content"][0]["text"]
    return text


def test_a_bad_answer_on_a_stream_is_a_failed_result_with_the_same_id(enforcing: Where) -> None:
    guard, liar = enforcing
    headers = guard.session(REVISION)
    guard.post(request("list", "tools/list"), headers)
    bad = frame_of(result(CALL, {"content": [], "structuredContent": {"found": "many"}}))
    liar.script = answering(lambda _, peer: peer.events(NOTE, b"id: 3-1\ndata: " + bad + b"\n\n"))
    first, second = guard.post(CALL, headers).events()
    assert json.loads(first["data"]) == NOTE
    assert second["id"] == "3-1"
    assert "[contract/output]" in failed_by(json.loads(second["data"])["result"])


def test_a_bad_answer_as_a_body_is_a_failed_result(enforcing: Where) -> None:
    guard, liar = enforcing
    headers = guard.session(REVISION)
    liar.script = answering(lambda received, peer: peer.json(result(received.message, {"content": 5})))
    answer = guard.post(CALL, headers)
    assert (answer.status, answer.json()["id"]) == (200, 7)
    assert "[protocol/result]" in failed_by(answer.json()["result"])
    modern_call = call("m", "search", {"words": "sea"}, LATEST)
    answer = guard.post(modern_call, modern(modern_call))
    assert (answer.status, answer.json()["id"]) == (200, "m")
    assert "[protocol/result]" in failed_by(answer.json()["result"])


def test_a_list_without_its_bad_entries_is_a_good_answer(enforcing: Where) -> None:
    guard, liar = enforcing
    lasting = {"resultType": "complete", "ttlMs": 1, "cacheScope": "private"}
    tools = {"tools": [TOOL, {"name": "broken", "inputSchema": 5}], **lasting}
    liar.script = answering(lambda received, peer: peer.json(result(received.message, tools)), "tools/list")
    listed = request("m", "tools/list", revision=LATEST)
    answer = guard.post(listed, modern(listed))
    assert (answer.status, answer.json()["result"]["tools"]) == (200, [TOOL])


def test_a_bad_list_as_a_body_is_an_error(enforcing: Where) -> None:
    guard, liar = enforcing
    headers = guard.session(REVISION)
    liar.script = answering(lambda received, peer: peer.json(result(received.message, {"tools": 5})), "tools/list")
    answer = guard.post(request(8, "tools/list"), headers)
    assert (answer.status, answer.error()["code"], answer.json()["id"]) == (200, -31010, 8)
    listed = request("m", "tools/list", revision=LATEST)
    answer = guard.post(listed, modern(listed))
    assert (answer.status, answer.error()["code"], answer.json()["id"]) == (502, -31010, "m")


def test_a_bad_notification_and_a_second_answer_stop(enforcing: Where) -> None:
    guard, liar = enforcing
    bad = notification("notifications/message", {"level": "loud"})
    answer = result(CALL, ANSWER)
    liar.script = answering(lambda _, peer: peer.events(bad, b"data: no JSON\n\n", answer, answer, NOTE))
    got = [json.loads(each["data"]) for each in guard.post(CALL, guard.session(REVISION)).events()]
    assert got == [answer, NOTE]


def test_a_list_with_a_bad_entry_comes_without_it(enforcing: Where) -> None:
    guard, liar = enforcing
    tools = [TOOL, {"name": "no schema"}]
    liar.script = answering(lambda received, peer: peer.json(result(received.message, {"tools": tools})), "tools/list")
    answer = guard.post(request(1, "tools/list"), guard.session(REVISION))
    assert answer.json()["result"]["tools"] == [TOOL]
    assert answer.header("content-length") == str(len(answer.body))


def test_of_a_batch_what_is_bad_is_answered_here_and_the_rest_there(enforcing: Where) -> None:
    guard, liar = enforcing

    def batches(received: Received, peer: Peer) -> None:
        message = received.message
        if isinstance(message, list):
            peer.json([result(each, {}) for each in message])
        elif message.get("method") == "initialize":
            info = {"protocolVersion": "2025-03-26", "capabilities": {}, "serverInfo": {"name": "a", "version": "1"}}
            peer.json(result(message, info), mcp_session_id=SESSION)
        else:
            good(received, peer)

    liar.script = batches
    headers = guard.session("2025-03-26")
    answer = guard.post([request(1, "ping"), request(2, "nope/nope"), request(3, "ping")], headers)
    got = {each["id"]: "result" in each for each in answer.json()}
    assert got == {1: True, 2: False, 3: True}
    assert [each["id"] for each in liar.seen[-1].message] == [1, 3]


# ── requests of the server ───────────────────────────────────────────────────────────────────────────────────────────

ROOTS = request("r1", "roots/list")


def opened(guard: Service, **more: str) -> dict[str, str | bytes]:
    """The headers of a session whose client has everything."""
    first = initialize(REVISION)
    first["params"]["capabilities"] = {"roots": {}, "sampling": {}, "elicitation": {}}
    answer = guard.post(first, {**BOTH, **more})
    headers = {**BOTH, "mcp-session-id": answer.header("mcp-session-id") or "", "mcp-protocol-version": REVISION}
    assert guard.post(notification("notifications/initialized"), {**headers, **more}).status == 202
    return {**headers, **more}


@pytest.mark.parametrize("token", ["Bearer old", "Bearer new"])
def test_what_the_server_asks_on_a_stream_is_answered_by_a_request(either: Where, token: str) -> None:
    """Also with another token than the stream was asked for with: they are renewed while somebody thinks."""
    guard, liar = either
    headers = opened(guard, authorization="Bearer old")

    def asks(_: Received, peer: Peer) -> None:
        peer.events(ROOTS)
        peer.wait()
        peer.event(result(CALL, ANSWER))

    liar.script = answering(asks)
    with guard.open() as wire:
        wire.say("POST", "/mcp", frame_of(CALL), headers)
        wire.head()
        assert b"roots/list" in wire.chunk()
        given = result(ROOTS, {"roots": [{"uri": "file:///a"}]})
        assert guard.post(given, {**headers, "authorization": token}).status == 202
        liar.released.set()
        assert b'"found":1' in wire.chunk()
    assert [each.message for each in liar.seen if each.body and "method" not in each.message] == [given]


def test_a_bad_request_of_the_server_is_answered_to_it(enforcing: Where) -> None:
    guard, liar = enforcing
    headers = opened(guard)
    bad = request("r2", "sampling/createMessage", {"messages": "none"})
    liar.script = answering(lambda _, peer: peer.events(bad, result(CALL, ANSWER)))
    [only] = guard.post(CALL, headers).events()
    assert json.loads(only["data"])["id"] == 7
    until(lambda: any(each.body and each.message.get("id") == "r2" for each in liar.seen))
    [told] = [each for each in liar.seen if each.body and each.message.get("id") == "r2"]
    assert told.message["error"]["code"] == -32602
    assert told.header("mcp-session-id") == SESSION


# ── streams of a session, and coming back to them ────────────────────────────────────────────────────────────────────


def test_the_stream_of_a_session_is_judged(enforcing: Where) -> None:
    guard, liar = enforcing
    headers = opened(guard)

    def streams(_: Received, peer: Peer) -> None:
        peer.events(notification("nope/nope"), NOTE, ROOTS)
        peer.wait()

    liar.script = answering(streams, "GET")
    with guard.open() as wire:
        wire.say("GET", "/mcp", headers=headers)
        assert wire.head().header("content-type") == "text/event-stream"
        got = wire.until(b"roots/list")
        assert b"nope/nope" not in got
        assert guard.post(result(ROOTS, {"roots": []}), headers).status == 202


def test_a_stream_that_can_be_resumed_ends_as_the_server_ends_it(either: Where) -> None:
    guard, liar = either
    headers = guard.session(REVISION)
    first = b"id: 9-0\nretry: 10\ndata: \n\n"
    last = b"id: 9-1\ndata: " + frame_of(result(CALL, ANSWER)) + b"\n\n"
    liar.script = answering(lambda _, peer: peer.events(first))
    assert guard.post(CALL, headers).events() == events(first)
    liar.script = answering(lambda _, peer: peer.events(last), "GET")
    for _ in range(3):
        answer = guard.ask("GET", headers={**headers, "last-event-id": "9-0"})
        [again] = answer.events()
        assert (again["id"], json.loads(again["data"])) == ("9-1", result(CALL, ANSWER))
    assert {each.header("last-event-id") for each in liar.seen if each.method == "GET"} == {"9-0"}


def test_an_event_that_comes_again_with_something_else_in_it_is_judged(enforcing: Where) -> None:
    guard, liar = enforcing
    headers = guard.session(REVISION)
    good_event = b"id: 9-1\ndata: " + frame_of(result(CALL, ANSWER)) + b"\n\n"
    judged = event(frame_of(result(CALL, ANSWER)), b"9-1")
    liar.script = answering(lambda _, peer: peer.events(good_event))
    assert guard.post(CALL, headers).body == judged
    forged = b"id: 9-1\ndata: " + frame_of(result(CALL, {**ANSWER, "content": [], "isError": True})) + b"\n\n"
    liar.script = answering(lambda _, peer: peer.events(forged, good_event), "GET")
    assert guard.ask("GET", headers={**headers, "last-event-id": "9-0"}).body == judged


def test_an_event_that_comes_twice_on_one_stream_is_no_second_answer(enforcing: Where) -> None:
    guard, liar = enforcing
    headers = guard.session(REVISION)
    good_event = b"id: 9-1\ndata: " + frame_of(result(CALL, ANSWER)) + b"\n\n"
    judged = event(frame_of(result(CALL, ANSWER)), b"9-1")
    liar.script = answering(lambda _, peer: peer.events(good_event, good_event))
    assert guard.post(CALL, headers).body == judged
    liar.script = answering(lambda _, peer: peer.events(good_event, good_event), "GET")
    assert guard.ask("GET", headers={**headers, "last-event-id": "9-0"}).body == judged


def test_what_was_put_in_place_of_an_event_comes_again_too(enforcing: Where) -> None:
    guard, liar = enforcing
    headers = guard.session(REVISION)
    bad = b"id: 9-1\ndata: " + frame_of(result(CALL, {"content": 5})) + b"\n\n"
    liar.script = answering(lambda _, peer: peer.events(bad))
    first = guard.post(CALL, headers).events()
    assert "[protocol/result]" in first[0]["data"]
    liar.script = answering(lambda _, peer: peer.events(bad), "GET")
    assert guard.ask("GET", headers={**headers, "last-event-id": "9-0"}).events() == first


def test_an_answer_that_comes_again_and_is_not_remembered_is_an_error(enforcing: Where) -> None:
    """The client may not have got it, and would wait."""
    guard, liar = enforcing
    headers = guard.session(REVISION)
    answers = b"id: 9-1\ndata: " + frame_of(result(CALL, ANSWER)) + b"\n\n"
    notes = b"".join(b"id: 9-%d\ndata: %b\n\n" % (number, frame_of(NOTE)) for number in range(2, REMEMBERED + 3))
    liar.script = answering(lambda _, peer: peer.events(answers + notes))
    assert guard.post(CALL, headers).status == 200
    liar.script = answering(lambda _, peer: peer.events(answers), "GET")
    [again] = guard.ask("GET", headers={**headers, "last-event-id": "9-0"}).events()
    answer = json.loads(again["data"])
    assert (again["id"], answer["id"], answer["error"]["code"]) == ("9-1", 7, -31011)
    assert "could not be kept until the client resumed" in answer["error"]["message"]


# ── whose conversation it is ─────────────────────────────────────────────────────────────────────────────────────────


def test_clients_with_the_same_ids_do_not_meet(either: Where) -> None:
    guard, liar = either
    headers = [opened(guard, authorization=f"Bearer {name}") for name in "ab"]

    def waits(_: Received, peer: Peer) -> None:
        peer.wait()
        peer.json(result(CALL, ANSWER))

    liar.script = answering(waits)
    with guard.open() as one, guard.open() as other:
        for wire, mine in zip((one, other), headers, strict=True):
            wire.say("POST", "/mcp", frame_of(CALL), mine)
            liar.next("tools/call")
        liar.released.set()
        assert [wire.answer().json()["result"] for wire in (one, other)] == [ANSWER, ANSWER]


def test_many_requests_at_once_with_one_id_each_get_their_own_answer(either: Where) -> None:
    guard, liar = either

    def echoes(received: Received, peer: Peer) -> None:
        said = received.message["params"]["arguments"]["words"]
        content = [{"type": "text", "text": said}]
        answer = result(received.message, {"content": content, "resultType": "complete"})
        if int(said) % 2:
            peer.json(answer)
        else:
            peer.events(answer)

    liar.script = echoes

    def asked(number: int) -> str:
        message = call(1, "echo", {"words": str(number)}, LATEST)
        answer = guard.post(message, modern(message))
        said = answer.json() if number % 2 else json.loads(answer.events()[0]["data"])
        return str(said["result"]["content"][0]["text"])

    with ThreadPoolExecutor(20) as pool:
        assert list(pool.map(asked, range(200))) == [str(number) for number in range(200)]


def test_tools_of_one_client_are_not_anothers(enforcing: Where) -> None:
    guard, liar = enforcing
    listing = request(1, "tools/list", {}, LATEST)
    bad = call(2, "search", {"words": 5}, LATEST)

    def lists(received: Received, peer: Peer) -> None:
        """The tool takes numbers from the second client."""
        complete: dict[str, Any] = {"resultType": "complete"}
        asked = received.message
        if asked["method"] == "tools/list":
            any_words = {**TOOL, "inputSchema": {"type": "object", "properties": {"words": {}}}}
            tool = any_words if received.header("authorization") == "Bearer b" else TOOL
            peer.json(result(asked, {"tools": [tool], "ttlMs": 0, "cacheScope": "private", **complete}))
        else:
            peer.json(result(bad, {**ANSWER, **complete}))

    liar.script, liar.shows_lists = lists, True
    assert "result" in guard.post(listing, modern(listing, authorization="Bearer a")).json()
    assert guard.post(bad, modern(bad, authorization="Bearer b")).json()["result"].get("isError") is None
    assert guard.post(bad, modern(bad, authorization="Bearer a")).json()["result"]["isError"]


BAD_CALL = call(8, "search", {"words": 5})


@pytest.mark.parametrize(
    "renewed",
    [
        pytest.param({"authorization": "Bearer new"}, id="a-new-token"),
        pytest.param({"authorization": "Bearer old", "x-api-key": "mine"}, id="a-key-beside-it"),
    ],
)
def test_a_session_goes_on_with_what_is_shown_anew(enforcing: Where, renewed: dict[str, str]) -> None:
    """Its tools are known at once, and what was asked before is answered on a stream that is come back to."""
    guard, liar = enforcing
    first = b"id: 9-0\ndata: \n\n"
    last = b"id: 9-1\ndata: " + frame_of(result(CALL, ANSWER)) + b"\n\n"

    def numbered(received: Received, peer: Peer) -> None:
        if received.method == "GET":
            peer.events(last)
        elif received.message.get("method") == "initialize":
            info = {
                "protocolVersion": REVISION,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "a", "version": "1"},
            }
            peer.json(result(received.message, info), mcp_session_id=f"with-{len(renewed)}")
        elif received.message.get("id") == CALL["id"]:
            peer.events(first)
        elif received.header("authorization") == "Bearer forged":
            peer.head(404, content_length="0")
        else:
            good(received, peer)

    liar.script = numbered
    opened_with = guard.session(REVISION, authorization="Bearer old")
    anew = {**opened_with, **renewed}
    assert guard.post(request(1, "tools/list"), opened_with).json()["result"]["tools"] == [TOOL]
    assert guard.post(CALL, opened_with).events() == events(first)
    assert guard.post(request(2, "ping"), {**opened_with, "authorization": "Bearer forged"}).status == 404
    before = len(liar.seen)
    assert failed_by(guard.post(BAD_CALL, anew).json()["result"]), "with the first message already"
    again = guard.ask("GET", headers={**anew, "last-event-id": "9-0"})
    assert again.body == event(frame_of(result(CALL, ANSWER)), b"9-1")
    assert failed_by(guard.post(BAD_CALL, anew).json()["result"])
    assert failed_by(guard.post(BAD_CALL, opened_with).json()["result"])
    assert len(liar.seen) == before + 1


def test_a_server_without_sessions_is_guarded_as_well(either: Where) -> None:
    guard, liar = either

    def sessionless(received: Received, peer: Peer) -> None:
        if received.message.get("method") == "initialize":
            info = {"protocolVersion": REVISION, "capabilities": {}, "serverInfo": {"name": "a", "version": "1"}}
            peer.json(result(received.message, info))
        else:
            good(received, peer)

    liar.script = sessionless
    assert guard.post(initialize(REVISION), BOTH).header("mcp-session-id") is None
    headers = {**BOTH, "mcp-protocol-version": REVISION}
    assert guard.post(notification("notifications/initialized"), headers).status == 202
    for ident in range(3):
        assert guard.post(request(ident, "tools/list"), headers).json()["result"]["tools"] == [TOOL]


def test_under_audit_a_session_that_the_guard_does_not_know_is_taken_up(auditing: Where) -> None:
    """It was opened before the guard was started anew."""
    guard, _ = auditing
    headers = {**BOTH, "mcp-protocol-version": REVISION, "mcp-session-id": "opened-elsewhere"}
    assert guard.post(CALL, headers).json()["result"] == ANSWER


def test_under_enforce_a_session_that_the_guard_does_not_know_is_gone(enforcing: Where) -> None:
    """Whose it is, and which tools it was told of, nobody can say; clients begin anew."""
    guard, liar = enforcing
    headers = {**BOTH, "mcp-protocol-version": REVISION, "mcp-session-id": "opened-elsewhere"}
    for answer in (guard.post(CALL, headers), guard.ask("GET", headers=headers), guard.ask("DELETE", headers=headers)):
        assert answer.status == 404
    assert liar.seen == []


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 429])
def test_a_refusal_of_the_server_comes_with_its_status_and_headers(either: Where, status: int) -> None:
    guard, liar = either
    headers = guard.session(REVISION)

    def refuses(_: Received, peer: Peer) -> None:
        peer.head(status, www_authenticate='Bearer realm="a"', content_type="text/plain", retry_after="3")
        peer.send(b"no")

    liar.script = answering(refuses)
    answer = guard.post(CALL, headers)
    assert (answer.status, answer.header("retry-after")) == (status, "3")
    here = f"http://127.0.0.1:{guard.address[1]}"
    led = f'resource_metadata="{here}/.well-known/oauth-protected-resource/mcp", ' if status == 401 else ""
    assert answer.header("www-authenticate") == f'Bearer {led}realm="a"'
    if answer.header("content-type") == "application/json":
        assert (answer.json()["id"], answer.error()["data"]["status"]) == (7, status)
        assert answer.error()["data"]["detail"] == f"the server answered with HTTP status {status}: no"
    else:
        assert answer.body == b"no"


def test_sessions_end_with_delete_or_when_the_server_says_so(tmp_path: Path) -> None:
    def sessions(guard: Service) -> str:
        page = guard.ask("GET", "/metrics").body.decode()
        return page.partition("\nassay_sessions ")[2].partition("\n")[0]

    with lying() as liar, guarding(tmp_path, liar.url) as guard:
        headers = guard.session(REVISION)
        assert sessions(guard) == "1"
        assert guard.ask("DELETE", headers=headers).status == 200
        assert sessions(guard) == "0"
        headers = guard.session(REVISION)
        liar.script = lambda _, peer: peer.head(404, content_length="0")
        assert guard.post(CALL, headers).status == 404
        assert sessions(guard) == "0"


def test_no_more_sessions_are_kept_than_may_be_and_none_for_ever(tmp_path: Path) -> None:
    def numbered(received: Received, peer: Peer) -> None:
        if received.message.get("method") == "initialize":
            info = {"protocolVersion": REVISION, "capabilities": {}, "serverInfo": {"name": "a", "version": "1"}}
            peer.json(result(received.message, info), mcp_session_id=f"s{len(liar.seen)}")
        else:
            good(received, peer)

    def sessions() -> str:
        page = guard.ask("GET", "/metrics").body.decode()
        return page.partition("\nassay_sessions ")[2].partition("\n")[0]

    settings = ("--set", "http.sessions=2", "--set", "http.session_seconds=1")
    with lying(numbered) as liar, guarding(tmp_path, liar.url, *settings) as guard:
        for _ in range(4):
            guard.session(REVISION)
        assert sessions() in {"0", "1", "2"}
        until(lambda: sessions() == "0")


def test_a_session_with_an_open_request_is_not_the_one_that_ends_for_another(tmp_path: Path) -> None:
    def numbered(received: Received, peer: Peer) -> None:
        if received.method == "GET":
            peer.events(NOTE)
            peer.wait()
        elif received.message.get("method") == "initialize":
            info = {"protocolVersion": REVISION, "capabilities": {}, "serverInfo": {"name": "a", "version": "1"}}
            peer.json(result(received.message, info), mcp_session_id=f"s{len(liar.seen)}")
        elif received.message.get("method") == "tools/call":
            peer.wait()
            peer.json(result(CALL, ANSWER))
        else:
            good(received, peer)

    settings = ("--mode", "enforce", "--set", "http.sessions=2")
    with lying(numbered) as liar, guarding(tmp_path, liar.url, *settings) as guard:
        busy, listens = guard.session(REVISION), guard.session(REVISION)
        with guard.open() as wire, guard.open() as stream:
            wire.say("POST", "/mcp", frame_of(CALL), busy)
            liar.next("tools/call")
            stream.say("GET", "/mcp", headers={**listens, "accept": "text/event-stream"})
            stream.until(b"soon")
            last = guard.session(REVISION)
            found = [guard.post(request(1, "ping"), each).status for each in (busy, listens, last)]
            assert found == [200, 404, 200]
            liar.released.set()
            assert wire.answer().json()["id"] == 7


# ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_at_the_end_streams_end_what_is_in_hand_is_finished_and_a_summary_is_told(tmp_path: Path) -> None:
    def waits(received: Received, peer: Peer) -> None:
        if received.method == "GET":
            peer.events(NOTE)
        peer.wait()
        if received.method == "POST":
            peer.json(result(CALL, {"content": 5}))

    with lying() as liar, guarding(tmp_path, liar.url, "--mode", "enforce") as guard:
        headers = opened(guard)
        liar.script = waits
        with guard.open() as stream, guard.open() as wire:
            stream.say("GET", "/mcp", headers=headers)
            stream.head()
            assert b"soon" in stream.chunk()
            wire.say("POST", "/mcp", frame_of(CALL), headers)
            liar.next("tools/call")
            guard.signal(signal.SIGTERM)
            assert stream.chunk() == b""
            liar.released.set()
            assert "[protocol/result]" in failed_by(wire.answer().json()["result"])
        assert guard.process.wait(60) == 0
        log = guard.log.whole()
    name = liar.url.split("/")[2]
    assert any(line.startswith(f"assay: [{name}] 3 messages from the client, 3 from the server") for line in log)
    assert any("1 × protocol/result in search" in line for line in log)


def test_every_message_is_on_record(tmp_path: Path) -> None:
    with lying() as liar, guarding(tmp_path, liar.url, "--journal", str(tmp_path / "journal")) as guard:
        guard.post(CALL, guard.session(REVISION))
        [run] = (tmp_path / "journal").glob("*.jsonl")
        lines = journals.records(run)
        page = guard.ask("GET", "/metrics").body.decode()
    assert [each["method"] for each in lines] == [
        *("initialize", "initialize", "notifications/initialized", "tools/call", "tools/call")
    ]
    assert {(each["transport"], each["route"]) for each in lines} == {("http", "/mcp")}
    assert lines[3]["requestId"] == lines[4]["requestId"]
    assert 'assay_messages_total{transport="http",party="server",method="tools/call",status="ok"} 1' in page
    assert 'assay_violations_total{rule="contract/output"} 0' in page


@pytest.mark.parametrize("mode", ["enforce", "audit"])
def test_an_answer_that_took_long_is_on_record_before_it_is_sent(tmp_path: Path, mode: str) -> None:
    """A task of the connection writes it then, and not the turn of the loop in which it came."""

    def slow(received: Received, peer: Peer) -> None:
        threading.Event().wait(10 * SOON)
        good(received, peer)

    journal, asked = tmp_path / "journal", call(7, "search", {"words": "sea"}, LATEST)
    with lying(slow) as liar, guarding(tmp_path, liar.url, "--mode", mode, "--journal", str(journal)) as guard:
        assert guard.post(asked, modern(asked)).status == 200
        [run] = journal.glob("*.jsonl")
        records = journals.records(run)
    kinds = [each["metadata"]["kind"] for each in records if each["method"] != "tools/list"]
    assert kinds == ["request", "result"]


def test_two_sessions_in_one_request_are_none(either: Where) -> None:
    guard, liar = either
    headers = guard.session(REVISION)
    before = len(liar.seen)
    wire = guard.open()
    frame = frame_of(CALL)
    lines = [f"{name}: {value!s}" for name, value in headers.items()]
    head = ["POST /mcp HTTP/1.1", "host: localhost", *lines, "mcp-session-id: other", f"content-length: {len(frame)}"]
    wire.socket.sendall("\r\n".join([*head, "", ""]).encode() + frame)
    assert wire.answer().status == 400
    assert len(liar.seen) == before
