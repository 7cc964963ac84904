"""
What every edge does with verdicts beside acting on them: into the journal, the metrics and the traces.

Everything is written before the answer is sent, so that nothing that was answered is lost. Never raises, never waits.
"""

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter, time_ns
from typing import TYPE_CHECKING, Final, NamedTuple

from assay.guard.sinks import Sink
from assay.model.verdict import Verdict
from assay.records.http_notes import HttpNotes
from assay.records.moments import FRESH, Moment, traceparent_of
from assay.records.repeats import GARBAGE
from assay.records.sinks import JournalSink, MetricsSink, TraceSink

if TYPE_CHECKING:
    from assay.assets.asset_server import AssetTurn, Settled
    from assay.records.journal import Journal
    from assay.records.metrics import Metrics
    from assay.records.telemetry import Telemetry

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
        "_lines",
        "_metrics",
        "_route",
        "_telemetry",
        "_templates",
        "_transport",
        "clock",
        "sinks",
    )

    def __init__(
        self,
        transport: str,
        route: str,
        records: Records = NOWHERE,
        *,
        holding: bool = False,
        http: "HttpNotes | None" = None,
    ) -> None:
        """
        With *holding*, lines are held until `flush`, which is called before several responses are sent together.

        *http* has the HTTP request that is judged, for records with payloads.
        """
        self._transport = transport
        self._route = route
        self._journal, self._metrics, self._telemetry = records
        self._holding = holding
        journal, metrics, telemetry = records
        self._lines = JournalSink(journal, transport, route, metrics, http) if journal is not None else None
        self._templates = journal.templates(transport, route) if journal is not None else None
        self._held: list[bytes] = self._lines.held if self._lines is not None else []
        sinks: list[Sink] = [] if self._lines is None else [self._lines]
        sinks += [] if metrics is None else [MetricsSink(metrics, transport, route)]
        sinks += [] if telemetry is None else [TraceSink(telemetry, transport)]
        self.sinks = tuple(sinks)
        """The journal, the metrics and the traces, for guarded sessions."""
        self._known: tuple[Verdict, bytes] | None = None
        self.clock: Callable[[], float] = self._journal.clock if self._journal is not None else perf_counter

    @property
    def held(self) -> int:
        """Lines that are kept back, and whether the journal has something to do that `flush` sees to."""
        return len(self._held) + (self._journal is not None and self._journal.waiting)

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

    def moment(self, verdict: Verdict, began: float, headers: Mapping[bytes, bytes] | None = None) -> Moment:
        """What ties the records of one message together; it began at *began*, by our clock."""
        known, self._known = self._known, None
        exchange = verdict.exchange
        method = exchange.entry.name if exchange is not None else verdict.method
        trace = traceparent_of(verdict.value, headers)
        if self._journal is None or (trace is None and self._templates is not None):
            ids = next(FRESH.left, None) or FRESH.more()
            moment = _new_tuple(Moment, (self._transport, self._route, ids, began, "", method, None))
        else:
            moment = self._journal.moment(self._transport, self._route, method, verdict.frame, trace, "", began)
        if known is not None and known[0] is verdict:
            return moment._replace(ids=known[1])
        return moment

    def flush(self) -> None:
        """Write what is held back, at once."""
        if self._lines is not None:
            self._lines.commit()

    def _repeats(self, journal: "Journal", verdict: Verdict, began: float, sent: int) -> bool:
        """Return whether a message only counts in the journal, since it is the same garbage as the one before it."""
        counts, ended = journal.repeats(verdict, began, sent, "", self._transport, self._route)
        if ended:
            self._held.append(ended)
        return counts

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
            if not (unsure and self._repeats(journal, heard, moment.began, sent)):
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
                self._repeats(self._journal, heard, moment.began, 0)
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
            session=None,
            traceparent=header.decode("latin-1") if header is not None else None,
        )


def _failed(verdict: Verdict, code: str | None) -> bool:
    """Whether an answer says that something failed."""
    return code is not None or verdict.frame.endswith(_FAILED)
