"""
The collector side of telemetry: spans and durations, which OpenTelemetry's SDK queues and posts (OTLP over HTTP).

The only module that imports OpenTelemetry.
"""

import logging
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any, Final, NamedTuple

import requests
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from assay import __version__
from assay.base.verdict import Verdict
from assay.core.redaction import Redactor
from assay.records.telemetry import conventions
from assay.settings import Log, TelemetrySettings

NAME: Final = "assay"
"""The default name of the service, and the instrumentation scope."""

MOST_TARGETS: Final = 1000
"""Maximal names of tools and prompts in use. The largest server we know lists under 300 tools."""

_BATCH: Final = 128
"""
Spans in one export, unless a variable says otherwise. A quarter of the usual number: encoding them all takes 4 ms,
during which nothing else runs in this process.
"""

_ANSWER: Final = 4096
"""Bytes of a collector's response that are read and dropped. After a longer one the connection is closed."""

_LINE: Final = 500
"""Maximal characters of a line in the log. The reason of a refused connection takes 250."""

_SECRET: Final = re.compile(r"(?<=://)[^/?#\s]*@|[?#][^\s'\")>]*")
"""Parts of URLs that may hold a key: user name and password, query, fragment."""

_NOWHERE: Final = Context()
_LOGGER: Final = logging.getLogger("opentelemetry")


class Begun(NamedTuple):
    """What is kept of a request until it is answered: no frame, and nothing long."""

    span: Span
    began_ns: int
    asked: conventions.Asked
    refused: conventions.Outcome


class Exporting:
    """Exports spans, durations, or both. The SDK has a bounded queue for the spans, and a thread for each."""

    def __init__(self, section: TelemetrySettings, places: Mapping[str, str], log: Log, redact: Sequence[str]) -> None:
        self._redactor = Redactor(redact)
        self._propagator = TraceContextTextMapPropagator()
        self._targets: set[str] = set()
        self._ended = 0
        self._is_closed = False
        self._watches = {signal: _Watch(place, log) for signal, place in places.items()}
        resource, headers = _resource(section), dict(section.headers)
        # Undone at the end, the last first; or at once if a variable has an invalid value.
        with ExitStack() as undo:
            for watch in self._watches.values():
                _LOGGER.addHandler(watch)
                undo.callback(_LOGGER.removeHandler, watch)
            readers = []
            if "metrics" in places:
                readers = [PeriodicExportingMetricReader(_MetricExporter(self._watches["metrics"], headers))]
            # No automatic shutdown at exit: it could take half a minute, and `close` was already called.
            meters = MeterProvider(readers, resource=resource, shutdown_on_exit=False)
            undo.callback(meters.shutdown)
            tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
            if "traces" in places:
                batch = None if os.environ.get("OTEL_BSP_MAX_EXPORT_BATCH_SIZE") else _BATCH
                exporter = _SpanExporter(self._watches["traces"], headers)
                tracers.add_span_processor(BatchSpanProcessor(exporter, max_export_batch_size=batch))
            undo.callback(tracers.shutdown)
            self._undo = undo.pop_all()
        self._tracer = tracers.get_tracer(NAME, __version__)
        self._durations = meters.get_meter(NAME, __version__).create_histogram(
            conventions.DURATION,
            unit="s",
            description=conventions.DURATION_TEXT,
            explicit_bucket_boundaries_advisory=list(conventions.DURATION_BUCKETS),
        )

    def begin(
        self, request: Verdict, began_ns: int, transport: str, session: str | None, traceparent: str | None
    ) -> Begun:
        """Start the span of *request*; *traceparent* is the HTTP header."""
        asked = conventions.asked(request, transport, session, self._redactor.text)
        context, links = self._ancestry(request, traceparent)
        span = self._tracer.start_span(
            asked.method,
            context=context,
            kind=SpanKind.SERVER,
            attributes=asked.common | asked.alone,
            links=links,
            start_time=began_ns,
        )
        return Begun(span, began_ns, asked, conventions.refused(request))

    def end(self, begun: Begun, outcome: conventions.Outcome, ended_ns: int) -> None:
        """End the span of a request, and record its duration."""
        if self._is_closed:
            return
        span, began_ns, asked, _ = begun
        common = asked.common | outcome.common
        # Each name creates a series that never goes away, so clients must not be able to invent names: a name is used
        # in span names and durations once its server has listed it or answered it without an error.
        is_vouched_for = (asked.listed or not outcome.common) and len(self._targets) < MOST_TARGETS
        if asked.target is not None and (is_vouched_for or asked.target in self._targets):
            self._targets.add(asked.target)
            common[asked.attribute] = asked.target
            if asked.target != asked.method:
                span.update_name(f"{asked.method} {asked.target}")
        span.set_attributes(outcome.common | outcome.alone)
        if outcome.common:
            span.set_status(Status(StatusCode.ERROR, outcome.text))
        self._ended += span.get_span_context().trace_flags.sampled
        # If the clock was set back, the end must not be before the start.
        span.end(max(began_ns, ended_ns))
        seconds = max(0, ended_ns - began_ns) / 1e9
        self._durations.record(seconds, common, context=set_span_in_context(span, _NOWHERE))

    def close(self, timeout: float) -> int:
        """Export what waits, for at most *timeout* seconds. Return the number of spans that were not exported."""
        self._is_closed = True
        # On a thread of its own: the SDK's shutdown waits for half a minute for each signal, in some versions longer.
        thread = threading.Thread(target=self._shut_down, name="assay-telemetry", daemon=True)
        thread.start()
        thread.join(timeout)
        for watch in self._watches.values():
            watch.give_up()
        return self._ended - self._watches["traces"].accepted if "traces" in self._watches else 0

    def _shut_down(self) -> None:
        with suppress(Exception):
            self._undo.close()

    def _ancestry(self, request: Verdict, header: str | None) -> tuple[Context, list[Link]]:
        """
        Return the parent and the links of the span.

        If the message names the client's span, that is the parent, and the HTTP request is linked. Otherwise the HTTP
        request is the parent, if it has a span.
        """
        carrier = {"traceparent": header} if header and len(header) <= conventions.LONGEST else {}
        outer = self._propagator.extract(carrier, context=_NOWHERE)
        inner = self._propagator.extract(conventions.trace_context(request), context=_NOWHERE)
        link, parent = (get_current_span(each).get_span_context() for each in (outer, inner))
        if not parent.is_valid:
            return outer, []
        return inner, [Link(link)] if link.is_valid and link.span_id != parent.span_id else []


