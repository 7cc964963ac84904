"""
Rates, durations and findings of all servers, from records and events. Bounded. No I/O, no clock: the time is given.

`assay top` and consoles show the same figures.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from assay.records.journal.reading import Record, recorded_time, server_of
from assay.records.live.feed_items import FeedItem, rows_of, text_of
from assay.records.log_histogram import LogHistogram
from assay.records.outcomes import recorded_outcome

_ANSWERS: Final = ("result", "error", "missing")

MINUTE: Final = 60
"""Seconds of a rate."""

_MOST_MS: Final = 1e7
"""The longest duration that is distinguished, some hours."""

MOST_SERVERS: Final = 500
MOST_GROUPS: Final = 1000
MOST_RECENT: Final = 1000
"""Maximal servers, groups of findings and recent findings that are kept. Further groups are counted as one."""

_MOST_RULES: Final = 500
"""Groups of whole rules beyond those; there are fewer rules."""

MOST_OF_RECORD: Final = 20
"""Maximal findings of one record that are kept."""

GONE_SECONDS: Final = 60.0
"""Seconds that a server stays in the list after its guard has ended."""


class DurationHistogram:
    """Durations in milliseconds. Two of them can be merged."""

    __slots__ = ("_microseconds",)

    def __init__(self) -> None:
        self._microseconds = LogHistogram()

    @property
    def total(self) -> int:
        """The number of durations."""
        return self._microseconds.count

    @property
    def bounds(self) -> list[tuple[float, int]]:
        """The upper bound of each bucket that is not empty, in milliseconds, and its number."""
        return [(bound / 1000, number) for bound, number in self._microseconds.bounds()]

    def add(self, milliseconds: float) -> None:
        """Count one duration."""
        self._microseconds.add(round(min(max(milliseconds, 0), _MOST_MS) * 1000))

    def merge(self, other: "DurationHistogram") -> None:
        """Add the counts of *other*."""
        self._microseconds.merge(other._microseconds)

    def quantile(self, share: float) -> float | None:
        """Return the milliseconds that this *share* of the durations does not exceed; None without any."""
        return self._microseconds.quantile(share) / 1000 if self.total else None


class RateWindow:
    """Counts by second of the last minute."""

    __slots__ = ("_counts", "_newest")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._newest = 0

    def add(self, at: float, count: int = 1) -> None:
        """Count at the time *at*, in seconds."""
        second = int(at)
        if second > self._newest - MINUTE:
            self._counts[second] = self._counts.get(second, 0) + count
            self._newest = max(self._newest, second)
            if len(self._counts) > 2 * MINUTE:
                self._counts = {each: n for each, n in self._counts.items() if each > self._newest - MINUTE}

    def per_minute(self, now: float) -> int:
        """Return how many there were in the last minute."""
        return sum(count for second, count in self._counts.items() if now - MINUTE < second <= now)

    def series(self, now: float, parts: int = 12) -> list[int]:
        """Return the counts of the last minute in so many *parts*, oldest first."""
        made = [0] * parts
        for second, count in self._counts.items():
            age = int(now) - second
            if 0 <= age < MINUTE:
                made[parts - 1 - age * parts // MINUTE] += count
        return made


class LiveFinding(NamedTuple):
    """One finding of a record."""

    ts: str
    server: str
    method: str
    tool: str
    status: str
    """What became of the message: `MessageOutcome.shown`."""
    rule: str
    at: str
    violation: dict[str, Any]
    """All of it: expected, found, hint."""
    record: Record


class LiveGroup:
    """Findings of one rule, for one tool, at one place."""

    __slots__ = ("count", "first", "last")

    def __init__(self, first: str) -> None:
        self.count = 0
        self.first = self.last = first


class ServerTotals:
    """The figures of one server."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.transport = self.mode = ""
        self.state = "running"
        self.why = self.stderr = ""
        self.what = ""
        """Its masked command or URL."""
        self.lock = ""
        self.revisions: tuple[str, ...] = ()
        self.tools: int | None = None
        self.calls = RateWindow()
        """Calls of tools; for a server without any, see `messages`."""
        self.durations = DurationHistogram()
        """Of answers to requests of clients, by their tools and methods together."""
        self.messages = self.findings = self.blocked = self.restarts = self.sessions = 0
        self.ended: float | None = None
        """When its guard ended."""

    def take_row(self, row: dict[str, Any]) -> None:
        """Take what a guard says about it."""
        self.what = text_of(row, "command") or text_of(row, "url")
        self.lock = text_of(row, "lock")
        self.take_state(row)
        revisions, tools = row.get("revisions"), row.get("tools")
        self.revisions = (
            tuple(each for each in revisions if isinstance(each, str)) if isinstance(revisions, list) else ()
        )
        if isinstance(tools, dict) and isinstance(tools.get("count"), int):
            self.tools = tools["count"]

    def take_state(self, row: dict[str, Any]) -> None:
        """Take its state."""
        self.state = text_of(row, "state") or self.state
        self.why, self.stderr = text_of(row, "why"), text_of(row, "stderr")

    def take_record(self, record: Record, at: float) -> None:
        """Count a record of the time *at*, in seconds."""
        metadata = record["metadata"]
        repeated = metadata.get("repeated")
        self.messages += repeated if isinstance(repeated, int) else 1
        self.transport = self.transport or record["transport"]
        self.mode = self.mode or text_of(metadata, "mode")
        party, kind = metadata.get("party"), metadata.get("kind")
        if party == "client" and kind == "request" and record["method"] == "tools/call":
            self.calls.add(at)
        elif party == "server" and kind in _ANSWERS:
            self.durations.add(record["durationMs"])
        self.blocked += recorded_outcome(record).shown == "blocked"


