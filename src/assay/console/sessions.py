"""Sessions: the client, open requests, tasks and restarts of each. Bounded. No I/O, no clock."""

from typing import Any, Final

from assay.base.meta import CAPABILITIES_KEY, CLIENT_KEY
from assay.console.rows import cut, frame_value, size
from assay.console.servers import RunFacts, ServerFacts
from assay.records.outcomes import recorded_outcome
from assay.records.record import Event, Record

MOST_SESSIONS: Final = 1_000
"""Maximal sessions; the one that was idle for longest is dropped."""

_MOST_OPEN: Final = 200
"""Maximal open requests of one session that are listed."""

_MOST_CAPABILITIES: Final = 50


class SessionFacts:
    """What is known of one session."""

    __slots__ = (
        "client", "findings", "first", "id", "last", "messages", "open", "principal", "restarts", "revision", "run",
        "session", "state", "tasks", "tick", "why",
    )  # fmt: skip

    def __init__(self, ident: int, run: RunFacts, session: str, time: float) -> None:
        self.id, self.run, self.session = ident, run, session
        self.state, self.why, self.revision = "open", "", ""
        self.client: dict[str, Any] = {}
        self.principal = ""
        self.messages = self.findings = self.tasks = self.restarts = self.tick = 0
        self.open: dict[str, int] = {}
        """The rows of open requests, by their id in the journal."""
        self.first = self.last = time

    def take(self, record: Record, seq: int, time: float) -> None:
        """Count *record*."""
        metadata = record.metadata
        self.messages += 1
        self.last = max(self.last, time)
        self.first = min(self.first, time)
        self.findings += len(record.findings) + size(record.more)
        self.revision = cut(metadata.revision) or self.revision
        self.principal = cut(metadata.principal) or self.principal
        self.restarts = size(metadata.restarts)
        if metadata.kind == "request":
            # The guard answers what it blocks at once.
            if recorded_outcome(record).shown != "blocked" and len(self.open) < _MOST_OPEN:
                self.open[record.request_id] = seq
            if record.method == "initialize" or not self.client:
                self._introduce(record)
        elif record.is_answer:
            self.open.pop(record.request_id, None)
            self.tasks += _begins_task(record)

    def close(self) -> None:
        """The session has ended: nothing in it is open."""
        self.open.clear()

    def _introduce(self, record: Record) -> None:
        """
        Take the client's own name, if the message is recorded.

        It is in the params of `initialize`, or from 2026-07-28 on in the `_meta` of every request.
        """
        params = _object(_object(frame_value(record)).get("params"))
        meta = _object(params.get("_meta"))
        info = _object(params.get("clientInfo") or meta.get(CLIENT_KEY))
        capabilities = _object(params.get("capabilities") or meta.get(CAPABILITIES_KEY))
        if info:
            self.client = client_of({**info, "capabilities": list(capabilities)})

    def answer(self) -> dict[str, Any]:
        """Return the session for a page."""
        return {
            "id": self.id,
            "server": self.run.server.id,
            "session": self.session,
            "state": self.state,
            "why": self.why,
            "client": self.client,
            "principal": self.principal or None,
            "revision": self.revision,
            "messages": self.messages,
            "findings": self.findings,
            "open": len(self.open),
            "openIds": list(self.open.values())[-20:],
            "tasks": self.tasks,
            "restarts": self.restarts,
            "first": self.first,
            "last": self.last,
        }


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _begins_task(record: Record) -> bool:
    if '"task' not in (record.metadata.frame or ""):
        return False
    result = _object(_object(frame_value(record)).get("result"))
    return "taskId" in result or isinstance(result.get("task"), dict)


def client_of(row: Any) -> dict[str, Any]:
    """Return what a client says about itself, as far as it is text."""
    if not isinstance(row, dict) or not row:
        return {}
    listed = row.get("capabilities")
    capabilities = [cut(each) for each in listed if isinstance(each, str)] if isinstance(listed, list) else []
    return {
        "name": cut(row.get("name")) or "",
        "version": cut(row.get("version")) or "",
        "capabilities": capabilities[:_MOST_CAPABILITIES],
    }


class SessionBoard:
    """All sessions."""

    def __init__(self) -> None:
        self._sessions: dict[tuple[int, str, str], SessionFacts] = {}
        """By run, session, and the principal of requests without a session."""
        self._count = 0

    def take(self, record: Record, seq: int, time: float, run: RunFacts, tick: int) -> None:
        """Count *record*."""
        session = cut(record.metadata.session) or ""
        principal = "" if session else cut(record.metadata.principal) or ""
        found = self._session(run, session, principal, time)
        found.tick = tick
        found.take(record, seq, time)

    def take_event(self, event: Event, run: RunFacts, time: float, tick: int) -> None:
        """Take what a guard says about a session."""
        found = self._session(run, cut(event.session) or "", "", time)
        found.tick = tick
        closed = event.state == "closed"
        found.state, found.why = ("closed" if closed else "open"), cut(event.why) or ""
        if closed:
            found.close()
        found.client = client_of(event.client) or found.client
        found.principal = cut(event.principal) or found.principal
        found.revision = cut(event.revision) or found.revision

    def count(self, server: ServerFacts, session: str, messages: int, findings: int) -> None:
        """Set the counts of a session of which only some messages were taken."""
        for found in self._sessions.values():
            if found.run.server is server and found.session == (cut(session) or ""):
                found.messages, found.findings = messages, findings

    def end(self, run: RunFacts, tick: int) -> None:
        """The guard of *run* has ended, and all of its sessions."""
        for found in self._sessions.values():
            if found.run is run and found.state == "open":
                found.state, found.tick = "closed", tick
                found.close()

    def _session(self, run: RunFacts, session: str, principal: str, time: float) -> SessionFacts:
        key = (run.id, session, principal)
        found = self._sessions.get(key)
        if found is None:
            if len(self._sessions) >= MOST_SESSIONS:
                del self._sessions[min(self._sessions, key=lambda each: self._sessions[each].last)]
            self._count += 1
            found = self._sessions[key] = SessionFacts(self._count, run, session, time)
        return found

    def changed(self, tick: int) -> list[dict[str, Any]]:
        """Return the sessions that have changed since *tick*."""
        return [each.answer() for each in self._sessions.values() if each.tick > tick]

    def answer(self) -> list[dict[str, Any]]:
        """Return all sessions, newest first."""
        return [each.answer() for each in sorted(self._sessions.values(), key=lambda one: -one.last)]
