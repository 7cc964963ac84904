"""
The sink of a live feed. It is among the sinks of a session only while a listener is there.

With a journal the lines come from it; without one, they are made here, and dropped when the last listener leaves.
"""

from math import inf
from typing import TYPE_CHECKING, Any, Final

from assay.base.verdict import Verdict
from assay.guard.sinks import EventKind, Sink
from assay.records.record_sinks import JournalSink

if TYPE_CHECKING:
    from assay.records.journal import Journal
    from assay.records.live.live_feed import LiveFeed
    from assay.records.live.live_server import LiveServer

_CHANGED: Final = "notifications/tools/list_changed"


class LiveSink(Sink):
    """Events, and lines if there is no journal, of one server."""

    __slots__ = ("_feed", "_lines", "_server")

    def __init__(self, feed: "LiveFeed", server: "LiveServer", made: "tuple[Journal, str, str] | None" = None) -> None:
        """*made* has the journal without a file that makes the lines, the transport and the route."""
        self._feed, self._server = feed, server
        self._lines = None if made is None else JournalSink(*made)

    def passed(self, verdict: Verdict, now: float, session: str, /) -> None:
        """Record a message without findings."""
        if self._lines is not None:
            self._lines.passed(verdict, now, session)
        exchange = verdict.exchange
        if exchange is None or exchange.contract is None:
            self._look(verdict, session)

    def found(self, verdict: Verdict, now: float, session: str, sent: int, /) -> None:
        """Record a message with findings, or one that was not forwarded."""
        if self._lines is not None:
            self._lines.found(verdict, now, session, sent)
        self._look(verdict, session)

    def guard_frame(self, verdict: Verdict, now: float, session: str, /) -> None:
        """Record a message that the guard wrote itself, or the answer to one."""
        if self._lines is not None:
            self._lines.guard_frame(verdict, now, session)

    def event(self, kind: EventKind, data: bytes, session: str, /) -> None:
        """Report a restart, or the end of a session."""
        if self._lines is not None:
            self._lines.event(kind, data, session)
        feed, server = self._feed, self._server
        named = server.session_name(session)
        if kind == "restart":
            feed.event("restart", server=server.name, session=named, restarts=int(data))
        elif kind == "closed":
            why = feed.shown(data.decode(errors="replace"))
            feed.event("session", state="closed", server=server.name, session=named, why=why)

    def commit(self) -> None:
        """Hand the lines on."""
        if self._lines is not None:
            self._lines.commit()

    def due(self) -> float:
        """Return when the lines must be handed on."""
        return inf if self._lines is None else self._lines.due()

    def _look(self, verdict: Verdict, session: str) -> None:
        """Report a list of tools, its change, and a session that is open."""
        exchange = verdict.exchange
        if exchange is None:
            if verdict.kind == "notification" and verdict.method == _CHANGED:
                self._feed.event("tools", server=self._server.name, changed=True)
        elif verdict.kind == "result" and exchange.method == "tools/list":
            self._listed(verdict, session)
        elif verdict.kind == "result" and exchange.method == "initialize":
            opened = self._server.session_of(session)
            if opened is not None:
                self._feed.event("session", state="opened", **self._server.session(opened))

    def _listed(self, verdict: Verdict, session: str) -> None:
        page = _member(_member(verdict.value, "result"), "tools")
        self._feed.event(
            "tools",
            server=self._server.name,
            session=self._server.session_name(session),
            changed=False,
            count=len(page) if isinstance(page, list) else 0,
            bytes=len(verdict.frame),
            more=_member(_member(verdict.value, "result"), "nextCursor") is not None,
        )


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None
