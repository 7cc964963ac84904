"""``assay journal list``: list the runs with their servers and the number of findings, and the flights beside them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from shlex import quote
from typing import Any, Final, NamedTuple

from assay.cli.journal_choice import (
    Directories,
    Named,
    UnknownServerError,
    cannot_read,
    directories_of,
    named_runs,
    runs_of,
    say,
)
from assay.cli.terminal.journal_table import zone
from assay.cli.terminal.style import Style, columns
from assay.cli.terminal.table import Column, Row, Table
from assay.edges.standard_streams import write_utf8
from assay.guard.recent_messages import flights_in
from assay.model.json_values import dumped
from assay.model.printable import counted, plain
from assay.records.run_files import JournalRun, directories_below
from assay.records.tally import ReadBudget, Tally, is_journal, mode_in
from assay.settings.state_directory import FLIGHTS

_COLUMNS: Final = (
    *(Column("server"), Column("start"), Column("mode")),
    *(Column(name, is_number=True) for name in ("messages", "findings", "blocked")),
    *(Column("run"), Column("")),
)
"""Columns of the table. The last one marks a run that is still being written."""

_EXPENDABLE: Final = ("blocked", "findings", "mode", "messages")
"""Columns that are left out on a narrow terminal, in this order, so that names fit."""

_USUAL_NAME: Final = 30
"""Columns are left out until a name of this length fits. A longer name uses the free space, or a separate line."""

_YEAR: Final = len("2026-")

_FLIGHTS_SHOWN: Final = 10
"""Maximal flights to list without --wide: a server that keeps failing has many."""


class RunRow(NamedTuple):
    """A run in the list."""

    run: JournalRun
    servers: tuple[str, ...]
    tally: Tally
    is_written: bool
    mode: str
    """The mode of the guard; "" for a server, or if it is unknown."""


def run(args: argparse.Namespace) -> int:
    """Print the runs; return the exit status."""
    directories = directories_of(args)
    try:
        found, where = _found(args, directories)
    except UnknownServerError as error:
        say(str(error))
        return 2
    except OSError as error:
        return cannot_read("list", error)
    rows, flights = _rows(found), _flights(found, where)
    if args.format == "json":
        ended = [
            {"servers": list(servers), "start": _instant(began), "file": _path(path)}
            for began, path, servers in flights
        ]
        write_utf8(dumped({"runs": list(map(_as_json, rows)), "flights": ended}, indent=True) + "\n")
        return 0
    if not rows and not flights:
        say(f"{args.directory or directories.where()}: no journals yet; assay guard -- COMMAND writes one")
        return 0
    style = Style(sys.stdout)
    blocks = [_run_lines(args, rows, style)] if rows else []
    blocks += [_flight_lines([path for _, path, _ in flights], style, wide=args.wide)] if flights else []
    print("\n\n".join("\n".join(lines) for lines in blocks))
    return 0


def _found(args: argparse.Namespace, directories: Directories) -> tuple[list[Named], list[str]]:
    """Return the runs, newest first, and the directories searched. Raises `OSError` and `UnknownServerError`."""
    if args.directory is None:
        where = directories.every()
    else:
        where = list(directories_below(args.directory))
        directories.only(where)
    if args.server is None:
        every = named_runs(where, directories.servers)
        return sorted(every, key=lambda each: each.run.age, reverse=True), where
    found = runs_of(args.server, directories)[::-1]
    return found, sorted({os.path.dirname(each.run.path) for each in found})


def _rows(found: list[Named]) -> list[RunRow]:
    """Return a row for each run. An unreadable run is reported on stderr."""
    budget = ReadBudget()
    rows = []
    for run_, servers in found:
        try:
            if not is_journal(run_):
                say(f"{run_.path}: not a journal")
                continue
            rows.append(RunRow(run_, servers, budget.tally(run_), run_.is_written, mode_in(run_.path)))
        except OSError as error:
            say(f"{run_.path}: {error.strerror}")
    return rows


def _flights(found: list[Named], where: list[str]) -> list[tuple[float, str, tuple[str, ...]]]:
    """Return the flights beside the runs, newest first: the time of writing, the path, and the servers."""
    names = {os.path.dirname(each.run.path): each.servers for each in found}
    rows = []
    for directory in where:
        servers = names.get(directory, (os.path.basename(directory),))
        rows += [(began, path, servers) for path, began in flights_in(os.path.join(directory, FLIGHTS))]
    return sorted(rows, key=lambda row: row[0], reverse=True)


def _run_lines(args: argparse.Namespace, rows: Sequence[RunRow], style: Style) -> Iterator[str]:
    """Yield the lines of the table. On a narrow terminal the year is left out first, then whole columns."""
    cells = [_cells(row, _moment(row.run.began, utc=args.utc)) for row in rows]
    table = Table(style, _COLUMNS, cells, wide=args.wide)
    usual = min(_USUAL_NAME, max(len("server"), *(columns(row["server"]) for row in cells)))
    room = table.room("server")
    if room is not None and room < usual:
        cells = [row | {"start": row["start"][_YEAR:]} for row in cells]
        table = Table(style, _COLUMNS, cells)
    table.fit("server", [(usual, [name]) for name in _EXPENDABLE])
    room = table.room("server")
    yield table.head()
    for row in cells:
        if room is not None and columns(row["server"]) > room:
            # A cut name could not be used with --server.
            yield from style.wrapped(row["server"], 0)
            row["server"] = ""
        shown: Row = {**row, "": (row[""], "green")}
        yield from table.lines(shown)
    names = {name for row in rows for name in row.servers}
    of = f" of {counted(len(names), 'server')}" if names else ""
    place = zone(_moment(rows[0].run.began, utc=args.utc))
    times = "in UTC" if args.utc else f"in {place.replace(', ', ' (')})"
    yield style.paint(f"{counted(len(rows), 'run')}{of}; times are {times}", "bold")


def _cells(row: RunRow, start: datetime) -> dict[str, str]:
    tally = row.tally
    messages, findings, blocked, would = (f"{'' if tally.exact else '~'}{each:,}" for each in tally[:-1])
    # Audit mode blocks only what cannot be forwarded at all.
    shown = [blocked] * (not tally.would_block or tally.blocked > 0) + [f"{would} would"] * (tally.would_block > 0)
    return {
        "server": plain(", ".join(row.servers)) or "-",
        "start": f"{start:%Y-%m-%d %H:%M}",
        "mode": row.mode or "-",
        "messages": messages,
        "findings": findings,
        "blocked": " + ".join(shown),
        "run": row.run.id,
        "": "writing" if row.is_written else "",
    }


def _moment(seconds: float, *, utc: bool) -> datetime:
    return datetime.fromtimestamp(seconds, UTC).astimezone(UTC if utc else None)


def _flight_lines(paths: list[str], style: Style, *, wide: bool) -> Iterator[str]:
    """Yield the paths of the flights, which contain the server and the time. They are never cut, to be copied."""
    yield style.paint("flights: the last messages of broken sessions, for assay check FILE", "dim")
    shown = paths if wide or style.limit is None else paths[:_FLIGHTS_SHOWN]
    # On macOS the path contains a space.
    yield from (quote(plain(path)) for path in shown)
    if len(shown) < len(paths):
        yield f"and {len(paths) - len(shown):,} more; --wide shows them"


def _as_json(row: RunRow) -> dict[str, Any]:
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


def _path(path: str) -> str:
    """Return a path as text, without invalid bytes, which JSON cannot have."""
    return os.fsencode(path).decode(errors="replace")


def _instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
