"""``assay journal list``: list the runs with their servers and the number of findings."""

from __future__ import annotations

import argparse
import os
import sys

from assay.cli.journal_choice import Directories, Named, UnknownServerError, named_runs, runs_of, say
from assay.cli.journal_show import cannot_read
from assay.cli.terminal.run_tables import FlightRow, RunRow, RunTable, as_json
from assay.cli.terminal.style import Style
from assay.edges.standard_streams import write_utf8
from assay.guard.recent_messages import flights_in
from assay.records.run_files import directories_below
from assay.records.tally import ReadBudget, is_journal, mode_in
from assay.settings.state_directory import FLIGHTS


def run(args: argparse.Namespace) -> int:
    """Print the runs; return the exit status."""
    directories = Directories(args, say)
    try:
        found, where = _found(args, directories)
    except UnknownServerError as error:
        say(str(error))
        return 2
    except OSError as error:
        return cannot_read("list", error)
    rows, flights = _rows(found), _flights(found, where)
    if args.format == "json":
        write_utf8(f"{as_json(rows, flights)}\n")
        return 0
    if not rows and not flights:
        say(f"{args.directory or directories.where()}: no journals yet; assay guard -- COMMAND writes one")
        return 0

    for line in RunTable(Style(sys.stdout), wide=args.wide, utc=args.utc).lines(rows, flights):
        print(line)
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


def _flights(found: list[Named], where: list[str]) -> list[FlightRow]:
    """The flights beside the runs, newest first."""
    names = {os.path.dirname(each.run.path): each.servers for each in found}
    rows = []
    for directory in where:
        servers = names.get(directory, (os.path.basename(directory),))
        rows += [FlightRow(path, servers, began) for path, began in flights_in(os.path.join(directory, FLIGHTS))]
    return sorted(rows, key=lambda row: row.began, reverse=True)
