"""The end of a server that speaks HTTP: what is in hand is finished, within the time that is set."""

import os
import signal
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from assay.spec.revisions import LATEST
from kit.http_client import (
    BOTH,
    JSON,
    READY,
    SECONDS,
    STORE,
    Service,
    call,
    environment,
    frame_of,
    head,
    late_backend,
    modern,
    of,
    request,
    started,
    until,
)
from kit.quiet import quiet_host

BOTH_SIGNALS = pytest.mark.parametrize("wanted", [signal.SIGTERM, signal.SIGINT])
ASKED = frame_of(request(1, "list_schemas"))
SLOW = frame_of(request("slow", "populate_backend", STORE))

PATIENT = """# warm start
import sys
from dataclasses import replace
from assay.assets.store_backend import StoreBackend
from assay.cli.main import main
read = StoreBackend.read
StoreBackend.read = lambda environ: replace(read(environ), timeout=600.0, overall=600.0) if read(environ) else None
sys.exit(main(sys.argv[1:]))
"""
"""The command, which waits ten minutes for a backend in place of five seconds."""


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


# ── one signal ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_ready_file_is_there_while_the_server_is(tmp_path: Path) -> None:
    """specs/001 §3: `<pid> <ISO8601 timestamp>`."""
    with serving(tmp_path) as running:
        pid, _, stamp = running.ready.read_text().partition(" ")
        assert int(pid) == running.process.pid
        assert "T" in stamp
        running.signal(signal.SIGTERM)
        assert running.ended() == 0


@BOTH_SIGNALS
def test_a_signal_ends_an_idle_server_cleanly(tmp_path: Path, wanted: signal.Signals) -> None:
    with serving(tmp_path) as running, running.open() as wire:
        wire.say("POST", "/mcp", ASKED, JSON)
        assert wire.answer().status == 200
        running.signal(wanted)
        assert wire.rest() == b""
        assert running.ended() == 0
        clean(running)
        assert running.process.stdout is not None
        assert running.process.stdout.read() == b""


@BOTH_SIGNALS
@pytest.mark.parametrize("revision", ["", "2025-11-25", LATEST])
def test_a_signal_lets_the_request_in_hand_finish(tmp_path: Path, wanted: signal.Signals, revision: str) -> None:
    """specs/001 §3. Nobody new is let in meanwhile."""
    said = call("slow", "populate_backend", STORE, revision) if revision else request("slow", "populate_backend", STORE)
    with late_backend() as (backend, variable), serving(tmp_path, env=variable) as running, running.open() as wire:
        headers = modern(said) if revision == LATEST else of(revision) if revision else dict(BOTH)
        wire.say("POST", "/mcp", frame_of(said), headers)
        backend.was_asked()
        running.signal(wanted)
        running.refuses()
        assert running.process.poll() is None
        assert running.ready.exists()
        backend.allowed.set()
        result = wire.answer().json()["result"]
        assert (result["structuredContent"]["data"] if revision else result)["asset_id"] == "stored"
        assert wire.rest() == b""
        assert running.ended() == 0
        clean(running)


def test_a_request_whose_body_is_still_coming_is_answered(tmp_path: Path) -> None:
    with serving(tmp_path) as running, running.open() as wire:
        wire.send(head("POST", "/mcp", {"host": "localhost", **JSON, "content-length": str(len(ASKED))}) + ASKED[:5])
        told(running)
        running.signal(signal.SIGTERM)
        running.refuses()
        wire.send(ASKED[5:])
        assert wire.answer().status == 200
        assert wire.rest() == b""
        assert running.ended() == 0


def told(service: Service) -> None:
    """What was sent before has been read: the server answers what came after it."""
    assert service.ask("GET", "/healthz").status == 200


@pytest.mark.parametrize("sent", [b"", b"POST /mcp HT"], ids=["nothing", "half-a-head"])
def test_a_connection_that_says_nothing_holds_up_nothing(tmp_path: Path, sent: bytes) -> None:
    with serving(tmp_path) as running, running.open() as wire:
        wire.send(sent)
        told(running)
        running.signal(signal.SIGTERM)
        assert wire.rest() == b""
        assert running.ended() == 0


