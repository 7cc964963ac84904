"""
What every edge does with verdicts beside acting on them: into the journal, the metrics and the traces.

Everything is written before the answer is sent, so that nothing that was answered is lost. Never raises, never waits.
"""

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter, time_ns
from typing import TYPE_CHECKING, Final, NamedTuple

from assay.response.enveloper import fresh_id
from assay.verdict import Verdict

if TYPE_CHECKING:
    from assay.assets.server import Turn
    from assay.journal import Journal, Moment
    from assay.metrics import Metrics
    from assay.telemetry import Telemetry

Settled = tuple[Verdict, str | None]
"""The verdict on an answer, and the canonical error that it is, if it is one."""


_FAILED: Final = (b'"isError":true}}', b'"isError":true,"resultType":"complete"}}')
"""How our own results end if they report a failure."""


class Records(NamedTuple):
    """Where verdicts go; each may be missing."""

    journal: "Journal | None" = None
    metrics: "Metrics | None" = None
    telemetry: "Telemetry | None" = None


class Exchanged(NamedTuple):
    """What is known of a message while it is in hand."""

    request_id: str
    began: float
    moment: "Moment | None"
    traceparent: str | None
    session: str


NOWHERE: Final = Records()


class Recorder:
    """The records of one edge."""

    __slots__ = ("_held", "_holding", "_journal", "_known", "_metrics", "_route", "_telemetry", "_transport", "clock")

    def __init__(self, transport: str, route: str, records: Records = NOWHERE, *, holding: bool = False) -> None:
        """*holding* keeps lines back until `flush`, which whoever sends several answers at once calls before that."""
        self._transport = transport
        self._route = route
        self._journal, self._metrics, self._telemetry = records
        self._holding = holding
        self._held: list[bytes] = []
        self._known: tuple[Verdict, Exchanged] | None = None
        self.clock: Callable[[], float] = self._journal.clock if self._journal is not None else perf_counter

    @property
    def idle(self) -> bool:
        """Whether nothing is recorded anywhere."""
        return self._journal is None and self._metrics is None and self._telemetry is None

    def metrics(self) -> bytes:
        """What there is to be scraped."""
        return self._metrics.render() if self._metrics is not None else b""

    def identify(self, verdict: Verdict) -> str:
        """The id that the records have for *verdict*, which is about to be asked for its moment."""
        exchanged = self.moment(verdict, self.clock())
        self._known = (verdict, exchanged)
        return exchanged.request_id

    def moment(
        self, verdict: Verdict, began: float, headers: Mapping[bytes, bytes] | None = None, session: str = ""
    ) -> Exchanged:
        """What ties the records of one message together; it began at *began*, by our clock."""
        traceparent = _traceparent(verdict, headers)
        known, self._known = self._known, None
        if self._journal is None:
            ident = known[1].request_id if known is not None and known[0] is verdict else fresh_id()
            return Exchanged(ident, began, None, traceparent, session)
        moment = self._journal.moment(
            self._transport, self._route, verdict.method, verdict.frame, traceparent, session=session, began=began
        )
        if known is not None and known[0] is verdict:
            moment = moment._replace(request_id=known[1].request_id)
        return Exchanged(moment.request_id, began, moment, traceparent, session)

    def flush(self) -> None:
        """Writes what is held back, at once."""
        if self._held and self._journal is not None:
            failures = self._journal.failures
            self._journal.write(b"".join(self._held))
            self._held.clear()
            if self._metrics is not None and self._journal.failures != failures:
                self._metrics.journal_failed(self._journal.failures - failures)

    def exchange(self, turn: "Turn", answers: Sequence[Settled], exchanged: Exchanged) -> None:
        """What was heard and what is about to be sent for it."""
        journal, metrics, moment = self._journal, self._metrics, exchanged.moment
        heard = turn.verdict
        if journal is not None and moment is not None:
            sent = sum(map(len, turn.said)) if turn.said else 0
            lines = [journal.line(heard, moment, sent or len(heard.frame), code=turn.code)]
            for verdict, code in answers:
                failed, sent = _failed(verdict, code), len(verdict.onward or b"")
                lines.append(journal.line(verdict, moment, sent, failed=failed, code=code))
            self._held += lines
            if not self._holding:
                self.flush()
        if metrics is not None:
            metrics.heard(heard, self._transport)
            for verdict, code in answers:
                metrics.heard(verdict, self._transport, failed=_failed(verdict, code))
            if heard.kind == "request":
                metrics.answered(heard.method, self.clock() - exchanged.began)
        if self._telemetry is not None and heard.kind == "request":
            now = time_ns()
            code = turn.code or (answers[0][1] if answers else None)
            self._telemetry.exchange(
                heard,
                code=code,
                failed=bool(answers) and _failed(*answers[0]),
                began_ns=now - int((self.clock() - exchanged.began) * 1e9),
                ended_ns=now,
                transport=self._transport,
                session=exchanged.session or None,
                traceparent=exchanged.traceparent,
            )


def _failed(verdict: Verdict, code: str | None) -> bool:
    """Whether an answer says that something failed."""
    return code is not None or verdict.frame.endswith(_FAILED)


def _traceparent(verdict: Verdict, headers: Mapping[bytes, bytes] | None) -> str | None:
    """The trace that a message is part of: MCP has it in `_meta`, HTTP in a header."""
    params = verdict.value.get("params") if type(verdict.value) is dict else None
    meta = params.get("_meta") if type(params) is dict else None
    given = meta.get("traceparent") if type(meta) is dict else None
    if isinstance(given, str):
        return given
    header = headers.get(b"traceparent") if headers is not None else None
    return header.decode("latin-1") if header is not None else None
