"""``assay check``: judge recorded conversations."""

# ruff: noqa: PLC0415  each command imports only what it needs: `assay --help` needs none of it

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from assay.cli.ci import LEVELS
from assay.cli.guard_terms import add_drafts, extensions_of, use_drafts
from assay.cli.reports.report_options import add_reports
from assay.cli.serve import add_preview, add_settings

if TYPE_CHECKING:
    from assay.cli.evidence_files import Piece
    from assay.cli.reports.check_findings import CheckedMessage
    from assay.cli.reports.reporting import Reporting
    from assay.core.policy import Policy
    from assay.settings import Settings
    from assay.spec.extensions.official import ExtensionSet

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
    add_reports(parser)
    parser.add_argument(
        "--fail-on",
        choices=LEVELS,
        default="report",
        help="exit with 1 after any finding, or only if a message is refused (default: %(default)s)",
    )
    add_judging(parser)
    parser.set_defaults(run=run)


def add_judging(parser: argparse.ArgumentParser) -> None:
    """Add the options that change how messages are judged."""
    parser.add_argument(
        "--revision",
        metavar="REVISION",
        type=_revision,
        help="for a recording that begins after the handshake: its revision, such as 2025-11-25, or latest",
    )
    parser.add_argument(
        "--literal", action="store_true", help="judge by the official schema without corrections of its known errors"
    )
    add_drafts(parser)
    parser.add_argument("--policy", action="store_true", help="judge by the policy of the settings, as a guard does")
    add_preview(parser)
    add_settings(parser)


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
    return judged_files(args)[0]


def judged_files(args: argparse.Namespace) -> tuple[int, str]:
    """Judge the files and write the reports; return the exit status, and what a report sums up in a sentence."""
    settings = _settings(args)
    use_drafts(args, settings)
    wrong = None if args.revision is None else _no_revision(args.revision)
    if wrong is not None:
        return _refuse(args, "", wrong), ""
    from assay.cli.reports.report_outputs import ReportFileError
    from assay.cli.reports.reporting import Reporting, ReportUsageError

    extensions = extensions_of(settings)
    policy = _policy(settings) if args.policy else None
    try:
        with Reporting(args, settings) as reporting:
            return _judged(args, reporting, settings, policy, extensions), reporting.summary
    except (ReportUsageError, ReportFileError) as error:
        return _refuse(args, "", str(error)), ""


def _judged(
    args: argparse.Namespace,
    reporting: Reporting,
    settings: Settings,
    policy: Policy | None,
    extensions: ExtensionSet,
) -> int:
    """Judge all files and complete the reports; return the exit status."""
    pieces, passed_over = _pieces(args.files)
    worst = 2 if passed_over else 0
    for line in passed_over:
        reporting.pass_over()
        _refuse(args, "", line)
    for index, piece in enumerate(pieces):
        _progress(args, index, len(pieces), piece.name)
        worst = max(worst, _check(args, piece, reporting, settings, policy, extensions))
    stale = reporting.stale()
    for entry in stale:
        _say(f"assay {args.chosen}: {args.baseline}: no longer found: {entry}")
    worst = max(worst, 1 if stale and args.fail_on_stale else 0)
    wrong = reporting.write_known()
    for line in [*([wrong] if wrong else []), *reporting.close(2 if wrong else worst, passed_over)]:
        worst = _refuse(args, "", line)
    return worst


def _pieces(names: list[str]) -> tuple[list[Piece], list[str]]:
    """Return everything to judge, and why other names have nothing to judge."""
    from assay.cli.evidence_files import found

    pieces, passed_over = [], []
    for name in names:
        each = found(name)
        pieces += each.pieces
        passed_over += each.passed_over
        if not each.pieces and not each.passed_over:
            passed_over.append(f"no recordings (*.jsonl) in {name}")
    return pieces, passed_over


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
    args: argparse.Namespace,
    piece: Piece,
    reporting: Reporting,
    settings: Settings,
    policy: Policy | None,
    extensions: ExtensionSet,
) -> int:
    """Judge one file and report findings as they come, so that memory stays bounded; return the exit status."""
    from assay.cli.evidence import opened
    from assay.records.transcript import TranscriptError

    name, failed, judged = piece.name, False, False
    reporting.begin(name)
    try:
        with opened(args, piece, settings, policy, extensions) as evidence:
            for each in evidence.judged():
                judged = True
                message = reporting.add(each)
                failed = failed or _fails(args.fail_on, message)
    except (OSError, TranscriptError) as error:
        reason = (error.strerror or "cannot be read") if isinstance(error, OSError) else str(error.args[0])
        reporting.end(error=reason)
        return _refuse(args, name, reason)
    remarks = list(evidence.remarks())
    for line in remarks:
        _say(f"assay {args.chosen}: {name}: {line}")
    if not judged:
        # A build whose recorder failed must not pass.
        reason = f"nothing to judge{evidence.remedy()}"
        reporting.end(remarks=remarks, error=reason)
        return _refuse(args, name, reason)
    reporting.end(evidence.revision, remarks, is_partial=evidence.is_partial)
    # A missing or unjudged message could have failed the build.
    return 1 if failed else 2 if evidence.is_partial and args.fail_on != "never" else 0


def _refuse(args: argparse.Namespace, name: str, reason: str | None) -> int:
    """Print why a file cannot be judged, after its *name* if there is one; return the exit status."""
    sys.stdout.flush()
    _say(f"assay {args.chosen}: {name and f'{name}: '}{reason}")
    return 2


def _fails(level: str, message: CheckedMessage) -> bool:
    """Whether a message makes the check fail at this *level*. What the baseline has does not."""
    from assay.cli.reports.check_findings import counts

    return any(counts(level, each) for each in message.findings)


def _progress(args: argparse.Namespace, index: int, total: int, name: str) -> None:
    """Show which file is being read, if there are several and stderr is a terminal."""
    if total > 1 and sys.stderr.isatty():
        text = f"assay {args.chosen}: {index + 1} of {total}: {_plain(name[-60:])}"
        print(f"\r\x1b[K{text}\r", end="", file=sys.stderr, flush=True)


def _plain(name: str) -> str:
    """Return a file name without control characters, which a terminal would act on."""
    from assay.base.printable import plain

    return plain(os.fsencode(name).decode(errors="replace"))
