"""
The journal, the metrics and the traces as sinks of judged messages.

A sink gets a message before it is sent; `JournalSink.commit` writes the held lines.
"""

from functools import partial
from math import inf
from time import perf_counter, time_ns
from typing import TYPE_CHECKING, Any, Final

import orjson

from assay.guard.connection_name import session_in
from assay.guard.internal_errors import log_once
from assay.guard.sinks import EventKind, Sink
from assay.model.verdict import Verdict
from assay.records.http_notes import HttpNote, HttpNotes
from assay.records.moments import FRESH, Moment, traceparent_of
from assay.records.repeats import GARBAGE

if TYPE_CHECKING:
    from assay.records.journal import Journal
    from assay.records.metrics import Metrics
    from assay.records.telemetry import Telemetry

_ANSWERS: Final = frozenset({"result", "error", "missing", "unreadable"})
"""Kinds that can end an exchange; an unreadable message does if it looks like the response."""

HELD: Final = 0.2
MOST_HELD: Final = 1000
"""Maximal seconds that a line is held until its response, and maximal number of held lines."""


class JournalSink(Sink):
    """Lines for the journal of one edge, held back until `commit`."""

    __slots__ = ("_due", "_failures", "_http", "_journal", "_metrics", "_route", "_templates", "_transport", "held")

    def __init__(
        self,
        journal: "Journal",
        transport: str,
        route: str,
        metrics: "Metrics | None" = None,
        http: HttpNotes | None = None,
    ) -> None:
        """*metrics* count the records that could not be written; *http* has the request that is judged."""
        self._http = http if journal.payloads else None
        self._journal = journal
        self._transport, self._route = transport, route
        self._metrics = metrics
        self._templates = journal.templates(transport, route)
        self._due = inf
        self._failures = journal.failures
        self.held: list[bytes] = []
        """Lines that are not written yet."""

    def passed(self, verdict: Verdict, now: float, session: str, /) -> None:
        """Record a message without findings."""
        line = None
        if self._templates is not None and not self._journal.rows:
            line = self._templates.line(verdict, None, now, session, len(verdict.frame))
        if line is None:
            self.found(verdict, now, session, len(verdict.frame))
            return
        self.held.append(line)
        if len(self.held) >= MOST_HELD:
            self.commit()

    def found(self, verdict: Verdict, now: float, session: str, sent: int, /) -> None:
        """Record a message that has no template: at once, or when the status of its HTTP response is known."""
        if self._http is not None and self._http.note is not None:
            self._http.defer(partial(self._write, verdict, now, session, sent))
        else:
            self._write(verdict, now, session, sent)

    def _write(self, verdict: Verdict, now: float, session: str, sent: int, note: HttpNote | None = None) -> None:
        """Hold the line of a message back, unless it only counts as garbage like the one before."""
        journal = self._journal
        if journal.rows or verdict.kind in GARBAGE:
            counts, ended = journal.repeats(verdict, now, sent, session, self._transport, self._route)
            if ended:
                self.held.append(ended)
            if counts:
                return
        exchange = verdict.exchange
        answers = exchange is not None and verdict.kind in _ANSWERS
        moment = exchange.moment if answers and exchange is not None else None
        if moment is None:
            method = exchange.entry.name if exchange is not None else verdict.method
            trace = traceparent_of(verdict.value)
            moment = journal.moment(self._transport, self._route, method, verdict.frame, trace, session, now)
            moment = moment if note is None else moment._replace(http=note)
            if exchange is not None and verdict.kind == "request":
                exchange.moment = moment
        code = "TIMEOUT" if exchange is not None and exchange.state == "timed-out" and answers else None
        self.held.append(journal.line(verdict, moment, sent, code=code))
        if len(self.held) >= MOST_HELD:
            self.commit()

    guard_frame = passed

    def event(self, kind: EventKind, data: bytes, session: str, /) -> None:
        """Record what happens to the server or to a session; every record has the number of restarts from then on."""
        if kind == "restart":
            self.commit()
            self._journal.restarted(int(data))
            self._note("restart", session, {"restarts": int(data)})
        elif kind == "opened":
            self._note("session", session, {"state": "opened", **orjson.loads(data)})
        elif kind == "closed":
            self._note("session", session, {"state": "closed", "why": data.decode(errors="replace")})
        elif kind == "state":
            self._note("state", session, orjson.loads(data))
        elif kind == "listed":
            self._note("tools", session, orjson.loads(data))

    def _note(self, kind: str, session: str, members: dict[str, Any]) -> None:
        """Hold the line of an event back like any other."""
        line = self._journal.event(kind, self._route, session, members)
        if line:
            self.held.append(line)

    def commit(self) -> None:
        """Write the held lines."""
        journal, held = self._journal, self.held
        if held:
            try:
                journal.write(b"".join(held))
            except Exception as error:
                self._write_each(held, error)
            finally:
                held.clear()
        if journal.rows or journal.output.reopening:
            journal.tend()
        if self._metrics is not None and journal.failures != self._failures:
            self._metrics.journal_failed(journal.failures - self._failures)
            self._failures = journal.failures

    def _write_each(self, lines: list[bytes], error: Exception) -> None:
        """Write those of the *lines* that can be written, after *error* in one of them; count the others."""
        log_once(error, "a message could not be recorded")
        for line in lines:
            try:
                self._journal.write(line)
            except Exception:
                self._journal.output.failures += 1

    def due(self) -> float:
        """Return when the held lines must be written: a request may wait for its response, but not for long."""
        if not self.held and not self._journal.waiting:
            self._due = inf
        elif self._due == inf:
            self._due = perf_counter() + HELD
        return self._due


