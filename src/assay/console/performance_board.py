"""Durations, sizes and errors by server, method and tool. Bounded. No I/O, no clock."""

from typing import Any, Final

from assay.console.console_rows import PerformanceLine
from assay.console.row_cells import cut, size
from assay.records.journal.reading import Record
from assay.records.log_histogram import LogHistogram
from assay.records.outcomes import recorded_outcome

MINUTE: Final = 60
"""Seconds of a rate."""

_MOST_MS: Final = 1e7
"""The longest duration that is distinguished, some hours."""


class DurationHistogram:
    """Durations in milliseconds."""

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


MOST_LINES: Final = 1_000
"""Maximal methods and tools of all servers; further ones are counted together, as those of server 0."""

MOST_CODES: Final = 50
"""Maximal error codes of one line: a server can choose a new one for each error."""


class MethodStats:
    """The figures of one method and tool."""

    __slots__ = ("codes", "durations", "guard", "in_bytes", "largest", "longest", "out_bytes")

    def __init__(self) -> None:
        self.durations = DurationHistogram()
        self.guard = DurationHistogram()
        self.codes: dict[str, int] = {}
        self.in_bytes = self.out_bytes = self.largest = 0
        self.longest: float | None = None

    def answered(self, record: Record) -> None:
        """Count an answer."""
        duration = record["durationMs"]
        self.durations.add(duration)
        self.longest = duration if self.longest is None else max(self.longest, duration)
        self.out_bytes += size(record["inputBytes"])
        self.largest = max(self.largest, size(record["inputBytes"]))
        if recorded_outcome(record).word in {"failed", "blocked"}:
            code = code_of(record["error"] or {})
            known = code if code in self.codes or len(self.codes) < MOST_CODES else "others"
            self.codes[known] = self.codes.get(known, 0) + 1

    def asked(self, record: Record) -> None:
        """Count a request."""
        self.guard.add(record["durationMs"])
        self.in_bytes += size(record["inputBytes"])
        self.largest = max(self.largest, size(record["inputBytes"]))


def code_of(error: dict[str, Any]) -> str:
    """Return the code of an error: its canonical name, its number, or that it is the failed result of a tool."""
    code, number = error.get("code"), error.get("jsonrpcCode")
    if isinstance(code, str):
        return cut(code) or ""
    return str(number) if isinstance(number, int) else "isError"


class PerformanceBoard:
    """All methods and tools."""

    def __init__(self) -> None:
        self._lines: dict[tuple[int, str, str], MethodStats] = {}

    def take(self, record: Record, server: int) -> None:
        """Count *record*."""
        metadata = record["metadata"]
        kind, party = metadata.get("kind"), metadata.get("party")
        if kind == "request" and party == "client":
            self._line(record, server).asked(record)
        elif kind in {"result", "error", "missing"} and party == "server":
            self._line(record, server).answered(record)

    def _line(self, record: Record, server: int) -> MethodStats:
        key = (server, cut(record["method"]) or "", cut(record["metadata"].get("tool")) or "")
        if key not in self._lines and len(self._lines) >= MOST_LINES:
            key = (0, "", "")
        return self._lines.setdefault(key, MethodStats())

    def answer(self, server: int | None = None) -> list[PerformanceLine]:
        """Return all lines, or those of one *server*, with most answers first."""
        found = [item for item in self._lines.items() if server is None or item[0][0] == server]
        return [_answer(*item) for item in sorted(found, key=lambda item: -item[1].durations.total)]


def _answer(key: tuple[int, str, str], stats: MethodStats) -> PerformanceLine:
    server, method, tool = key
    durations = stats.durations
    return {
        "server": server,
        "method": method,
        "tool": tool,
        "count": durations.total,
        "errors": dict(sorted(stats.codes.items(), key=lambda item: -item[1])),
        "p50": durations.quantile(0.5),
        "p95": durations.quantile(0.95),
        "p99": durations.quantile(0.99),
        "max": stats.longest,
        "guardP50": stats.guard.quantile(0.5),
        "guardP95": stats.guard.quantile(0.95),
        "buckets": durations.bounds,
        "inBytes": stats.in_bytes,
        "outBytes": stats.out_bytes,
        "largest": stats.largest,
    }
