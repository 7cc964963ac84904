"""One server in the live feed of a guard: what is known of it, and its records while a listener is there. No I/O."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from assay.base.verdict import Party
from assay.guard.connection_name import principal_in, session_in
from assay.records.journal.run_files import run_of
from assay.records.live.live_sink import LiveSink, UnwrittenSink
from assay.records.live.live_state import RUNNING, LiveState

if TYPE_CHECKING:
    from assay.guard.session import GuardedSession
    from assay.guard.sinks import Sinks
    from assay.records.journal import Journal
    from assay.records.journal.http_notes import HttpNotes
    from assay.records.live.live_feed import LiveFeed

MOST_SESSIONS: Final = 100
"""Maximal sessions that are listed; all are counted."""


class LiveServer:
    """A server behind the guard, or the asset server."""

    def __init__(self, feed: "LiveFeed", name: str, route: str, what: Callable[[], dict[str, str]]) -> None:
        """*what* returns its masked command or URL, by the name of the member."""
        self._feed = feed
        self.name = name
        self.route = route
        self._what = what
        self.standing: Callable[[], LiveState] = lambda: RUNNING
        """Returns its state now."""
        self._sent: LiveState | None = None
        self._sessions: WeakSet[GuardedSession] = WeakSet()
        self._sinks: Sinks | None = None
        self._locked = False
        self._transport = ""
        self._http: HttpNotes | None = None
        self._unwritten: Callable[[], Journal] | None = None
        self._sink: LiveSink | None = None
        self.journal: Journal | None = None
        """Where its records are written, if they are."""

    def begin(
        self,
        sinks: "Sinks",
        journal: "Journal | None",
        unwritten: "Callable[[], Journal]",
        *,
        transport: str,
        locked: bool = False,
        http: "HttpNotes | None" = None,
    ) -> None:
        """
        Offer the records that go to *sinks*.

        They are the lines of *journal*; without one, *unwritten* makes a journal without a file while a listener is
        there. *locked* says whether the server is compared with a lock; *http* has the HTTP request that is judged.
        """
        self._http = http
        self._sinks, self.journal, self._unwritten = sinks, journal, unwritten
        self._transport, self._locked = transport, locked
        if self._feed.attended:
            self.attend()
            self._feed.event("server", **self.row())

    def opened(self, session: "GuardedSession") -> None:
        """Remember a new session for as long as it exists."""
        self._sessions.add(session)

    # ── listeners ────────────────────────────────────────────────────────────────────────────────────────────────────

    def attend(self) -> None:
        """The first listener has come: hand records on from now on."""
        if self._sinks is None or self._unwritten is None or self._sink is not None:
            return
        journal = self.journal
        if journal is None:
            own = self._unwritten()
            own.tap(self._feed.lines)
            self._sink = UnwrittenSink(self._feed, self, own, self._transport, self._http)
        else:
            journal.tap(self._feed.lines)
            self._sink = LiveSink(self._feed, self)
        self._sinks.admit(self._sink)
        for session in self._sessions:
            session.records.admit(self._sink)

    def leave(self) -> None:
        """The last listener has gone: cost nothing from now on."""
        sink, self._sink = self._sink, None
        if self.journal is not None:
            self.journal.tap(None)
        if sink is not None and self._sinks is not None:
            self._sinks.dismiss(sink)
            for session in self._sessions:
                session.records.dismiss(sink)

    def look(self) -> None:
        """Report a change of its state."""
        found = self.standing()
        if found != self._sent:
            if self._sent is not None:
                self._feed.event("state", server=self.name, **self._state(found))
            self._sent = found

    # ── what is known ────────────────────────────────────────────────────────────────────────────────────────────────

    def row(self) -> dict[str, Any]:
        """Return what is known of it."""
        self._sent = self.standing()
        revisions = sorted({each.conversation.revision or "" for each in self._sessions} - {""})
        return {
            "name": self.name,
            "route": self.route,
            **self._what(),
            **self._state(self._sent),
            "lock": "locked" if self._locked else "none",
            "revisions": revisions,
            "tools": self._tools(),
            "journal": self._journal(),
        }

    def opened_sessions(self) -> "list[GuardedSession]":
        """Return its sessions whose client has said something about itself."""
        return [each for each in self._sessions if each.identity is not None]

    def session(self, session: "GuardedSession") -> dict[str, Any]:
        """Return what is known of one session."""
        identity, shown = session.identity, self._feed.shown
        client = {}
        if identity is not None:
            capabilities = [shown(each) for each in identity.capabilities]
            client = {"name": shown(identity.name), "version": shown(identity.version), "capabilities": capabilities}
        return {
            "server": self.name,
            "session": self.session_name(session.name),
            "client": client,
            "principal": shown(principal_in(session.name)) or None,
            "revision": session.conversation.revision,
            "restarts": session.restarts,
            "streams": session.streams,
            "open": len(session.conversation.open_requests(Party.CLIENT)),
        }

    def session_name(self, connection: str) -> str:
        """Return the name that records have for the session of *connection*; "" if it has none."""
        session = session_in(connection)
        if not session:
            return ""
        if self.journal is not None:
            return self.journal.session_name(connection)
        from assay.records.journal.record import session_digest  # noqa: PLC0415 - not where there is one connection

        return session_digest(session)

    def session_of(self, name: str) -> "GuardedSession | None":
        """Return the session called *name*; None if it is gone."""
        return next((each for each in self._sessions if each.name == name), None)

    def _state(self, found: LiveState) -> dict[str, str]:
        return {"state": found.state, "why": self._feed.shown(found.why), "stderr": self._feed.shown(found.stderr)}

    def _tools(self) -> dict[str, Any] | None:
        """Return the number of its tools and the bytes of their schemas, as far as a list was seen."""
        listed = [each.conversation.tools for each in self._sessions if each.conversation.tools.known]
        if not listed:
            return None
        most = max(listed, key=lambda tools: len(tools.known))
        contracts = list(most.known.values())
        return {"count": len(contracts), "bytes": sum(each.size for each in contracts), "complete": most.complete}

    def _journal(self) -> dict[str, Any] | None:
        if self.journal is None:
            return None
        path = self.journal.path
        return {"run": run_of(path), "path": path, "bytes": self.journal.output.size}
