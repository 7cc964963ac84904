"""The end of a server that speaks HTTP: what is in hand is finished, within the time that is set."""

import os
import signal
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from assay.spec.revisions import LATEST
from kit.http_client import (
    BOTH,
    JSON,
    PATIENT,
    READY,
    SECONDS,
    STORE,
    Headers,
    Service,
    call,
    frame_of,
    head,
    late_backend,
    modern,
    of,
    request,
    started,
)
from kit.quiet import quiet_host
from kit.rows import rows

ASKED = frame_of(request(1, "list_schemas"))
SLOW = frame_of(request("slow", "populate_backend", STORE))


def serving(
    directory: Path, *settings: str, address: str = "127.0.0.1:0", env: Mapping[str, str] | None = None
) -> AbstractContextManager[Service]:
    """A server that waits ten minutes for anything: if it ends within the limit of a test, it did not wait."""
    waits = (f"http.{what}_seconds=600" for what in ("grace", "header", "body"))
    options = [option for setting in (*waits, *settings) for option in ("--set", setting)]
    return started([sys.executable, "-c", PATIENT, "serve", "--http", address, *options], directory, READY, env)


def clean(service: Service) -> None:
    """The log has the one line of the beginning, and nothing that went wrong."""
    [line] = service.log.whole()
    assert line.startswith("mcp:ready")


def has_read(service: Service) -> None:
    """What was sent before has been read: the server answers what came after it."""
    assert service.ask("GET", "/healthz").status == 200


def takes_nothing_new(service: Service) -> None:
    """A new connection is refused, or ends without an answer."""
    with suppress(OSError), service.open() as wire:
        wire.say("GET", "/healthz")
        assert wire.rest() == b""


UNFINISHED = head("POST", "/mcp", {"host": "localhost", **JSON, "content-length": str(len(ASKED))}) + ASKED[:5]


def test_a_signal_lets_what_is_in_hand_finish_and_nothing_new_begin(tmp_path: Path) -> None:
    """specs/001 §3: also the ready file, `<pid> <ISO8601 timestamp>`, which is there as long as the server is."""
    modern_call = call("slow", "populate_backend", STORE, LATEST)
    slow: list[tuple[Any, Headers]] = [
        (request("slow", "populate_backend", STORE), BOTH),
        (call("slow", "populate_backend", STORE), of("2025-11-25")),
        (modern_call, modern(modern_call)),
    ]
    with late_backend() as (backend, variable), serving(tmp_path, env=variable) as running:
        idle, empty, half, unfinished, *waiting = (running.open() for _ in range(7))
        idle.say("POST", "/mcp", ASKED, JSON)
        assert idle.answer().status == 200
        half.send(b"POST /mcp HT")
        unfinished.send(UNFINISHED)
        for wire, (said, headers) in zip(waiting, slow, strict=True):
            wire.say("POST", "/mcp", frame_of(said), headers)
            backend.was_asked()
        # Behind the request in hand there is another one, which is not begun.
        waiting[0].say("POST", "/mcp", ASKED, JSON)
        has_read(running)
        running.signal(signal.SIGTERM)
        assert [wire.rest() for wire in (idle, empty, half)] == [b"", b"", b""]
        takes_nothing_new(running)
        assert running.process.poll() is None
        pid, _, stamp = running.ready.read_text().partition(" ")
        assert (int(pid), "T" in stamp) == (running.process.pid, True)
        unfinished.send(ASKED[5:])
        assert (unfinished.answer().status, unfinished.rest()) == (200, b"")
        backend.allowed.set()
        for wire in waiting:
            result = wire.answer().json()["result"]
            assert result.get("structuredContent", {"data": result})["data"]["asset_id"] == "stored"
            rest = wire.rest()
            assert rest == b"" or (wire is waiting[0] and rest.startswith(b"HTTP/1.1 503 "))
        assert running.ended() == 0
        clean(running)
        assert running.process.stdout is not None
        assert running.process.stdout.read() == b""


@rows(
    ("signals", "grace"),
    [
        ([signal.SIGINT, signal.SIGTERM], "600"),
        ([signal.SIGTERM], "0.1"),
    ],
)
def test_after_a_second_signal_or_the_time_that_is_set_neither_client_nor_backend_is_waited_for(
    tmp_path: Path, signals: list[signal.Signals], grace: str
) -> None:
    with late_backend() as (backend, env), serving(tmp_path, f"http.grace_seconds={grace}", env=env) as running:
        idle, unfinished, waiting = (running.open() for _ in range(3))
        unfinished.send(UNFINISHED)
        waiting.say("POST", "/mcp", SLOW, JSON)
        backend.was_asked()
        has_read(running)
        for each in signals:
            running.signal(each)
            # The first one has been seen once this ends.
            assert idle.rest() == b""
        assert running.ended() == 0
        clean(running)


def test_a_server_that_was_killed_can_be_started_again_and_ended_at_once(tmp_path: Path) -> None:
    """Connections of the first are still around, in the kernel."""
    # So nothing takes the port meanwhile.
    with serving(tmp_path, address=f"{quiet_host(2)}:0") as running, running.open() as wire:
        has_read(running)
        host, port = running.address
        os.kill(running.process.pid, signal.SIGKILL)
        assert wire.rest() == b""
        running.process.wait(SECONDS)
    with serving(tmp_path, address=f"{host}:{port}") as again:
        assert again.address == (host, port)
        assert again.ready.read_text().startswith(f"{again.process.pid} ")
        # The ready file of another one is left alone.
        again.ready.write_text("1 2026-01-01T00:00:00\n")
        again.signal(signal.SIGTERM)
        assert again.process.wait(SECONDS) == 0
        assert again.ready.exists()
    # Without a place for the file it serves all the same, and a signal the moment it is ready is not missed.
    with serving(tmp_path, env={"MCP_READY_FILE": str(tmp_path / "nowhere" / "ready")}) as running:
        running.signal(signal.SIGTERM)
        assert running.process.wait(SECONDS) == 0
        [line] = (each for each in running.log.whole() if not each.startswith("mcp:ready"))
        assert "nowhere" in line