def test_what_was_pipelined_behind_the_request_in_hand_is_not_begun(tmp_path: Path) -> None:
    with late_backend() as (backend, variable), serving(tmp_path, env=variable) as running, running.open() as wire:
        wire.say("POST", "/mcp", SLOW, JSON)
        wire.say("POST", "/mcp", ASKED, JSON)
        backend.was_asked()
        running.signal(signal.SIGTERM)
        running.refuses()
        backend.allowed.set()
        assert wire.answer().json()["result"]["asset_id"] == "stored"
        rest = wire.rest()
        assert rest == b"" or rest.startswith(b"HTTP/1.1 503 ")
        assert running.ended() == 0


def test_a_signal_the_moment_the_server_is_ready_ends_it_cleanly(tmp_path: Path) -> None:
    for number in range(5):
        directory = tmp_path / str(number)
        directory.mkdir()
        with serving(directory) as running:
            running.signal(signal.SIGTERM)
            assert running.ended() == 0
            clean(running)


# ── no more time ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("signals", [(signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGTERM)], ids=str)
def test_a_second_signal_ends_it_at_once(tmp_path: Path, signals: tuple[signal.Signals, signal.Signals]) -> None:
    with late_backend() as (backend, variable), serving(tmp_path, env=variable) as running, running.open() as wire:
        wire.say("POST", "/mcp", SLOW, JSON)
        backend.was_asked()
        running.signal(signals[0])
        running.refuses()
        running.signal(signals[1])
        assert running.ended() == 0
        clean(running)


def test_a_second_signal_waits_for_no_client(tmp_path: Path) -> None:
    with serving(tmp_path) as running, running.open() as wire:
        wire.send(head("POST", "/mcp", {"host": "localhost", **JSON, "content-length": "100"}))
        told(running)
        running.signal(signal.SIGTERM)
        running.refuses()
        running.signal(signal.SIGTERM)
        assert running.ended() == 0


def test_a_backend_that_does_not_answer_is_waited_for_as_long_as_is_set(tmp_path: Path) -> None:
    with (
        late_backend() as (backend, variable),
        serving(tmp_path, "http.grace_seconds=0.5", env=variable) as running,
        running.open() as wire,
    ):
        wire.say("POST", "/mcp", SLOW, JSON)
        backend.was_asked()
        running.signal(signal.SIGTERM)
        assert running.ended() == 0


def test_a_client_that_does_not_finish_is_waited_for_as_long_as_is_set(tmp_path: Path) -> None:
    with serving(tmp_path, "http.grace_seconds=0.5") as running, running.open() as wire:
        wire.send(head("POST", "/mcp", {"host": "localhost", **JSON, "content-length": "100"}))
        told(running)
        running.signal(signal.SIGTERM)
        assert running.ended() == 0


def test_what_is_cut_off_is_no_mistake_of_ours(tmp_path: Path) -> None:
    with (
        late_backend() as (backend, variable),
        serving(tmp_path, "http.grace_seconds=0.5", env=variable) as running,
        running.open() as wire,
    ):
        wire.say("POST", "/mcp", SLOW, JSON)
        backend.was_asked()
        running.signal(signal.SIGTERM)
        running.ended()
        assert "Traceback" not in "\n".join(running.log.whole())


# ── the ready file ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_ready_file_of_another_is_left_alone(tmp_path: Path) -> None:
    with serving(tmp_path) as running:
        running.ready.write_text("1 2026-01-01T00:00:00\n")
        running.signal(signal.SIGTERM)
        assert running.process.wait(SECONDS) == 0
        assert running.ready.exists()


def test_without_a_place_for_the_ready_file_it_serves_all_the_same(tmp_path: Path) -> None:
    missing = str(tmp_path / "nowhere" / "ready")
    with serving(tmp_path, env={"MCP_READY_FILE": missing}) as running:
        told(running)
        until(lambda: "nowhere" in running.log.so_far())
        running.signal(signal.SIGTERM)
        assert running.ended() == 0


def test_a_server_that_was_killed_can_be_started_again_at_once(tmp_path: Path) -> None:
    """Connections of the first are still around, in the kernel."""
    # So nothing takes the port meanwhile.
    with serving(tmp_path, address=f"{quiet_host(2)}:0") as running, running.open() as wire:
        told(running)
        host, port = running.address
        os.kill(running.process.pid, signal.SIGKILL)
        assert wire.rest() == b""
        until(lambda: running.process.poll() is not None)
    with serving(tmp_path, address=f"{host}:{port}") as again:
        assert again.address == (host, port)
        assert again.ready.read_text().startswith(f"{again.process.pid} ")
        assert environment(tmp_path)["MCP_READY_FILE"] == str(again.ready)
