"""``assay journal``: list, show and compare journals."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import ExitStack

import orjson

from assay.cli import journal_list, journal_show
from assay.cli.journal_choice import cannot_read, chosen, directories_of
from assay.cli.options import add_settings
from assay.cli.program import say
from assay.model.printable import counted, plain
from assay.records.journal_diff import Absent, JournalDifference, differences
from assay.records.outcomes import recorded_title
from assay.records.reading import JournalEntry, Pages, entries

_LONGEST = 100
_CONTEXT = 30
"""Characters of a value that a difference shows, and how many of them come before the difference."""

_SHOW = """\
Without FILE, this shows the newest run in the directory of ASSAY_JOURNAL or journal.directory, or else of all
guarded servers. `assay journal list` lists the runs.
Repeat a filter to match any of several values; different filters must all match.
A failed message is the server's own error. In audit mode, "would block" marks a message that enforce mode would
block.

Exit status: 0, or 2 if there is nothing to read.
"""


_LIST = """\
Without DIR, this lists the runs in the state directory, in the directory of ASSAY_JOURNAL or journal.directory, and
in runs/mcp_server/envelope_validation of the working directory.
`assay journal show RUN` shows a run; `assay check FILE` checks a flight, the last messages of a broken session.
~ marks an estimate: only the newest 128 MiB are read in full.

Exit status: 0, or 2 if DIR cannot be read or the server is unknown.
"""


_DIFF = """\
The fields ts, durationMs, requestId, traceId and spanId and the mode are not compared, because they differ in every
run. Sessions are matched by the order in which they begin.

Exit status: 0 the same, 1 different, 2 a journal could not be read.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``journal``."""
    parser = subparsers.add_parser(
        "journal",
        description="List, show and compare journals, which have one JSON line per message.",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_list(commands)
    _add_show(commands)
    _add_diff(commands)


def _add_list(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``list``."""
    parser = commands.add_parser(
        "list",
        help="list the runs, newest first",
        description="List runs, newest first, with their server, mode and counts of messages and findings.",
        epilog=_LIST,
    )
    parser.add_argument("directory", metavar="DIR", nargs="?", help="directory with journals, or with folders of them")
    parser.add_argument("--server", metavar="NAME", help="only runs of this server")
    parser.add_argument("--wide", action="store_true", help="do not cut lines on a terminal")
    parser.add_argument("--utc", action="store_true", help="show times in UTC")
    parser.add_argument(
        "--format", choices=("table", "json"), default="table", help="output format (default: %(default)s)"
    )
    add_settings(parser)
    parser.set_defaults(run=journal_list.run)


def _add_show(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``show``."""
    show = commands.add_parser(
        "show",
        help="print the records of a run",
        description="Print the records of a run: time, sender, message, verdict, duration and findings.",
        epilog=_SHOW,
    )
    show.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        help="a journal, the id of a run, a directory (its newest run), or - for stdin",
    )
    show.add_argument("--server", metavar="NAME", help="only the newest run of this server")
    show.add_argument("--all", action="store_true", help="all runs, oldest first, instead of the newest")
    show.add_argument(
        "--follow",
        action="store_true",
        help="print new records and runs until interrupted",
    )
    _add_filters(show)
    show.add_argument("--payloads", action="store_true", help="show the messages, if the journal has them")
    show.add_argument("--wide", action="store_true", help="do not cut or wrap lines on a terminal")
    show.add_argument("--utc", action="store_true", help="show times in UTC")
    show.add_argument(
        "--format", choices=("table", "json"), default="table", help="output format (default: %(default)s)"
    )
    add_settings(show)
    show.set_defaults(run=journal_show.run)


def _add_filters(show: argparse.ArgumentParser) -> None:
    words = ("ok", "reported", "repaired", "blocked", "failed")
    for option, choices, wanted in (
        ("--verdict", words, "with this verdict"),
        ("--method", None, "of this method"),
        ("--tool", None, "of this tool"),
        ("--rule", None, "that break this rule, or a rule of this group, such as contract"),
    ):
        name = None if choices else option[2:].upper()
        show.add_argument(
            option,
            metavar=name,
            choices=choices,
            action="append",
            default=[],
            help=f"only messages {wanted}; repeatable",
        )
    show.add_argument("--quarantined", action="store_true", help="only lists with quarantined entries")


def _add_diff(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    diff = commands.add_parser(
        "diff",
        help="show where two runs differ",
        description="Show the line, the field and both values of each difference between two runs.",
        epilog=_DIFF,
    )
    diff.add_argument("one", metavar="A", help="a journal, the id of a run, or a directory")
    diff.add_argument("other", metavar="B", help="the journal, run or directory to compare it with")
    diff.add_argument(
        "--across-transports",
        action="store_true",
        help="ignore transport, route and sessions, to compare STDIO with HTTP",
    )
    diff.set_defaults(run=run_diff)


def run_diff(args: argparse.Namespace) -> int:
    """Print where two journals differ; return the exit status."""
    counts, found = [0, 0], 0

    def lines_of(number: int, name: str, pages: Pages) -> Iterator[JournalEntry]:
        for entry in entries(pages):
            if not counts[number] and entry.record is None:
                raise _NoJournalError(name)
            counts[number] += 1
            yield entry

    with ExitStack() as stack:
        try:
            directories = directories_of(args)
            pair = [chosen(name, directories) for name in (args.one, args.other)]
            one, other = (stack.enter_context(Pages(each.name, whole=each.is_run)) for each in pair)
        except OSError as error:
            return cannot_read("diff", error)
        ours, theirs = lines_of(0, args.one, one), lines_of(1, args.other, other)
        try:
            for difference in differences(ours, theirs, across_transports=args.across_transports):
                found += 1
                print("\n".join(_difference_lines(difference)))
        except _NoJournalError as error:
            say(f"{_readable(str(error))}: not a journal", "journal diff")
            return 2
    sizes = " and ".join(f"{each:,}" for each in dict.fromkeys(counts))
    print(f"{counted(found, 'difference') if found else 'no differences'} in {sizes} records")
    return 1 if found else 0


class _NoJournalError(ValueError):
    """The file of this name does not begin like a journal."""


def _difference_lines(difference: JournalDifference) -> Iterator[str]:
    one, other, fields = difference
    entry = one or other
    if entry is None:
        return
    title = "not a record"
    if entry.record is not None:
        title = f"{entry.record.metadata.party} {recorded_title(entry.record)}"
    if one is None or other is None:
        yield f"line {entry.number}: only in {'A' if other is None else 'B'}: {title}"
        return
    place = f"line {one.number}" if one.number == other.number else f"line {one.number} of A, {other.number} of B"
    yield f"{place}: {title}"
    for field in fields:
        yield f"    {_readable(field.name)}: {' → '.join(_values(field.one, field.other))}"


def _values(one: object, other: object) -> Iterator[str]:
    """Return two values as JSON; of long ones, the part around the first difference."""
    texts = [repr(each) if isinstance(each, bytes | Absent) else orjson.dumps(each).decode() for each in (one, other)]
    same = next((at for at, pair in enumerate(zip(*texts, strict=False)) if pair[0] != pair[1]), 0)
    begin = max(0, same - _CONTEXT) if max(map(len, texts)) > _LONGEST else 0
    for text in texts:
        end = begin + _LONGEST
        yield _readable(f"{'…' if begin else ''}{text[begin:end]}{'…' if len(text) > end else ''}")


def _readable(text: str) -> str:
    return plain(os.fsencode(text).decode(errors="replace"))
