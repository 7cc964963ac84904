"""Durations, sizes and errors by server, method and tool. Bounded. No I/O, no clock."""

from typing import Any, Final

from assay.console.console_rows import PerformanceLine
from assay.console.rates import DurationHistogram
from assay.console.row_cells import cut, size
from assay.records.journal.reading import Record
from assay.records.outcomes import recorded_outcome

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
