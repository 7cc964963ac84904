"""What a collector gets: spans and durations of requests, in the words of the conventions. Nothing is sent."""

import logging
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from queue import SimpleQueue
from typing import Any

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import HistogramDataPoint
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from assay.edges.recorder import Recorder, Records
from assay.model.verdict import Findings, Party, Verdict, verdict
from assay.records import telemetry
from assay.records.telemetry import Telemetry
from assay.settings import TelemetrySettings
from assay.settings.extras import how_to_install
from kit.collector import SECONDS, CollectorInProcess, collecting_in_process, values
from kit.records import record_verdict
from kit.rows import rows
from kit.talk import HITS, SEARCH, Talk, call, notification, request, result

BEGAN = 1_800_000_000_000_000_000
CLIENT_TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CLIENT_SPAN = "00f067aa0ba902b7"
HTTP_TRACE = "0af7651916cd43dd8448eb211c80319c"
HTTP_SPAN = "b7ad6b7169203331"
OF_CLIENT = f"00-{CLIENT_TRACE}-{CLIENT_SPAN}-01"
OF_HTTP = f"00-{HTTP_TRACE}-{HTTP_SPAN}-01"


class Exported:
    """Telemetry for a collector in process, and what it logs."""

    def __init__(self, collector: CollectorInProcess, section: TelemetrySettings) -> None:
        self.collector = collector
        self.lines: list[str] = []
        self.logged: SimpleQueue[str] = SimpleQueue()
        """The same lines, to wait for."""
        found = Telemetry.open(section, log=self.log)
        assert found is not None, self.lines
        self.telemetry = found

    def log(self, line: str) -> None:
        """Take a line of the log."""
        self.lines.append(line)
        self.logged.put(line)

    def record(self, heard: Verdict, *, milliseconds: int = 30, transport: str = "stdio", **how: Any) -> None:
        """Record a request that was answered."""
        given = {"code": None, "failed": False, "session": None, "traceparent": None, **how}
        ended = BEGAN + milliseconds * 1_000_000
        self.telemetry.exchange(heard, began_ns=BEGAN, ended_ns=ended, transport=transport, **given)

    def spans(self) -> list[Span]:
        """All that the collector has been sent, when all has been."""
        self.telemetry.close(SECONDS)
        return self.collector.spans

    def points(self) -> list[HistogramDataPoint]:
        """The durations."""
        self.telemetry.close(SECONDS)
        [metric] = self.collector.metrics
        assert (metric.name, metric.unit) == ("mcp.server.operation.duration", "s")
        return list(metric.histogram.data_points)


@contextmanager
def exporting_with(endpoint: str | None = None, service_name: str = "", **variables: str) -> Iterator[Exported]:
    """Telemetry with these settings; *variables* are of OpenTelemetry."""
    with collecting_in_process() as collector, pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(f"OTEL_{name}", value)
        section = TelemetrySettings(collector.url if endpoint is None else endpoint, service_name, {"X-Key": "k"})
        exported = Exported(collector, section)
        yield exported
        if collector.free is not None:
            collector.free.set()
        collector.status = 200
        exported.telemetry.close(SECONDS)
        # What a time limit left behind tries again for a while, and must not reach for a network in a later test.
        for thread in threading.enumerate():
            if thread.name == "assay-telemetry":
                thread.join(SECONDS)
                assert not thread.is_alive()


def span_of(heard: Verdict, **how: Any) -> Span:
    """The only span of a request."""
    with exporting_with() as exported:
        exported.record(heard, **how)
        [span] = exported.spans()
        assert exported.lines == []
        return span


def talk(revision: str = "2025-11-25") -> Talk:
    return Talk().opened(revision).listed(SEARCH)


def traced(ident: int, **meta: Any) -> dict[str, Any]:
    return {**call(ident, "search", {}), "params": {"name": "search", "arguments": {"words": "x"}, "_meta": meta}}


# ── spans ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_call_is_a_span_in_the_words_of_the_conventions() -> None:
    with exporting_with(service_name="shop") as exported:
        exported.record(talk().client(call(7, "search", {"words": "x"})), transport="http", session="s-1")
        [span] = exported.spans()
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
        [resource] = exported.collector.resources
        assert resource["service.name"] == "shop"
        assert [each["x-key"] for each in exported.collector.headers] == ["k", "k"]


READ = "resources/read"


