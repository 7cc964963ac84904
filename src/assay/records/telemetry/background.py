"""
The traffic side of telemetry: queues requests, which a thread exports.

Traffic never waits: it appends to a queue, which drops the oldest entry when it is full. OpenTelemetry is used only on
the other side of the queue, and imported only if telemetry is configured.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from assay.base.extras import missing
from assay.base.verdict import Verdict
from assay.records.telemetry.span_snapshot import Seen, answered, seen
from assay.settings import Log, TelemetrySettings

if TYPE_CHECKING:
    from assay.records.telemetry.otlp import Otlp

# Defaults; the OpenTelemetry variable in parentheses overrides each of them.

QUEUE: Final = 2048
"""Maximal requests in the queue (OTEL_BSP_MAX_QUEUE_SIZE). The usual number; at most a few megabytes."""

BATCH: Final = 128
"""
Requests in one export (OTEL_BSP_MAX_EXPORT_BATCH_SIZE). A quarter of the usual number: encoding one takes 50 µs, during
which nothing else runs in this process.
"""

DELAY: Final = 5000
"""Milliseconds until a smaller batch is exported (OTEL_BSP_SCHEDULE_DELAY). The usual number."""

INTERVAL: Final = 60_000
"""Milliseconds between two exports of durations (OTEL_METRIC_EXPORT_INTERVAL). The usual number."""

_ENDPOINTS: Final = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
)


def wanted(section: TelemetrySettings) -> bool:
    """Whether a collector is configured."""
    return bool(section.endpoint) or any(os.environ.get(name) for name in _ENDPOINTS)


class Telemetry:
    """
    Spans and durations of requests, sent to a collector in the background.

    All methods are called by one thread, that of the traffic.
    """

    @classmethod
    def open(cls, section: TelemetrySettings, *, log: Log, redact: Sequence[str] = ()) -> "Telemetry | None":
        """
        Return telemetry as configured by *section* and the `OTEL_*` variables; None if it is not configured.

        Matches of *redact* are hidden in the URIs of resources, in addition to what looks like a secret.
        Also None if telemetry cannot be set up; the reason goes to *log*.
        """
        if not wanted(section):
            return None
        if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
            log("telemetry: off, because OTEL_SDK_DISABLED is true")
            return None
        try:
            from assay.records.telemetry.otlp import Otlp  # noqa: PLC0415 - imported only if needed: it takes 0.2 s
        except ImportError as error:
            log(f"telemetry: off: it needs {missing(error, 'telemetry')}")
            return None
        try:
            otlp = Otlp.open(section, log, redact)
        except Exception as error:
            log(f"telemetry: off: cannot be set up: {error}")
            return None
        return cls(otlp, log) if otlp is not None else None

    def __init__(self, otlp: "Otlp", log: Log) -> None:
        self._otlp = otlp
        self._log = log
        self._most = _setting("OTEL_BSP_MAX_QUEUE_SIZE", QUEUE)
        self._queue: deque[Seen] = deque(maxlen=self._most)
        self._batch = min(_setting("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", BATCH), self._most)
        self._delay = _setting("OTEL_BSP_SCHEDULE_DELAY", DELAY) / 1000
        self._interval = _setting("OTEL_METRIC_EXPORT_INTERVAL", INTERVAL) / 1000
        self._lost = 0
        self._closing = False
        self._wake = threading.Event()
        # A daemon thread: a collector that does not respond must not keep the process alive.
        self._thread = threading.Thread(target=self._run, name="assay-telemetry", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> int:
        """Number of requests that were dropped because the queue was full."""
        return self._lost

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
        Queue a *request* that was answered or refused. Neither waits nor raises.

        *code* is the canonical error of the response, or the code of a server's own error. *failed* without a code
        means that the result reports a failure of the tool. Times are `time.time_ns()`; *traceparent* is the HTTP
        header of that name.
        """
        note = self._seen(
            request,
            code=code,
            failed=failed,
            began_ns=began_ns,
            ended_ns=ended_ns,
            transport=transport,
            session=session,
            traceparent=traceparent,
        )
        if note is not None:
            self._queue_up(note)

    def begun(self, request: Verdict, *, began_ns: int, transport: str, session: str | None) -> Seen | None:
        """Return what to keep of *request* until the server has answered it. Neither waits nor raises."""
        return self._seen(
            request,
            code=None,
            failed=False,
            began_ns=began_ns,
            ended_ns=began_ns,
            transport=transport,
            session=session,
            traceparent=None,
        )

    def ended(self, begun: Seen, answer: Verdict | None, *, ended_ns: int) -> None:
        """Queue a request that was *begun*, with its *answer*; None if it was refused. Never raises."""
        try:
            note = begun._replace(ended_ns=ended_ns) if answer is None else answered(begun, answer, ended_ns)
        except Exception:  # as below
            self._lost += 1
        else:
            self._queue_up(note)

    def _seen(self, request: Verdict, **facts: Any) -> Seen | None:
        try:
            return seen(request, **facts)
        except Exception:  # a bug here loses telemetry, never a response
            self._lost += 1
            return None

    def _queue_up(self, note: Seen) -> None:
        if self._closing:
            return
        waiting = len(self._queue)
        if waiting >= self._most:
            self._lost += 1
        self._queue.append(note)
        if waiting + 1 >= self._batch and not self._wake.is_set():
            self._wake.set()

    def close(self, timeout: float) -> None:
        """Export the rest of the queue, for at most *timeout* seconds. Later requests are ignored."""
        if self._closing:
            return
        self._closing = True
        self._wake.set()
        self._thread.join(timeout)
        self._otlp.give_up()
        lost = self._lost + len(self._queue) + self._otlp.lost
        if lost:
            self._log(f"telemetry: {lost} requests were not exported")

    # ── the thread ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _run(self) -> None:
        self._otlp.start()
        due = time.monotonic() + self._interval
        while not self._closing:
            self._wake.wait(max(0.0, min(self._delay, due - time.monotonic())))
            self._wake.clear()
            self._tell()
            if time.monotonic() >= due:
                self._otlp.deliver_durations()
                due = time.monotonic() + self._interval
        self._tell()
        self._otlp.deliver_durations()
        self._otlp.end()

    def _tell(self) -> None:
        """Export the queue, batch by batch. At the end, stop after the first batch that is rejected."""
        while self._queue:
            for _ in range(min(self._batch, len(self._queue))):
                self._otlp.add(self._queue.popleft())
                # Yield to the traffic: a computing thread is interrupted only every 5 ms.
                time.sleep(0)
            if not self._otlp.deliver_spans() and self._closing:
                return


def _setting(name: str, default: int) -> int:
    """Return a positive integer from the environment. An invalid value counts as unset, as usual for OTEL_*."""
    text = os.environ.get(name, "").strip()
    return int(text) if text.isdecimal() and len(text) < 10 and int(text) else default
