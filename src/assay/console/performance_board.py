"""Durations, sizes and errors by server, method and tool. Bounded. No I/O, no clock."""

from typing import Final

from assay.base.verdict import Party
from assay.console.console_rows import PerformanceLine
from assay.records.digest import FigureKey, Figures, figure_key
from assay.records.log_histogram import LogHistogram
from assay.records.record import Record

MOST_LINES: Final = 1_000
"""Maximal methods and tools of all servers; further ones are counted together, as those of server 0."""

_OTHERS: Final = (0, FigureKey("", Party.CLIENT, "", ""))


class PerformanceBoard:
    """All methods and tools that clients have asked for."""

    def __init__(self) -> None:
        self._figures: dict[tuple[int, FigureKey], Figures] = {}

    def take(self, record: Record, server: int) -> None:
        """Count *record*."""
        key = (server, figure_key(record)._replace(server=""))
        if key[1].party != Party.CLIENT or not (record.is_answer or record.metadata.kind == "request"):
            return
        if key not in self._figures and len(self._figures) >= MOST_LINES:
            key = _OTHERS
        self._figures.setdefault(key, Figures()).add(record, record.duration_ms if record.is_answer else None)

    def answer(self, server: int | None = None) -> list[PerformanceLine]:
        """Return all lines, or those of one *server*, with most answers first."""
        found = [item for item in self._figures.items() if server is None or item[0][0] == server]
        return [_line(*item) for item in sorted(found, key=lambda item: -item[1].latency.count)]


def quantile(durations: LogHistogram, share: float) -> float | None:
    """Return the milliseconds that this *share* of the durations does not exceed; None without any."""
    return durations.quantile(share) / 1000 if durations.count else None


def _line(key: tuple[int, FigureKey], figures: Figures) -> PerformanceLine:
    latency, guard = figures.latency, figures.guard
    return {
        "server": key[0],
        "method": key[1].method,
        "tool": key[1].tool,
        "count": latency.count,
        "errors": dict(figures.codes.most_common()),
        "p50": quantile(latency, 0.5),
        "p95": quantile(latency, 0.95),
        "p99": quantile(latency, 0.99),
        "max": None if latency.most is None else latency.most / 1000,
        "guardP50": quantile(guard, 0.5),
        "guardP95": quantile(guard, 0.95),
        "buckets": [(bound / 1000, number) for bound, number in latency.bounds()],
        "inBytes": figures.sent.total,
        "outBytes": figures.answers.total,
        "largest": max(figures.sent.most or 0, figures.answers.most or 0),
    }
