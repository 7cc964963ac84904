"""
Everything that a console knows: rows, servers, findings, contracts, sessions, durations. Bounded. No I/O, no clock.

It is fed with records and events of sources; the time is given.
"""

from collections.abc import Hashable, Iterable
from typing import Any, Final

from assay import __version__
from assay.console.contracts import MOST_BYTES, NOT_RECORDED, LockOf, ServerLists
from assay.console.findings import FindingBoard
from assay.console.performance import PerformanceBoard
from assay.console.rows import COLUMNS, MOST_ROWS, RequestLinks, RowStore, cells, cut, latency_of, size
from assay.console.servers import MOST_RUNS, ConsoleSource, RunFacts, ServerFacts
from assay.console.sessions import SessionBoard
from assay.records.judged_records import JudgedRecord
from assay.records.record import Event, Record, seconds_of, written_record

_SERVER: Final = COLUMNS.index("server")

VERSION: Final = 2
"""Version of the API. It changes when a member changes its meaning, not when one is added."""


class ConsoleState:
    """The state of one console."""

    def __init__(
        self, *, most_rows: int = MOST_ROWS, most_runs: int = MOST_RUNS, lock_of: LockOf | None = None
    ) -> None:
        self.store = RowStore(most_rows)
        self.findings = FindingBoard()
        self.sessions = SessionBoard()
        self.performance = PerformanceBoard()
        self.tick = 0
        """Counts everything that was taken; each part remembers when it last changed."""
        self.loading: list[str] = []
        self.failed: list[dict[str, str]] = []
        self.files_tick = 0
        self._lock_of: LockOf = lock_of or (lambda _, __: None)
        self._links = RequestLinks()
        self._runs: dict[tuple[Hashable, str], RunFacts] = {}
        """The runs by their source and the name of their server."""
        self._names: dict[tuple[str, str], ServerFacts] = {}
        """The servers by the kind of their sources and their name, and by their number."""
        self._servers: dict[int, ServerFacts] = {}
        self._growing: set[Hashable] = set()
        """The keys of the sources whose journals grow."""
        self._count = self._run_count = 0
        self._most_runs = most_runs

    # ── what comes in ────────────────────────────────────────────────────────────────────────────────────────────────

    def take(self, source: ConsoleSource, item: Record | Event, now: float) -> None:
        """Take a record or an event of *source* that came *now*, in seconds since 1970."""
        self.tick += 1
        if isinstance(item, Record):
            self._take_record(source, item, now)
        else:
            self._take_event(source, item, now)

    def _take_record(self, source: ConsoleSource, record: Record, now: float) -> None:
        run = self.run_of(source, record.metadata.server)
        server, time, tick = run.server, _time_of(record, now), self.tick
        seq = self.store.newest + 1
        of = self._links.of(record, seq, (run.id, record.metadata.session))
        self.store.add(cells(record, seq, time, server.id, of), written_record(record), of)
        server.tick = tick
        server.take(record, time)
        run.take(record, time)
        self.sessions.take(record, seq, time, run, tick)
        self.performance.take(record, server.id, latency_of(record))
        if server.lists.take(record, seq, time, tick):
            self._drop_lists(server)
        if record.error is not None:
            self.findings.take(JudgedRecord(str(server.id), seq, record, time=time or None), tick)

    def _take_event(self, source: ConsoleSource, event: Event, now: float) -> None:
        run = self.run_of(source, event.server)
        run.server.tick = self.tick
        if event.event == "server":
            run.introduced(event)
        elif event.event == "state" and event.state != "ended":
            run.stands(event.state, cut(event.why), cut(event.stderr))
        elif event.event == "tools":
            run.server.tools, run.server.tool_bytes = size(event.count), size(event.bytes)
        elif event.event == "restart":
            run.restarted(event.restarts)
        elif event.event == "session":
            self.sessions.take(event, 0, seconds_of(event.ts, now), run, self.tick)

    def _drop_lists(self, kept: ServerFacts) -> None:
        """Forget lists of the oldest servers, if all have too many bytes; those of the server *kept* are new."""
        others = [each for each in self.servers if each is not kept]
        while others and sum(each.lists.size for each in self.servers) > MOST_BYTES:
            others.pop(0).lists = ServerLists()

    def live(self, source: ConsoleSource, *, grows: bool) -> None:
        """Take whether the journal of *source* still grows: its guard has ended otherwise, and all of its sessions."""
        (self._growing.add if grows else self._growing.discard)(source.key)
        for run in self._of(source):
            if not grows:
                run.stands("ended")
                self.sessions.end(run, self.tick)
            elif run.state == "ended":
                run.stands("running")

    def note(self, source: ConsoleSource, notes: list[str]) -> None:
        """Add remarks about a file to its runs."""
        for run in self._of(source):
            run.notes = notes[:20]

    def _of(self, source: ConsoleSource) -> list[RunFacts]:
        """Return the runs of *source*, whose servers change now."""
        self.tick += 1
        found = [each for each in self._runs.values() if each.source.key == source.key]
        for each in found:
            each.server.tick = self.tick
        return found

    def files(self, loading: list[str], failed: list[dict[str, str]]) -> None:
        """Set which files are being read, and which could not be."""
        self.tick += 1
        self.loading, self.failed, self.files_tick = loading, failed, self.tick

    def run_of(self, source: ConsoleSource, name: str) -> RunFacts:
        """Return the run of the server *name* of a source, which is made if it is new."""
        name = source.server_of(name)
        found = self._runs.get((source.key, name))
        if found is None:
            if len(self._runs) >= self._most_runs:
                self._drop_run()
            server = self._names.get((source.kind, name))
            if server is None:
                self._count += 1
                server = ServerFacts(self._count, name, source.kind)
                self._names[source.kind, name] = self._servers[server.id] = server
            self._run_count += 1
            found = self._runs[source.key, name] = RunFacts(self._run_count, server, source)
            server.runs.append(found)
            if source.key in self._growing:
                found.stands("running")
        return found

    def _drop_run(self) -> None:
        over = [key for key, each in self._runs.items() if each.state == "ended"]
        run = self._runs.pop(over[0] if over else next(iter(self._runs)))
        run.server.runs.remove(run)
        if not run.server.runs:
            del self._names[run.server.kind, run.server.name], self._servers[run.server.id]

    # ── what goes out ────────────────────────────────────────────────────────────────────────────────────────────────

    def answer(self, epoch: str, formats: list[str], now: float) -> dict[str, Any]:
        """Return the answer of ``GET api/state``; *formats* are those of exports."""
        store = self.store
        return {
            "api": VERSION,
            "assay": __version__,
            "epoch": epoch,
            "now": now,
            "tick": self.tick,
            "newest": store.newest,
            "oldest": store.oldest,
            "limits": {"rows": store.most_rows, "detailBytes": store.most_bytes},
            "dropped": self.dropped,
            "loading": self.loading,
            "failed": self.failed,
            "servers": self.server_answers(now),
            "formats": formats,
        }

    @property
    def servers(self) -> list[ServerFacts]:
        """All servers."""
        return list(self._servers.values())

    def server(self, ident: int) -> ServerFacts | None:
        """Return a server; None for an unknown one."""
        return self._servers.get(ident)

    def server_names(self, seqs: Iterable[int]) -> dict[int, str]:
        """Return the names of the servers of rows, which a record of a file may lack."""
        found = ((seq, self.store.row(seq)) for seq in seqs)
        servers = ((seq, self._servers.get(row[_SERVER])) for seq, row in found if row is not None)
        return {seq: server.name for seq, server in servers if server is not None}

    def server_answers(self, now: float, since: int = -1) -> list[dict[str, Any]]:
        """Return the servers for a page that have changed *since* a tick, or were called in the last minute."""
        chosen = (each for each in self._servers.values() if each.tick > since or each.calls.per_minute(now))
        return [each.answer(now) for each in chosen]

    def contract(self, server: ServerFacts) -> dict[str, Any]:
        """Return what a server offers."""
        run, locked = server.run, None
        state = run.lock or "none"
        try:
            locked = self._lock_of(server.name, run.label)
        except ValueError as error:
            state = str(error)
        if locked is not None:
            state = "locked"
        elif run.lock == "locked":
            state = "the lock of its guard is not in the working directory of the console"
        lists = server.lists.answer(locked)
        why = "" if lists else NOT_RECORDED
        return {"server": server.id, "lock": state, "lists": lists, "count": server.tools, "why": why}

    @property
    def dropped(self) -> dict[str, int]:
        """What is not here any more."""
        store = self.store
        return {
            "rows": store.dropped_rows,
            "details": store.dropped_details,
            "groups": self.findings.groups.left_out,
        }


def _time_of(record: Record, now: float) -> float:
    """Return the time of a record in seconds since 1970; 0 for one of a file without times."""
    time = seconds_of(record.ts, now)
    return time if time >= 1 else 0.0
