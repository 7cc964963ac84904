"""``assay journal show``: print the records of a run, or of all runs as they are written."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from itertools import count
from time import sleep, time
from typing import Final, NamedTuple

from assay.cli.journal_choice import (
    Chosen,
    Directories,
    UnknownServerError,
    cannot_read,
    chosen,
    directories_of,
    names_of,
    runs_of,
    say,
)
from assay.cli.terminal.journal_table import JournalTable, Totals
from assay.cli.terminal.style import Style
from assay.edges.standard_streams import stop_without_reader, write_utf8
from assay.model.printable import counted, plain
from assay.records.filtering import RecordFilter
from assay.records.reading import LONGEST_LINE, Following, JournalEntry, Pages, entries
from assay.records.run_files import JournalRun, by_age, directories_below, files_of, runs_in
from assay.records.tally import servers_in
from assay.rules import RULES
from assay.spec.schema import suggestion

_PAUSE: Final = 0.1
"""Seconds between two reads of a followed file."""

_LOOKS: Final = 5
"""Reads of followed files between two searches for new runs."""

_UNFOLDED: Final = 10
"""With a filter that matches at most this many records, a terminal shows all of their findings."""

_MOST_BROKEN: Final = 1000
"""Invalid lines to remember until the first valid record."""


def run(args: argparse.Namespace) -> int:
    """Print the records; return the exit status."""
    rungs = {each.rung for each in RULES.values()}
    for rule in args.rule:
        # It is searched for anyway: a journal of another version may have it.
        if rule not in RULES and rule not in rungs:
            say(f"--rule {rule}: no such rule{suggestion(rule, [*RULES, *rungs])}")
    since = int(time())
    try:
        directories = directories_of(args)
        shown = _shown(args, directories)._replace(since=since)
    except UnknownServerError as error:
        say(str(error))
        return 2
    except OSError as error:
        return cannot_read("show", error)
    try:
        return _print(args, shown)
    except OSError as error:
        if error.filename is None:
            raise
        return cannot_read("show", error)


# ── what is shown ────────────────────────────────────────────────────────────────────────────────────────────────────


class _Shown(NamedTuple):
    """The journals to show, and the ones to follow."""

    journals: list[Chosen]
    servers: list[str]
    """The servers in the journals, as far as they are known beforehand."""
    only: list[str]
    """Show only the records of these servers; empty for all."""
    followed: Callable[[], Iterable[str]] | None = None
    """The directories to watch for new runs; None if a single file is followed."""
    since: int = 0
    """The time of the last search for runs, in whole seconds since 1970."""


def _shown(args: argparse.Namespace, directories: Directories) -> _Shown:
    """Return the journals that the options select. Raises `OSError` and `UnknownServerError`."""
    if args.server is not None and args.file is None:
        return _of_server(args, directories)
    only = [] if args.server is None else [args.server]
    if args.file is not None and not os.path.isdir(args.file):
        one = chosen(args.file, directories)
        return _Shown([one], _servers(one, directories), only)
    below = directories.usual if args.file is None else partial(directories_below, args.file)
    if args.all:
        runs: list[JournalRun] = []
        for directory in below():
            with suppress(OSError):
                runs += (each for each in runs_in(directory) if each.size)
        every = [Chosen(each.path, is_run=True) for each in sorted(runs, key=by_age)]
        return _Shown(every, [name for each in every for name in _servers(each, directories)], only, below)
    try:
        one = chosen(args.file, directories)
    except FileNotFoundError:
        if not args.follow or (args.file is None and directories.servers is None):
            raise
        say(f"{args.file or directories.where()}: no journals yet; waiting for the first")
        return _Shown([], [], only, below)
    servers = _servers(one, directories)
    name = f", of {' and '.join(servers)}" if servers else ""
    say(f"showing {one.name}{name}")
    return _Shown([one], servers, only, below)


def _of_server(args: argparse.Namespace, directories: Directories) -> _Shown:
    found = runs_of(args.server, directories)
    names = list(dict.fromkeys(name for each in found for name in each.servers if len(each.servers) == 1))
    only = [args.server, *(name for name in names if name != args.server)]
    filled = [each.run for each in found if each.run.size] or [found[-1].run]
    chosen_runs = filled if args.all else filled[-1:]
    if not args.all:
        say(f"showing {chosen_runs[-1].path}")
    folders = {os.path.dirname(each.run.path) for each in found}
    return _Shown([Chosen(each.path, is_run=True) for each in chosen_runs], only[:1], only, lambda: sorted(folders))


def _servers(one: Chosen, directories: Directories) -> list[str]:
    """Return the servers in a journal, as far as a sample shows them."""
    if one.name == "-" or not os.path.isfile(one.name):
        return []
    if one.is_run:
        status = os.stat(one.name)
        return list(names_of(JournalRun("", 0, tuple(files_of(one.name)), status.st_size), directories.servers))
    with suppress(OSError):
        return servers_in([one.name])
    return []


# ── printing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _print(args: argparse.Namespace, shown: _Shown) -> int:
    report = _ShowReport(args, shown)
    try:
        if args.follow and shown.followed is not None:
            _follow(shown, report)
        for one in shown.journals:
            _print_one(one, report, follow=args.follow)
    except OSError:
        if report.records:
            report.end()
        raise
    except KeyboardInterrupt:
        # --follow always ends with an interrupt; the counts are printed then, too.
        report.end()
        raise
    report.end()
    if report.broken and not report.records:
        say(f"{shown.journals[-1].name}: not a journal: no record in {counted(report.broken, 'line')}")
        return 2
    return 0


def _print_one(one: Chosen, report: _ShowReport, *, follow: bool) -> None:
    with Pages(one.name, whole=one.is_run) as pages:
        for entry in entries(pages.followed(_pause) if follow else pages):
            report.add(entry)
            stop_without_reader()
    if pages.too_long:
        say(f"{one.name}: {counted(pages.too_long, 'line')} longer than {LONGEST_LINE:,} bytes, and not read")


def _follow(shown: _Shown, report: _ShowReport) -> None:
    """Print the existing records, then new ones in all runs of the directories, until interrupted."""
    for one in shown.journals[:-1]:
        _print_one(one, report, follow=False)
    first = _as_run(shown.journals[-1]) if shown.journals else None
    following = Following(shown.followed or (lambda: ()), first, shown.since)
    try:
        for number in count(1):
            for news in following.arrived():
                if news.source.is_new and report.wants(news.entry):
                    news.source.is_new = False
                    name = news.entry.record.metadata.server if news.entry.record is not None else ""
                    report.note(f"new run{f' of {name}' if name else ''} ({news.source.run.id})", "bold")
                report.add(news.entry)
            _pause()
            if not number % _LOOKS:
                following.look_around()
    finally:
        following.close()


def _as_run(one: Chosen) -> JournalRun | None:
    """Return the run that a journal belongs to; None for any other file."""
    try:
        return next((each for each in runs_in(os.path.dirname(one.name) or os.curdir) if each.path == one.name), None)
    except OSError:
        return None


def _pause() -> None:
    """Wait before the next read of the followed files."""
    sys.stdout.flush()
    stop_without_reader(waiting=True)
    sleep(_PAUSE)


class _ShowReport:
    """Prints the wanted records, as a table or as the lines of the journal, and counts all."""

    def __init__(self, args: argparse.Namespace, shown: _Shown) -> None:
        self.records = self.broken = 0
        self._filter = RecordFilter.of_options(
            verdict=args.verdict,
            method=args.method,
            tool=args.tool,
            rule=args.rule,
            server=shown.only,
            quarantined=args.quarantined,
        )
        # Which servers will write to a followed journal is not known yet.
        several = len(set(shown.servers)) > 1 or (args.follow and shown.followed is not None and not shown.only)
        is_filtered = bool(args.verdict or args.method or args.tool or args.rule or args.quarantined)
        self._style = Style(sys.stdout)
        self._table = None
        if args.format == "table":
            self._table = JournalTable(
                self._style,
                servers=several,
                payloads=args.payloads,
                wide=args.wide,
                utc=args.utc,
                unfolded=_UNFOLDED if is_filtered else 0,
            )
        self._totals = Totals()
        self._lacks_payloads = args.payloads
        self._begun = False
        self._held: list[str] = []
        """Lines that are not records, until there is a record: a file without any is not a journal."""

    def wants(self, entry: JournalEntry) -> bool:
        """Whether an entry is shown."""
        return entry.record is None or self._filter.wants(entry.record)

    def add(self, entry: JournalEntry) -> None:
        """Count a line, and print it if it is wanted."""
        record = entry.record
        if record is None:
            self.broken += 1
            if len(self._held) < _MOST_BROKEN:
                self._held.append(f"line {entry.number}: not a record ({len(entry.raw):,} bytes)")
        else:
            self.records += 1
        if self.records:
            held, self._held = self._held, []
            for line in held:
                self.note(line, "red")
        if record is None:
            return
        is_shown = self._filter.wants(record)
        self._totals.add(record, is_shown=is_shown)
        if is_shown and self._table is not None:
            self._lacks_payloads = self._lacks_payloads and not record.has_payload
            self._print(*self._table.lines(record))
        elif is_shown:
            text = entry.raw.decode()
            # A program gets the exact bytes; a terminal would act on control characters.
            write_utf8(f"{plain(text) if sys.stdout.isatty() else text}\n")

    def note(self, line: str, colour: str) -> None:
        """Print a line between records; on stderr if standard output is for a program."""
        if self._table is None:
            say(line)
        else:
            self._print(self._style.paint(plain(line), colour))

    def end(self) -> None:
        """Print the counts by status below a table."""
        if self._table is None or (self.broken and not self.records):
            return
        print("\n".join(self._totals.lines(self._style, self.broken)))
        if self._lacks_payloads and self.records:
            say("no payloads in this journal; a guard or server writes them with --set journal.payloads=true")

    def _print(self, *lines: str) -> None:
        if not self._begun and self._table is not None:
            print(self._table.head())
            self._begun = True
        print("\n".join(lines))
