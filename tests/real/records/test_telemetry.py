"""Telemetry against a real endpoint: what a collector gets, and what becomes of traffic when it is in trouble."""

import logging
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from logging.handlers import QueueHandler
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import HistogramDataPoint
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from assay.base.extras import how_to_install
from assay.base.verdict import Findings, Party, Verdict, verdict
from assay.records.telemetry import Telemetry, exporting
from assay.settings import TelemetrySettings, load
from kit.collector import SECONDS, Collector, Handler, collecting, nothing_said, values, well
from kit.talk import HITS, SEARCH, Talk, call, request, result

BEGAN = 1_800_000_000_000_000_000
CLIENT_TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CLIENT_SPAN = "00f067aa0ba902b7"
HTTP_TRACE = "0af7651916cd43dd8448eb211c80319c"
HTTP_SPAN = "b7ad6b7169203331"
OF_CLIENT = f"00-{CLIENT_TRACE}-{CLIENT_SPAN}-01"
OF_HTTP = f"00-{HTTP_TRACE}-{HTTP_SPAN}-01"

Opened = Callable[..., Telemetry]


@pytest.fixture(autouse=True)
def _nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing_said(monkeypatch)


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as one:
        yield one


@pytest.fixture
def lines() -> list[str]:
    """What is logged."""
    return []


@pytest.fixture
def opened(collector: Collector, lines: list[str]) -> Iterator[Opened]:
    """Opens telemetry for the collector, unless it is told another place."""
    every: list[Telemetry] = []

    def one(endpoint: str | None = None, service_name: str = "", **headers: str) -> Telemetry:
        section = TelemetrySettings(collector.url if endpoint is None else endpoint, service_name, headers)
        telemetry = Telemetry.open(section, log=lines.append)
        assert telemetry is not None, lines
        every.append(telemetry)
        return telemetry

    yield one
    collector.answer = well
    collector.over.set()
    for each in every:
        each.close(SECONDS)


def tell(
    telemetry: Telemetry,
    heard: Verdict,
    *,
    code: str | None = None,
    failed: bool = False,
    milliseconds: int = 30,
    transport: str = "stdio",
    session: str | None = None,
    traceparent: str | None = None,
) -> None:
    telemetry.exchange(
        heard,
        code=code,
        failed=failed,
        began_ns=BEGAN,
        ended_ns=BEGAN + milliseconds * 1_000_000,
        transport=transport,
        session=session,
        traceparent=traceparent,
    )


def spans(telemetry: Telemetry, collector: Collector) -> list[Span]:
    """All that the collector has been told, when all has been."""
    telemetry.close(SECONDS)
    return collector.spans


def talk(revision: str = "2025-11-25") -> Talk:
    return Talk().opened(revision).listed(SEARCH)


def traced(ident: int, **meta: Any) -> dict[str, Any]:
    return {**call(ident, "search", {}), "params": {"name": "search", "arguments": {"words": "x"}, "_meta": meta}}


# ── spans ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_call_is_a_span_in_the_words_of_the_conventions(opened: Opened, collector: Collector) -> None:
    telemetry = opened()
    tell(telemetry, talk().client(call(7, "search", {"words": "x"})), transport="http", session="s-1")
    [span] = spans(telemetry, collector)
    assert span.name == "tools/call search"
    assert span.kind == Span.SPAN_KIND_SERVER
    assert (span.start_time_unix_nano, span.end_time_unix_nano) == (BEGAN, BEGAN + 30_000_000)
    assert span.status.code == Status.STATUS_CODE_UNSET
    assert span.parent_span_id == b""
    assert values(span.attributes) == {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": "2025-11-25",
        "mcp.session.id": sha256(b"s-1").hexdigest()[:12],
        "gen_ai.tool.name": "search",
        "gen_ai.operation.name": "execute_tool",
        "jsonrpc.request.id": "7",
        "network.transport": "tcp",
        "network.protocol.name": "http",
        "assay.party": "client",
    }
    [resource] = collector.resources
    assert resource["service.name"] == "assay"


