"""
The traffic's side of telemetry: notes what is to be told, and leaves the telling to a thread.

Traffic never waits for it: a note is an append to a queue that forgets the oldest when it is full. All of OpenTelemetry
is on the other side of that queue, and imported only where somebody wants it.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from assay.base.verdict import Verdict
from assay.records.telemetry.span_snapshot import Seen, answered, seen
from assay.settings import Log, TelemetrySettings

if TYPE_CHECKING:
    from assay.records.telemetry.otlp import Otlp

# Each of these is what it is unless the variable of OpenTelemetry that is named with it says otherwise.

QUEUE: Final = 2048
"""Requests that wait to be told (OTEL_BSP_MAX_QUEUE_SIZE). The usual number; a few megabytes at the very most."""

BATCH: Final = 128
"""
Requests told at once (OTEL_BSP_MAX_EXPORT_BATCH_SIZE). A quarter of the usual number: to encode one takes 50 µs, in
which nothing else runs in this process.
"""

DELAY: Final = 5000
"""Milliseconds until they are told if there are fewer (OTEL_BSP_SCHEDULE_DELAY). The usual number."""

INTERVAL: Final = 60_000
"""Milliseconds between two tellings of durations (OTEL_METRIC_EXPORT_INTERVAL). The usual number."""

_ENDPOINTS: Final = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
)


def wanted(section: TelemetrySettings) -> bool:
    """Whether anybody has said where telemetry should go."""
    return bool(section.endpoint) or any(os.environ.get(name) for name in _ENDPOINTS)


class Telemetry:
    """
    Spans and durations of requests, sent to a collector in the background.

    All of it belongs to one thread, that of the traffic.
    """

    @classmethod
    def open(cls, section: TelemetrySettings, *, log: Log, redact: Sequence[str] = ()) -> "Telemetry | None":
        """
        Telemetry as *section* and the `OTEL_*` variables say; None if nobody wants any.

        What *redact* matches is hidden in the URIs of resources, beside what looks like a secret.
        None too where it is wanted and cannot be had; then *log* is told why.
        """
        if not wanted(section):
            return None
        if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
            log("telemetry: off, since OTEL_SDK_DISABLED is true")
            return None
        try:
            from assay.records.telemetry.otlp import Otlp  # noqa: PLC0415 - 0.2 s that nobody else should wait
        except ImportError as error:
            from assay.base.extras import missing  # noqa: PLC0415 - for those who lack it only

            log(f"telemetry: off: it needs {missing(error, 'telemetry')}")
            return None
        try:
            otlp = Otlp.open(section, log, redact)
        except Exception as error:
            log(f"telemetry: off, since it could not be set up: {error}")
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
        # A daemon: a collector that does not answer must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="assay-telemetry", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> int:
        """How many requests were forgotten, because more came than could be told."""
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
        *request* has been answered or refused. Neither waits nor raises.

        *code* is the canonical error that it was answered with, if it was, or the number of an error of the server's
        own. *failed* without a code says that the answer is a tool's report of its failure. Times are `time.time_ns()`;
        *traceparent* is the header of that name, over HTTP.
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
        """What is kept of *request* until somebody else has answered it. Neither waits nor raises."""
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
        """What was *begun* has got its *answer*, or another in its place; None if it was refused. Never raises."""
        try:
            note = begun._replace(ended_ns=ended_ns) if answer is None else answered(begun, answer, ended_ns)
        except Exception:  # as below
            self._lost += 1
        else:
            self._queue_up(note)

    def _seen(self, request: Verdict, **told: Any) -> Seen | None:
        try:
            return seen(request, **told)
        except Exception:  # a mistake of ours costs a note, never an answer
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
        """Tells what is left, for at most *timeout* seconds. After that nothing more is noted."""
        if self._closing:
            return
        self._closing = True
        self._wake.set()
        self._thread.join(timeout)
        self._otlp.give_up()
        lost = self._lost + len(self._queue) + self._otlp.lost
        if lost:
            self._log(f"telemetry: {lost} requests were not told to the collector")

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
        """Delivers what is queued, batch by batch. At the end, what comes after one that is not taken is left."""
        while self._queue:
            for _ in range(min(self._batch, len(self._queue))):
                self._otlp.add(self._queue.popleft())
                # Lets the traffic go first: a thread that computes is interrupted only every 5 ms.
                time.sleep(0)
            if not self._otlp.deliver_spans() and self._closing:
                return


def _setting(name: str, default: int) -> int:
    """A whole number from the environment, at least 1; what is none is as good as unset, as everywhere with OTEL_*."""
    text = os.environ.get(name, "").strip()
    return int(text) if text.isdecimal() and len(text) < 10 and int(text) else default
