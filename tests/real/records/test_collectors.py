"""Telemetry with a real collector: all the way through a guard, and what becomes of traffic when it is in trouble."""

import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from assay.records.telemetry import Telemetry
from assay.settings import TelemetrySettings
from kit.collector import SECONDS, Collector, Handler, collecting, nothing_said
from kit.guard_process import request
from kit.rows import rows
from kit.talk import Talk

Answer = Callable[[Handler], None]


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    nothing_said(monkeypatch)
    with collecting() as one:
        yield one


# ── trouble ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def says(status: int, **headers: str) -> Answer:
    def answer(handler: Handler) -> None:
        handler.send_response(status)
        for name, value in {"Content-Length": "0", **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()

    return answer


def silent(handler: Handler) -> None:
    handler.collector.over.wait(SECONDS)
    handler.close_connection = True


def hung_up(handler: Handler) -> None:
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


def talkative(handler: Handler) -> None:
    """Answers well, and does not stop."""
    handler.send_response(200)
    handler.end_headers()
    handler.close_connection = True
    with suppress(OSError):
        while not handler.collector.over.is_set():
            handler.wfile.write(b"x" * 65_536)


def garbled(handler: Handler) -> None:
    """Promises more than it gives, and none of it is protobuf."""
    says(200, Content_Length="4000")(handler)
    handler.wfile.write(b"\xff" * 10)
    handler.close_connection = True


TROUBLE = [says(503, Retry_After="5"), silent, hung_up, talkative, garbled]


def record(telemetry: Telemetry, ident: int, conversation: Talk) -> None:
    """Record a request that was answered."""
    heard = conversation.client(request(ident, "ping"))
    now = 1_800_000_000_000_000_000
    telemetry.exchange(
        heard, code=None, failed=False, began_ns=now, ended_ns=now, transport="stdio", session=None, traceparent=None
    )


@rows("answer", TROUBLE)
def test_no_collector_keeps_traffic_or_the_end_waiting(monkeypatch: pytest.MonkeyPatch, answer: Answer) -> None:
    """That nothing waits shows in that this ends: the collector does not, and the queue is full."""
    nothing_said(monkeypatch)
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "10")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "100")
    lines: list[str] = []
    with collecting() as collector:
        collector.answer = answer
        telemetry = Telemetry.open(TelemetrySettings(collector.url), log=lines.append)
        assert telemetry is not None, lines
        conversation = Talk().opened()
        for ident in range(1, 301):
            record(telemetry, ident, conversation)
        collector.wait_for(lambda it: len(it.bodies) >= 1)
        telemetry.close(0.05)
        record(telemetry, 301, conversation)
        assert all(each.daemon for each in threading.enumerate() if each.name.startswith(("Otel", "assay-telemetry")))


def test_a_connection_to_the_collector_is_used_again_and_none_at_all_is_no_trouble(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    lines: list[str] = []
    telemetry = Telemetry.open(TelemetrySettings(collector.url), log=lines.append)
    assert telemetry is not None, lines
    conversation = Talk().opened()
    for ident in range(1, 4):
        record(telemetry, ident, conversation)
    telemetry.close(SECONDS)
    assert (len(collector.spans), collector.connections, lines) == (3, 1, [])
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        telemetry = Telemetry.open(TelemetrySettings(f"http://127.0.0.1:{taken.getsockname()[1]}"), log=lines.append)
        assert telemetry is not None, lines
        record(telemetry, 4, conversation)
        telemetry.close(0.05)
    # Before the last line there may be one that says why, if that was found out in time.
    assert lines[-1] == "telemetry: 1 requests were not exported"
    # Where it is not wanted, OpenTelemetry is not even imported.
    program = (
        "import sys\n"
        "from assay.records.telemetry import Telemetry\n"
        "from assay.settings import TelemetrySettings\n"
        "assert Telemetry.open(TelemetrySettings(), log=print) is None\n"
        "print([name for name in sys.modules if name.startswith(('opentelemetry', 'requests'))])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=SECONDS, check=True)
    assert done.stdout == "[]\n"