class LiveTotals:
    """The figures of all servers."""

    def __init__(self) -> None:
        self.servers: dict[tuple[object, str], ServerTotals] = {}
        """By source and name."""
        self.groups: dict[tuple[str, str, str], LiveGroup] = {}
        """By rule, tool and place."""
        self.recent: deque[LiveFinding] = deque(maxlen=MOST_RECENT)
        """The last findings, oldest first."""
        self.open: dict[str, None] = {}
        """The requests with findings that are not answered yet, by their id in the journal."""
        self.dropped = 0
        """Records that guards have dropped because they were not read in time."""

    def take(self, source: object, item: FeedItem, now: float) -> list[LiveFinding]:
        """Take an item of *source* that came *now*, in seconds since 1970; return its findings."""
        if item.record is not None:
            return self._take_record(source, item.record, now)
        data = item.data
        if item.event == "hello":
            self._take_hello(source, data)
        elif item.event == "server":
            self._server(source, text_of(data, "name")).take_row(data)
        elif item.event == "state":
            self._server(source, text_of(data, "server")).take_state(data)
        elif item.event == "tools" and isinstance(data.get("count"), int):
            self._server(source, text_of(data, "server")).tools = data["count"]
        elif item.event == "restart":
            self._server(source, text_of(data, "server")).restarts += 1
        elif item.event == "session":
            change = 1 if data.get("state") == "opened" else -1
            one = self._server(source, text_of(data, "server"))
            one.sessions = max(0, one.sessions + change)
        elif item.event == "dropped" and isinstance(data.get("count"), int):
            self.dropped += data["count"]
        elif item.event == "bye":
            self._end(source, now)
        return []

    def rows(self, now: float) -> Iterator[ServerTotals]:
        """Yield the servers to show, by name; those that ended a while ago are left out."""
        for one in sorted(self.servers.values(), key=lambda each: each.name):
            if one.ended is None or now - one.ended < GONE_SECONDS:
                yield one

    def durations(self, rows: Iterable[ServerTotals]) -> DurationHistogram:
        """Return the durations of several servers together."""
        merged = DurationHistogram()
        for one in rows:
            merged.merge(one.durations)
        return merged

    def _server(self, source: object, name: str) -> ServerTotals:
        found = self.servers.get((source, name))
        if found is None:
            while len(self.servers) >= MOST_SERVERS:
                self.servers.pop(next(iter(self.servers)))
            found = self.servers[source, name] = ServerTotals(name)
        return found

    def _take_hello(self, source: object, hello: dict[str, Any]) -> None:
        for row in rows_of(hello):
            one = self._server(source, text_of(row, "name"))
            one.transport, one.mode = text_of(hello, "transport"), text_of(hello, "mode")
            one.take_row(row)
        for row in rows_of(hello, "sessions"):
            self._server(source, text_of(row, "server")).sessions += 1

    def _take_record(self, source: object, record: Record, now: float) -> list[LiveFinding]:
        one = self._server(source, server_of(record) or "-")
        one.take_record(record, min(recorded_time(record["ts"], now), now))
        found = list(_findings(record))
        more = (record["error"] or {}).get("more")
        one.findings += len(found) + (more if isinstance(more, int) else 0)
        for each in found:
            self._group(each)
        self.recent.extend(found[:MOST_OF_RECORD])
        self._note_open(record, bool(found))
        return found[:MOST_OF_RECORD]

    def _note_open(self, record: Record, has_findings: bool) -> None:
        kind = record["metadata"].get("kind")
        if kind in _ANSWERS:
            self.open.pop(record["requestId"], None)
        elif kind == "request" and has_findings:
            if len(self.open) >= MOST_RECENT:
                del self.open[next(iter(self.open))]
            self.open[record["requestId"]] = None

    def _group(self, finding: LiveFinding) -> None:
        key = finding.rule, finding.tool, finding.at
        if key not in self.groups and len(self.groups) >= MOST_GROUPS:
            # A journal can name any number of rules.
            key = finding.rule, "", ""
            if key not in self.groups and len(self.groups) >= MOST_GROUPS + _MOST_RULES:
                key = "others", "", ""
        group = self.groups.setdefault(key, LiveGroup(finding.ts))
        group.count += 1
        group.last = finding.ts

    def _end(self, source: object, now: float) -> None:
        for (of, _), one in self.servers.items():
            if of is source:
                one.ended = now
                one.state = "ended" if one.state == "running" else one.state


def _findings(record: Record) -> Iterator[LiveFinding]:
    listed = (record["error"] or {}).get("violations")
    metadata = record["metadata"]
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict):
            yield LiveFinding(
                record["ts"],
                server_of(record) or "-",
                record["method"] or "",
                text_of(metadata, "tool"),
                recorded_outcome(record).shown,
                text_of(each, "rule"),
                text_of(each, "at"),
                each,
                record,
            )
