"""
The collector side of telemetry: create spans and durations with OpenTelemetry's SDK, and post them (OTLP over HTTP).

The only module that imports OpenTelemetry. One thread, which may wait, calls everything here.
"""

import logging
import math
import os
import re
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import requests
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from assay import __version__
from assay.core.redaction import Redactor
from assay.records.telemetry import conventions
from assay.records.telemetry.span_snapshot import Seen
from assay.settings import Log, TelemetrySettings

NAME: Final = "assay"
"""The default name of the service, and the instrumentation scope."""

_ANSWER: Final = 4096
"""Bytes of a collector's response that are read and dropped. After a longer one the connection is closed."""

_NOWHERE: Final = Context()


class Otlp:
    """The exporters: for spans, durations, or both."""

    @classmethod
    def open(cls, section: TelemetrySettings, log: Log, redact: Sequence[str] = ()) -> "Otlp | None":
        """Return the configured exporters, which hide matches of *redact*; None if neither is configured."""
        places = {signal: place for signal in ("traces", "metrics") if (place := _place(section, signal, log))}
        return cls(section, places, log, redact) if places else None

    def __init__(
        self, section: TelemetrySettings, places: Mapping[str, str], log: Log, redact: Sequence[str] = ()
    ) -> None:
        self._log = log
        self._redactor = Redactor(redact)
        self._failing: set[str] = set()
        self._targets = conventions.Targets()
        self._propagator = TraceContextTextMapPropagator()
        self._places = places
        self.lost = 0
        """Number of spans that the collector did not accept."""
        resource = _resource(section)
        headers = dict(section.headers) or None
        self._spans = _Finished()
        self._span_exporter: SpanExporter | None = None
        # No automatic shutdown at exit: it could take half a minute, and `close` was already called.
        traces = TracerProvider(resource=resource, shutdown_on_exit=False)
        if "traces" in places:
            traces.add_span_processor(self._spans)
            self._span_exporter = OTLPSpanExporter(places["traces"], headers=headers, session=_session("TRACES"))
        self._tracer = traces.get_tracer(NAME, __version__)
        self._reader: PeriodicExportingMetricReader | None = None
        self._metric_exporter: _MetricExporter | None = None
        if "metrics" in places:
            self._metric_exporter = _MetricExporter(places["metrics"], headers=headers, session=_session("METRICS"))
            # Never by itself: our own thread triggers the export.
            self._reader = PeriodicExportingMetricReader(self._metric_exporter, export_interval_millis=math.inf)
        readers = [self._reader] if self._reader is not None else []
        self._durations = (
            MeterProvider(readers, resource=resource, shutdown_on_exit=False)
            .get_meter(NAME, __version__)
            .create_histogram(
                conventions.DURATION,
                unit=conventions.DURATION_UNIT,
                description=conventions.DURATION_TEXT,
                explicit_bucket_boundaries_advisory=list(conventions.DURATION_BUCKETS),
            )
        )
        self._complaints = _Complaints()

    def start(self) -> None:
        """Prepare this thread; called first."""
        self._complaints.thread = threading.get_ident()

    def end(self) -> None:
        """Shut down the exporters; called last."""
        self._complaints.close()

    def add(self, request: Seen) -> None:
        """Create a span for *request*, and record its duration."""
        try:
            self._add(request)
        except Exception as error:  # a failure affects only this request
            self._complaints.note(repr(error))
            self.lost += 1

    def _add(self, request: Seen) -> None:
        target = self._targets.of(request)
        common = conventions.metric_attributes(request, target)
        context, links = self._ancestry(request)
        span = self._tracer.start_span(
            conventions.span_name(request, target),
            context=context,
            kind=SpanKind.SERVER,
            attributes=self._attributes(request, common),
            links=links,
            start_time=request.began_ns,
        )
        if "error.type" in common:
            span.set_status(Status(StatusCode.ERROR, conventions.status_text(request)))
        # If the clock was set back, the end must not be before the start.
        span.end(max(request.began_ns, request.ended_ns))
        seconds = max(0, request.ended_ns - request.began_ns) / 1e9
        self._durations.record(seconds, common, context=set_span_in_context(span, _NOWHERE))

    def _attributes(self, request: Seen, common: conventions.Attributes) -> conventions.Attributes:
        found = conventions.span_attributes(request, common)
        if request.uri is not None:
            found["mcp.resource.uri"] = self._redactor.text(request.uri)
        return found

    def deliver_spans(self) -> bool:
        """Post the new spans. Return False if the collector does not accept them: then they are lost."""
        spans, self._spans.ended = self._spans.ended, []
        if self._span_exporter is None or not spans:
            return True
        # No retries: nothing may wait for them.
        self.lost += len(spans)
        try:
            taken = self._span_exporter.export(spans) is SpanExportResult.SUCCESS
        except Exception as error:  # whatever the collector responds, the next batch is tried
            self._complaints.note(repr(error))
            taken = False
        if taken:
            self.lost -= len(spans)
        self._tell(taken, self._places["traces"])
        return taken

    def deliver_durations(self) -> None:
        """Post the durations since the start. They are cumulative, so a failed export is covered by the next one."""
        if self._reader is None or self._metric_exporter is None:
            return
        self._metric_exporter.taken = None
        try:
            self._reader.collect()
        except Exception as error:  # as above
            self._complaints.note(repr(error))
            self._metric_exporter.taken = False
        if self._metric_exporter.taken is not None:
            self._tell(self._metric_exporter.taken, self._places["metrics"])

    def give_up(self) -> None:
        """Abort pending requests to the collector without a message. Any thread may call it."""
        self._log = lambda _: None
        with suppress(Exception):
            if self._span_exporter is not None:
                self._span_exporter.shutdown()
        with suppress(Exception):
            if self._metric_exporter is not None:
                self._metric_exporter.shutdown()

    def _ancestry(self, request: Seen) -> tuple[Context, list[Link]]:
        """
        Return the parent and the links of the span.

        If the message names the client's span, that is the parent, and the HTTP request is linked. Otherwise the HTTP
        request is the parent, if it has a span.
        """
        outer = self._context(request.outer)
        parent = self._context(request.traceparent, request.tracestate)
        if parent is _NOWHERE:
            return outer, []
        link, chosen = _span_in(outer), _span_in(parent)
        return parent, [Link(link)] if link.is_valid and link.span_id != chosen.span_id else []

    def _context(self, traceparent: str | None, tracestate: str | None = None) -> Context:
        if traceparent is None:
            return _NOWHERE
        carrier = {"traceparent": traceparent} | ({"tracestate": tracestate} if tracestate else {})
        return self._propagator.extract(carrier, context=_NOWHERE)

    def _tell(self, taken: bool, place: str) -> None:
        """Log when the collector stops accepting exports, and when it accepts them again."""
        if taken == (place not in self._failing):
            return
        self._failing ^= {place}
        # The library's message contains the URL, whose query may be a key.
        why = re.sub(r"\?[^\s'\")>]*", "", self._complaints.last) or "no reason given"
        what = "accepts exports again" if taken else f"does not accept exports: {why}"
        self._log(f"telemetry: {_shown(place)} {what}")