@pytest.mark.parametrize(
    ("message", "name", "attributes"),
    [
        pytest.param(
            request("a", "prompts/get", {"name": "greet"}),
            "prompts/get greet",
            {"mcp.method.name": "prompts/get", "gen_ai.prompt.name": "greet", "jsonrpc.request.id": "a"},
            id="prompt",
        ),
        pytest.param(
            request(1, "resources/read", {"uri": "file:///a/b.txt"}),
            "resources/read",
            {"mcp.method.name": "resources/read", "mcp.resource.uri": "file:///a/b.txt", "jsonrpc.request.id": "1"},
            id="resource",
        ),
        pytest.param(
            request(1, "resources/read", {"uri": "postgres://me:secret@db.example/customers"}),
            "resources/read",
            {
                "mcp.method.name": "resources/read",
                "mcp.resource.uri": "postgres://[redacted]@db.example/customers",
                "jsonrpc.request.id": "1",
            },
            id="resource-with-a-password",
        ),
        pytest.param(
            request(1, "resources/read", {"uri": f"https://{'x' * 300}:secret@db.example/a?key=secret#secret"}),
            "resources/read",
            {
                "mcp.method.name": "resources/read",
                "mcp.resource.uri": "https://[redacted]@db.example/a",
                "jsonrpc.request.id": "1",
            },
            id="resource-with-a-query",
        ),
        pytest.param(
            request(1, "resources/read", {"uri": "https://db.example/ghp_0123456789abcdefghijABCDEFGHIJ012345/a"}),
            "resources/read",
            {
                "mcp.method.name": "resources/read",
                "mcp.resource.uri": "https://db.example/[redacted]/a",
                "jsonrpc.request.id": "1",
            },
            id="resource-with-a-token",
        ),
        pytest.param(
            request(2, "ping"), "ping", {"mcp.method.name": "ping", "jsonrpc.request.id": "2"}, id="no-target"
        ),
        pytest.param(
            b'{"jsonrpc":"2.0","id":1e2,"method":"ping"}',
            "ping",
            {"mcp.method.name": "ping", "jsonrpc.request.id": "100"},
            id="an-odd-id",
        ),
    ],
)
def test_what_a_request_is_about(
    opened: Opened, collector: Collector, message: Any, name: str, attributes: dict[str, Any]
) -> None:
    telemetry = opened()
    tell(telemetry, talk().client(message))
    [span] = spans(telemetry, collector)
    common = {"mcp.protocol.version": "2025-11-25", "network.transport": "pipe", "assay.party": "client"}
    assert span.name == name
    assert values(span.attributes) == common | attributes


def test_a_bare_method_is_a_tool(opened: Opened, collector: Collector) -> None:
    """specs/001's door, which has no revision."""
    telemetry = opened()
    message = request(1, "list_schemas", {})
    tell(telemetry, verdict(Party.CLIENT, b"{}", "request", message, None, None))
    [span] = spans(telemetry, collector)
    assert span.name == "list_schemas"
    assert values(span.attributes) == {
        "mcp.method.name": "list_schemas",
        "gen_ai.tool.name": "list_schemas",
        "gen_ai.operation.name": "execute_tool",
        "jsonrpc.request.id": "1",
        "network.transport": "pipe",
        "assay.party": "client",
    }


def test_a_request_of_the_server_is_told_as_its_own(opened: Opened, collector: Collector) -> None:
    telemetry = opened()
    tell(telemetry, talk().server(request(1, "roots/list")))
    [span] = spans(telemetry, collector)
    assert span.name == "roots/list"
    assert values(span.attributes)["assay.party"] == "server"


# ── what went wrong ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("revision", "status"),
    [
        pytest.param("2025-06-18", {"rpc.response.status_code": "-32602"}, id="by-an-error"),
        pytest.param("2025-11-25", {}, id="by-a-result"),
    ],
)
def test_a_refused_request_says_which_rules_and_nothing_of_what_it_held(
    opened: Opened, collector: Collector, revision: str, status: dict[str, str]
) -> None:
    telemetry = opened()
    heard = talk(revision).client(call(1, "search", {"words": 17, "limit": "PRIVATE", "PRIVATE": 1}))
    tell(telemetry, heard, code="INVALID_TOOL_INPUT")
    [span] = spans(telemetry, collector)
    assert span.name == "tools/call search"
    assert span.status.code == Status.STATUS_CODE_ERROR
    assert span.status.message == "Invalid tool input"
    found = values(span.attributes)
    assert found["error.type"] == "INVALID_TOOL_INPUT"
    assert found["assay.rules"] == ["contract/input", "contract/unknown-argument"]
    assert {name: found[name] for name in found if name.startswith("rpc.")} == status
    assert not any(b"PRIVATE" in body for body in collector.bodies)