@rows(
    ("message", "name", "attributes"),
    [
        (request("a", "prompts/get", {"name": "greet"}), "prompts/get greet",
         {"gen_ai.prompt.name": "greet", "jsonrpc.request.id": "a"}),
        (request(1, READ, {"uri": "file:///a/b.txt"}), READ, {"mcp.resource.uri": "file:///a/b.txt"}),
        (request(1, READ, {"uri": "postgres://me:secret@db.example/customers"}), READ,
         {"mcp.resource.uri": "postgres://[redacted]@db.example/customers"}),
        (request(1, READ, {"uri": f"https://{'x' * 300}:secret@db.example/a?key=secret#secret"}), READ,
         {"mcp.resource.uri": "https://[redacted]@db.example/a"}),
        (request(1, READ, {"uri": "https://db.example/ghp_0123456789abcdefghijABCDEFGHIJ012345/a"}), READ,
         {"mcp.resource.uri": "https://db.example/[redacted]/a"}),
        (request(2, "ping"), "ping", {"jsonrpc.request.id": "2"}),
        (b'{"jsonrpc":"2.0","id":1e2,"method":"ping"}', "ping", {"jsonrpc.request.id": "100"}),
    ],
)  # fmt: skip
def test_a_span_has_what_a_request_is_about_and_no_secret(message: Any, name: str, attributes: dict[str, str]) -> None:
    span = span_of(talk().client(message))
    common = {"mcp.protocol.version": "2025-11-25", "network.transport": "pipe", "assay.party": "client"}
    assert span.name == name
    about = {"mcp.method.name": name.split(maxsplit=1)[0], "jsonrpc.request.id": "1"}
    assert values(span.attributes) == common | about | attributes


def test_a_bare_method_is_a_tool() -> None:
    """The door of specs/001, which has no revision."""
    found = values(
        span_of(verdict(Party.CLIENT, b"{}", "request", request(1, "list_schemas", {}), None, None)).attributes
    )
    assert (found["mcp.method.name"], found["gen_ai.tool.name"]) == ("list_schemas", "list_schemas")
    assert "mcp.protocol.version" not in found


# ── what went wrong ──────────────────────────────────────────────────────────────────────────────────────────────────


@rows(("revision", "status"), [("2025-06-18", {"rpc.response.status_code": "-32602"}), ("2025-11-25", {})])
def test_a_refused_request_says_which_rules_and_nothing_of_what_it_held(revision: str, status: dict[str, str]) -> None:
    """By an error, and by a result."""
    with exporting_with() as exported:
        heard = talk(revision).client(call(1, "search", {"words": 17, "limit": "PRIVATE", "PRIVATE": 1}))
        exported.record(heard, code="INVALID_TOOL_INPUT")
        [span] = exported.spans()
        assert not any(b"PRIVATE" in body for body in exported.collector.bodies)
    assert span.name == "tools/call search"
    assert (span.status.code, span.status.message) == (Status.STATUS_CODE_ERROR, "Invalid tool input")
    found = values(span.attributes)
    assert found["error.type"] == "INVALID_TOOL_INPUT"
    assert found["assay.rules"] == ["contract/input", "contract/unknown-argument"]
    assert {name: found[name] for name in found if name.startswith("rpc.")} == status


@rows(
    ("code", "attributes", "text"),
    [
        ("TIMEOUT", {"error.type": "TIMEOUT", "rpc.response.status_code": "-31012"}, "No answer came in time"),
        ("-31999", {"error.type": "_OTHER", "rpc.response.status_code": "-31999"}, ""),
        ("made up", {"error.type": "_OTHER"}, ""),
        (None, {"error.type": "tool_error"}, ""),
    ],
)
def test_a_failed_request_says_what_failed(code: str | None, attributes: dict[str, str], text: str) -> None:
    span = span_of(talk().client(call(1, "search", {"words": "x"})), code=code, failed=True)
    assert span.status == Status(code=Status.STATUS_CODE_ERROR, message=text)
    found = values(span.attributes)
    assert {name: found[name] for name in found if name.startswith(("rpc.", "error."))} == attributes


def test_a_refusal_is_an_error_without_a_code_and_a_result_alone_has_only_its_method() -> None:
    span = span_of(talk().client(request(1, "tools/made-up")))
    assert (span.name, values(span.attributes)["error.type"]) == ("_OTHER", "METHOD_NOT_FOUND")
    # A result is no request: all that is known is that there was something.
    conversation = talk()
    conversation.client(call(1, "search", {"words": "x"}))
    assert span_of(conversation.server(result(1, HITS))).name == "tools/call"


