"""
The sinks of a live feed. They are among the sinks of a session only while a listener is there.

With a journal the lines come from it, and nothing is called for a message; without one, they are made here.
"""

from typing import TYPE_CHECKING, Any

import orjson

from assay.base.verdict import Verdict
from assay.guard.sinks import EventKind, Sink
from assay.records.record_sinks import JournalSink

if TYPE_CHECKING:
    from assay.records.journal import Journal
    from assay.records.journal.http_notes import HttpNotes
    from assay.records.live.live_feed import LiveFeed
    from assay.records.live.live_server import LiveServer


class LiveSink(Sink):
    """The events of one server."""

    __slots__ = ("_feed", "_server")

    def __init__(self, feed: "LiveFeed", server: "LiveServer") -> None:
        self._feed, self._server = feed, server

    def event(self, kind: EventKind, data: bytes, session: str, /) -> None:
        """Report what happens to a server or a session."""
        feed, server = self._feed, self._server
        named = {"server": server.name, "session": server.session_name(session)}
        if kind == "restart":
            feed.event("restart", **named, restarts=int(data))
        elif kind == "closed":
            feed.event("session", state="closed", **named, why=feed.shown(data.decode(errors="replace")))
        elif kind == "opened":
            opened = server.session_of(session)
            if opened is not None:
                feed.event("session", state="opened", **server.session(opened))
        elif kind == "listed":
            feed.event("tools", **named, changed=False, **_listed(data))
        elif kind == "changed":
            feed.event("tools", **named, changed=True)
        elif kind == "streams":
            feed.event("streams", **named, count=int(data))


class UnwrittenSink(LiveSink):
    """The events and the lines of one server without a journal."""

    __slots__ = ("_lines",)

    def __init__(
        self,
        feed: "LiveFeed",
        server: "LiveServer",
        journal: "Journal",
        transport: str,
        http: "HttpNotes | None" = None,
    ) -> None:
        """*journal*, which has no file, makes the lines; *http* has the HTTP request that is judged."""
        super().__init__(feed, server)
        self._lines = JournalSink(journal, transport, server.route, http=http)

    def passed(self, verdict: Verdict, now: float, session: str, /) -> None:
        """Record a message without findings."""
        self._lines.passed(verdict, now, session)

    def found(self, verdict: Verdict, now: float, session: str, sent: int, /) -> None:
        """Record a message with findings, or one that was not forwarded."""
        self._lines.found(verdict, now, session, sent)

    def guard_frame(self, verdict: Verdict, now: float, session: str, /) -> None:
        """Record a message that the guard wrote itself, or the answer to one."""
        self._lines.guard_frame(verdict, now, session)

    def event(self, kind: EventKind, data: bytes, session: str, /) -> None:
        """Report what happens to a server or a session."""
        self._lines.event(kind, data, session)
        super().event(kind, data, session)

    def commit(self) -> None:
        """Hand the lines on."""
        self._lines.commit()

    def due(self) -> float:
        """Return when the lines must be handed on."""
        return self._lines.due()


def _listed(frame: bytes) -> dict[str, Any]:
    """Return what is known of a page of tools, which was judged and may still be invalid."""
    try:
        result = orjson.loads(frame)["result"]
        page, more = result["tools"], result.get("nextCursor") is not None
        return {"count": len(page) if isinstance(page, list) else 0, "bytes": len(frame), "more": more}
    except (ValueError, TypeError, LookupError, AttributeError):
        return {"count": 0, "bytes": len(frame), "more": False}