@pytest.mark.parametrize(
    ("code", "failed", "attributes", "text"),
    [
        pytest.param(
            "TIMEOUT",
            True,
            {"error.type": "TIMEOUT", "rpc.response.status_code": "-31012"},
            "No answer came in time",
            id="ours",
        ),
        pytest.param(
            "-31999", True, {"error.type": "_OTHER", "rpc.response.status_code": "-31999"}, "", id="of-the-server"
        ),
        pytest.param("made up", True, {"error.type": "_OTHER"}, "", id="unknown"),
        pytest.param(None, True, {"error.type": "tool_error"}, "", id="of-the-tool"),
    ],
)
def test_a_failed_request_says_what_failed(
    opened: Opened, collector: Collector, code: str | None, failed: bool, attributes: dict[str, str], text: str
) -> None:
    telemetry = opened()
    tell(telemetry, talk().client(call(1, "search", {"words": "x"})), code=code, failed=failed)
    [span] = spans(telemetry, collector)
    assert span.status == Status(code=Status.STATUS_CODE_ERROR, message=text)
    found = values(span.attributes)
    assert {name: found[name] for name in found if name.startswith(("rpc.", "error."))} == attributes


def test_a_refusal_is_one_although_nobody_gives_its_code(opened: Opened, collector: Collector) -> None:
    telemetry = opened()
    tell(telemetry, talk().client(request(1, "tools/made-up")))
    [span] = spans(telemetry, collector)
    assert span.name == "_OTHER"
    assert values(span.attributes)["error.type"] == "METHOD_NOT_FOUND"


def test_a_report_makes_no_error(opened: Opened, collector: Collector) -> None:
    """Where nothing is enforced a broken request goes on, and may well be answered."""
    telemetry = opened()
    heard = Talk(mode="audit").opened().listed(SEARCH).client(call(1, "search", {}))
    tell(telemetry, heard)
    [span] = spans(telemetry, collector)
    assert span.status.code == Status.STATUS_CODE_UNSET
    assert values(span.attributes)["assay.rules"] == ["contract/input"]


@pytest.mark.parametrize(
    "heard",
    [
        verdict(Party.CLIENT, b"\xff", "unreadable", None, None, None, Findings((), 0, None, b'{"error":{}}')),
        verdict(Party.CLIENT, b"[]", "batch", [], None, None),
        verdict(Party.CLIENT, b"1", "request", {"method": 7, "id": [], "params": 1, "jsonrpc": []}, None, None),
        verdict(Party.CLIENT, b"1", "request", {"method": "tools/call", "params": {"name": 1, "_meta": 2}}, None, None),
        verdict(Party.CLIENT, b"1", "result", None, None, None),
    ],
    ids=["unreadable", "batch", "nonsense", "no-name", "no-request"],
)
def test_whatever_it_is_that_was_refused_is_told_somehow(
    opened: Opened, collector: Collector, lines: list[str], heard: Verdict
) -> None:
    telemetry = opened()
    tell(telemetry, heard, code="INVALID_ENVELOPE")
    [span] = spans(telemetry, collector)
    assert values(span.attributes)["error.type"] == "INVALID_ENVELOPE"
    assert lines == []


def test_what_is_no_verdict_at_all_costs_a_span_and_no_more(
    opened: Opened, collector: Collector, lines: list[str]
) -> None:
    telemetry = opened()
    tell(telemetry, None)  # type: ignore[arg-type]  # no verdict at all
    assert telemetry.begun(None, began_ns=BEGAN, transport="stdio", session=None) is None  # type: ignore[arg-type]  # likewise
    telemetry.ended(None, None, ended_ns=BEGAN)  # type: ignore[arg-type]  # likewise
    assert spans(telemetry, collector) == []
    assert lines == ["telemetry: 3 requests were not exported"]


