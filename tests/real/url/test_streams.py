"""What passes between a client and a server at a URL over the wire: bytes, live streams, many at once, and the end."""

import json
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from assay.spec.revisions import LATEST
from kit import journals
from kit.http_client import SECONDS, Service, call, events, frame_of, modern, notification, request
from kit.rows import rows
from kit.scripted_http import (
    REVISION,
    Received,
    ScriptedServer,
    WirePeer,
    answering,
    guarding,
    guarding_in_both_modes,
    result,
    scripted,
)

Guards = tuple[ScriptedServer, dict[str, Service]]

CALL = call(7, "search", {"words": "sea"})
NOTE = notification("notifications/message", {"level": "info", "data": "soon"})
ANSWER: dict[str, Any] = {"content": [], "structuredContent": {"found": 1}}
PING = request("r1", "ping")


@pytest.fixture(scope="module")
def guards(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guards]:
    with guarding_in_both_modes(tmp_path_factory.mktemp("guards")) as found:
        yield found


STREAM = (
    b"\xef\xbb\xbf: hello\r\n\r\nid: 1-0\nretry: 50\ndata:\n\nevent: message\rid: 1-1\rdata: "
    + frame_of(NOTE)
    + b"\r\r"
    b'data: {"jsonrpc":"2.0",\r\ndata: "id":7,\r\ndata: "result":' + frame_of(ANSWER) + b"}\r\nid: 1-2\r\n\r\n: bye\n\n"
)
BODY = b'{ "result":\n {"content": [ ], "structuredContent": {"found":1e0}},\r\n "id" : 7, "jsonrpc":"2.0" }\n'


def test_under_audit_requests_bodies_and_streams_pass_byte_for_byte(guards: Guards) -> None:
    server, both = guards
    server.forget()
    guard = both["audit"]
    headers = guard.session(REVISION)
    server.script = answering(lambda _, peer: peer.json(BODY, 203, x_served_by="a", set_cookie="k=v", server="mine"))
    frame = (
        b'{"id":7 , "method":"tools/call","params":{"arguments":{"words":"\\u0061"},"name":"search"},"jsonrpc":"2.0"}'
    )
    more = {"x-custom": "a b", "authorization": "Bearer client", "connection": "x-hop", "x-hop": "secret"}
    answer = guard.ask("POST", "/mcp?tenant=1", frame, {**headers, **more})
    received = server.next("tools/call")
    assert (received.body, received.path) == (frame, "/mcp?tenant=1")
    found = [received.header(name) for name in ("x-custom", "authorization", "accept-encoding", "x-hop", "host")]
    assert found == ["a b", "Bearer client", "identity", None, server.url.split("/")[2]]
    assert (answer.status, answer.body) == (203, BODY)
    assert [answer.header(name) for name in ("x-served-by", "set-cookie", "server")] == ["a", "k=v", "mine"]

    def pieces(_: Received, peer: WirePeer) -> None:
        peer.events()
        for at in range(0, len(STREAM), 7):
            peer.send(STREAM[at : at + 7])

    server.script = answering(pieces)
    answer = guard.post({**CALL, "id": 8}, headers)
    assert (answer.header("content-type"), answer.body) == ("text/event-stream", STREAM)


