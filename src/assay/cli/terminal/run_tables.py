"""Show runs and flights, as tables that fit the terminal or as JSON."""

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from shlex import quote
from typing import Any, Final, NamedTuple

from assay.base.printable import plain
from assay.base.printable_json import dumped
from assay.cli.terminal.record_text import Clock, zone
from assay.cli.terminal.style import Style
from assay.records.run_files import JournalRun
from assay.records.tally import Tally

_COLUMNS: Final = ("server", "start", "mode", "messages", "findings", "blocked", "run", "")
"""Columns of the table. The last one marks a run that is still being written."""

_LEFT_OUT: Final = ("blocked", "findings", "mode", "messages")
"""Columns that are left out on a narrow terminal, in this order, so that names fit."""

_USUAL_NAME: Final = 30
"""Columns are left out until a name of this length fits. A longer name uses the free space, or a separate line."""

_NUMBERS: Final = frozenset({"messages", "findings", "blocked"})

_YEAR: Final = len("2026-")

_GAP: Final = "  "

_FLIGHTS_SHOWN: Final = 10
"""Maximal flights to list without --wide: a server that keeps failing has many."""


class RunRow(NamedTuple):
    """A row for one run."""

    run: JournalRun
    servers: tuple[str, ...]
    tally: Tally
    is_written: bool
    mode: str = ""
    """The mode of the guard; "" for a server, or if it is unknown."""


class FlightRow(NamedTuple):
    """A row for one flight."""

    path: str
    servers: tuple[str, ...]
    began: float
    """The time of writing, in seconds since 1970."""


class RunTable:
    """Tables that fit the terminal; without a terminal, or with --wide, nothing is cut."""

    def __init__(self, style: Style, *, wide: bool, utc: bool) -> None:
        self._style = style
        self._limit = None if wide else style.limit
        self._clock = Clock(utc=utc)

    def lines(self, rows: Sequence[RunRow], flights: Sequence[FlightRow]) -> Iterator[str]:
        """Return the lines of the tables."""
        if rows:
            yield from self._runs(rows)
        if flights:
            yield from [""] if rows else []
            yield from self._flights(flights)

    def _runs(self, rows: Sequence[RunRow]) -> Iterator[str]:
        table = self._fitted([dict(zip(_COLUMNS, _COLUMNS, strict=True)), *map(self._cells, rows)])
        for number, line in enumerate(table):
            yield line if number else self._style.paint(line, "dim")
        yield self._style.paint(self._total(rows), "bold")

    def _cells(self, row: RunRow) -> dict[str, str]:
        start = self._clock.at(row.run.began).strftime("%Y-%m-%d %H:%M")
        state = "writing" if row.is_written else ""
        cells = (_names(row.servers), start, row.mode or "-", *self._counts(row.tally), row.run.id, state)
        return dict(zip(_COLUMNS, cells, strict=True))

    def _fitted(self, table: list[dict[str, str]]) -> Iterator[str]:
        """Return the aligned rows of *table*, narrowed to the terminal if there is one."""
        widths = {name: max(len(row[name]) for row in table) for name in _COLUMNS}
        self._narrow(table, widths)
        for row in table:
            yield from self._aligned(row, widths)

    def _narrow(self, table: list[dict[str, str]], widths: dict[str, int]) -> None:
        """Shorten the table for a narrow terminal: leave out the year, then whole columns."""
        longest, widths["server"] = widths["server"], min(widths["server"], _USUAL_NAME)
        if self._excess(widths) > 0:
            widths["start"] -= _YEAR
            for row in table[1:]:
                row["start"] = row["start"][_YEAR:]
        for name in _LEFT_OUT:
            if self._excess(widths) > 0:
                del widths[name]
        free = longest if self._limit is None else widths["server"] - self._excess(widths)
        widths["server"] = max(len("server"), min(longest, free))

    def _excess(self, widths: dict[str, int]) -> int:
        """Return by how many characters the table is too wide."""
        if self._limit is None:
            return 0
        used = [width for width in widths.values() if width]
        return sum(used) + len(_GAP) * (len(used) - 1) - self._limit

    def _aligned(self, row: dict[str, str], widths: dict[str, int]) -> Iterator[str]:
        """Return one row, preceded by a line with the server's name if that is too long for its column."""
        name, width = row["server"], widths["server"]
        if len(name) > width:
            # A cut name could not be used with --server.
            yield from self._style.wrapped(name, 0)
            row = row | {"server": ""}
        cells = [row[key].rjust(size) if key in _NUMBERS else row[key].ljust(size) for key, size in widths.items()]
        if row[""]:
            cells[-1] = self._style.paint(row[""], "green")
        yield _GAP.join(cells).rstrip()

    def _total(self, rows: Sequence[RunRow]) -> str:
        servers = {name for row in rows for name in row.servers}
        moment = self._clock.at(rows[0].run.began)
        of = f" of {_counted(len(servers), 'server')}" if servers else ""
        return f"{_counted(len(rows), 'run')}{of}; times are {_zone(moment)}"

    def _counts(self, tally: Tally) -> list[str]:
        messages, findings, blocked, would = (f"{'' if tally.exact else '~'}{each:,}" for each in tally[:-1])
        # Audit mode blocks only what cannot be forwarded at all.
        shown = [blocked] * (not tally.would_block or tally.blocked > 0) + [f"{would} would"] * (tally.would_block > 0)
        return [messages, findings, " + ".join(shown)]

    def _flights(self, flights: Sequence[FlightRow]) -> Iterator[str]:
        """Return the paths of the flights, which contain the server and the time. They are never cut, to be copied."""
        yield self._style.paint("flights: the last messages of broken sessions, for assay check FILE", "dim")
        shown = flights if self._limit is None else flights[:_FLIGHTS_SHOWN]
        # On macOS the path contains a space.
        yield from (quote(plain(row.path)) for row in shown)
        if len(shown) < len(flights):
            yield f"and {len(flights) - len(shown):,} more; --wide shows them"


def _names(servers: Sequence[str]) -> str:
    return plain(", ".join(servers)) or "-"


def _zone(moment: datetime) -> str:
    return "in UTC" if zone(moment) == "UTC" else f"in {zone(moment).replace(', ', ' (')})"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def as_json(rows: Sequence[RunRow], flights: Sequence[FlightRow]) -> str:
    """Return the runs and flights as JSON."""
    found = {"runs": [_run(row) for row in rows], "flights": [_flight(row) for row in flights]}
    return dumped(found, indent=True)


def _run(row: RunRow) -> dict[str, Any]:
    return {
        "run": row.run.id,
        "servers": list(row.servers),
        "start": _instant(row.run.began),
        "mode": row.mode or None,
        "messages": row.tally.messages,
        "findings": row.tally.findings,
        "blocked": row.tally.blocked,
        "wouldBlock": row.tally.would_block,
        "exact": row.tally.exact,
        "writing": row.is_written,
        "bytes": row.run.size,
        "files": [_path(each) for each in row.run.paths],
    }


def _flight(row: FlightRow) -> dict[str, Any]:
    return {"servers": list(row.servers), "start": _instant(row.began), "file": _path(row.path)}


def _path(path: str) -> str:
    """Return a path as text, without invalid bytes, which JSON cannot have."""
    return os.fsencode(path).decode(errors="replace")


def _instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