# ── traces ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("meta", "header", "trace", "parent", "linked"),
    [
        pytest.param({"traceparent": OF_CLIENT}, None, CLIENT_TRACE, CLIENT_SPAN, [], id="message"),
        pytest.param({}, OF_HTTP, HTTP_TRACE, HTTP_SPAN, [], id="header"),
        pytest.param({"traceparent": OF_CLIENT}, OF_HTTP, CLIENT_TRACE, CLIENT_SPAN, [HTTP_SPAN], id="both"),
        pytest.param({"traceparent": OF_CLIENT}, OF_CLIENT, CLIENT_TRACE, CLIENT_SPAN, [], id="the-same"),
        pytest.param({"traceparent": "00-nonsense"}, OF_HTTP, HTTP_TRACE, HTTP_SPAN, [], id="broken-and-header"),
        pytest.param({"traceparent": f"00-{'0' * 32}-{CLIENT_SPAN}-01"}, None, None, "", [], id="no-trace"),
        pytest.param({"traceparent": OF_CLIENT * 100}, None, None, "", [], id="too-long"),
        pytest.param({"traceparent": [OF_CLIENT]}, None, None, "", [], id="no-string"),
        pytest.param({}, None, None, "", [], id="none"),
    ],
)
def test_a_span_belongs_to_the_trace_of_who_asked(
    opened: Opened,
    collector: Collector,
    meta: dict[str, Any],
    header: str | None,
    trace: str | None,
    parent: str,
    linked: list[str],
) -> None:
    """The message says it in `params._meta` (SEP-414); that goes before the header, which is linked then."""
    telemetry = opened()
    tell(telemetry, talk().client(traced(1, **meta)), transport="http", traceparent=header)
    [span] = spans(telemetry, collector)
    assert len(span.trace_id) == 16
    assert trace is None or span.trace_id.hex() == trace
    assert span.parent_span_id.hex() == parent
    assert [link.span_id.hex() for link in span.links] == linked


@pytest.mark.parametrize(
    ("given", "kept"), [("rojo=00f067aa0ba902b7,congo=t61", "rojo=00f067aa0ba902b7,congo=t61"), ("a=" + "b" * 511, "")]
)
def test_the_state_of_a_trace_is_kept_unless_it_is_too_long(
    opened: Opened, collector: Collector, given: str, kept: str
) -> None:
    telemetry = opened()
    tell(telemetry, talk().client(traced(1, traceparent=OF_CLIENT, tracestate=given)))
    [span] = spans(telemetry, collector)
    assert span.trace_state == kept


def test_who_does_not_sample_a_trace_gets_no_spans_of_it(opened: Opened, collector: Collector) -> None:
    telemetry = opened()
    tell(telemetry, talk().client(traced(1, traceparent=OF_CLIENT.removesuffix("1") + "0")))
    assert spans(telemetry, collector) == []
    assert points(collector)[0].count == 1


# ── durations ────────────────────────────────────────────────────────────────────────────────────────────────────────


def points(collector: Collector) -> list[HistogramDataPoint]:
    [metric] = collector.metrics
    assert (metric.name, metric.unit) == ("mcp.server.operation.duration", "s")
    return list(metric.histogram.data_points)


