"""Durations, sizes and errors by server, method and tool. Bounded. No I/O, no clock."""

from collections.abc import Hashable, Mapping
from typing import Any, Final

from assay.model.verdict import Party
from assay.records.digest import FigureKey, Figures, LogHistogram, figure_key
from assay.records.record import Record

MOST_LINES: Final = 1_000
"""Maximal methods and tools of all servers; further ones are counted together, as those of server 0."""

_OTHERS: Final = (0, FigureKey("", Party.CLIENT, "", ""))


class PerformanceBoard:
    """All methods and tools that clients have asked for."""

    def __init__(self) -> None:
        self._figures: dict[tuple[Hashable, FigureKey], Figures] = {}

    def take(self, record: Record, server: Hashable, latency: float | None) -> None:
        """Count *record* as one of *server*; *latency* in milliseconds, if it is an answer and that is known."""
        key = figure_key(record)._replace(server="")
        if key.party == Party.CLIENT and (record.is_answer or record.metadata.kind == "request"):
            self._of(server, key).add(record, latency)

    def _of(self, server: Hashable, key: FigureKey) -> Figures:
        place = (server, key)
        if place not in self._figures and len(self._figures) >= MOST_LINES:
            place = _OTHERS
        return self._figures.setdefault(place, Figures())

    def merge(self, other: "PerformanceBoard", servers: Mapping[Hashable, Hashable]) -> None:
        """Add the figures of *other*; *servers* are the new names of its servers, others keep theirs."""
        for (server, key), figures in other._figures.items():
            self._of(servers.get(server, server), key).merge(figures)

    def answer(self) -> list[dict[str, Any]]:
        """Return all lines."""
        return [_line(server, key, figures) for (server, key), figures in self._figures.items()]


def quantile(durations: LogHistogram, share: float) -> float | None:
    """Return the milliseconds that this *share* of the durations does not exceed; None without any."""
    return durations.quantile(share) / 1000 if durations.count else None


def _line(server: Hashable, key: FigureKey, figures: Figures) -> dict[str, Any]:
    latency, guard = figures.latency, figures.guard
    return {
        "server": server,
        "method": key.method,
        "tool": key.tool,
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
