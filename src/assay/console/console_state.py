"""
Everything that a console knows: rows, servers, findings, contracts, sessions, durations. Bounded. No I/O, no clock.

It is fed with records and events of sources; the time is given.
"""

from collections.abc import Hashable, Iterable
from shlex import join
from typing import Any, Final, NamedTuple

import orjson

from assay.console.console_rows import COLUMNS, ContractLine, DroppedCounts, ServerAnswer
from assay.console.contract_board import ContractBoard, LockOf
from assay.console.finding_board import FindingBoard
from assay.console.performance_board import PerformanceBoard
from assay.console.row_cells import RequestLinks, cells, cut, size
from assay.console.row_store import DETAIL_BYTES, MOST_ROWS, RowStore
from assay.console.session_board import SessionBoard
from assay.records.journal.reading import Record, recorded_time, server_of
from assay.records.live.feed_items import FeedItem, rows_of, text_of
from assay.records.live.live_totals import ServerTotals

MOST_SERVERS: Final = 500
"""Maximal servers; the oldest that has ended is dropped, else the oldest."""

_MOST_NOTES: Final = 20

_SERVER: Final = COLUMNS.index("server")

_PER_TOKEN: Final = 4


class ConsoleSource(NamedTuple):
    """Where records come from."""

    key: Hashable
    kind: str
    """``guard``, ``journal`` or ``file``."""
    name: str = ""
    """The name of a file, or of a run."""


class StartCommand(NamedTuple):
    """How a guard on this machine starts its server."""

    words: tuple[str, ...]
    directory: str


class ServerFacts:
    """One server of one source."""

    def __init__(self, ident: int, name: str, source: ConsoleSource) -> None:
        self.id, self.name, self.source = ident, name, source
        self.totals = ServerTotals(name)
        self.label = source.name if source.kind == "file" else ""
        self.address = self.route = ""
        self.start: StartCommand | None = None
        """Of a running guard over STDIO, if nothing of it is masked."""
        self.payloads: bool | None = None
        self.tool_bytes: int | None = None
        self.first: float | None = None
        self.last: float | None = None
        self.notes: list[str] = []
        self.tick = 0
        self.totals.state = "running" if source.kind == "guard" else "ended"

    def take(self, record: Record, time: float) -> None:
        """Count *record*."""
        totals, metadata = self.totals, record["metadata"]
        totals.take_record(record, time)
        self.first = time if self.first is None else min(self.first, time)
        self.last = time if self.last is None else max(self.last, time)
        error = record["error"]
        if error:
            listed, more = error.get("violations"), error.get("more")
            totals.findings += len(listed) if isinstance(listed, list) else 0
            totals.findings += size(more) if isinstance(more, int) else 0
        revision, restarts = metadata.get("revision"), metadata.get("restarts")
        if isinstance(revision, str) and revision not in totals.revisions and len(totals.revisions) < _MOST_NOTES:
            totals.revisions = (*totals.revisions, cut(revision) or "")
        if isinstance(restarts, int):
            totals.restarts = max(totals.restarts, min(restarts, 1 << 31))
        if not self.payloads:
            self.payloads = "frame" in metadata or "frameBase64" in metadata or "omitted" in metadata