def test_durations_are_recorded_in_the_buckets_of_the_conventions(opened: Opened, collector: Collector) -> None:
    telemetry = opened()
    conversation = talk()
    for ident, milliseconds in enumerate((1, 15, 30, 400_000), 1):
        heard = conversation.client(call(ident, "search", {"words": "x"}))
        tell(telemetry, heard, milliseconds=milliseconds, session="s", transport="http")
    told = spans(telemetry, collector)
    [point] = points(collector)
    assert {each.span_id for each in point.exemplars} <= {span.span_id for span in told}
    assert point.exemplars
    assert list(point.explicit_bounds) == [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300]
    assert list(point.bucket_counts) == [1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    assert point.sum == pytest.approx(400.046)
    assert values(point.attributes) == {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": "2025-11-25",
        "gen_ai.tool.name": "search",
        "gen_ai.operation.name": "execute_tool",
        "network.transport": "tcp",
        "network.protocol.name": "http",
    }


def test_a_clock_that_was_set_back_makes_no_negative_duration(opened: Opened, collector: Collector) -> None:
    telemetry = opened()
    tell(telemetry, talk().client(request(1, "ping")), milliseconds=-5)
    [span] = spans(telemetry, collector)
    assert span.end_time_unix_nano == span.start_time_unix_nano
    assert points(collector)[0].sum == 0


def test_a_client_cannot_make_up_series(opened: Opened, collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that nobody vouches for are on the span alone; and so are those beyond a number."""
    monkeypatch.setattr(exporting, "MOST_TARGETS", 3)
    telemetry = opened()
    conversation = Talk().opened()
    for number in range(5):
        tell(telemetry, conversation.client(call(number, f"bad-{number}", {})), code="UNKNOWN_TOOL")
        tell(telemetry, conversation.client(request(f"g-{number}", "prompts/get", {"name": f"good-{number}"})))
        tell(telemetry, conversation.client(request(f"m-{number}", f"made-up/{number}")))
    told = spans(telemetry, collector)
    named = {"prompts/get good-0", "prompts/get good-1", "prompts/get good-2"}
    assert {span.name for span in told} == {"tools/call", "prompts/get", "_OTHER"} | named
    tools = {values(span.attributes).get("gen_ai.tool.name") for span in told}
    assert tools >= {f"bad-{number}" for number in range(5)}
    assert len(points(collector)) == 3 + len(named)


# ── settings and variables ───────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_set_goes_to_the_collector(opened: Opened, collector: Collector) -> None:
    telemetry = opened(service_name="shop", **{"X-Key": "k"})
    tell(telemetry, talk().client(request(1, "ping")))
    spans(telemetry, collector)
    assert [each["x-key"] for each in collector.headers] == ["k", "k"]
    assert collector.resources[0]["service.name"] == "shop"


def test_the_variables_of_opentelemetry_simply_work(
    opened: Opened, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url + "/")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=k")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "shop")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
    telemetry = opened(endpoint="")
    tell(telemetry, talk().client(request(1, "ping")))
    assert len(spans(telemetry, collector)) == 1
    assert [each["x-key"] for each in collector.headers] == ["k", "k"]
    [resource] = collector.resources
    assert resource["service.name"] == "shop"
    assert resource["deployment.environment.name"] == "test"


@pytest.mark.parametrize(
    ("variables", "posts"),
    [
        pytest.param({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "/v1/traces"}, 1, id="traces-only"),
        pytest.param({"OTEL_EXPORTER_OTLP_ENDPOINT": "", "OTEL_TRACES_EXPORTER": "none"}, 1, id="no-traces"),
        pytest.param({"OTEL_EXPORTER_OTLP_ENDPOINT": "", "OTEL_METRICS_EXPORTER": "none"}, 1, id="no-metrics"),
        pytest.param({"OTEL_EXPORTER_OTLP_ENDPOINT": "", "OTEL_TRACES_SAMPLER": "always_off"}, 1, id="no-samples"),
    ],
)
def test_a_variable_can_choose(
    opened: Opened, collector: Collector, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], posts: int
) -> None:
    for name, text in variables.items():
        monkeypatch.setenv(name, collector.url + text if name.endswith("ENDPOINT") else text)
    telemetry = opened(endpoint="")
    tell(telemetry, talk().client(request(1, "ping")))
    telemetry.close(SECONDS)
    assert len(collector.bodies) == posts


def test_it_is_told_without_being_closed(opened: Opened, collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the delay, or as soon as there is a batch; durations at their interval."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "10")
    telemetry = opened()
    tell(telemetry, talk().client(request(1, "ping")))
    collector.wait_for(lambda it: len(it.spans) == 1 and len(it.metrics) == 1)


def test_a_full_batch_does_not_wait(opened: Opened, collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "999999999")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "5")
    telemetry = opened()
    for ident in range(1, 6):
        tell(telemetry, talk().client(request(ident, "ping")))
    collector.wait_for(lambda it: len(it.spans) == 5)


def test_a_connection_is_used_again(opened: Opened, collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    telemetry = opened()
    conversation = talk()
    for ident in range(1, 4):
        tell(telemetry, conversation.client(request(ident, "ping")))
    assert len(spans(telemetry, collector)) == 3
    assert collector.connections == 1


def test_a_text_in_place_of_a_number_is_ignored(
    opened: Opened, collector: Collector, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OTEL_BSP_MAX_QUEUE_SIZE", "OTEL_BSP_SCHEDULE_DELAY", "OTEL_METRIC_EXPORT_INTERVAL"):
        monkeypatch.setenv(name, "many")
    telemetry = opened()
    tell(telemetry, talk().client(request(1, "ping")))
    assert len(spans(telemetry, collector)) == 1
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["OTEL_BSP_MAX_QUEUE_SIZE", "OTEL_BSP_SCHEDULE_DELAY", "OTEL_METRIC_EXPORT_INTERVAL"])
def test_telemetry_is_off_if_a_number_is_out_of_range(
    lines: list[str], collector: Collector, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The SDK refuses it; nothing of it is left behind."""
    monkeypatch.setenv(name, "0")
    handlers = logging.getLogger("opentelemetry").handlers[:]
    threads = set(threading.enumerate())
    assert Telemetry.open(TelemetrySettings(collector.url), log=lines.append) is None
    [line] = lines
    assert line.startswith("telemetry: off: cannot be set up: ")
    assert logging.getLogger("opentelemetry").handlers == handlers
    assert set(threading.enumerate()) <= threads


def test_where_nobody_wants_telemetry_there_is_none_and_nothing_is_said(lines: list[str]) -> None:
    assert Telemetry.open(TelemetrySettings(service_name="shop"), log=lines.append) is None
    assert lines == []


@pytest.mark.parametrize(
    ("variables", "line"),
    [
        ({"OTEL_SDK_DISABLED": "true"}, "telemetry: off, because OTEL_SDK_DISABLED is true"),
        (
            {"OTEL_TRACES_EXPORTER": "console", "OTEL_METRICS_EXPORTER": "none"},
            "telemetry: no traces, because OTEL_TRACES_EXPORTER is not otlp",
        ),
        (
            {"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "grpc"},
            "telemetry: metrics are sent as http/protobuf; grpc is not supported",
        ),
    ],
    ids=["disabled", "console", "grpc"],
)
def test_what_a_variable_asks_for_and_is_not_done_is_said(
    lines: list[str], monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], line: str
) -> None:
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    telemetry = Telemetry.open(TelemetrySettings(endpoint="http://127.0.0.1:9"), log=lines.append)
    if telemetry is not None:
        telemetry.close(SECONDS)
    assert lines == [line]


@pytest.mark.parametrize("missing", ["opentelemetry", "opentelemetry.sdk.trace", "requests"])
def test_without_the_extra_it_is_said_how_to_get_it(missing: str) -> None:
    program = (
        "import sys\n"
        "from assay.records.telemetry import Telemetry\n"
        "from assay.settings import TelemetrySettings\n"
        "class Without:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {missing!r}:\n"
        "            raise ModuleNotFoundError(name=name)\n"
        "sys.meta_path.insert(0, Without())\n"
        "assert Telemetry.open(TelemetrySettings(endpoint='http://127.0.0.1:9'), log=print) is None\n"
    )
    assert run(program) == f"telemetry: off: it needs {missing}: {how_to_install('telemetry')}\n"


def test_where_nobody_wants_it_opentelemetry_is_not_imported() -> None:
    program = (
        "import sys\n"
        "from assay.records.telemetry import Telemetry\n"
        "from assay.settings import TelemetrySettings\n"
        "assert Telemetry.open(TelemetrySettings(), log=print) is None\n"
        "print([name for name in sys.modules if name.startswith(('opentelemetry', 'requests'))])\n"
    )
    assert run(program) == "[]\n"


def run(program: str) -> str:
    """What *program* prints."""
    command = [sys.executable, "-c", program]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=SECONDS, check=True).stdout


def test_the_section_is_read_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "assay.toml").write_text('[telemetry]\nendpoint = "http://a:4318"\n[telemetry.headers]\nx-a = "1"\n')
    settings = load({"ASSAY_TELEMETRY_SERVICE_NAME": "shop"}, tmp_path, flags=["telemetry.headers.x-b=2"])
    assert settings.telemetry == TelemetrySettings("http://a:4318", "shop", {"x-a": "1", "x-b": "2"})


