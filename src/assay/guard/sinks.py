"""Where a guarded session records what it judges: a list of sinks, of which none can affect a message. No I/O."""

from collections.abc import Iterable
from math import inf
from typing import Literal

import orjson

from assay.guard.internal_errors import log_once
from assay.model.verdict import Verdict

EventKind = Literal["stray", "restart", "opened", "closed", "listed", "state"]


class Sink:
    """One place for records: the journal, metrics, traces, the summary, a console. Each method may be left out."""

    __slots__ = ()

    def passed(self, verdict: Verdict, now: float, session: str, /) -> None:
        """Record a message without findings, which came at *now* and was forwarded as it came."""

    def found(self, verdict: Verdict, now: float, session: str, sent: int, /) -> None:
        """Record a message with findings, or one that was not forwarded; *sent* is how many bytes went out for it."""

    def event(self, kind: EventKind, data: bytes, session: str, /) -> None:
        """
        Record something that is not a judged message.

        ``stray``: server output that is not a message. ``restart``: the server was restarted; *data* is how often.
        ``opened``: a handshake is complete; *data* is JSON with the client and the revision. ``closed``: the session
        has ended; *data* is why. ``listed``: the server has listed tools; *data* is JSON with their number and size.
        ``state``: the server runs, is idle or has failed; *data* is `server_state`.
        """

    def guard_frame(self, verdict: Verdict, now: float, session: str, /) -> None:
        """Record a message that the guard wrote itself for a client or a server, or the answer to one."""

    def commit(self) -> None:
        """Write what is held back, so that nothing that is answered from now on can be lost."""

    def due(self) -> float:
        """Return when `commit` is due at the latest, by `time.perf_counter`; infinity if nothing is held back."""
        return inf


def server_state(state: str, why: str = "", stderr: str = "") -> bytes:
    """
    Return the data of the event ``state``.

    *state* is ``running``, ``idle`` or ``failed``; *stderr* is the last line on it of a server that failed.
    """
    return orjson.dumps({"state": state, "why": why, "stderr": stderr})


class Sinks:
    """The sinks of one session. A sink that raises is logged, counted and skipped."""

    __slots__ = ("_commits", "_dues", "_each", "_events", "_founds", "_own", "failures", "passes")

    def __init__(self, sinks: Iterable[Sink] = ()) -> None:
        self.failures = 0
        """How often a sink has raised."""
        self._each = tuple(sinks)
        # Only what a sink overrides is called: this is done for every message.
        self.passes = tuple(each.passed for each in self._each if type(each).passed is not Sink.passed)
        """What the session calls for each message without findings."""
        self._founds = tuple(each.found for each in self._each if type(each).found is not Sink.found)
        self._events = tuple(each.event for each in self._each if type(each).event is not Sink.event)
        self._own = tuple(each.guard_frame for each in self._each if type(each).guard_frame is not Sink.guard_frame)
        self._commits = tuple(each.commit for each in self._each if type(each).commit is not Sink.commit)
        self._dues = tuple(each.due for each in self._each if type(each).due is not Sink.due)

    def beside(self, *more: Sink) -> "Sinks":
        """Return these sinks and *more*, for one session of several."""
        return Sinks((*self._each, *more))

    def passed(self, verdict: Verdict, now: float, session: str) -> None:
        """Record a message without findings."""
        for each in self.passes:
            try:
                each(verdict, now, session)
            except Exception as error:
                self.skipped(error)

    def found(self, verdict: Verdict, now: float, session: str, sent: int) -> None:
        """Record a message with findings, or one that was not forwarded."""
        for each in self._founds:
            try:
                each(verdict, now, session, sent)
            except Exception as error:
                self.skipped(error)

    def event(self, kind: EventKind, data: bytes, session: str) -> None:
        """Record something that is not a judged message."""
        for each in self._events:
            try:
                each(kind, data, session)
            except Exception as error:
                self.skipped(error)

    def guard_frame(self, verdict: Verdict, now: float, session: str) -> None:
        """Record a message that the guard wrote itself."""
        for each in self._own:
            try:
                each(verdict, now, session)
            except Exception as error:
                self.skipped(error)

    def commit(self) -> None:
        """Write what is held back. The write method of a client port calls this first, and nothing else does."""
        for each in self._commits:
            try:
                each()
            except Exception as error:
                self.skipped(error)

    def due(self) -> float:
        """Return when `commit` is due at the latest, where no client is written to meanwhile."""
        due = inf
        for each in self._dues:
            try:
                due = min(due, each())
            except Exception as error:
                self.skipped(error)
        return due

    def skipped(self, error: Exception) -> None:
        """Count and log the failure of a sink."""
        self.failures += 1
        log_once(error, "a message could not be recorded")
