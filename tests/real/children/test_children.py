"""
A command over HTTP, by the real guard, with real children and connections.

What the guard decides about each message is in tests/edges/children, without either.
"""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from assay.spec.revisions import LATEST, REVISIONS, handshake
from kit.guard_process import GUARD, Lines, Watched, hurried, scripted
from kit.http_client import (
    SECONDS,
    Answer,
    Service,
    Wire,
    call,
    frame_of,
    listen,
    modern,
    request,
)
from kit.scripted_http import listening

NEWEST = "2025-11-25"
LISTENS = {"accept": "text/event-stream"}
GOOD = call(1, "search", {"words": "sea"}, LATEST)


class Guard(Service):
    """A guard in front of a scripted server, whose children write what they receive to one pipe."""

    received: Lines

    def begin(self, message: Any, headers: Any = None, method: str = "POST") -> Wire:
        """A request that is sent, on a connection of its own; without *headers* it is one of 2026-07-28."""
        wire = self.open()
        frame = frame_of(message) if message is not None else b""
        wire.say(method, "/mcp", frame, modern(message) if headers is None else headers)
        return wire

    def answer(self, message: Any) -> Answer:
        """The answer to a request of 2026-07-28."""
        return self.begin(message).answer()

    def child(self) -> Watched:
        """The next child, which says at its start who it is."""
        while not (line := self.received.next()).isdigit():
            pass
        return Watched(int(line))

    def got(self, method: str) -> Any:
        """The next message with *method* that a child receives."""
        while not (line := self.received.next()).startswith(b"{") or json.loads(line).get("method") != method:
            pass
        return json.loads(line)


@contextmanager
def guarding(
    directory: Path, *settings: str, command: list[str] | None = None, guard: list[str] = GUARD, **script: Any
) -> Iterator[Guard]:
    """A *guard* that enforces, with *settings*, in front of *command* or of a server with that *script*."""
    path = directory / "received"
    os.mkfifo(path)
    # Open at both ends: before the first child and after the last one it must not seem to have ended.
    descriptor = os.open(path, os.O_RDWR)
    options = [each for setting in settings for each in ("--set", setting)]
    server = command or scripted(**{"quiet": True, "received": str(path), **script})
    try:
        with listening(directory, "--mode", "enforce", *options, "--", *server, guard=guard) as service:
            running = Guard(service.process, service.ready, service.log, service.address, service.wires)
            running.received = Lines(descriptor)
            yield running
            if "stay" in server[-1]:
                # Only the guard ends it; others end with their input.
                for wire in running.wires:
                    wire.socket.close()
                running.signal(signal.SIGTERM)
                running.process.wait(SECONDS)
    finally:
        os.close(descriptor)


def said(wire: Wire) -> list[dict[str, Any]]:
    """The messages of a response, JSON or events."""
    answer = wire.answer()
    assert answer.status == 200, answer
    if answer.header("content-type") == "application/json":
        return [answer.json()]
    return [json.loads(each["data"]) for each in answer.events() if each.get("data")]


# ── sessions, and requests without one ───────────────────────────────────────────────────────────────────────────────


def test_a_session_in_every_revision_has_a_child_of_its_own_which_ends_with_it(tmp_path: Path) -> None:
    """With all that it has started; and all of them end with the guard, after their streams."""
    with guarding(tmp_path, guard=hurried(), start=[["pid"], ["spawn"]]) as guard:
        sessions = []
        for revision in filter(handshake, REVISIONS):
            headers = guard.session(revision)
            sessions.append((headers, [guard.child(), guard.child()]))
            assert guard.post(request(1, "tools/list"), headers).json()["result"]["tools"][0]["name"] == "search"
            assert guard.post(call("1", "search", {"words": "sea"}), headers).json()["id"] == "1"
        (ended, of_ended), *others = sessions
        assert guard.ask("DELETE", headers=ended).status == 200
        assert guard.post(request(2, "tools/list"), ended).status == 404
        assert all(each.ends() for each in of_ended)
        assert all(each.is_alive() for _, processes in others for each in processes)
        streams = [guard.begin(None, {**headers, **LISTENS}, "GET") for headers, _ in others]
        assert [each.head().status for each in streams] == [200] * 3
        guard.signal(signal.SIGTERM)
        assert all(each.rest().endswith(b"0\r\n\r\n") for each in streams)
        assert all(each.ends() for _, processes in others for each in processes)
        assert guard.ended() == 0


def test_requests_without_a_session_share_one_child_and_a_client_that_leaves_cancels_its_own(tmp_path: Path) -> None:
    with guarding(tmp_path, start=[["pid"]], on={"subscriptions/listen": [], "tools/call:mute": []}) as guard:
        for ident in (1, "1", 1):
            answer = guard.answer({**GOOD, "id": ident})
            assert (answer.status, answer.json()["id"], answer.header("mcp-session-id")) == (200, ident, None)
        shared = guard.child()
        guard.session(NEWEST)
        assert guard.child().is_alive(), "one of its own"
        other = guard.begin(call(7, "mute", {}, LATEST))
        first = guard.got("tools/call")
        while first["params"]["name"] != "mute":
            first = guard.got("tools/call")
        for message in (listen(7), call(7, "mute", {}, LATEST)):
            with guard.begin(message):
                second = guard.got(message["method"])
            assert guard.got("notifications/cancelled")["params"]["requestId"] == second["id"] != first["id"]
        assert other.silent()
        assert shared.is_alive()