class _Watch(logging.Handler):
    """
    Logs when the collector at *place* stops accepting exports, with the reason, and when it accepts them again.

    The reason is in the messages of OpenTelemetry, which it handles. This also keeps them, one for each attempt, off
    stderr if logging is not configured.
    """

    def __init__(self, place: str, log: Log) -> None:
        super().__init__(logging.WARNING)
        self.place = place
        self.accepted = 0
        """Number of spans that the collector has accepted."""
        self._log = log
        self._thread: int | None = None
        self._reason = ""
        self._is_failing = self._is_over = False

    def accepts(self, export: Callable[[], SpanExportResult | MetricExportResult], spans: int = 0) -> bool:
        """Run *export* and return whether the collector accepts it. The SDK never runs two at a time."""
        if self._is_over:
            return False
        self._thread, self._reason = threading.get_ident(), ""
        try:
            is_accepted = export().name == "SUCCESS"
        except Exception as error:  # the next batch is tried
            is_accepted, self._reason = False, self._reason or repr(error)
        self._thread = None
        self.accepted += spans * is_accepted
        self._tell(is_accepted)
        return is_accepted

    def give_up(self) -> None:
        """Log the reason if an export has failed and is retried; then log nothing more, and export nothing more."""
        if self._thread is not None and self._reason:
            self._tell(False)
        self._is_over = True

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the first message of an export: the last one, after some retries, does not have the reason."""
        if record.thread == self._thread and not self._reason:
            self._reason = record.getMessage()

    def _tell(self, is_accepted: bool) -> None:
        if is_accepted != self._is_failing or self._is_over:
            return
        self._is_failing = not is_accepted
        why = " ".join(self._reason.split()) or "no reason given"
        what = "accepts exports again" if is_accepted else f"does not accept exports: {why}"
        self._log(_SECRET.sub("", f"telemetry: {self.place} {what}")[:_LINE])


class _SpanExporter(OTLPSpanExporter):
    """The SDK's exporter of spans, with a watch."""

    def __init__(self, watch: _Watch, headers: dict[str, str]) -> None:
        super().__init__(watch.place, headers=headers, session=_session("TRACES"))
        self._watch = watch

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        is_accepted = self._watch.accepts(partial(super().export, spans), len(spans))
        return SpanExportResult.SUCCESS if is_accepted else SpanExportResult.FAILURE


class _MetricExporter(OTLPMetricExporter):
    """The SDK's exporter of durations, with a watch."""

    def __init__(self, watch: _Watch, headers: dict[str, str]) -> None:
        super().__init__(watch.place, headers=headers, session=_session("METRICS"))
        self._watch = watch

    def export(self, metrics_data: MetricsData, *arguments: Any, **options: Any) -> MetricExportResult:
        is_accepted = self._watch.accepts(partial(super().export, metrics_data, *arguments, **options))
        return MetricExportResult.SUCCESS if is_accepted else MetricExportResult.FAILURE


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
    """Read the rest of a short *response*, so that its connection is used again. A longer one is closed."""
    with suppress(Exception):
        response.raw.read(_ANSWER)
    response.close()
