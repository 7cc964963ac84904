"""
Everything that a console knows: rows, servers, findings, contracts, sessions, durations. Bounded. No I/O, no clock.

It is fed with records and events of sources; the time is given.
"""

from collections.abc import Hashable, Iterable
from typing import Final, NamedTuple

from assay.base.verdict import Party
from assay.console.console_rows import COLUMNS, ContractLine, DroppedCounts, ServerAnswer
from assay.console.contract_board import ContractBoard, LockOf
from assay.console.finding_board import FindingBoard
from assay.console.performance_board import PerformanceBoard, quantile
from assay.console.row_cells import RequestLinks, cells, cut, size
from assay.console.row_store import MOST_ROWS, RowStore
from assay.console.session_board import SessionBoard
from assay.records.digest import RateWindow
from assay.records.judged_records import JudgedRecord
from assay.records.log_histogram import LogHistogram
from assay.records.outcomes import recorded_outcome
from assay.records.record import Event, Record, seconds_of, written_record

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
        self.durations = LogHistogram()
        """Microseconds of answers to requests of clients, by their tools and methods together."""
        self.messages = self.findings = self.blocked = self.restarts = self.tick = 0
        self.first: float | None = None
        self.last: float | None = None
        self.notes: list[str] = []

    def take(self, record: Record, time: float) -> None:
        """Count *record*."""
        metadata = record.metadata
        self.first = time if self.first is None else min(self.first, time)
        self.last = time if self.last is None else max(self.last, time)
        self.messages += size(metadata.repeated) or 1
        self.transport = self.transport or record.transport
        self.mode = self.mode or metadata.mode
        if metadata.party is Party.CLIENT and metadata.kind == "request" and record.method == "tools/call":
            self.calls.add(time)
        elif metadata.party is Party.SERVER and record.is_answer:
            self.durations.add(max(0, round(record.duration_ms * 1000)))
        self.blocked += recorded_outcome(record).shown == "blocked"
        self.findings += len(record.findings) + size(record.more)
        revision = cut(metadata.revision)
        if revision is not None and revision not in self.revisions and len(self.revisions) < _MOST_NOTES:
            self.revisions = (*self.revisions, revision)
        self.restarted(metadata.restarts)
        self.payloads = self.payloads or record.has_payload

    def restarted(self, times: int) -> None:
        """Take the number of restarts so far."""
        self.restarts = max(self.restarts, size(times))

    def introduced(self, event: Event) -> None:
        """Take the event ``server``."""
        self.label = event.what or self.label
        self.transport, self.mode, self.lock = event.transport, event.mode, event.lock
        self.address, self.payloads = event.address, event.payloads

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
        self._growing: set[Hashable] = set()
        """The keys of the sources whose journals grow."""
        self._count = 0

    # ── what comes in ────────────────────────────────────────────────────────────────────────────────────────────────

    def take(self, source: ConsoleSource, item: Record | Event, now: float) -> None:
        """Take a record or an event of *source* that came *now*, in seconds since 1970."""
        self.tick += 1
        if isinstance(item, Record):
            self.take_record(source, item, now)
        else:
            self._take_event(source, item, now)

    def take_record(self, source: ConsoleSource, record: Record, now: float) -> None:
        """Take a record."""
        self.tick += 1
        server = self._server(source, record.metadata.server or source.name or "-")
        time = seconds_of(record.ts, now)
        seq = self.store.newest + 1
        of = self._links.of(record, seq, (server.id, record.metadata.session))
        self.store.add(cells(record, seq, time, server.id, of), written_record(record), of)
        server.take(record, time)
        server.tick = self.tick
        self.sessions.take(record, seq, time, server.id, self.tick)
        self.performance.take(record, server.id)
        if record.error is not None:
            latency = record.duration_ms if record.is_answer else None
            message = JudgedRecord(str(server.id), seq, record, time=time, latency=latency)
            self.findings.take(message, self.tick)
        self.contracts.take(record, seq, time, server.id, self.tick)

    def _take_event(self, source: ConsoleSource, event: Event, now: float) -> None:
        server = self._server(source, event.server or source.name or "-")
        server.tick = self.tick
        if event.event == "server":
            server.introduced(event)
        elif event.event == "state" and event.state in _STATES:
            server.stands(*(cut(each) or "" for each in (event.state, event.why, event.stderr)))
        elif event.event == "tools":
            server.tools, server.tool_bytes = size(event.count), size(event.bytes)
        elif event.event == "restart":
            server.restarted(event.restarts)
        elif event.event == "session":
            self.sessions.take_event(event, server.id, seconds_of(event.ts, now), self.tick)

    def live(self, source: ConsoleSource, *, grows: bool) -> None:
        """Take whether the journal of *source* still grows: its guard has ended otherwise, and all of its sessions."""
        (self._growing.add if grows else self._growing.discard)(source.key)
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
            if source.key in self._growing:
                found.stands("running")
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
            "groups": self.findings.left_out,
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
            "p95": quantile(server.durations, 0.95),
            "first": server.first,
            "last": server.last,
            "notes": server.notes,
        }