@rows(
    "heard",
    [
        verdict(Party.CLIENT, b"\xff", "unreadable", None, None, None, Findings((), 0, None, b'{"error":{}}')),
        verdict(Party.CLIENT, b"[]", "batch", [], None, None),
        verdict(Party.CLIENT, b"1", "request", {"method": 7, "id": [], "params": 1, "jsonrpc": []}, None, None),
        verdict(Party.CLIENT, b"1", "request", {"method": "tools/call", "params": {"name": 1, "_meta": 2}}, None, None),
        verdict(Party.CLIENT, b"1", "result", None, None, None),
    ],
)
def test_whatever_was_refused_is_a_span(heard: Verdict) -> None:
    span = span_of(heard, code="INVALID_ENVELOPE")
    assert values(span.attributes)["error.type"] == "INVALID_ENVELOPE"


# ── traces ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@rows(
    ("meta", "header", "trace", "parent", "linked"),
    [
        ({"traceparent": OF_CLIENT}, None, CLIENT_TRACE, CLIENT_SPAN, []),
        ({}, OF_HTTP, HTTP_TRACE, HTTP_SPAN, []),
        ({"traceparent": OF_CLIENT}, OF_HTTP, CLIENT_TRACE, CLIENT_SPAN, [HTTP_SPAN]),
        ({"traceparent": OF_CLIENT}, OF_CLIENT, CLIENT_TRACE, CLIENT_SPAN, []),
        ({"traceparent": "00-nonsense"}, OF_HTTP, HTTP_TRACE, HTTP_SPAN, []),
        ({"traceparent": f"00-{'0' * 32}-{CLIENT_SPAN}-01"}, None, None, "", []),
        ({"traceparent": OF_CLIENT * 100}, None, None, "", []),
        ({"traceparent": [OF_CLIENT]}, None, None, "", []),
        ({}, None, None, "", []),
    ],
)
def test_a_span_belongs_to_the_trace_of_who_asked(
    meta: dict[str, Any], header: str | None, trace: str | None, parent: str, linked: list[str]
) -> None:
    """The message says it in `params._meta` (SEP-414); that goes before the header, which is linked then."""
    span = span_of(talk().client(traced(1, **meta)), transport="http", traceparent=header)
    assert len(span.trace_id) == 16
    assert trace is None or span.trace_id.hex() == trace
    assert span.parent_span_id.hex() == parent
    assert [link.span_id.hex() for link in span.links] == linked


def test_the_state_of_a_trace_is_kept_and_who_does_not_sample_it_gets_no_spans() -> None:
    state = "rojo=00f067aa0ba902b7,congo=t61"
    for given, kept in ((state, state), ("a=" + "b" * 511, "")):
        assert span_of(talk().client(traced(1, traceparent=OF_CLIENT, tracestate=given))).trace_state == kept
    with exporting_with() as exported:
        exported.record(talk().client(traced(1, traceparent=OF_CLIENT.removesuffix("1") + "0")))
        assert exported.spans() == []
        assert exported.points()[0].count == 1


