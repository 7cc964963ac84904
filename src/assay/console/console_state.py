"""
Everything that a console knows: rows, servers, findings, contracts, sessions, durations. Bounded. No I/O, no clock.

It is fed with records and events of sources; the time is given.
"""

from collections.abc import Hashable, Iterable
from typing import Any, Final, NamedTuple

import orjson

from assay.console.console_rows import COLUMNS, ContractLine, DroppedCounts, ServerAnswer
from assay.console.contract_board import ContractBoard, LockOf
from assay.console.finding_board import FindingBoard
from assay.console.performance_board import DurationHistogram, PerformanceBoard, RateWindow
from assay.console.row_cells import ANSWERS, RequestLinks, cells, cut, size
from assay.console.row_store import MOST_ROWS, RowStore
from assay.console.session_board import SessionBoard
from assay.records.journal.events import JournalItem, text_of
from assay.records.journal.reading import Record, recorded_time, server_of
from assay.records.outcomes import recorded_outcome

MOST_SERVERS: Final = 500
"""Maximal servers; the oldest that has ended is dropped, else the oldest."""

_MOST_NOTES: Final = 20

_SERVER: Final = COLUMNS.index("server")

_PER_TOKEN: Final = 4

_STATES: Final = ("running", "idle", "failed")


class ConsoleSource(NamedTuple):
    """Where records come from."""

    key: Hashable
    kind: str
    """``journal`` or ``file``."""
    name: str = ""
    """The name of a file, or of a run."""


class ServerFacts:
    """One server of one source."""

    def __init__(self, ident: int, name: str, source: ConsoleSource) -> None:
        self.id, self.name, self.source = ident, name, source
        self.label = source.name if source.kind == "file" else ""
        """Its masked command or URL, or the name of a file."""
        self.address = self.transport = self.mode = self.lock = self.why = self.stderr = ""
        self.state = "ended"
        self.revisions: tuple[str, ...] = ()
        self.tools: int | None = None
        self.tool_bytes: int | None = None
        self.payloads: bool | None = None
        self.calls = RateWindow()
        """Calls of tools."""
        self.durations = DurationHistogram()
        """Of answers to requests of clients, by their tools and methods together."""
        self.messages = self.findings = self.blocked = self.restarts = self.tick = 0
        self.first: float | None = None
        self.last: float | None = None
        self.notes: list[str] = []

    def take(self, record: Record, time: float) -> None:
        """Count *record*."""
        metadata = record["metadata"]
        self.first = time if self.first is None else min(self.first, time)
        self.last = time if self.last is None else max(self.last, time)
        repeated = metadata.get("repeated")
        self.messages += repeated if isinstance(repeated, int) else 1
        self.transport = self.transport or record["transport"]
        self.mode = self.mode or text_of(metadata, "mode")
        party, kind = metadata.get("party"), metadata.get("kind")
        if party == "client" and kind == "request" and record["method"] == "tools/call":
            self.calls.add(time)
        elif party == "server" and kind in ANSWERS:
            self.durations.add(record["durationMs"])
        self.blocked += recorded_outcome(record).shown == "blocked"
        error = record["error"]
        if error:
            listed, more = error.get("violations"), error.get("more")
            self.findings += len(listed) if isinstance(listed, list) else 0
            self.findings += size(more) if isinstance(more, int) else 0
        revision = metadata.get("revision")
        if isinstance(revision, str) and revision not in self.revisions and len(self.revisions) < _MOST_NOTES:
            self.revisions = (*self.revisions, cut(revision) or "")
        self.restarted(metadata.get("restarts"))
        if not self.payloads:
            self.payloads = "frame" in metadata or "frameBase64" in metadata or "omitted" in metadata

    def restarted(self, times: Any) -> None:
        """Take the number of restarts so far."""
        if isinstance(times, int):
            self.restarts = max(self.restarts, min(times, 1 << 31))

    def introduced(self, data: dict[str, Any]) -> None:
        """Take the event ``server``."""
        self.label = text_of(data, "what") or self.label
        self.transport, self.mode, self.lock = (text_of(data, each) for each in ("transport", "mode", "lock"))
        self.address = text_of(data, "address")
        self.payloads = data.get("payloads") is True

    def stands(self, state: str, why: str = "", stderr: str = "") -> None:
        """Take its state: ``running``, ``idle``, ``failed`` or ``ended``. The end of a failed one is its failure."""
        if state != "ended" or self.state != "failed":
            self.state, self.why, self.stderr = state, why, stderr
        if state == "ended":
            self.address = ""


