"""The servers of a console: one for each name, with the runs of its guards inside. Bounded. No I/O, no clock."""

from collections.abc import Hashable
from os.path import basename
from typing import Any, Final, NamedTuple

from assay.console.contracts import ServerLists, tokens_of
from assay.console.performance import quantile
from assay.console.rows import cut, latency_of, size
from assay.model.verdict import Party
from assay.records.digest import LogHistogram, RateWindow
from assay.records.outcomes import recorded_outcome
from assay.records.record import Event, Record

MOST_RUNS: Final = 500
"""Maximal runs of all servers; the oldest that has ended is dropped, else the oldest."""

_SHOWN_RUNS: Final = 8
"""Runs of a server that a page gets, the newest first."""

_MOST_NOTES: Final = 20
_STATES: Final = ("running", "idle", "failed")


class ConsoleSource(NamedTuple):
    """Where records come from."""

    key: Hashable
    kind: str
    """``journal`` or ``file``."""
    name: str = ""
    """The name of a file, or of a run."""

    def server_of(self, name: str) -> str:
        """Return the name of a server: the *name* in its records, or else that of the file or run."""
        return cut(name or basename(self.name)) or "-"


class MessageCounts:
    """Counts of the messages of a server, a run or a session. Every screen has the same."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin at zero."""
        self.messages = self.findings = 0
        self.blocked = self.would_block = 0
        """Messages that were blocked, and those that only enforce mode would have blocked."""

    def count(self, record: Record) -> None:
        """Count *record*."""
        outcome = recorded_outcome(record)
        # That no answer came is no message.
        self.messages += 0 if record.metadata.kind == "missing" else size(record.metadata.repeated) or 1
        self.findings += len(record.findings) + size(record.more)
        self.would_block += outcome.is_forwarded
        self.blocked += outcome.shown == "blocked"

    def add(self, other: "MessageCounts") -> None:
        """Add the counts of *other*."""
        for name in ("messages", "findings", "blocked", "would_block"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


class RunFacts(MessageCounts):
    """One run of a guard in front of a server, or one file."""

    def __init__(self, ident: int, server: "ServerFacts", source: ConsoleSource) -> None:
        super().__init__()
        self.id, self.server, self.source = ident, server, source
        self.label = source.name if source.kind == "file" else ""
        """Its masked command or URL, or the name of a file."""
        self.address = self.transport = self.mode = self.lock = self.why = self.stderr = ""
        self.state = "ended"
        self.revisions: list[str] = []
        self.payloads: bool | None = None
        self.restarts = 0
        self.first: float | None = None
        self.last: float | None = None
        self.notes: list[str] = []

    def take(self, record: Record, time: float) -> None:
        """Count *record*."""
        metadata = record.metadata
        if time:
            self.first = time if self.first is None else min(self.first, time)
            self.last = time if self.last is None else max(self.last, time)
        self.count(record)
        self.transport = self.transport or record.transport
        self.mode = self.mode or metadata.mode
        revision = cut(metadata.revision)
        if revision is not None and revision not in self.revisions and len(self.revisions) < _MOST_NOTES:
            self.revisions.append(revision)
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

    def stands(self, state: str, why: str | None = "", stderr: str | None = "") -> None:
        """Take its state: ``running``, ``idle``, ``failed`` or ``ended``. The end of a failed one is its failure."""
        if state in _STATES or (state == "ended" and self.state != "failed"):
            self.state, self.why, self.stderr = state, why or "", stderr or ""
        if state == "ended":
            self.address = ""

    def answer(self) -> dict[str, Any]:
        """Return the run for a page."""
        names = (
            *("id", "label", "address", "transport", "mode", "state", "why", "stderr", "messages", "findings"),
            *("restarts", "first", "last", "notes", "revisions"),
        )
        return {name: getattr(self, name) for name in names}


class ServerFacts(MessageCounts):
    """All servers of one name: what they have in common, and their runs."""

    def __init__(self, ident: int, name: str, kind: str) -> None:
        super().__init__()
        self.id, self.name, self.kind = ident, name, kind
        self.runs: list[RunFacts] = []
        """Its runs, oldest first; there is always one."""
        self.lists = ServerLists()
        self.tools: int | None = None
        self.tool_bytes: int | None = None
        """What its guard says about its list of tools."""
        self.calls = RateWindow()
        """Calls of tools."""
        self.durations = LogHistogram()
        """Microseconds of answers to requests of clients, by their tools and methods together."""
        self.tick = 0

    def take(self, record: Record, time: float) -> None:
        """Count *record*."""
        metadata = record.metadata
        self.count(record)
        if metadata.party is Party.CLIENT and metadata.kind == "request" and record.method == "tools/call":
            self.calls.add(time)
        elif metadata.party is Party.SERVER and (latency := latency_of(record)) is not None:
            self.durations.add(max(0, round(latency * 1000)))

    @property
    def run(self) -> RunFacts:
        """The run that speaks for the server: the newest that is running, or else the newest."""
        return next((each for each in reversed(self.runs) if each.state in {"running", "idle"}), self.runs[-1])

    def answer(self, now: float) -> dict[str, Any]:
        """Return the server for a page."""
        run = self.run
        names = ("label", "address", "mode", "state", "why", "stderr", "lock", "payloads")
        said = None if self.tool_bytes is None else tokens_of(self.tool_bytes)
        tools, tokens = self.lists.tools() or (self.tools, said)
        times = [each for one in self.runs for each in (one.first, one.last) if each is not None]
        return {
            "id": self.id,
            "name": self.name,
            "source": self.kind,
            **{name: getattr(run, name) for name in names},
            "tools": tools,
            "tokens": tokens,
            "messages": size(self.messages),
            "findings": size(self.findings),
            "blocked": self.blocked,
            "wouldBlock": self.would_block,
            "callsPerMinute": self.calls.per_minute(now),
            "calls": self.calls.series(now),
            "p95": quantile(self.durations, 0.95),
            "first": min(times, default=None),
            "last": max(times, default=None),
            "runCount": len(self.runs),
            "runs": [each.answer() for each in self.runs[: -_SHOWN_RUNS - 1 : -1]],
        }
