"""Runs and flights for people, in tables that fit a terminal, and as JSON for programs."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from shlex import quote
from typing import Any, Final, NamedTuple

import orjson

from assay.console.clock import Clock, zone
from assay.console.plain import plain
from assay.console.style import Style
from assay.journal.runs import Run
from assay.journal.tally import Tally

_LONGEST_NAME: Final = 30
_SHORTEST_NAME: Final = 8

_REST: Final = 16 + 8 + 8 + 7 + 8 + 7 + 6 * 2
"""Columns of a row beside the server: start, messages, findings, refused, run, whether it is written."""

_FLIGHTS_SHOWN: Final = 10
"""Flights that are listed, unless all are wanted: of a server that keeps failing there are many."""


class RunRow(NamedTuple):
    """What is shown of a run."""

    run: Run
    servers: tuple[str, ...]
    tally: Tally
    is_written: bool


class FlightRow(NamedTuple):
    """What is shown of a flight."""

    path: str
    servers: tuple[str, ...]
    began: float
    """When it was written, in seconds since 1970."""


class RunTable:
    """A table as wide as the terminal; where there is none, or all is wanted, as wide as it takes."""

    def __init__(self, style: Style, *, wide: bool, utc: bool) -> None:
        self._style = style
        self._limit = None if wide else style.limit
        self._clock = Clock(utc=utc)

    def lines(self, rows: Sequence[RunRow], flights: Sequence[FlightRow]) -> Iterator[str]:
        """The tables."""
        if rows:
            yield from self._runs(rows)
        if flights:
            yield from [""] if rows else []
            yield from self._flights(flights)

    def _runs(self, rows: Sequence[RunRow]) -> Iterator[str]:
        width = self._name_width([_names(row.servers) for row in rows])
        head = _row("server".ljust(width), "start", "messages", "findings", "refused", "run", "")
        yield self._style.paint(head, "dim")
        for row in rows:
            name = self._cut(_names(row.servers), width).ljust(width)
            messages, findings, refused = self._counts(row.tally)
            start = self._time(row.run.began)
            yield _row(name, start, messages, findings, refused, row.run.id, self._state(row))
        yield self._style.paint(self._total(rows), "bold")

    def _total(self, rows: Sequence[RunRow]) -> str:
        servers = {name for row in rows for name in row.servers}
        moment = self._clock.at(rows[0].run.began)
        of = f" of {_counted(len(servers), 'server')}" if servers else ""
        return f"{_counted(len(rows), 'run')}{of}; times are {_zone(moment)}"

    def _counts(self, tally: Tally) -> tuple[str, str, str]:
        mark = "" if tally.exact else "~"
        return f"{mark}{tally.messages:,}", f"{mark}{tally.findings:,}", f"{mark}{tally.refused:,}"

    def _state(self, row: RunRow) -> str:
        return self._style.paint("writing", "green") if row.is_written else ""

    def _flights(self, flights: Sequence[FlightRow]) -> Iterator[str]:
        """Their paths, which have the server and the time, and are never cut: they are to be copied."""
        yield self._style.paint("flights: the last messages of broken sessions, for assay check FILE", "dim")
        shown = flights if self._limit is None else flights[:_FLIGHTS_SHOWN]
        # On macOS there is a space in it.
        yield from (quote(plain(row.path)) for row in shown)
        if len(shown) < len(flights):
            yield f"and {len(flights) - len(shown):,} more; --wide shows them"

    def _name_width(self, names: Sequence[str]) -> int:
        longest = max(len("server"), *map(len, names))
        if self._limit is None:
            return longest
        return max(_SHORTEST_NAME, min(longest, _LONGEST_NAME, self._limit - _REST))

    def _cut(self, text: str, width: int) -> str:
        return text if self._limit is None else self._style.cut(text, width)

    def _time(self, seconds: float) -> str:
        return self._clock.at(seconds).strftime("%Y-%m-%d %H:%M")


def _row(name: str, start: str, messages: str, findings: str, refused: str, run: str, state: str) -> str:
    cells = (name, start.ljust(16), messages.rjust(8), findings.rjust(8), refused.rjust(7), run.ljust(8), state)
    return "  ".join(cells).rstrip()


def _names(servers: Sequence[str]) -> str:
    return plain(", ".join(servers)) or "-"


def _zone(moment: datetime) -> str:
    return "in UTC" if zone(moment) == "UTC" else f"in {zone(moment).replace(', ', ' (')})"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def as_json(rows: Sequence[RunRow], flights: Sequence[FlightRow]) -> str:
    """All of it, for programs."""
    found = {"runs": [_run(row) for row in rows], "flights": [_flight(row) for row in flights]}
    return orjson.dumps(found, option=orjson.OPT_INDENT_2).decode()


def _run(row: RunRow) -> dict[str, Any]:
    return {
        "run": row.run.id,
        "servers": list(row.servers),
        "start": _instant(row.run.began),
        "messages": row.tally.messages,
        "findings": row.tally.findings,
        "refused": row.tally.refused,
        "exact": row.tally.exact,
        "writing": row.is_written,
        "bytes": row.run.size,
        "files": list(row.run.paths),
    }


def _flight(row: FlightRow) -> dict[str, Any]:
    return {"servers": list(row.servers), "start": _instant(row.began), "file": row.path}


def _instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