class ConsoleState:
    """The state of one console."""

    def __init__(self, *, most_rows: int = MOST_ROWS, lock_of: LockOf | None = None) -> None:
        self.store = RowStore(most_rows)
        self.findings = FindingBoard()
        self.contracts = ContractBoard(lock_of)
        self.sessions = SessionBoard()
        self.performance = PerformanceBoard()
        self.tick = 0
        """Counts everything that was taken; each part remembers when it last changed."""
        self.loading: list[str] = []
        self.failed: list[dict[str, str]] = []
        self.files_tick = 0
        self._links = RequestLinks()
        self._servers: dict[tuple[Hashable, str], ServerFacts] = {}
        self._by_id: dict[int, ServerFacts] = {}
        self._count = 0

    # ── what comes in ────────────────────────────────────────────────────────────────────────────────────────────────

    def take(self, source: ConsoleSource, item: JournalItem, now: float) -> None:
        """Take an item of *source* that came *now*, in seconds since 1970."""
        self.tick += 1
        if item.record is not None:
            self.take_record(source, item.record, now)
        else:
            self._take_event(source, item, now)

    def take_record(self, source: ConsoleSource, record: Record, now: float) -> None:
        """Take a record, which has all members that a record must have."""
        self.tick += 1
        server = self._server(source, server_of(record) or source.name or "-")
        time = recorded_time(record["ts"], now)
        seq = self.store.newest + 1
        session = record["metadata"].get("session")
        of = self._links.of(record, seq, (server.id, session if isinstance(session, str) else ""))
        raw = orjson.dumps(record)
        self.store.add(cells(record, seq, time, server.id, of), raw, of)
        server.take(record, time)
        server.tick = self.tick
        self.sessions.take(record, seq, time, server.id, self.tick)
        self.performance.take(record, server.id)
        if record["error"]:
            self.findings.take(record, seq, time, server.id, self.tick)
        self.contracts.take(record, seq, time, server.id, self.tick)

    def _take_event(self, source: ConsoleSource, item: JournalItem, now: float) -> None:
        data = item.data
        server = self._server(source, text_of(data, "server") or source.name or "-")
        server.tick = self.tick
        if item.event == "server":
            server.introduced(data)
        elif item.event == "state" and text_of(data, "state") in _STATES:
            server.stands(*(cut(data.get(each)) or "" for each in ("state", "why", "stderr")))
        elif item.event == "tools":
            server.tools, server.tool_bytes = size(data.get("count")), size(data.get("bytes"))
        elif item.event == "restart":
            server.restarted(data.get("restarts"))
        elif item.event == "session":
            time = recorded_time(text_of(data, "ts"), now)
            self.sessions.take_event(data, server.id, time, self.tick)

    def live(self, source: ConsoleSource, *, grows: bool) -> None:
        """Take whether the journal of *source* still grows: its guard has ended otherwise, and all of its sessions."""
        for server in self._servers.values():
            if server.source.key != source.key:
                continue
            self.tick += 1
            server.tick = self.tick
            if not grows:
                server.stands("ended")
                self.sessions.end(server.id, self.tick)
            elif server.state == "ended":
                server.stands("running")

    def note(self, source: ConsoleSource, notes: list[str]) -> None:
        """Add remarks about a file to its servers."""
        self.tick += 1
        for server in self._servers.values():
            if server.source.key == source.key:
                server.notes, server.tick = notes[:_MOST_NOTES], self.tick

    def files(self, loading: list[str], failed: list[dict[str, str]]) -> None:
        """Set which files are being read, and which could not be."""
        self.tick += 1
        self.loading, self.failed, self.files_tick = loading, failed, self.tick

    def _server(self, source: ConsoleSource, name: str) -> ServerFacts:
        name = cut(name) or "-"
        found = self._servers.get((source.key, name))
        if found is None:
            if len(self._servers) >= MOST_SERVERS:
                self._drop_server()
            self._count += 1
            found = self._servers[source.key, name] = ServerFacts(self._count, name, source)
            self._by_id[found.id] = found
        return found

    def _drop_server(self) -> None:
        over = [key for key, each in self._servers.items() if each.state == "ended"]
        dropped = self._servers.pop(over[0] if over else next(iter(self._servers)))
        del self._by_id[dropped.id]
        self.contracts.drop(dropped.id)

    # ── what goes out ────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def newest_server(self) -> int:
        """The number of the newest server; numbers only grow."""
        return self._count

    def server(self, ident: int) -> ServerFacts | None:
        """Return a server; None for an unknown one."""
        return self._by_id.get(ident)

    def server_names(self, seqs: Iterable[int]) -> dict[int, str]:
        """Return the names of the servers of rows, which a record of a file may lack."""
        found = ((seq, self.store.row(seq)) for seq in seqs)
        servers = ((seq, self._by_id.get(row[_SERVER])) for seq, row in found if row is not None)
        return {seq: server.name for seq, server in servers if server is not None}

    def servers(self, now: float) -> list[ServerAnswer]:
        """Return all servers for a page."""
        return [self._server_answer(each, now) for each in self._by_id.values()]

    def changed_servers(self, tick: int) -> bool:
        """Whether a server has changed since *tick*."""
        return any(each.tick > tick for each in self._by_id.values())

    def contract(self, server: ServerFacts) -> ContractLine:
        """Return what a server offers."""
        return self.contracts.answer(server.id, server.name, server.label, server.tools, server.lock)

    @property
    def dropped(self) -> DroppedCounts:
        """What is not here any more."""
        return {
            "rows": self.store.dropped_rows,
            "details": self.store.dropped_details,
            "groups": self.findings.merged,
        }

    def _server_answer(self, server: ServerFacts, now: float) -> ServerAnswer:
        known = self.contracts.tools(server.id)
        tools, tokens = known if known is not None else (server.tools, None)
        if tokens is None and server.tool_bytes is not None:
            tokens = -(-server.tool_bytes // _PER_TOKEN)
        return {
            "id": server.id,
            "name": server.name,
            "source": server.source.kind,
            "label": server.label,
            "address": server.address,
            "transport": server.transport,
            "mode": server.mode,
            "state": server.state,
            "why": server.why,
            "stderr": server.stderr,
            "revisions": list(server.revisions),
            "payloads": server.payloads,
            "lock": server.lock,
            "tools": tools,
            "tokens": tokens,
            "messages": size(server.messages),
            "findings": size(server.findings),
            "blocked": size(server.blocked),
            "restarts": server.restarts,
            "callsPerMinute": server.calls.per_minute(now),
            "calls": server.calls.series(now),
            "p95": server.durations.quantile(0.95),
            "first": server.first,
            "last": server.last,
            "notes": server.notes,
        }
