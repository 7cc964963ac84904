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
from typing import Any, Final

import requests
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricExportResult, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from assay import __version__
from assay.records.telemetry import Attributes, Outcome
from assay.settings import Log, TelemetrySettings

NAME: Final = "assay"
"""The default name of the service, and the instrumentation scope."""

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

_DURATION: Final = "mcp.server.operation.duration"
_DURATION_TEXT: Final = (
    "MCP request or notification duration as observed on the receiver from the time it was received until the result"
    " or ack is sent."
)
_DURATION_BUCKETS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)

_NOWHERE: Final = Context()
_LOGGER: Final = logging.getLogger("opentelemetry")


class Exporting:
    """Exports spans, durations, or both. The SDK has a bounded queue for the spans, and a thread for each."""

    def __init__(self, section: TelemetrySettings, places: Mapping[str, str], log: Log) -> None:
        self._propagator = TraceContextTextMapPropagator()
        self._ended = 0
        self._watches = {signal: _Watch(place, log) for signal, place in places.items()}
        resource, headers = _resource(section), dict(section.headers)
        # Undone at the end, the last first; or at once if a variable has an invalid value.
        with ExitStack() as undo:
            for watch in self._watches.values():
                _LOGGER.addHandler(watch)
                undo.callback(_LOGGER.removeHandler, watch)
            readers = []
            if "metrics" in places:
                session = _session("METRICS")
                durations = OTLPMetricExporter(places["metrics"], headers=headers, session=session)
                self._watches["metrics"].follow(durations, MetricExportResult.FAILURE)
                readers = [PeriodicExportingMetricReader(durations)]
            # No automatic shutdown at exit: it could take half a minute, and `close` was already called.
            meters = MeterProvider(readers, resource=resource, shutdown_on_exit=False)
            undo.callback(meters.shutdown)
            tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
            if "traces" in places:
                batch = None if os.environ.get("OTEL_BSP_MAX_EXPORT_BATCH_SIZE") else _BATCH
                spans = OTLPSpanExporter(places["traces"], headers=headers, session=_session("TRACES"))
                self._watches["traces"].follow(spans, SpanExportResult.FAILURE)
                tracers.add_span_processor(BatchSpanProcessor(spans, max_export_batch_size=batch))
            undo.callback(tracers.shutdown)
            self._undo = undo.pop_all()
        self._tracer = tracers.get_tracer(NAME, __version__)
        self._durations = meters.get_meter(NAME, __version__).create_histogram(
            _DURATION,
            unit="s",
            description=_DURATION_TEXT,
            explicit_bucket_boundaries_advisory=_DURATION_BUCKETS,
        )

    def begin(
        self,
        name: str,
        attributes: Attributes,
        began_ns: int,
        header: Mapping[str, str],
        message: Mapping[str, str],
    ) -> Span:
        """
        Start the span of a request; *header* and *message* are the trace contexts of HTTP and of the message.

        If the message names the client's span, that is the parent, and the HTTP request is linked. Otherwise the HTTP
        request is the parent, if it has a span.
        """
        outer = self._propagator.extract(header, context=_NOWHERE)
        inner = self._propagator.extract(message, context=_NOWHERE)
        link, parent = (get_current_span(each).get_span_context() for each in (outer, inner))
        is_linked = parent.is_valid and link.is_valid and link.span_id != parent.span_id
        return self._tracer.start_span(
            name,
            context=inner if parent.is_valid else outer,
            kind=SpanKind.SERVER,
            attributes=attributes,
            links=[Link(link)] if is_linked else [],
            start_time=began_ns,
        )

    def end(
        self, span: Span, name: str | None, outcome: Outcome, common: Attributes, began_ns: int, ended_ns: int
    ) -> None:
        """End a span, under a new *name* if it has one, and record its duration with its *common* attributes."""
        if name is not None:
            span.update_name(name)
        span.set_attributes(outcome.common | outcome.alone)
        if outcome.common:
            span.set_status(Status(StatusCode.ERROR, outcome.text))
        self._ended += span.get_span_context().trace_flags.sampled
        span.end(ended_ns)
        self._durations.record((ended_ns - began_ns) / 1e9, common, context=set_span_in_context(span, _NOWHERE))

    def close(self, timeout: float) -> int:
        """Export what waits, for at most *timeout* seconds. Return the number of spans that were not exported."""
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

    def follow(self, exporter: Any, failure: Any) -> None:
        """Watch each export of *exporter*, which returns *failure* if it does not succeed."""
        exporter.export = partial(self._export, exporter.export, failure)

    def _export(self, export: Callable[..., Any], failure: Any, batch: Any, *arguments: Any, **options: Any) -> Any:
        """Export a *batch*; return whether the collector accepts it. The SDK never runs two at a time."""
        if self._is_over:
            return failure
        self._thread, self._reason = threading.get_ident(), ""
        try:
            result = export(batch, *arguments, **options)
        except Exception as error:  # the next batch is tried
            result, self._reason = failure, self._reason or repr(error)
        self._thread = None
        is_accepted = result is not failure
        if is_accepted and isinstance(batch, Sequence):
            self.accepted += len(batch)
        self._tell(is_accepted)
        return result

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
