"""``assay journal``: read and compare what was written down."""

# ruff: noqa: PLC0415  each command imports only what it needs: `assay --help` needs none of it

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from assay.journal.diff import Difference
    from assay.journal.reading import Entry

_STATUSES = ("ok", "reported", "refused", "failed")

_PAUSE = 0.1
"""Seconds between two looks at a file that is followed."""

_LONGEST = 100
_CONTEXT = 30
"""Characters of a value that a difference shows, and of those that are still the same."""

_SHOW = """\
Without FILE it is the newest run in the directory that ASSAY_JOURNAL or the setting journal.directory
names, by default runs/mcp_server/envelope_validation below the working directory.
A filter that is given more than once takes any of its values; several filters take what passes them all.

Exit status: 0, or 2 if there is nothing to read.
"""

_DIFF = """\
Two runs of the same traffic give the same records, but for ts, durationMs, requestId, traceId and spanId,
which are not compared. Sessions are told apart by the order in which they begin.

Exit status: 0 the same, 1 different, 2 one could not be read.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``journal``."""
    parser = subparsers.add_parser(
        "journal",
        help="show or compare the verdicts that a server or guard has written down",
        description="Every verdict is one JSON line in the journal. These commands read it.",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_show(commands)
    _add_diff(commands)


def _add_show(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from assay.cli.serve import add_settings

    show = commands.add_parser(
        "show",
        help="print the records of a run",
        description="Print the records of a run: when, who, what, how it went, how long it took, what was wrong.",
        epilog=_SHOW,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    show.add_argument(
        "file", metavar="FILE", nargs="?", help="a journal; a directory, for the newest run in it; - for standard input"
    )
    show.add_argument("--follow", action="store_true", help="go on with what is written from now on, until interrupted")
    show.add_argument("--status", choices=_STATUSES, action="append", default=[], help="only these; can be repeated")
    show.add_argument("--method", metavar="METHOD", action="append", default=[], help="only these; can be repeated")
    show.add_argument("--tool", metavar="TOOL", action="append", default=[], help="only these; can be repeated")
    show.add_argument(
        "--rule",
        metavar="RULE",
        action="append",
        default=[],
        help="only what breaks these, or any rule of a rung such as contract; can be repeated",
    )
    show.add_argument("--format", choices=("table", "json"), default="table", help="default: %(default)s")
    add_settings(show)
    show.set_defaults(run=run_show)


def _add_diff(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    diff = commands.add_parser(
        "diff",
        help="say where two runs differ",
        description="Say where two runs differ: which line, which field, both values.",
        epilog=_DIFF,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    diff.add_argument("one", metavar="A", help="a journal")
    diff.add_argument("other", metavar="B", help="another one")
    diff.add_argument(
        "--across-transports", action="store_true", help="nor compare transport, route and sessions: STDIO with HTTP"
    )
    diff.set_defaults(run=run_diff)


def run_show(args: argparse.Namespace) -> int:
    """Print the records; the exit status."""
    from assay.console.streams import stop_without_reader
    from assay.journal.pages import Pages
    from assay.journal.reading import Filter, entries

    for rule in args.rule:
        _doubt(rule)
    wanted = Filter(args.status, args.method, args.tool, args.rule)
    report = _JsonReport() if args.format == "json" else _TableReport()
    name = args.file if args.file is not None else _directory(args)
    try:
        pages = Pages(name)
    except OSError as error:
        return _cannot_read("show", error)
    read = records = 0
    try:
        with pages:
            for entry in entries(pages.followed(_pause) if args.follow else pages):
                report.add(entry, wanted=entry.record is None or wanted.wants(entry.record))
                read, records = read + 1, records + (entry.record is not None)
                stop_without_reader()
    finally:
        # Whoever follows a journal interrupts it, and still wants to know how much there was.
        report.end()
    if read and not records:
        _say(f"{_readable(name)}: no journal: none of its lines is a record")
        return 2
    return 0


def _doubt(rule: str) -> None:
    """Says that nobody here knows *rule*; a journal of another version may, so it is looked for all the same."""
    from assay.rules import RULES

    rungs = {each.rung for each in RULES.values()}
    if rule in RULES or rule in rungs:
        return
    from assay.spec.schema import suggestion

    _say(f"--rule {_readable(rule)}: no such rule{suggestion(rule, [*RULES, *rungs])}")


def _cannot_read(command: str, error: OSError) -> int:
    print(f"assay journal {command}: {_readable(str(error.filename))}: {error.strerror}", file=sys.stderr)
    return 2


def _directory(args: argparse.Namespace) -> str:
    from assay.cli.records import place
    from assay.settings import JournalSettings, load

    settings = load(os.environ, os.curdir, file=args.config, flags=args.set, log=_say).journal
    # Who writes none now may have written one before.
    return place(None, settings) or JournalSettings().directory


def _pause() -> None:
    """Nothing new is written to what is followed."""
    from time import sleep

    from assay.console.streams import stop_without_reader

    sys.stdout.flush()
    stop_without_reader(waiting=True)
    sleep(_PAUSE)


class _TableReport:
    """Records for people."""

    def __init__(self) -> None:
        from assay.console.journal import Table, Totals
        from assay.console.style import Style

        self._style = Style(sys.stdout)
        self._table = Table(self._style)
        self._totals = Totals()
        self._begun = False

    def add(self, entry: Entry, *, wanted: bool) -> None:
        if not wanted:
            self._totals.pass_over()
            return
        self._totals.add(entry)
        if not self._begun:
            print(self._table.head())
            self._begun = True
        print("\n".join(self._table.lines(entry)))

    def end(self) -> None:
        print("\n".join(self._totals.lines(self._style)))


class _JsonReport:
    """Records for programs: the lines as they stand in the journal. What is no record goes to stderr."""

    def add(self, entry: Entry, *, wanted: bool) -> None:
        from assay.console.streams import write_utf8

        if entry.record is None:
            _say(f"line {entry.number}: no record ({len(entry.raw):,} bytes)")
        elif wanted:
            text = entry.raw.decode()
            # A program gets the very bytes; a terminal would act upon some of them.
            write_utf8(f"{_readable(text) if sys.stdout.isatty() else text}\n")

    def end(self) -> None:
        """Nothing more to say."""


# ── comparing ────────────────────────────────────────────────────────────────────────────────────────────────────────


def run_diff(args: argparse.Namespace) -> int:
    """Print where two journals differ; the exit status."""
    from contextlib import ExitStack

    from assay.journal.diff import differences
    from assay.journal.pages import Pages
    from assay.journal.reading import entries

    count, ours, theirs = 0, _Counted(), _Counted()
    with ExitStack() as stack:
        try:
            ours.lines = entries(stack.enter_context(Pages(args.one)))
            theirs.lines = entries(stack.enter_context(Pages(args.other)))
        except OSError as error:
            return _cannot_read("diff", error)
        try:
            for difference in differences(ours, theirs, across_transports=args.across_transports):
                count += 1
                print("\n".join(_difference_lines(difference)))
        except NoJournalError:
            name = args.one if ours.none else args.other
            print(f"assay journal diff: {_readable(name)}: the first line is no record", file=sys.stderr)
            return 2
    sizes = f"{ours.count:,}" if ours.count == theirs.count else f"{ours.count:,} and {theirs.count:,}"
    found = "no differences" if not count else f"{count:,} difference{'' if count == 1 else 's'}"
    print(f"{found} in {sizes} records")
    return 1 if count else 0


class NoJournalError(ValueError):
    """A file does not begin like a journal."""


class _Counted:
    """The lines of a journal, counted."""

    def __init__(self) -> None:
        self.lines: Iterable[Entry] = ()
        self.count = 0
        self.none = False

    def __iter__(self) -> Iterator[Entry]:
        for entry in self.lines:
            if not self.count and entry.record is None:
                self.none = True
                raise NoJournalError
            self.count += 1
            yield entry


def _difference_lines(difference: Difference) -> Iterator[str]:
    one, other, fields = difference
    entry = one or other
    if entry is None:
        return
    if one is None or other is None:
        yield f"line {entry.number}: only in {'A' if other is None else 'B'}: {_title(entry)}"
        return
    place = f"line {one.number}" if one.number == other.number else f"line {one.number} of A, {other.number} of B"
    yield f"{place}: {_title(one)}"
    for field in fields:
        yield f"    {_readable(field.name)}: {' → '.join(_values(field.one, field.other))}"


def _title(entry: Entry) -> str:
    from assay.console.journal import title
    from assay.console.plain import plain

    if entry.record is None:
        return "no record"
    return plain(f"{entry.record['metadata'].get('party')} {title(entry.record)}")


def _values(one: object, other: object) -> Iterator[str]:
    """Two values as JSON; of long ones, the part where they begin to differ."""
    texts = [_json(one), _json(other)]
    same = next((at for at, pair in enumerate(zip(*texts, strict=False)) if pair[0] != pair[1]), 0)
    begin = max(0, same - _CONTEXT) if max(map(len, texts)) > _LONGEST else 0
    for text in texts:
        end = begin + _LONGEST
        yield _readable(f"{'…' if begin else ''}{text[begin:end]}{'…' if len(text) > end else ''}")


def _json(value: object) -> str:
    import orjson

    from assay.journal.diff import Absent

    return repr(value) if isinstance(value, bytes | Absent) else orjson.dumps(value).decode()


def _readable(text: str) -> str:
    from assay.console.plain import plain

    return plain(os.fsencode(text).decode(errors="replace"))


def _say(line: str) -> None:
    print(f"assay journal: {line}", file=sys.stderr)
