"""``assay replay``: a short name of ``assay check --compare`` for one journal."""

from __future__ import annotations

import argparse
from typing import Any, Final

from assay.cli.check import judged
from assay.cli.checking.files import Piece
from assay.cli.journal_choice import Directories, chosen, why_not
from assay.cli.options import add_settings
from assay.cli.program import speaker

_say = speaker("replay")

_EPILOG = """\
The journal needs payloads: assay guard --set journal.payloads=true -- COMMAND. Redacted messages are judged,
but their verdicts are not compared. assay check --compare does the same for any number of files.

Exit status: 0 all verdicts are the same, 1 a verdict differs, 2 the file could not be read or has nothing to replay.
"""

_OF_CHECK: Final[dict[str, Any]] = {
    "all": False,
    "baseline": None,
    "cluster": None,
    "compare": True,
    "docs_url": None,
    "fail_on": "never",
    "fail_on_stale": False,
    "fields": None,
    "format": "text",
    "jobs": 1,
    "literal": False,
    "messages": False,
    "output": [],
    "party": None,
    "policy": False,
    "revision": None,
    "source": None,
    "write_baseline": None,
}
"""The options of `assay check` that this command does not have."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``replay``."""
    parser = subparsers.add_parser(
        "replay",
        description="Judge the messages of a journal again, in order, and compare the verdicts.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        help="journal with payloads, id of a run, directory (its newest run), or - for stdin;"
        " default: as for assay journal show",
    )
    add_settings(parser)
    parser.set_defaults(run=run, **_OF_CHECK)


def run(args: argparse.Namespace) -> int:
    """Judge one journal again; return the exit status."""
    directories = Directories(args, _say)
    try:
        name, is_run = chosen(args.file, directories)
    except OSError as error:
        _say(why_not(error))
        return 2
    if args.file is None:
        _say(f"replaying {name}")
    args.files = [name]
    return judged(args, directories.settings, [Piece(name, is_run)]).status