# ── streams ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_client_that_does_not_read_loses_nothing_in_a_session_and_gets_an_error_at_a_shared_child(
    tmp_path: Path,
) -> None:
    """Neither holds up another client. The child of the session has to wait; the shared one gets a cancellation."""
    flood = {"tools/call:flood": [["notes", 400, 60_000], ["good"]]}
    with guarding(tmp_path, on=flood) as guard:
        headers = guard.session(NEWEST)
        own = guard.begin(call(1, "flood", {}), headers)
        asking = call("mine", "flood", {}, LATEST)
        asking["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = "info"
        shared = guard.begin(asking)
        guard.got("notifications/cancelled")
        assert guard.answer(request(1, "tools/list", {}, LATEST)).status == 200
        assert guard.post(request(2, "ping"), guard.session(NEWEST)).status == 200
        last = said(shared)[-1]
        assert (last["id"], last["error"]["code"]) == ("mine", -31011)
        assert [each.get("id") for each in said(own)] == [None] * 400 + [1]


# ── what goes wrong ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_server_that_does_not_read_makes_its_own_session_wait_and_no_other(tmp_path: Path) -> None:
    with guarding(tmp_path, "guard.frame_bytes=200000", received=None, on={"tools/call": [["stay"]]}) as guard:
        headers = guard.session(NEWEST)
        wires = [guard.begin(call(n, "search", {"words": "x" * 150_000}), headers) for n in range(20)]
        assert {wire.head().status for wire in wires} == {200, 503}
        assert guard.post(request(1, "ping"), guard.session(NEWEST)).status == 200


def test_when_a_child_ends_each_open_request_fails_once_and_other_sessions_go_on(tmp_path: Path) -> None:
    """With the reason. What it wrote to stderr is in the guard's own."""
    ways: dict[str, tuple[list[Any], bytes]] = {
        "exits": ([["log", "oh no\n"], ["exit", 7]], b"the server exited with status 7"),
        "is-killed": ([["die"]], b"the server was ended by SIGKILL"),
        "closes-its-output": ([["close", "stdout"], ["stay"]], b"the server closed its output"),
    }
    on = {"tools/call:mute": [], **{f"tools/call:{name}": actions for name, (actions, _) in ways.items()}}
    with guarding(tmp_path, f"guard.flights={tmp_path}/flights", guard=hurried(), on=on) as guard:
        other = guard.session(NEWEST)
        for name, (_, found) in ways.items():
            headers = guard.session(NEWEST)
            waits = guard.begin(call(1, "mute", {}), headers)
            waits.head()
            ends = guard.begin(call(2, name, {}), headers)
            for ident, wire in ((1, waits), (2, ends)):
                text = b"".join(iter(wire.chunk, b"")) if wire is waits else wire.answer().body
                assert text.count(b"-31011") == 1
                assert b'"id":%d,' % ident in text
                assert found in text
            assert guard.post(request(3, "ping"), headers).status == 404
        assert guard.post(request(3, "ping"), other).status == 200
        guard.log.line("[scripted_server] oh no")
    assert len(list((tmp_path / "flights").iterdir())) == len(ways)


# ── lines ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_message_is_one_line_for_the_server_and_one_event_for_the_client_however_it_is_written(
    tmp_path: Path,
) -> None:
    long = ['{"result":{"content":[{"type":"text","text":"', 300_000, '"}]},"jsonrpc":"2.0","id":4}\n']
    spread = '{"jsonrpc":"2.0",\r\r"id":3,"result":{"content":[]}}\n'
    on = {"tools/call:long": [["long", *long]], "tools/call:spread": [["raw", spread]]}
    with guarding(tmp_path, "guard.frame_bytes=100000", on=on) as guard:
        headers = guard.session(NEWEST)
        guard.got("notifications/initialized")
        message = json.dumps(call(1, "search", {"words": "a\nb"}), indent=2).encode()
        assert guard.post(message, headers).json()["id"] == 1
        assert b'"words": "a\\nb"' in guard.received.next()
        inner = json.dumps(call(2, "other", {"number": 1.50}))
        outer = json.dumps(call(2, "any", {"inner": "?"})).replace('"?"', f"\r{inner}\r")
        assert guard.post(outer.encode(), headers).json()["id"] == 2
        line = guard.received.next()
        assert b"\r" not in line
        assert b'"number": 1.5' in line
        body = guard.post(call(3, "spread", {}), {**headers, **LISTENS}).body
        assert b'data: {"jsonrpc":"2.0",  "id":3,' in body
        assert body.count(b"\r") == body.count(b"\r\n")
        [failed] = said(guard.begin(call(4, "long", {}), headers))
        assert (failed["id"], failed["error"]["code"]) == (4, -31010), "by the id at its end, as TypeScript writes it"