@pytest.mark.parametrize(
    "endpoint", ["localhost:4318", "ftp://a", "http://", "http://me:secret@a", "http://a/?key=secret", "http://a b"]
)
def test_an_endpoint_that_is_none_is_objected_to_without_repeating_it(endpoint: str) -> None:
    with pytest.raises(ValueError, match="endpoint must be an http or https URL") as caught:
        TelemetrySettings(endpoint=endpoint)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("header", [("a b", "secret"), ("", "secret"), ("a", "secret\r\nb: c"), ("a", "sécret")])
def test_a_header_that_is_none_is_objected_to_without_repeating_it(header: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match="a header needs") as caught:
        TelemetrySettings(headers=dict([header]))
    assert "cret" not in str(caught.value)


def test_a_key_for_the_collector_is_not_shown() -> None:
    assert "secret" not in repr(TelemetrySettings(headers={"x-key": "secret"}))


# ── trouble ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def unavailable(handler: Handler) -> None:
    handler.send_response(400)
    handler.send_header("Content-Length", "0")
    handler.end_headers()


def overloaded(handler: Handler) -> None:
    handler.send_response(503)
    handler.send_header("Retry-After", "5")
    handler.send_header("Content-Length", "0")
    handler.end_headers()


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
    handler.send_response(200)
    handler.send_header("Content-Length", "4000")
    handler.end_headers()
    handler.wfile.write(b"\xff" * 10)
    handler.close_connection = True


