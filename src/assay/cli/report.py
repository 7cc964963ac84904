"""``assay report``: judge recorded conversations, and write one HTML page about them."""

from __future__ import annotations

import argparse
import os

from assay.cli.check import add_judging, add_scale, add_source, judged
from assay.cli.checking.files import found
from assay.cli.guard_plan import LEVELS
from assay.cli.program import speaker

_say = speaker("report")

_EPILOG = """\
The page is self-contained: it loads nothing from the network. Secrets are masked.

Exit status: 0 the page was written; 1 a finding counts by --fail-on; 2 a file could not be read, or the page could not
be written.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``report``."""
    parser = subparsers.add_parser(
        "report",
        description=(
            "Judge recorded conversations, and write one HTML page: findings with their messages, timelines, "
            "response times, sizes and tools."
        ),
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", metavar="FILE", nargs="+", help="as for assay check; - for stdin")
    parser.add_argument(
        "-o",
        "--output",
        dest="page",
        metavar="FILE",
        default="assay-report.html",
        help="page to write; - for stdout (default: %(default)s)",
    )
    add_source(parser)
    parser.add_argument(
        "--fail-on",
        choices=LEVELS,
        default="never",
        help="exit with 1 after any finding, or only if a message is refused (default: %(default)s)",
    )
    parser.add_argument("--baseline", metavar="FILE", help="findings in FILE are known, and do not count by --fail-on")
    parser.add_argument("--docs-url", metavar="URL", help="the address of Assay's docs directory, for links to rules")
    add_scale(parser)
    add_judging(parser)
    parser.set_defaults(run=run, all=False, compare=False, messages=False, write_baseline=None, fail_on_stale=False)


def run(args: argparse.Namespace) -> int:
    """Write the page; return the exit status."""
    is_printed = args.page == "-"
    args.format = "html" if is_printed else None
    args.output = [] if is_printed else [("html", args.page)]
    if not is_printed and _is_input(args):
        _say(f"{args.page}: the page would replace a recording")
        return 2
    result = judged(args)
    if not result.digests or not (is_printed or os.path.isfile(args.page)):
        # The reason is printed already.
        return result.status
    # 30 ms of modules, which a run that cannot begin does without.
    from assay.cli.reports.page import verdict  # noqa: PLC0415

    size = "" if is_printed else f" ({_size(os.stat(args.page).st_size)})"
    _say(f"{'standard output' if is_printed else args.page}{size}: {verdict(result)['sentence']}")
    return result.status


def _is_input(args: argparse.Namespace) -> bool:
    """Whether the page would replace a file to judge, also one in a directory."""
    if not os.path.isfile(args.page):
        return False

    page = os.path.realpath(args.page)
    pieces = (piece for name in args.files for piece in found(name).pieces)
    return any(os.path.realpath(piece.name) == page for piece in pieces)


def _size(number: int) -> str:
    return f"{number / 1e6:.1f} MB" if number >= 1e6 else f"{number / 1e3:.0f} kB"
