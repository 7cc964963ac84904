"""The traffic side of telemetry. It imports OpenTelemetry only if a collector is configured."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from assay.base.extras import missing
from assay.base.verdict import Verdict
from assay.records.telemetry.conventions import answered, refused
from assay.settings import Log, TelemetrySettings

if TYPE_CHECKING:
    from assay.records.telemetry.exporting import Begun, Exporting


class Telemetry:
    """
    Spans and durations of requests, sent to a collector in the background.

    One thread, that of the traffic, calls all methods. They neither wait for the collector nor raise: a bug loses
    telemetry, never a response.
    """

    @classmethod
    def open(cls, section: TelemetrySettings, *, log: Log, redact: Sequence[str] = ()) -> "Telemetry | None":
        """
        Return telemetry as configured by *section* and the `OTEL_*` variables; None if it is not configured.

        Matches of *redact* are hidden in the URIs of resources, in addition to what looks like a secret.
        Also None if telemetry cannot be set up; the reason goes to *log*.
        """
        places = {signal: place for signal in ("traces", "metrics") if (place := _place(section, signal))}
        if places and _variable("OTEL_SDK_DISABLED").lower() == "true":
            log("telemetry: off, because OTEL_SDK_DISABLED is true")
            return None
        places = {signal: place for signal, place in places.items() if _is_wanted(signal, log)}
        if not places:
            return None
        try:
            from assay.records.telemetry.exporting import Exporting  # noqa: PLC0415 - an extra, which takes 0.2 s
        except ImportError as error:
            log(f"telemetry: off: it needs {missing(error, 'telemetry')}")
            return None
        try:
            return cls(Exporting(section, places, log, redact), log)
        except Exception as error:
            log(f"telemetry: off: cannot be set up: {error}")
            return None

    def __init__(self, exporting: "Exporting", log: Log) -> None:
        self._exporting = exporting
        self._log = log
        self._failed = 0
        self._is_closed = False

    def exchange(
        self,
        request: Verdict,
        *,
        code: str | None,
        failed: bool,
        began_ns: int,
        ended_ns: int,
        transport: str,
        session: str | None,
        traceparent: str | None,
    ) -> None:
        """
        Record a *request* that was answered or refused.

        *code* is the canonical error of the response, or the code of a server's own error. *failed* without a code
        means that the result reports a failure of the tool. Times are `time.time_ns()`; *traceparent* is the HTTP
        header of that name.
        """
        try:
            begun = self._exporting.begin(request, began_ns, transport, session, traceparent)
            self._exporting.end(begun, refused(request, code, failed=failed), ended_ns)
        except Exception:
            self._failed += 1

    def begun(self, request: Verdict, *, began_ns: int, transport: str, session: str | None) -> "Begun | None":
        """Return what to keep of *request* until the server has answered it."""
        try:
            return self._exporting.begin(request, began_ns, transport, session, None)
        except Exception:
            self._failed += 1
            return None

    def ended(self, begun: "Begun", answer: Verdict | None, *, ended_ns: int) -> None:
        """Record a request that was *begun*, with its *answer*; None if it was refused."""
        try:
            outcome = begun.refused if answer is None else answered(answer, begun.refused)
            self._exporting.end(begun, outcome, ended_ns)
        except Exception:
            self._failed += 1

    def close(self, timeout: float) -> None:
        """Export what waits, for at most *timeout* seconds. Later requests are ignored."""
        if self._is_closed:
            return
        self._is_closed = True
        lost = self._exporting.close(timeout) + self._failed
        if lost:
            self._log(f"telemetry: {lost} requests were not exported")


def _place(section: TelemetrySettings, signal: str) -> str | None:
    """Return the URL for *signal*, if one is configured. Our settings win over the variables."""
    own = _variable(f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT")
    if own and not section.endpoint:
        return own
    base = section.endpoint or _variable("OTEL_EXPORTER_OTLP_ENDPOINT")
    return f"{base.rstrip('/')}/v1/{signal}" if base else None


def _is_wanted(signal: str, log: Log) -> bool:
    """Whether the variables let *signal* be exported. Values that we do not support go to *log*."""
    name = signal.upper()
    exporters = {each.strip() for each in os.environ.get(f"OTEL_{name}_EXPORTER", "otlp").split(",")}
    if "otlp" not in exporters:
        if exporters != {"none"}:
            log(f"telemetry: no {signal}, because OTEL_{name}_EXPORTER is not otlp")
        return False
    protocol = _variable(f"OTEL_EXPORTER_OTLP_{name}_PROTOCOL") or _variable("OTEL_EXPORTER_OTLP_PROTOCOL")
    if protocol not in ("", "http/protobuf"):
        log(f"telemetry: {signal} are sent as http/protobuf; {protocol} is not supported")
    return True


def _variable(name: str) -> str:
    return os.environ.get(name, "").strip()