@rows("mode", ["enforce", "audit"])
def test_a_stream_is_live_and_what_the_server_asks_on_it_is_answered_by_a_request(guards: Guards, mode: str) -> None:
    """Two clients do so at once, with the same ids; one renews its token meanwhile."""
    server, both = guards
    server.forget()
    guard = both[mode]
    opened = [guard.session(REVISION, authorization=f"Bearer {name}") for name in "ab"]
    given = result(PING, {})

    def asks(_: Received, peer: WirePeer) -> None:
        peer.events(NOTE)
        peer.wait()
        peer.event(result(CALL, ANSWER))

    gone = threading.Event()

    def listens(_: Received, peer: WirePeer) -> None:
        peer.events(PING)
        if peer.gone():
            gone.set()

    server.script = answering(asks)
    with guard.open() as one, guard.open() as other:
        for wire, headers in zip((one, other), opened, strict=True):
            wire.say("POST", "/mcp", frame_of(CALL), headers)
            assert wire.head().status == 200
            assert json.loads(events(wire.chunk())[0]["data"]) == NOTE, "it is not held back for the next"
        with guard.open() as stream:
            server.script = answering(listens, "GET")
            stream.say("GET", "/mcp", headers=opened[1])
            assert stream.head().header("content-type") == "text/event-stream"
            stream.until(b"ping")
            assert guard.post(given, {**opened[1], "authorization": "Bearer new"}).status == 202
            assert server.seen[-1].message == given
        assert gone.wait(SECONDS), "a client that goes takes its stream with it"
        server.released.set()
        for wire in (one, other):
            assert b'"found":1' in wire.chunk()


def test_many_requests_at_once_with_one_id_each_get_their_own_answer(guards: Guards) -> None:
    server, both = guards
    server.forget()

    def echoes(received: Received, peer: WirePeer) -> None:
        said = received.message["params"]["arguments"]["words"]
        answer = result(received.message, {"content": [{"type": "text", "text": said}], "resultType": "complete"})
        if int(said) % 2:
            peer.json(answer)
        else:
            peer.events(answer)

    server.script = echoes

    def asked(guard: Service, number: int) -> str:
        message = call(1, "echo", {"words": str(number)}, LATEST)
        answer = guard.post(message, modern(message))
        said = answer.json() if number % 2 else json.loads(answer.events()[0]["data"])
        return str(said["result"]["content"][0]["text"])

    with ThreadPoolExecutor(20) as pool:
        for guard in both.values():
            found = list(pool.map(asked, [guard] * 100, range(100)))
            assert found == [str(number) for number in range(100)]


def test_at_the_end_streams_end_what_is_in_hand_is_finished_and_everything_is_recorded(tmp_path: Path) -> None:
    def waits(received: Received, peer: WirePeer) -> None:
        if received.method == "GET":
            peer.events(NOTE)
        peer.wait()
        if received.method == "POST":
            peer.json(result(CALL, {"content": 5}))

    journal = tmp_path / "journal"
    with scripted() as server, guarding(tmp_path, server.url, "--mode", "enforce", "--journal", str(journal)) as guard:
        headers = guard.session(REVISION)
        assert guard.post({**CALL, "id": 1}, headers).json()["result"] == ANSWER
        metrics = guard.ask("GET", "/metrics").body.decode()
        assert "\nassay_sessions 1\n" in metrics
        assert 'assay_messages_total{transport="http",party="server",method="tools/call",status="ok"} 1' in metrics
        server.forget()
        server.script = waits
        with guard.open() as stream, guard.open() as wire:
            stream.say("GET", "/mcp", headers=headers)
            stream.head()
            assert b"soon" in stream.chunk()
            wire.say("POST", "/mcp", frame_of(CALL), headers)
            server.next("tools/call")
            guard.signal(signal.SIGTERM)
            assert stream.chunk() == b""
            server.released.set()
            assert wire.answer().json()["result"]["isError"] is True
        assert guard.ended() == 0
        log = "\n".join(guard.log.whole())
    assert f"assay: [{server.url.split('/')[2]}] 4 messages from the client" in log
    assert "1 × protocol/result in search" in log
    [run] = journal.glob("*.jsonl")
    records = [each for each in journals.records(run) if each["method"] != "tools/list"]
    opening = ("initialize", "initialize", "notifications/initialized", "tools/call", "tools/call")
    assert [each["method"] for each in records] == [*opening, "notifications/message", "tools/call", "tools/call"]
    assert {(each["transport"], each["route"]) for each in records} == {("http", "/mcp")}
    assert records[3]["requestId"] == records[4]["requestId"]
