"""``assay check``: judge recorded conversations."""

# ruff: noqa: PLC0415  each command imports only what it needs: `assay --help` needs none of it

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from assay.cli.ci import LEVELS
from assay.cli.serve import add_preview, add_settings

if TYPE_CHECKING:
    from assay.base.verdict import Verdict
    from assay.cli.evidence_files import Piece
    from assay.core.policy import Policy
    from assay.records.transcript import Judged
    from assay.settings import Settings

_EPILOG = """\
A recording has one JSON object a line: {"dir": "c2s" or "s2c", "msg": "the line as it was seen"}.
`assay guard --record FILE` writes one. A journal must have payloads: --set journal.payloads=true. Logs and exports of
other programs are recognized, also compressed with gzip or zstd.

Exit status: 0 no finding counts by --fail-on; 1 a finding counts; 2 a file could not be read or has no messages, or
there are no findings but some messages were not judged or are missing at the end.
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
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        help="a recording, a journal or a log of another program, or a directory of them; - for standard input",
    )
    add_source(parser)
    parser.add_argument("--all", action="store_true", help="show every finding; by default, equal ones are shown once")
    parser.add_argument("--messages", action="store_true", help="show every message, not only those with findings")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: %(default)s")
    parser.add_argument(
        "--fail-on",
        choices=LEVELS,
        default="report",
        help="exit with 1 after any finding, or only if a message is refused (default: %(default)s)",
    )
    parser.add_argument(
        "--revision",
        metavar="REVISION",
        type=_revision,
        help="for a recording that begins after the handshake: its revision, such as 2025-11-25, or latest",
    )
    parser.add_argument(
        "--literal", action="store_true", help="judge by the official schema without corrections of its known errors"
    )
    parser.add_argument("--policy", action="store_true", help="judge by the policy of the settings, as a guard does")
    add_preview(parser)
    add_settings(parser)
    parser.set_defaults(run=run)


def add_source(parser: argparse.ArgumentParser) -> None:
    """Add the options for recordings of other programs."""
    from assay.records.importers.source_formats import FORMATS

    names = [each.name for each in FORMATS]
    parser.add_argument(
        "--from",
        dest="source",
        metavar="FORMAT",
        choices=names,
        help=f"the format of the files, if it is not recognized: {', '.join(names)}",
    )
    parser.add_argument(
        "--map",
        dest="fields",
        metavar="NAMES",
        type=_fields,
        help="the members of a line with the message and the direction: dir=direction,msg=payload,c2s=fromClient",
    )
    parser.add_argument(
        "--party", choices=("client", "server"), help="the sender of all messages, if a file has only one side"
    )


def _fields(text: str) -> dict[str, str]:
    from assay.records.importers.mapped import parsed

    try:
        return parsed(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _revision(name: str) -> str:
    from assay.spec.revisions import named

    return named(name)


def run(args: argparse.Namespace) -> int:
    """Judge the files; return the exit status."""
    wrong = None if args.revision is None else _no_revision(args.revision)
    if wrong is not None:
        print(f"assay check: {wrong}", file=sys.stderr)
        return 2
    settings = _settings(args)
    policy = _policy(settings) if args.policy else None
    pieces, worst = _pieces(args.files)
    for index, piece in enumerate(pieces):
        _progress(index, len(pieces), piece.name)
        report = (_CheckJson if args.format == "json" else _TextReport)(args, piece.name, is_first=not index)
        worst = max(worst, _check(args, piece, report, settings, policy))
    return worst


def _pieces(names: list[str]) -> tuple[list[Piece], int]:
    """Return everything to judge, and exit status 2 if a name has nothing to judge."""
    from assay.cli.evidence_files import found

    pieces, status = [], 0
    for name in names:
        each = found(name)
        pieces += each.pieces
        for line in each.passed_over:
            status = _refuse("", line)
        if not each.pieces and not each.passed_over:
            status = _refuse("", f"no recordings (*.jsonl) in {name}")
    return pieces, status


def _no_revision(name: str) -> str | None:
    """Return an error if *name* is not a revision; None if it is one."""
    from assay.spec.revisions import position

    try:
        position(name)
    except ValueError as error:
        return str(error)
    return None


def _settings(args: argparse.Namespace) -> Settings:
    from assay.cli.guard_terms import signed
    from assay.settings import load

    return load(os.environ, os.curdir, file=args.config, flags=args.set, log=signed(_say))


def _policy(settings: Settings) -> Policy | None:
    """The policy of the settings, as of today."""
    from assay.cli.guard_terms import policy_of

    return policy_of(settings, _say)


def _say(line: str) -> None:
    from assay.base.printable import plain

    print(plain(line), file=sys.stderr)


def _check(
    args: argparse.Namespace, piece: Piece, report: _TextReport | _CheckJson, settings: Settings, policy: Policy | None
) -> int:
    """Judge one file and print findings as they come, so that memory stays bounded; return the exit status."""
    from assay.cli.evidence import opened
    from assay.records.transcript import TranscriptError

    name, failed, judged = piece.name, False, False
    try:
        with opened(args, piece, settings, policy) as evidence:
            for each in evidence.judged():
                judged = True
                report.add(each)
                failed = failed or _fails(args.fail_on, each.verdict)
    except (OSError, TranscriptError) as error:
        report.stop()
        return _refuse(name, error.strerror if isinstance(error, OSError) else error.args[0])
    for line in evidence.remarks():
        _say(f"assay check: {name}: {line}")
    if not judged:
        # A build whose recorder failed must not pass.
        return _refuse(name, f"nothing to judge{evidence.remedy()}")
    report.end(evidence.revision)
    # A missing or unjudged message could have failed the build.
    return 1 if failed else 2 if evidence.is_partial and args.fail_on != "never" else 0


def _refuse(name: str, reason: str | None) -> int:
    """Print why a file cannot be judged, after its *name* if there is one; return the exit status."""
    sys.stdout.flush()
    _say(f"assay check: {name and f'{name}: '}{reason}")
    return 2


def _fails(level: str, verdict: Verdict) -> bool:
    """Whether a message makes the check fail at this *level*."""
    from assay.cli.terminal.verdicts import outcome

    stopped = outcome(verdict) in {"refused", "aside"}
    return level != "never" and (stopped or (level == "report" and bool(verdict.violations)))


def _progress(index: int, total: int, name: str) -> None:
    """Show which file is being read, if there are several and stderr is a terminal."""
    if total > 1 and sys.stderr.isatty():
        text = f"assay check: {index + 1} of {total}: {_plain(name[-60:])}"
        print(f"\r\x1b[K{text}\r", end="", file=sys.stderr, flush=True)


def _plain(name: str) -> str:
    """Return a file name without control characters, which a terminal would act on."""
    from assay.base.printable import plain

    return plain(os.fsencode(name).decode(errors="replace"))


class _TextReport:
    """Findings for people."""

    def __init__(self, args: argparse.Namespace, name: str, *, is_first: bool) -> None:
        from assay.cli.terminal.groups import Groups
        from assay.cli.terminal.style import Style
        from assay.cli.terminal.verdicts import Summary

        self._messages = args.messages
        self._all = args.all or args.messages
        self._name = name
        self._first = is_first
        self._style = Style(sys.stdout)
        self._summary = Summary()
        self._groups = Groups(self._style)

    def add(self, judged: Judged) -> None:
        from assay.cli.terminal.verdicts import lines

        if not self._summary.messages:
            print(("" if self._first else "\n") + self._style.paint(_plain(self._name), "bold"))
        self._summary.add(judged.verdict)
        if not self._all:
            self._groups.add(judged)
        elif self._messages or judged.verdict.violations:
            print("\n".join(lines(judged, self._style)))

    def stop(self) -> None:
        """Print the findings so far."""
        for line in self._groups.lines():
            print(line)

    def end(self, revision: str | None) -> None:
        """Print the findings and the counts."""
        self.stop()
        print("\n".join(self._summary.lines(revision, self._style)))


class _CheckJson:
    """Findings for programs: one JSON object a line."""

    def __init__(self, args: argparse.Namespace, name: str, *, is_first: bool) -> None:
        del is_first
        self._all = args.messages
        self._name = name

    def add(self, judged: Judged) -> None:
        import orjson

        from assay.cli.terminal.verdicts import outcome
        from assay.core.render import as_json
        from assay.edges.standard_streams import write_utf8

        verdict = judged.verdict
        if not self._all and not verdict.violations:
            return
        record: dict[str, Any] = {
            "file": self._name,
            "line": judged.line,
            "party": verdict.party,
            "kind": verdict.kind,
            "method": verdict.method,
            "tool": verdict.tool,
            "revision": verdict.revision,
            "outcome": outcome(verdict),
            "violations": [as_json(each) for each in verdict.violations],
            "more": verdict.more,
        }
        if judged.server:
            record["server"] = judged.server
        if judged.lacks:
            record["lacks"] = judged.lacks
        if judged.conversation:
            record["conversation"] = judged.conversation
        if verdict.quarantined:
            record["quarantined"] = [each._asdict() for each in verdict.quarantined]
        write_utf8(orjson.dumps(record).decode() + "\n")

    def stop(self) -> None:
        """Do nothing: every finding is already printed."""

    def end(self, revision: str | None) -> None:
        """Do nothing: there is no summary in JSON."""
