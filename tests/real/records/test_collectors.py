"""Telemetry with a real collector: all the way through a guard, and what becomes of traffic when it is in trouble."""

import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from assay.records.telemetry import Telemetry
from assay.settings import TelemetrySettings
from kit.collector import SECONDS, Collector, Handler, collecting, nothing_said, values
from kit.guard_process import call, enforcing, request
from kit.rows import rows
from kit.talk import SEARCH, Talk, error

Answer = Callable[[Handler], None]

OF_CLIENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    nothing_said(monkeypatch)
    with collecting() as one:
        yield one


def shown(span: Span) -> dict[str, Any]:
    """What says how it went."""
    found = values(span.attributes)
    names = ("error.type", "rpc.response.status_code", "assay.rules")
    return {name: found[name] for name in names if name in found}


def test_every_request_through_a_guard_is_a_span(tmp_path: Path, collector: Collector) -> None:
    (tmp_path / "mine.toml").write_text(f'[telemetry]\nendpoint = "{collector.url}"\nservice_name = "in front"\n')
    script: dict[str, Any] = {
        "tools/call:bad": [["result", {"content": [], "structuredContent": {"hits": "many"}}]],
        "tools/call:failing": [["result", {"content": [], "isError": True}]],
        "prompts/get": [["say", error("$id", -32602)]],
        "resources/read": [["exit", 1]],
    }
    listed = [SEARCH, *({**SEARCH, "name": name} for name in ("bad", "failing"))]
    with enforcing(tmp_path, "--config", "mine.toml", "--journal", "off", on=script, tools=listed) as one:
        one.open()
        traced = call(1)
        traced["params"]["_meta"] = {"traceparent": OF_CLIENT}
        assert "result" in one.ask(traced)
        for ident, tool in enumerate(("bad", "failing", "unheard-of"), 2):
            one.ask(call(ident, tool))
        assert "error" in one.ask(request(5, "prompts/get", {"name": "letter"}))
        assert "error" in one.ask(request(6, "tools/call", {"name": 7}))
        assert "error" in one.ask(request(7, "resources/read", {"uri": "file:///x"}))
        one.ended()
    spans = {values(span.attributes)["jsonrpc.request.id"]: span for span in collector.spans}
    assert {ident: span.name for ident, span in spans.items()} == {
        "open": "initialize",
        "list": "tools/list",
        "1": "tools/call search",
        "2": "tools/call bad",
        "3": "tools/call failing",
        "4": "tools/call unheard-of",
        "5": "prompts/get",
        "6": "tools/call",
        "7": "resources/read",
    }
    how = {ident: shown(span) for ident, span in spans.items()}
    assert how["open"] == how["list"] == how["1"] == {}
    assert how["2"] == {"error.type": "UPSTREAM_INVALID", "assay.rules": ["contract/output"]}
    assert how["3"] == {"error.type": "tool_error"}
    assert how["5"] == {"error.type": "_OTHER", "rpc.response.status_code": "-32602"}
    assert how["6"]["assay.rules"] == ["protocol/params"]
    assert how["7"]["error.type"] == "UPSTREAM_FAILURE"
    assert spans["1"].trace_id.hex() == OF_CLIENT.split("-")[1]
    assert spans["1"].parent_span_id.hex() == OF_CLIENT.split("-")[2]
    assert all(span.end_time_unix_nano >= span.start_time_unix_nano for span in spans.values())
    assert collector.resources[0]["service.name"] == "in front"


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


def nonsense(handler: Handler) -> None:
    handler.wfile.write(b"\x00\xff not HTTP at all\r\n\r\n")
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


TROUBLE = [says(400), says(503, Retry_After="5"), silent, nonsense, hung_up, talkative, garbled]


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