class _Finished(SpanProcessor):
    """Keeps spans until they are posted: at most a batch, because the same thread adds and posts them."""

    def __init__(self) -> None:
        self.ended: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        if span.context is not None and span.context.trace_flags.sampled:
            self.ended.append(span)


class _MetricExporter(OTLPMetricExporter):
    """The metric exporter, which remembers the result of its last export: the SDK's reader does not return it."""

    taken: bool | None = None

    def export(
        self, metrics_data: MetricsData, timeout_millis: float | None = 10_000, **kwargs: Any
    ) -> MetricExportResult:
        result = super().export(metrics_data, timeout_millis, **kwargs)
        self.taken = result is MetricExportResult.SUCCESS
        return result


class _Complaints(logging.Handler):
    """
    The last message that OpenTelemetry logged on our thread.

    This handler also keeps the library's messages, one for each attempt, off stderr if logging is not configured; our
    own messages are printed. With configured logging they are logged as usual.
    """

    _LOGGER: Final = "opentelemetry"

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.last = ""
        self.thread: int | None = None
        logging.getLogger(self._LOGGER).addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == self.thread:
            self.note(record.getMessage())

    def note(self, text: str) -> None:
        """Keep *text* on one line, shortened."""
        self.last = " ".join(text.split())[:300]

    def close(self) -> None:
        logging.getLogger(self._LOGGER).removeHandler(self)
        super().close()


def _place(section: TelemetrySettings, signal: str, log: Log) -> str | None:
    """Return the URL for *signal*; None if it is off. Our settings win over the variables."""

    def said(variable: str) -> str:
        own = os.environ.get(variable.format(f"_{signal.upper()}"), "").strip()
        return own or os.environ.get(variable.format(""), "").strip()

    exporters = {name.strip() for name in os.environ.get(f"OTEL_{signal.upper()}_EXPORTER", "otlp").split(",")}
    if "otlp" not in exporters:
        if exporters != {"none"}:
            log(f"telemetry: no {signal}, because OTEL_{signal.upper()}_EXPORTER is not otlp")
        return None
    protocol = said("OTEL_EXPORTER_OTLP{}_PROTOCOL")
    if protocol not in ("", "http/protobuf"):
        log(f"telemetry: {signal} are sent as http/protobuf; {protocol} is not supported")
    own = os.environ.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT", "").strip()
    if own and not section.endpoint:
        return own
    base = section.endpoint or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "").strip()
    return f"{base.rstrip('/')}/v1/{signal}" if base else None


def _resource(section: TelemetrySettings) -> Resource:
    """Return the resource that describes this process. The SDK reads OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES."""
    said = Resource.create({"service.version": __version__})
    named = not str(said.attributes.get("service.name", "")).startswith("unknown_service")
    name = section.service_name or (None if named else NAME)
    return said.merge(Resource({"service.name": name})) if name else said


def _session(signal: str) -> requests.Session | None:
    """Return a session that reads little of a collector's response; None if a variable configures credentials."""
    provider = "OTEL_PYTHON_EXPORTER_OTLP_HTTP{}_CREDENTIAL_PROVIDER"
    if os.environ.get(provider.format("")) or os.environ.get(provider.format(f"_{signal}")):
        return None
    session = requests.Session()
    session.stream = True
    session.hooks["response"].append(_let_go)
    return session


def _let_go(response: requests.Response, **_: Any) -> None:
    """Release the connection of *response*: reuse it if the rest of the response is short, else close it."""
    length = response.headers.get("content-length", "")
    with suppress(Exception):
        if length.isdecimal() and int(length[:9]) <= _ANSWER:
            response.raw.read(_ANSWER)
    response.close()


def _span_in(context: Context) -> SpanContext:
    return get_current_span(context).get_span_context()


def _shown(place: str) -> str:
    """Return *place* without user name, password, query and fragment."""
    return re.sub(r"(?<=://)[^/?#]*@", "", re.split("[?#]", place, maxsplit=1)[0])