# ── durations ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_durations_are_recorded_in_the_buckets_of_the_conventions() -> None:
    with exporting_with() as exported:
        conversation = talk()
        for ident, milliseconds in enumerate((-5, 15, 30, 400_000), 1):
            heard = conversation.client(call(ident, "search", {"words": "x"}))
            exported.record(heard, milliseconds=milliseconds, session="s", transport="http")
        spans, [point] = exported.spans(), exported.points()
    # A clock that was set back makes no negative duration.
    assert spans[0].end_time_unix_nano == spans[0].start_time_unix_nano
    assert {each.span_id for each in point.exemplars} <= {span.span_id for span in spans}
    assert point.exemplars
    assert list(point.explicit_bounds) == [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300]
    assert list(point.bucket_counts) == [1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    assert point.sum == pytest.approx(400.045)
    assert values(point.attributes) == {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": "2025-11-25",
        "gen_ai.tool.name": "search",
        "gen_ai.operation.name": "execute_tool",
        "network.transport": "tcp",
        "network.protocol.name": "http",
    }


def test_a_client_cannot_make_up_series(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that are not known to be good are on the span alone; and so are those beyond a number."""
    monkeypatch.setattr(telemetry, "MOST_TARGETS", 3)
    conversation = Talk().opened()
    with exporting_with() as exported:
        for number in range(5):
            exported.record(conversation.client(call(number, f"bad-{number}", {})), code="UNKNOWN_TOOL")
            exported.record(conversation.client(request(f"g-{number}", "prompts/get", {"name": f"good-{number}"})))
            exported.record(conversation.client(request(f"m-{number}", f"made-up/{number}")))
        spans, points = exported.spans(), exported.points()
    named = {"prompts/get good-0", "prompts/get good-1", "prompts/get good-2"}
    assert {span.name for span in spans} == {"tools/call", "prompts/get", "_OTHER"} | named
    tools = {values(span.attributes).get("gen_ai.tool.name") for span in spans}
    assert tools >= {f"bad-{number}" for number in range(5)}
    assert len(points) == 3 + len(named)


# ── through a guard ──────────────────────────────────────────────────────────────────────────────────────────────────


def recorded(*said: Verdict) -> list[Span]:
    """The spans of what passed a guard."""
    with exporting_with() as exported:
        recorder = Recorder("stdio", "stdio", Records(None, None, exported.telemetry), holding=True)
        for each in said:
            record_verdict(recorder, each, recorder.clock(), len(each.frame))
        return exported.spans()


def ids(spans: list[Span]) -> list[str]:
    return [values(span.attributes)["jsonrpc.request.id"] for span in spans]


def test_through_a_guard_a_request_is_one_span_whatever_becomes_of_it() -> None:
    said = talk()
    first, second = (said.client(call(number, "search", {"words": "x"})) for number in (1, 2))
    assert ids(recorded(first, second, said.server(result(2, HITS)), said.server(result(2, HITS)))) == ["2"]
    missing = said.conversation.give_up(Party.CLIENT, 1)
    assert missing is not None
    [span] = recorded(first, missing)
    assert values(span.attributes)["error.type"] == "TIMEOUT"
    # Under audit a bad answer passes, and is no error.
    said = Talk(mode="audit").opened().listed(SEARCH)
    asked = said.client(call(1, "search", {}))
    [span] = recorded(asked, said.server(result(1, {"content": [], "structuredContent": {"hits": "many"}})))
    assert span.status.code == Status.STATUS_CODE_UNSET
    assert values(span.attributes)["assay.rules"] == ["contract/input", "contract/output"]
    # What the server asks is one, too; a batch has as many as it has requests.
    said = Talk().opened(client={"roots": {}})
    [span] = recorded(said.server(request(9, "roots/list")), said.client(result(9, {"roots": []})))
    assert (span.name, values(span.attributes)["assay.party"]) == ("roots/list", "server")
    said = Talk().opened("2025-03-26")
    asked = said.client([request(1, "ping"), notification("notifications/roots/list_changed"), request(2, "ping")])
    assert sorted(ids(recorded(asked, said.server([result(2, {}), result(1, {})])))) == ["1", "2"]


# ── settings and variables ───────────────────────────────────────────────────────────────────────────────────────────

PING = request(1, "ping")
HERE = "http://collector.example"


@rows(
    ("variables", "bodies"),
    [
        ({"EXPORTER_OTLP_ENDPOINT": f"{HERE}/", "RESOURCE_ATTRIBUTES": "deployment.environment.name=test"}, 2),
        ({"EXPORTER_OTLP_TRACES_ENDPOINT": f"{HERE}/v1/traces"}, 1),
        ({"EXPORTER_OTLP_ENDPOINT": HERE, "TRACES_EXPORTER": "none"}, 1),
        ({"EXPORTER_OTLP_ENDPOINT": HERE, "METRICS_EXPORTER": "none"}, 1),
        ({"EXPORTER_OTLP_ENDPOINT": HERE, "TRACES_SAMPLER": "always_off"}, 1),
    ],
)
def test_the_variables_of_opentelemetry_simply_work(variables: dict[str, str], bodies: int) -> None:
    with exporting_with(endpoint="", SERVICE_NAME="shop", EXPORTER_OTLP_COMPRESSION="none", **variables) as exported:
        exported.record(talk().client(PING))
        exported.telemetry.close(SECONDS)
        assert len(exported.collector.bodies) == bodies
        if bodies == 2:
            [resource] = exported.collector.resources
            assert (resource["service.name"], resource["deployment.environment.name"]) == ("shop", "test")


def test_it_is_exported_without_being_closed_and_a_full_batch_does_not_wait() -> None:
    """After the delay, or as soon as there is a batch; durations at their interval."""
    with exporting_with(BSP_SCHEDULE_DELAY="10", METRIC_EXPORT_INTERVAL="10") as exported:
        exported.record(talk().client(PING))
        exported.collector.wait_for(lambda it: len(it.spans) == 1 and len(it.metrics) == 1)
    with exporting_with(BSP_SCHEDULE_DELAY="999999999", BSP_MAX_EXPORT_BATCH_SIZE="5") as exported:
        for ident in range(1, 6):
            exported.record(talk().client(request(ident, "ping")))
        exported.collector.wait_for(lambda it: len(it.spans) == 5)


@rows(
    ("variables", "line"),
    [
        ({"BSP_MAX_QUEUE_SIZE": "0"}, "telemetry: off: cannot be set up: .+"),
        ({"BSP_SCHEDULE_DELAY": "0"}, "telemetry: off: cannot be set up: .+"),
        ({"METRIC_EXPORT_INTERVAL": "0"}, "telemetry: off: cannot be set up: .+"),
        ({"SDK_DISABLED": "true"}, "telemetry: off, because OTEL_SDK_DISABLED is true"),
        (
            {"TRACES_EXPORTER": "console", "METRICS_EXPORTER": "none"},
            "telemetry: no traces, because OTEL_TRACES_EXPORTER is not otlp",
        ),
        (
            {"TRACES_EXPORTER": "none", "EXPORTER_OTLP_METRICS_PROTOCOL": "grpc"},
            "telemetry: metrics are sent as http/protobuf; grpc is not supported",
        ),
    ],
)
def test_what_a_variable_asks_for_and_is_not_done_is_said(variables: dict[str, str], line: str) -> None:
    """Nothing is left behind of what is off."""
    lines: list[str] = []
    handlers, threads = logging.getLogger("opentelemetry").handlers[:], set(threading.enumerate())
    with collecting_in_process() as collector, pytest.MonkeyPatch.context() as patch:
        for name, text in variables.items():
            patch.setenv(f"OTEL_{name}", text)
        telemetry = Telemetry.open(TelemetrySettings(collector.url), log=lines.append)
        assert (telemetry is not None) is ("are sent" in line)
        if telemetry is not None:
            telemetry.close(SECONDS)
    [said] = lines
    assert re.fullmatch(line, said)
    assert logging.getLogger("opentelemetry").handlers == handlers
    assert set(threading.enumerate()) <= threads


def test_without_a_collector_there_is_none_and_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    with collecting_in_process():
        assert Telemetry.open(TelemetrySettings(service_name="shop"), log=lines.append) is None
        assert lines == []
        for missing in ("opentelemetry", "requests"):
            with monkeypatch.context() as patch:
                patch.delitem(sys.modules, "assay.records.telemetry_export", raising=False)
                for name in [each for each in sys.modules if each.partition(".")[0] == missing]:
                    patch.delitem(sys.modules, name)
                patch.setitem(sys.modules, missing, None)
                assert Telemetry.open(TelemetrySettings(HERE), log=lines.append) is None
            [line] = lines
            assert line.startswith(f"telemetry: off: it needs {missing}")
            assert line.endswith(f": {how_to_install('telemetry')}")
            lines.clear()


@rows("given", ["localhost:4318", "ftp://a", "http://", "http://me:secret@a", "http://a/?key=secret", "http://a b"])
def test_an_endpoint_that_is_none_is_objected_to_without_repeating_it(given: str) -> None:
    with pytest.raises(ValueError, match="endpoint must be an http or https URL") as caught:
        TelemetrySettings(endpoint=given)
    assert "cret" not in str(caught.value)


@rows(("name", "value"), [("a b", "secret"), ("", "secret"), ("a", "secret\r\nb: c"), ("a", "sécret")])
def test_a_header_that_is_none_is_objected_to_without_repeating_it(name: str, value: str) -> None:
    with pytest.raises(ValueError, match="a header needs") as caught:
        TelemetrySettings(headers={name: value})
    assert "cret" not in str(caught.value)
    assert "secret" not in repr(TelemetrySettings(headers={"x-key": "secret"}))


# ── trouble ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_more_than_can_be_exported_is_dropped_and_counted() -> None:
    """A collector that does not answer gets a batch; a queue is kept; of the rest, the oldest are dropped first."""
    with exporting_with(BSP_MAX_EXPORT_BATCH_SIZE="10", BSP_MAX_QUEUE_SIZE="10", METRICS_EXPORTER="none") as exported:
        conversation = talk()
        exported.collector.free = threading.Event()
        for ident in range(1, 11):
            exported.record(conversation.client(call(ident, "search", {"words": "x"})))
        exported.collector.wait_for(lambda it: len(it.bodies) == 1)
        first = len(exported.collector.spans)
        for ident in range(11, 111):
            exported.record(conversation.client(call(ident, "search", {"words": "x"})))
        exported.collector.free.set()
        assert ids(exported.spans()) == [str(ident) for ident in (*range(1, first + 1), *range(101, 111))]
        assert exported.lines == [f"telemetry: {100 - first} requests were not exported"]


def test_what_is_kept_and_sent_has_nothing_long() -> None:
    """A megabyte in each of two thousand would be two gigabytes."""
    long = "x" * 100_000
    params = {"uri": long, "_meta": {"traceparent": OF_CLIENT, "tracestate": f"a={long}"}}
    with exporting_with() as exported:
        heard = talk().client(request(long[:900], READ, params))
        begun = exported.telemetry.begun(heard, began_ns=BEGAN, transport="http", session=long)
        assert begun is not None
        assert len(repr(begun)) < 5000
        exported.telemetry.ended(begun, None, ended_ns=BEGAN)
        exported.record(heard, session=long, traceparent=long)
        assert len(exported.spans()) == 2
        assert all(len(body) < 5000 for body in exported.collector.bodies)


def test_a_collector_that_fails_is_named_once_and_once_more_when_it_works(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """And OpenTelemetry writes nothing itself, as it would where logging is not set up."""
    handlers = logging.getLogger("opentelemetry").handlers[:]
    with exporting_with(BSP_MAX_EXPORT_BATCH_SIZE="1", METRICS_EXPORTER="none") as exported:
        exported.collector.status = 400
        exported.record(talk().client(traced(1, traceparent=OF_CLIENT, tracestate="no state")))
        failed = exported.logged.get(timeout=SECONDS)
        exported.record(talk().client(request(2, "ping")))
        exported.collector.wait_for(lambda it: it.answered == 2)
        exported.collector.status = 200
        exported.record(talk().client(request(3, "ping")))
        works = exported.logged.get(timeout=SECONDS)
        exported.telemetry.close(SECONDS)
        assert failed.startswith(f"telemetry: {HERE}/v1/traces does not accept exports: ")
        assert "400" in failed
        assert works == f"telemetry: {HERE}/v1/traces accepts exports again"
        assert exported.lines[2:] == ["telemetry: 2 requests were not exported"]
    assert capfd.readouterr() == ("", "")
    assert logging.getLogger("opentelemetry").handlers == handlers


class HoldingRetries(logging.Handler):
    """Handles the message of an exporter before it tries again, and lets that wait."""

    def __init__(self, collector: CollectorInProcess) -> None:
        super().__init__()
        self.collector = collector
        self.done = threading.Event()

    def emit(self, _record: logging.LogRecord) -> None:
        if not self.done.is_set():
            self.collector.free = threading.Event()
            self.done.set()


def test_a_retry_at_the_end_does_not_hide_the_reason() -> None:
    """The exporter tries again, and that takes longer than there is time at the end."""
    with exporting_with(BSP_MAX_EXPORT_BATCH_SIZE="1", METRICS_EXPORTER="none") as exported:
        exported.collector.status = 503
        # Handlers run in order: this one runs after that of telemetry.
        holding = HoldingRetries(exported.collector)
        logging.getLogger("opentelemetry").addHandler(holding)
        exported.record(talk().client(PING))
        assert holding.done.wait(SECONDS)
        logging.getLogger("opentelemetry").removeHandler(holding)
        exported.telemetry.close(0.01)
        reason, last = exported.lines
        assert reason.startswith(f"telemetry: {HERE}/v1/traces does not accept exports: ")
        assert "Service Unavailable" in reason
        assert last == "telemetry: 1 requests were not exported"


def test_a_reason_has_no_key_of_the_collector() -> None:
    """Only a variable can have one in the URL; in a setting it is refused."""
    place = "http://me:secret@[::1/v1/traces?key=secret#secret"
    with exporting_with(endpoint="", EXPORTER_OTLP_TRACES_ENDPOINT=place) as exported:
        exported.record(talk().client(PING))
        exported.telemetry.close(SECONDS)
        assert exported.lines[0].startswith("telemetry: http://[::1/v1/traces does not accept exports: ")
        assert not any("secret" in line or "me:" in line for line in exported.lines)
