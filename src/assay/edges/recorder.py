"""
What every edge does with verdicts beside acting on them: into the journal, the metrics and the traces.

Everything is written before the answer is sent, so that nothing that was answered is lost. Never raises, never waits.
"""

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter, time_ns
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from assay.base.verdict import Verdict
from assay.records.journal.record_ids import FRESH, Moment
from assay.records.journal.repeats import GARBAGE

if TYPE_CHECKING:
    from assay.assets.asset_server import AssetTurn, Settled
    from assay.records.journal import Journal
    from assay.records.metrics import Metrics
    from assay.records.telemetry import Telemetry

_ANSWERS: Final = frozenset({"result", "error", "missing", "unreadable"})
"""What ends an exchange if it belongs to one: what is no message does so where it seems to be the answer."""

_FAILED: Final = (b'"isError":true}}', b'"isError":true,"resultType":"complete"}}')
"""How our own results end if they report a failure."""


# A third of the time that the constructor of a named tuple takes.
_new_tuple: Final = tuple.__new__


class Records(NamedTuple):
    """Where verdicts go; each may be missing."""

    journal: "Journal | None" = None
    metrics: "Metrics | None" = None
    telemetry: "Telemetry | None" = None


NOWHERE: Final = Records()


class Recorder:
    """The records of one edge."""

    __slots__ = (
        "_held",
        "_holding",
        "_journal",
        "_known",
        "_metrics",
        "_route",
        "_telemetry",
        "_templates",
        "_transport",
        "clock",
    )

    def __init__(self, transport: str, route: str, records: Records = NOWHERE, *, holding: bool = False) -> None:
        """*holding* keeps lines back until `flush`, which whoever sends several answers at once calls before that."""
        self._transport = transport
        self._route = route
        self._journal, self._metrics, self._telemetry = records
        self._holding = holding
        self._held: list[bytes] = []
        self._templates = self._journal.templates(transport, route) if self._journal is not None else None
        self._known: tuple[Verdict, bytes] | None = None
        self.clock: Callable[[], float] = self._journal.clock if self._journal is not None else perf_counter

    @property
    def held(self) -> int:
        """Lines that are kept back, and whether the journal has something to do that `flush` sees to."""
        waiting = self._journal is not None and self._journal.waiting
        return len(self._held) + waiting

    @property
    def idle(self) -> bool:
        """Whether nothing is recorded anywhere."""
        return self._journal is None and self._metrics is None and self._telemetry is None

    def metrics(self) -> bytes:
        """What there is to be scraped."""
        return self._metrics.render() if self._metrics is not None else b""

    def identify(self, verdict: Verdict) -> str:
        """The id that the records have for *verdict*, which is about to be asked for its moment."""
        moment = self.moment(verdict, self.clock())
        self._known = (verdict, moment.ids)
        return moment.request_id

    def moment(
        self, verdict: Verdict, began: float, headers: Mapping[bytes, bytes] | None = None, session: str = ""
    ) -> Moment:
        """What ties the records of one message together; it began at *began*, by our clock."""
        known, self._known = self._known, None
        exchange = verdict.exchange
        method = exchange.entry.name if exchange is not None else verdict.method
        trace = _traceparent(verdict.value, headers)
        if self._journal is None or (trace is None and self._templates is not None):
            ids = next(FRESH.left, None) or FRESH.more()
            moment = _new_tuple(Moment, (self._transport, self._route, ids, began, session, method))
        else:
            moment = self._journal.moment(self._transport, self._route, method, verdict.frame, trace, session, began)
        if known is not None and known[0] is verdict:
            return moment._replace(ids=known[1])
        return moment

    def restarted(self, times: int) -> None:
        """From now on another server answers; it was restarted so many times."""
        self.flush()
        if self._journal is not None:
            self._journal.restarted(times)

    def flush(self) -> None:
        """Writes what is held back, at once."""
        journal = self._journal
        if journal is None or not (self._held or journal.waiting):
            return
        failures = journal.failures
        if self._held:
            held, self._held = self._held, []
            journal.write(b"".join(held))
        journal.tend()
        if self._metrics is not None and journal.failures != failures:
            self._metrics.journal_failed(journal.failures - failures)

    def message(self, verdict: Verdict, began: float, sent: int, session: str = "") -> None:
        """One message that passed, or did not, between two others; its answer is known by what it was known by."""
        journal = self._journal
        if journal is not None:
            line = None
            if verdict.findings is None and not journal.rows and self._templates is not None:
                line = self._templates.line(verdict, None, began, session, sent)
            if line is not None:
                self._held.append(line)
            else:
                self._record(journal, verdict, began, sent, session)
            if not self._holding:
                self.flush()
        if self._metrics is not None:
            self._metrics.heard(verdict, self._transport)
            exchange = verdict.exchange
            if exchange is not None and verdict.kind == "request" and exchange.moment is None:
                exchange.moment = self.moment(verdict, began, None, session)
            elif exchange is not None and verdict.kind in _ANSWERS and exchange.moment is not None:
                self._metrics.answered(exchange.method, self.clock() - exchange.moment.began)
        if self._telemetry is not None:
            for each in verdict.parts or (verdict,):
                self._span(self._telemetry, each, began, session)

    def _record(self, journal: "Journal", verdict: Verdict, began: float, sent: int, session: str) -> None:
        """Record a message that has no template, unless it only counts."""
        unsure = journal.rows or verdict.kind in GARBAGE
        if not (unsure and self._repeats(journal, verdict, began, sent, session)):
            self._held.append(self._line(journal, verdict, began, sent, session))

    def _repeats(self, journal: "Journal", verdict: Verdict, began: float, sent: int, session: str) -> bool:
        """Whether a message only counts in the journal, since it is the same garbage as the one before it."""
        counts, ended = journal.repeats(verdict, began, sent, session, self._transport, self._route)
        if ended:
            self._held.append(ended)
        return counts

    def _span(self, telemetry: "Telemetry", verdict: Verdict, began: float, session: str) -> None:
        """A request begins a span, and its answer ends it; so does a refusal, at once."""
        exchange = verdict.exchange
        now = time_ns()
        if verdict.kind == "request":
            named = session if self._transport == "http" and session else None
            began_ns = now - int((self.clock() - began) * 1e9)
            begun = telemetry.begun(verdict, began_ns=began_ns, transport=self._transport, session=named)
            if exchange is not None and verdict.back is None:
                exchange.span = begun
            elif begun is not None:
                telemetry.ended(begun, None, ended_ns=now)
        elif verdict.kind in _ANSWERS and exchange is not None and exchange.span is not None:
            begun, exchange.span = exchange.span, None
            telemetry.ended(begun, verdict, ended_ns=now)

    def _line(self, journal: "Journal", verdict: Verdict, began: float, sent: int, session: str) -> bytes:
        exchange = verdict.exchange
        answers = exchange is not None and verdict.kind in _ANSWERS
        moment = exchange.moment if answers and exchange is not None else None
        if moment is None:
            moment = self.moment(verdict, began, None, session)
            if exchange is not None and verdict.kind == "request":
                exchange.moment = moment
        code = "TIMEOUT" if exchange is not None and exchange.state == "timed-out" and answers else None
        return journal.line(verdict, moment, sent, code=code)

    def exchange(
        self,
        turn: "AssetTurn",
        answers: "Sequence[Settled]",
        moment: Moment,
        headers: Mapping[bytes, bytes] | None = None,
    ) -> None:
        """What was heard and what is about to be sent for it."""
        if len(answers) == 1 and self._pair(turn.verdict, *answers[0], moment):
            return
        journal, metrics = self._journal, self._metrics
        heard, said, refused = turn.verdict, turn.said, turn.code
        if journal is not None:
            held, line = self._held, journal.line
            sent = sum(map(len, said)) if said else len(heard.frame)
            unsure = journal.rows or heard.kind in GARBAGE
            if not (unsure and self._repeats(journal, heard, moment.began, sent, moment.session)):
                held.append(line(heard, moment, sent, code=refused))
            for verdict, code in answers:
                frame = verdict.frame if verdict.findings is None else verdict.onward or b""
                held.append(line(verdict, moment, len(frame), failed=_failed(verdict, code), code=code))
            if not self._holding:
                self.flush()
        if metrics is not None:
            metrics.heard(heard, self._transport)
            for verdict, code in answers:
                metrics.heard(verdict, self._transport, failed=_failed(verdict, code))
            if heard.kind == "request":
                metrics.answered(moment.method, self.clock() - moment.began)
        if self._telemetry is not None and heard.kind == "request":
            self._trace(self._telemetry, turn, answers, moment, headers)

    def _pair(self, heard: Verdict, answer: Verdict, code: str | None, moment: Moment) -> bool:
        """A good request and its good answer, as nearly all are; False for any other."""
        exchange = heard.exchange
        if heard.findings is not None or answer.findings is not None or exchange is None or answer.kind != "result":
            return False
        if code is not None or self._telemetry is not None or answer.frame.endswith(_FAILED):
            return False
        if self._journal is not None:
            if self._journal.rows:
                self._repeats(self._journal, heard, moment.began, 0, moment.session)
            pair = self._templates.pair(heard, answer, moment) if self._templates is not None else None
            if pair is None:
                pair = b"".join(self._journal.line(each, moment, len(each.frame)) for each in (heard, answer))
            self._held.append(pair)
            if not self._holding:
                self.flush()
        if self._metrics is not None:
            self._metrics.exchanged(exchange.entry.name, self._transport, self.clock() - moment.began)
        return True

    def _trace(
        self,
        telemetry: "Telemetry",
        turn: "AssetTurn",
        answers: "Sequence[Settled]",
        moment: Moment,
        headers: Mapping[bytes, bytes] | None,
    ) -> None:
        now = time_ns()
        header = headers.get(b"traceparent") if headers is not None else None
        telemetry.exchange(
            turn.verdict,
            code=turn.code or (answers[0][1] if answers else None),
            failed=bool(answers) and _failed(*answers[0]),
            began_ns=now - int((self.clock() - moment.began) * 1e9),
            ended_ns=now,
            transport=self._transport,
            session=moment.session or None,
            traceparent=header.decode("latin-1") if header is not None else None,
        )


def _failed(verdict: Verdict, code: str | None) -> bool:
    """Whether an answer says that something failed."""
    return code is not None or verdict.frame.endswith(_FAILED)


def _traceparent(value: Any, headers: Mapping[bytes, bytes] | None) -> str | None:
    """The trace that a message is part of: MCP has it in `_meta`, HTTP in a header."""
    if type(value) is dict:
        params = value.get("params")
        meta = params.get("_meta") if type(params) is dict else None
        if type(meta) is dict and isinstance(given := meta.get("traceparent"), str):
            return given
    header = headers.get(b"traceparent") if headers is not None else None
    return header.decode("latin-1") if header is not None else None