TROUBLE = [unavailable, overloaded, silent, nonsense, hung_up, talkative, garbled]


@pytest.mark.parametrize("answer", TROUBLE)
def test_no_collector_keeps_traffic_or_the_end_waiting(
    opened: Opened, collector: Collector, monkeypatch: pytest.MonkeyPatch, answer: Callable[[Handler], None]
) -> None:
    """What is bounded by a limit on the test is that this ends; that nothing waits shows in what waits for nothing."""
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "10")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "100")
    collector.answer = answer
    telemetry = opened()
    conversation = talk()
    for ident in range(1, 1001):
        tell(telemetry, conversation.client(call(ident, "search", {"words": "x"})))
    collector.wait_for(lambda it: len(it.bodies) >= 1)
    began = time.monotonic()
    telemetry.close(0.2)
    assert time.monotonic() - began < SECONDS
    tell(telemetry, conversation.client(request("late", "ping")))
    assert all(each.daemon for each in threading.enumerate() if each.name.startswith(("Otel", "assay-telemetry")))


def test_no_collector_at_all_is_no_trouble(opened: Opened, lines: list[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        telemetry = opened(endpoint=f"http://127.0.0.1:{taken.getsockname()[1]}")
        tell(telemetry, talk().client(request(1, "ping")))
        telemetry.close(0.2)
    # Before the last line there may be one that says why, if that was found out in time.
    assert lines[-1] == "telemetry: 1 requests were not exported"


def test_more_than_can_be_told_is_forgotten_and_counted(
    opened: Opened, collector: Collector, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A collector that does not answer gets a batch; a queue is kept; the rest is forgotten, the oldest first."""
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "10")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "10")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    released = threading.Event()

    def late(handler: Handler) -> None:
        released.wait(SECONDS)
        well(handler)

    collector.answer = late
    telemetry = opened()
    conversation = talk()
    for ident in range(1, 11):
        tell(telemetry, conversation.client(call(ident, "search", {"words": "x"})))
    collector.wait_for(lambda it: len(it.bodies) == 1)
    first = len(collector.spans)
    for ident in range(11, 111):
        tell(telemetry, conversation.client(call(ident, "search", {"words": "x"})))
    released.set()
    told = [values(span.attributes)["jsonrpc.request.id"] for span in spans(telemetry, collector)]
    assert told == [str(ident) for ident in (*range(1, first + 1), *range(101, 111))]
    assert lines == [f"telemetry: {100 - first} requests were not exported"]


def test_what_is_kept_and_sent_has_nothing_long(opened: Opened, collector: Collector) -> None:
    """A megabyte in each of two thousand would be two gigabytes."""
    telemetry = opened()
    long = "x" * 100_000
    params = {"uri": long, "_meta": {"traceparent": OF_CLIENT, "tracestate": f"a={long}"}}
    heard = talk().client(request(long[:900], "resources/read", params))
    begun = telemetry.begun(heard, began_ns=BEGAN, transport="http", session=long)
    assert begun is not None
    assert len(repr(begun)) < 5000
    telemetry.ended(begun, None, ended_ns=BEGAN)
    tell(telemetry, heard, session=long, traceparent=long)
    assert len(spans(telemetry, collector)) == 2
    assert all(len(body) < 5000 for body in collector.bodies)


def test_a_collector_that_fails_is_named_once_and_once_more_when_it_works(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    collector.answer = unavailable
    lines: SimpleQueue[str] = SimpleQueue()
    telemetry = Telemetry.open(TelemetrySettings(collector.url), log=lines.put)
    assert telemetry is not None
    conversation = talk()
    tell(telemetry, conversation.client(request(1, "ping")))
    failed = lines.get(timeout=SECONDS)
    tell(telemetry, conversation.client(request(2, "ping")))
    collector.wait_for(lambda it: it.answered == 2)
    collector.answer = well
    tell(telemetry, conversation.client(request(3, "ping")))
    works = lines.get(timeout=SECONDS)
    telemetry.close(SECONDS)
    assert failed.startswith(f"telemetry: {collector.url}/v1/traces does not accept exports: ")
    assert "400" in failed
    assert works == f"telemetry: {collector.url}/v1/traces accepts exports again"
    assert lines.get(timeout=SECONDS) == "telemetry: 2 requests were not exported"
    assert lines.empty()


def test_a_retry_at_the_end_does_not_hide_the_reason(
    opened: Opened, collector: Collector, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exporter tries again after some seconds, longer than there is time at the end."""
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    collector.answer = overloaded
    telemetry = opened()
    messages: SimpleQueue[logging.LogRecord] = SimpleQueue()
    heard = QueueHandler(messages)
    # Handlers run in order: this one runs after that of telemetry.
    logging.getLogger("opentelemetry").addHandler(heard)
    tell(telemetry, talk().client(request(1, "ping")))
    messages.get(timeout=SECONDS)
    logging.getLogger("opentelemetry").removeHandler(heard)
    telemetry.close(0.2)
    reason, last = lines
    assert reason.startswith(f"telemetry: {collector.url}/v1/traces does not accept exports: ")
    assert "Service Unavailable" in reason
    assert last == "telemetry: 1 requests were not exported"


def test_a_reason_has_no_key_of_the_collector(
    opened: Opened, collector: Collector, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a variable can have one in the URL; in a setting it is refused."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://me:secret@[::1/v1/traces?key=secret#secret")
    telemetry = opened(endpoint="")
    tell(telemetry, talk().client(request(1, "ping")))
    telemetry.close(SECONDS)
    assert lines[0].startswith("telemetry: http://[::1/v1/traces does not accept exports: ")
    assert not any("secret" in line or "me:" in line for line in lines)


def test_opentelemetry_does_not_talk_to_stderr(
    opened: Opened, collector: Collector, capfd: pytest.CaptureFixture[str]
) -> None:
    """Where nobody has set up logging, its every attempt would be a line."""
    handlers = logging.getLogger("opentelemetry").handlers[:]
    collector.answer = unavailable
    telemetry = opened()
    tell(telemetry, talk().client(traced(1, traceparent=OF_CLIENT, tracestate="no state")))
    telemetry.close(SECONDS)
    assert capfd.readouterr() == ("", "")
    assert logging.getLogger("opentelemetry").handlers == handlers


def test_an_answer_that_was_never_asked_for_is_not_kept(opened: Opened, collector: Collector) -> None:
    """A result is no request: nothing of it is told but that there was something."""
    conversation = talk()
    conversation.client(call(1, "search", {"words": "x"}))
    telemetry = opened()
    tell(telemetry, conversation.server(result(1, HITS)))
    [span] = spans(telemetry, collector)
    assert span.name == "tools/call"