class ConsoleState:
    """The state of one console."""

    def __init__(
        self, *, most_rows: int = MOST_ROWS, detail_bytes: int = DETAIL_BYTES, lock_of: LockOf | None = None
    ) -> None:
        self.store = RowStore(most_rows, detail_bytes)
        self.findings = FindingBoard()
        self.contracts = ContractBoard(lock_of)
        self.sessions = SessionBoard()
        self.performance = PerformanceBoard()
        self.tick = 0
        """Counts everything that was taken; each part remembers when it last changed."""
        self.loading: list[str] = []
        self.failed: list[dict[str, str]] = []
        self.files_tick = 0
        self.lost_records = 0
        self._links = RequestLinks()
        self._hellos: dict[Hashable, dict[str, Any]] = {}
        """The first line of each running guard."""
        self._servers: dict[tuple[Hashable, str], ServerFacts] = {}
        self._by_id: dict[int, ServerFacts] = {}
        self._count = 0

    # ── what comes in ────────────────────────────────────────────────────────────────────────────────────────────────

    def take(self, source: ConsoleSource, item: FeedItem, now: float) -> None:
        """Take an item of *source* that came *now*, in seconds since 1970."""
        self.tick += 1
        if item.record is not None:
            self.take_record(source, item.record, now)
        elif item.event == "hello":
            self._take_hello(source, item.data, now)
        elif item.event == "dropped":
            self.lost_records += size(item.data.get("count"))
        elif item.event == "bye":
            self._end(source, now)
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

    def _take_hello(self, source: ConsoleSource, hello: dict[str, Any], now: float) -> None:
        self._hellos[source.key] = hello
        for row in rows_of(hello):
            self._take_row(source, row)
        for row in rows_of(hello, "sessions"):
            self.sessions.take_event(row, self._server(source, text_of(row, "server") or "-").id, now, self.tick)

    def _take_row(self, source: ConsoleSource, row: dict[str, Any]) -> ServerFacts:
        server = self._server(source, text_of(row, "name") or "-")
        server.tick = self.tick
        server.totals.take_row(row)
        server.label = server.totals.what or server.label
        server.route = text_of(row, "route")
        server.start = start_of(row) if source.kind == "guard" else None
        hello = self._hellos.get(source.key)
        if hello is not None:
            server.totals.transport, server.totals.mode = text_of(hello, "transport"), text_of(hello, "mode")
            server.payloads = hello.get("payloads") is True
            server.address = _url(text_of(hello, "address"), server.route)
        tools = row.get("tools")
        if isinstance(tools, dict) and isinstance(tools.get("bytes"), int):
            server.tool_bytes = size(tools["bytes"])
        return server

    def _take_event(self, source: ConsoleSource, item: FeedItem, now: float) -> None:
        data = item.data
        if item.event == "server":
            self._take_row(source, data)
            return
        server = self._server(source, text_of(data, "server") or "-")
        server.tick = self.tick
        if item.event == "state":
            server.totals.take_state(data)
        elif item.event == "tools" and isinstance(data.get("count"), int) and data.get("changed") is not True:
            server.totals.tools, server.tool_bytes = size(data["count"]), size(data.get("bytes"))
        elif item.event == "restart":
            server.totals.restarts = max(server.totals.restarts + 1, min(size(data.get("restarts")), 1 << 31))
        elif item.event == "session":
            self.sessions.take_event(data, server.id, now, self.tick)
        elif item.event == "streams":
            self.sessions.take_streams(data, server.id, self.tick)

    def _end(self, source: ConsoleSource, now: float) -> None:
        self._hellos.pop(source.key, None)
        for server in self._servers.values():
            if server.source.key == source.key:
                server.totals.ended, server.tick = now, self.tick
                server.totals.state = "failed" if server.totals.state == "failed" else "ended"
                server.address, server.start = "", None
                self.sessions.end(server.id, self.tick)

    def live(self, source: ConsoleSource, state: str) -> None:
        """Set the state of the servers of a journal: ``running`` while it grows."""
        for server in self._servers.values():
            if server.source.key == source.key and server.totals.state != state:
                self.tick += 1
                server.totals.state, server.tick = state, self.tick

    def note(self, source: ConsoleSource, notes: list[str]) -> None:
        """Add remarks about a file to its servers."""
        self.tick += 1
        for server in self._servers.values():
            if server.source.key == source.key:
                server.notes, server.tick = notes[:_MOST_NOTES], self.tick

    def address(self, source: ConsoleSource, address: str) -> None:
        """Set the address of all servers of a guard, which it knows only after it has said hello."""
        for server in self._servers.values():
            if server.source.key == source.key and not server.address:
                server.address = _url(address, server.route)
                server.tick = self.tick = self.tick + 1

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
        over = [key for key, each in self._servers.items() if each.totals.state == "ended"]
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

    def server_called(self, name: str) -> ServerFacts | None:
        """Return the newest server with this name."""
        return next((each for each in reversed(self._by_id.values()) if each.name == name), None)

    def servers(self, now: float, *, can_call: bool = True, can_start: bool = True) -> list[ServerAnswer]:
        """Return all servers for a page; whether one can be called, or started for a call, is what the console can."""
        return [self._server_answer(each, now, can_call, can_start) for each in self._by_id.values()]

    def changed_servers(self, tick: int) -> bool:
        """Whether a server has changed since *tick*."""
        return any(each.tick > tick for each in self._by_id.values())

    def contract(self, server: ServerFacts) -> ContractLine:
        """Return what a server offers."""
        totals = server.totals
        return self.contracts.answer(server.id, server.name, server.label, totals.tools, totals.lock)

    @property
    def dropped(self) -> DroppedCounts:
        """What is not here any more."""
        return {
            "rows": self.store.dropped_rows,
            "details": self.store.dropped_details,
            "records": self.lost_records,
            "groups": self.findings.merged,
        }

    def _server_answer(self, server: ServerFacts, now: float, can_call: bool, can_start: bool) -> ServerAnswer:
        totals, start = server.totals, server.start if can_start else None
        known = self.contracts.tools(server.id)
        tools, tokens = known if known is not None else (totals.tools, None)
        if tokens is None and server.tool_bytes is not None:
            tokens = -(-server.tool_bytes // _PER_TOKEN)
        return {
            "id": server.id,
            "name": server.name,
            "source": server.source.kind,
            "label": server.label,
            "address": server.address,
            "transport": totals.transport,
            "mode": totals.mode,
            "state": totals.state,
            "why": totals.why,
            "stderr": totals.stderr,
            "revisions": list(totals.revisions),
            "payloads": server.payloads,
            "lock": totals.lock,
            "tools": tools,
            "tokens": tokens,
            "messages": size(totals.messages),
            "findings": size(totals.findings),
            "blocked": size(totals.blocked),
            "restarts": totals.restarts,
            "callsPerMinute": totals.calls.per_minute(now),
            "calls": totals.calls.series(now),
            "p95": totals.durations.quantile(0.95),
            "first": server.first,
            "last": server.last,
            "notes": server.notes,
            "callable": can_call and bool(server.address),
            "start": None if start is None else {"command": join(start.words), "directory": start.directory},
        }


def start_of(row: dict[str, Any]) -> StartCommand | None:
    """Return how a server is started, of a row of a feed; None if the row does not have it whole."""
    start = row.get("start")
    words = start.get("words") if isinstance(start, dict) else None
    directory = start.get("directory") if isinstance(start, dict) else None
    if not isinstance(words, list) or not words or not isinstance(directory, str):
        return None
    return StartCommand(tuple(words), directory) if all(isinstance(each, str) for each in words) else None


def _url(address: str, route: str) -> str:
    """Return the URL of a server at *route*; *address* is that of the first server of its guard, or of all."""
    scheme, mark, rest = address.partition("://")
    host = rest.partition("/")[0]
    return f"{scheme}{mark}{host}{route}" if mark and route.startswith("/") else ""
