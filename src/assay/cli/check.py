"""``assay check``: judge recorded conversations."""

# ruff: noqa: PLC0415  each command imports only what it needs: `assay --help` needs none of it

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.transcript import Judged

_EPILOG = """\
A recording has one JSON object a line: {"dir": "c2s" or "s2c", "msg": "the line as it was seen"}.
Exit status: 0 nothing found, 1 something found, 2 a file could not be read.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``check``."""
    parser = subparsers.add_parser(
        "check",
        help="judge recorded conversations",
        description="Judge every message of recorded conversations, and show what is wrong, where and by which rule.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", metavar="FILE", nargs="+", help="a recording; - for standard input")
    parser.add_argument("--messages", action="store_true", help="show every message, not only those with findings")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: %(default)s")
    parser.add_argument(
        "--fail-on",
        choices=("report", "refuse"),
        default="report",
        help="what makes the exit status 1: any finding, or only one that refuses a message (default: %(default)s)",
    )
    parser.add_argument("--revision", metavar="REVISION", help="the recording begins after the handshake, in REVISION")
    parser.add_argument(
        "--literal", action="store_true", help="the official schema to the letter, with its known slips"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Judge the files; the exit status."""
    from assay.transcript import TranscriptError

    show = _show_json if args.format == "json" else _show_text
    worst = 0
    for index, name in enumerate(args.files):
        _progress(index, len(args.files), name)
        try:
            found = _judged(args, name)
        except (OSError, TranscriptError, KeyError) as error:
            reason = error.strerror if isinstance(error, OSError) else error.args[0]
            print(f"assay check: {name}: {reason}", file=sys.stderr)
            worst = 2
            continue
        show(args, name, found)
        if any(_counts(args, each) for each in found):
            worst = max(worst, 1)
    return worst


def _judged(args: argparse.Namespace, name: str) -> list[Judged]:
    from assay.conversation import Conversation
    from assay.transcript import judge

    conversation = Conversation(mode="audit", revision=args.revision, errata=not args.literal)
    with _opened(name) as file:
        return list(judge(file, conversation))


def _opened(name: str) -> BinaryIO:
    return open(name, "rb") if name != "-" else open(sys.stdin.fileno(), "rb", closefd=False)


def _counts(args: argparse.Namespace, judged: Judged) -> bool:
    return not judged.verdict.accepted or (args.fail_on == "report" and bool(judged.verdict.violations))


def _progress(index: int, total: int, name: str) -> None:
    """Tells a person which file is being read, if there are several and somebody is looking."""
    if total > 1 and sys.stderr.isatty():
        print(f"\r\x1b[Kassay check: {index + 1} of {total}: {name[-60:]}", end="", file=sys.stderr, flush=True)
        if index + 1 == total:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _show_text(args: argparse.Namespace, name: str, found: list[Judged]) -> None:
    from assay.console.style import Style
    from assay.console.verdicts import lines, summary

    style = Style(sys.stdout)
    revision = next((each.verdict.revision for each in reversed(found) if each.verdict.revision), None)
    print(style.paint(f"{name}" + (f" · MCP {revision}" if revision else ""), "bold"))
    for each in found:
        if args.messages or each.verdict.violations:
            print("\n".join(lines(each, style)))
    print("\n".join(summary((each.verdict for each in found), style)))
    print()


def _show_json(args: argparse.Namespace, name: str, found: list[Judged]) -> None:
    for record in _records(args, name, found):
        sys.stdout.write(record + "\n")


def _records(args: argparse.Namespace, name: str, found: list[Judged]) -> Iterator[str]:
    import orjson

    from assay.console.verdicts import outcome
    from assay.render import as_json

    for line, verdict in found:
        if args.messages or verdict.violations:
            record = {
                "file": name,
                "line": line,
                "party": verdict.party,
                "kind": verdict.kind,
                "method": verdict.method,
                "tool": verdict.tool,
                "revision": verdict.revision,
                "outcome": outcome(verdict),
                "violations": [as_json(each) for each in verdict.violations],
                "more": verdict.more,
            }
            yield orjson.dumps(record).decode()
