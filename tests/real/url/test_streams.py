"""What passes between a client and a server at a URL over the wire: bytes, live streams, many at once, and the end."""

import json
import signal
import threading
from pathlib import Path
from typing import Any

from kit import journals
from kit.http_client import SECONDS, Service, call, events, frame_of, notification, request
from kit.rows import rows
from kit.scripted_http import (
    REVISION,
    Received,
    ScriptedServer,
    WirePeer,
    answering,
    guarding,
    result,
    scripted,
)

CALL = call(7, "search", {"words": "sea"})
NOTE = notification("notifications/message", {"level": "info", "data": "soon"})
ANSWER: dict[str, Any] = {"content": [], "structuredContent": {"found": 1}}
PING = request("r1", "ping")


@rows("mode", ["enforce", "audit"])
def test_a_stream_is_live_and_what_the_server_asks_on_it_is_answered_by_a_request(tmp_path: Path, mode: str) -> None:
    """Two clients do so at once, with the same ids; one renews its token meanwhile."""
    with scripted() as server, guarding(tmp_path, server.url, "--mode", mode) as guard:
        ask_on_a_stream(server, guard)


def ask_on_a_stream(server: ScriptedServer, guard: Service) -> None:
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