class MetricsSink(Sink):
    """Counts messages by outcome, and measures the duration of responses."""

    __slots__ = ("_metrics", "_route", "_transport")

    def __init__(self, metrics: "Metrics", transport: str, route: str) -> None:
        self._metrics = metrics
        self._transport, self._route = transport, route

    def found(self, verdict: Verdict, now: float, session: str, _sent: int = 0, /) -> None:
        """Count a message."""
        self._metrics.heard(verdict, self._transport)
        exchange = verdict.exchange
        if exchange is None:
            return
        if verdict.kind == "request" and exchange.moment is None:
            ids = next(FRESH.left, None) or FRESH.more()
            exchange.moment = Moment(self._transport, self._route, ids, now, session, exchange.entry.name)
        elif verdict.kind in _ANSWERS and exchange.moment is not None:
            self._metrics.answered(exchange.method, now - exchange.moment.began)

    passed = guard_frame = found


class TraceSink(Sink):
    """Begins a span with each request, and ends it with the answer; a refusal ends it at once."""

    __slots__ = ("_telemetry", "_transport")

    def __init__(self, telemetry: "Telemetry", transport: str) -> None:
        self._telemetry = telemetry
        self._transport = transport

    def found(self, verdict: Verdict, now: float, session: str, _sent: int = 0, /) -> None:
        """Record the spans of a message, which may be a batch."""
        for each in verdict.parts or (verdict,):
            self._span(each, now, session)

    passed = guard_frame = found

    def _span(self, verdict: Verdict, began: float, session: str) -> None:
        exchange, telemetry = verdict.exchange, self._telemetry
        now = time_ns()
        if verdict.kind == "request":
            named = session_in(session) or None if self._transport == "http" else None
            began_ns = now - int((perf_counter() - began) * 1e9)
            begun = telemetry.begun(verdict, began_ns=began_ns, transport=self._transport, session=named)
            if exchange is not None and verdict.back is None:
                exchange.span = begun
            elif begun is not None:
                telemetry.ended(begun, None, ended_ns=now)
        elif verdict.kind in _ANSWERS and exchange is not None and exchange.span is not None:
            begun, exchange.span = exchange.span, None
            telemetry.ended(begun, verdict, ended_ns=now)
