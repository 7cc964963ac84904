"""Sessions: the client, open requests, tasks and restarts of each. Bounded. No I/O, no clock."""

from typing import Any, Final

from assay.console.rows import cut, in_frame, member_of, size
from assay.console.servers import MessageCounts, RunFacts, ServerFacts
from assay.model.json_values import CAPABILITIES_KEY, CLIENT_KEY
from assay.records.outcomes import recorded_outcome
from assay.records.record import Event, Record

MOST_SESSIONS: Final = 1_000
"""Maximal sessions; the one that was idle for longest is dropped."""

_MOST_OPEN: Final = 200
"""Maximal open requests of one session that are listed."""

_MOST_CAPABILITIES: Final = 50


class SessionFacts(MessageCounts):
    """What is known of one session."""

    def __init__(self, ident: int, run: RunFacts, session: str, time: float) -> None:
        super().__init__()
        self.id, self.run, self.session = ident, run, session
        self.state, self.why, self.revision, self.principal = "open", "", "", ""
        self.client: dict[str, Any] = {}
        self.tasks = self.restarts = self.tick = 0
        self.open: dict[str, int] = {}
        """The rows of open requests, by their id in the journal."""
        self.first = self.last = time

    def take(self, record: Record, seq: int, time: float) -> None:
        """Count *record*."""
        metadata = record.metadata
        self.count(record)
        self.first, self.last = min(self.first, time), max(self.last, time)
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

    def take_event(self, event: Event) -> None:
        """Take what its guard says about it."""
        self.stands("closed" if event.state == "closed" else "open", cut(event.why) or "")
        self.client = _client(event.client, event.client.get("capabilities")) or self.client
        self.principal = cut(event.principal) or self.principal
        self.revision = cut(event.revision) or self.revision

    def stands(self, state: str, why: str) -> None:
        """Take its state: ``open`` or ``closed``. Nothing is open in a closed one."""
        self.state, self.why = state, why
        if state == "closed":
            self.open.clear()

    def _introduce(self, record: Record) -> None:
        """
        Take the client's own name, if the message is recorded.

        It is in the params of `initialize`, or from 2026-07-28 on in the `_meta` of every request.
        """
        params = in_frame(record, "params")
        info = member_of(params, "clientInfo") or member_of(params, "_meta", CLIENT_KEY)
        capabilities = member_of(params, "capabilities") or member_of(params, "_meta", CAPABILITIES_KEY)
        self.client = _client(info, list(capabilities) if isinstance(capabilities, dict) else None) or self.client

    def answer(self) -> dict[str, Any]:
        """Return the session for a page."""
        names = (
            *("id", "session", "state", "why", "client", "revision", "messages", "findings", "tasks", "restarts"),
            *("first", "last"),
        )
        return {
            **{name: getattr(self, name) for name in names},
            "server": self.run.server.id,
            "principal": self.principal or None,
            "open": len(self.open),
            "openIds": list(self.open.values())[-20:],
        }


def _begins_task(record: Record) -> bool:
    if '"task' not in (record.metadata.frame or ""):
        return False
    result = in_frame(record, "result")
    return member_of(result, "taskId") is not None or isinstance(member_of(result, "task"), dict)


def _client(info: Any, capabilities: Any) -> dict[str, Any]:
    """Return what a client says about itself, as far as it is text."""
    if not isinstance(info, dict) or not info:
        return {}
    listed = [cut(each) for each in capabilities if isinstance(each, str)] if isinstance(capabilities, list) else []
    return {
        "name": cut(info.get("name")) or "",
        "version": cut(info.get("version")) or "",
        "capabilities": listed[:_MOST_CAPABILITIES],
    }


class SessionBoard:
    """All sessions."""

    def __init__(self) -> None:
        self._sessions: dict[tuple[int, str, str], SessionFacts] = {}
        """By run, session, and the principal of requests without a session."""
        self._count = 0

    def take(self, item: Record | Event, seq: int, time: float, run: RunFacts, tick: int) -> None:
        """Take a record, or what a guard says about a session."""
        source = item.metadata if isinstance(item, Record) else item
        session = cut(source.session) or ""
        principal = cut(source.principal) or "" if isinstance(item, Record) and not session else ""
        found = self._session(run, session, principal, time)
        found.tick = tick
        if isinstance(item, Record):
            found.take(item, seq, time)
        else:
            found.take_event(item)

    def counted(self, server: ServerFacts, session: str, counts: MessageCounts) -> None:
        """Set the counts of a session of which only some messages were taken."""
        for found in self._sessions.values():
            if found.run.server is server and found.session == (cut(session) or ""):
                found.messages, found.findings = counts.messages, counts.findings

    def end(self, run: RunFacts, tick: int) -> None:
        """The guard of *run* has ended, and all of its sessions."""
        for found in self._sessions.values():
            if found.run is run and found.state == "open":
                found.tick = tick
                found.stands("closed", found.why)

    def _session(self, run: RunFacts, session: str, principal: str, time: float) -> SessionFacts:
        key = (run.id, session, principal)
        found = self._sessions.get(key)
        if found is None:
            if len(self._sessions) >= MOST_SESSIONS:
                del self._sessions[min(self._sessions, key=lambda each: self._sessions[each].last)]
            self._count += 1
            found = self._sessions[key] = SessionFacts(self._count, run, session, time)
        return found

    def answer(self, since: int = -1) -> list[dict[str, Any]]:
        """Return the sessions that have changed *since* a tick, newest first."""
        newest = sorted(self._sessions.values(), key=lambda each: -each.last)
        return [each.answer() for each in newest if each.tick > since]
