"""Durations, sizes and errors by server, method and tool. Bounded. No I/O, no clock."""

from typing import Any, Final

from assay.base.verdict import Party
from assay.console.rows import latency_of
from assay.records.digest import FigureKey, Figures, LogHistogram, figure_key
from assay.records.record import Record

MOST_LINES: Final = 1_000
"""Maximal methods and tools of all servers; further ones are counted together, as those of server 0."""

OTHERS: Final = (0, FigureKey("", Party.CLIENT, "", ""))


class PerformanceBoard:
    """All methods and tools that clients have asked for."""

    def __init__(self) -> None:
        self.figures: dict[tuple[int, FigureKey], Figures] = {}

    def take(self, record: Record, server: int) -> None:
        """Count *record*."""
        key = (server, figure_key(record)._replace(server=""))
        if key[1].party != Party.CLIENT or not (record.is_answer or record.metadata.kind == "request"):
            return
        if key not in self.figures and len(self.figures) >= MOST_LINES:
            key = OTHERS
        self.figures.setdefault(key, Figures()).add(record, latency_of(record))

    def answer(self) -> list[dict[str, Any]]:
        """Return all lines."""
        return [_line(*item) for item in self.figures.items()]


def quantile(durations: LogHistogram, share: float) -> float | None:
    """Return the milliseconds that this *share* of the durations does not exceed; None without any."""
    return durations.quantile(share) / 1000 if durations.count else None


def _line(key: tuple[int, FigureKey], figures: Figures) -> dict[str, Any]:
    latency, guard = figures.latency, figures.guard
    return {
        "server": key[0],
        "method": key[1].method,
        "tool": key[1].tool,
        "count": figures.answers.count,
        "errors": dict(figures.codes.most_common()),
        "p50": quantile(latency, 0.5),
        "p95": quantile(latency, 0.95),
        "p99": quantile(latency, 0.99),
        "max": None if latency.most is None else latency.most / 1000,
        "guardP50": quantile(guard, 0.5) if guard.most else None,
        "guardP95": quantile(guard, 0.95) if guard.most else None,
        "buckets": [(bound / 1000, number) for bound, number in latency.bounds()],
        "inBytes": figures.sent.total,
        "outBytes": figures.answers.total,
        "largest": max(figures.sent.most or 0, figures.answers.most or 0),
    }
