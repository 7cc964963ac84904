"""``assay check``: judge recorded conversations."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial
from threading import current_thread, main_thread
from typing import Final

from assay.base.held_signals import signals_held
from assay.cli.checking.evidence import ChangedVerdict, CheckTerms, FileEnd, StreamItem, results_of
from assay.cli.checking.files import CheckedFile, ClusterError, Piece, checked_files, found
from assay.cli.guard_plan import LEVELS, policy_of, signed
from assay.cli.journal_choice import Directories, chosen
from assay.cli.options import add_settings
from assay.cli.program import say
from assay.cli.reports.options import add_reports
from assay.cli.reports.outputs import ReportFileError
from assay.cli.reports.reporting import Reporting, ReportUsageError
from assay.cli.reports.result import RunResult, counts_by
from assay.cli.reports.streams import comparison_problem
from assay.cli.slow_answers import SlowAnswers, add_max_ms
from assay.cli.terminal.progress_bar import ProgressBar
from assay.core.topics.unjudged import NOT_JUDGED
from assay.records.importers.importer_table import IMPORTERS
from assay.records.importers.message_lines import mapping_of
from assay.records.judged_records import JudgedRecord
from assay.records.lines import is_url
from assay.settings import Settings, load
from assay.spec.revisions import named, position

_EPILOG = """\
A recording has one JSON object per line: {"dir": "c2s" or "s2c", "msg": "the line as it was seen"}.
`assay guard --record FILE` writes one. A journal must have payloads: --set journal.payloads=true. Logs and exports of
other programs are recognized, even if compressed with gzip or zstd.

Exit status: 0 no finding counts by --fail-on; 1 a finding counts; 2 a file could not be read or has no messages, or
there are no findings but some messages were not judged or are missing at the end. With --compare: 0 all verdicts are
the same, 1 a verdict differs, 2 a file could not be read or has nothing to compare.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``check``."""
    parser = subparsers.add_parser(
        "check",
        description="Judge every message of recorded conversations; report faults with their place and rule.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        help="recording, journal, log of another program, directory or URL; - for stdin",
    )
    add_source(parser)
    parser.add_argument("--all", action="store_true", help="show every finding, even if it repeats")
    parser.add_argument("--messages", action="store_true", help="show all messages, not only those with findings")
    add_reports(parser)
    parser.add_argument(
        "--fail-on",
        choices=LEVELS,
        default="report",
        help="exit with 1 after any finding, or only if a message is refused (default: %(default)s)",
    )
    parser.add_argument(
        "--compare",
        action="store_true",
        help="compare verdicts with those in a journal; exit with 1 if one differs",
    )
    add_max_ms(parser)
    add_scale(parser)
    add_judging(parser)
    parser.set_defaults(run=run)


def add_scale(parser: argparse.ArgumentParser) -> None:
    """Add the options for large inputs."""
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=_jobs,
        help="processes for several large files (default: one per CPU)",
    )
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="judge on the Dask cluster with this scheduler, such as tcp://host:8786",
    )


def add_judging(parser: argparse.ArgumentParser) -> None:
    """Add the options that change how messages are judged."""
    parser.add_argument(
        "--revision",
        metavar="REVISION",
        type=_revision,
        help="revision of a recording without its handshake, such as 2025-11-25, or latest",
    )
    parser.add_argument(
        "--literal", action="store_true", help="judge by the official schema without correcting its known errors"
    )
    parser.add_argument("--policy", action="store_true", help="apply the policy in the settings, as a guard does")
    add_settings(parser)


def add_source(parser: argparse.ArgumentParser) -> None:
    """Add the options for recordings of other programs."""
    names = [each.name for each in IMPORTERS]
    parser.add_argument(
        "--from",
        dest="source",
        metavar="FORMAT",
        choices=names,
        help=f"format of the files, if not recognized: {', '.join(names)}",
    )
    parser.add_argument(
        "--map",
        dest="fields",
        metavar="NAMES",
        type=_fields,
        help="names of the members with message and direction: dir=direction,msg=payload,c2s=fromClient",
    )
    parser.add_argument(
        "--party", choices=("client", "server"), help="sender of all messages, if a file has only one side"
    )


def _fields(text: str) -> dict[str, str]:
    try:
        return mapping_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _jobs(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a number of processes, at least 1, found {text!r}")
    return number


def _revision(name: str) -> str:
    return named(name)


def run(args: argparse.Namespace) -> int:
    """Judge the files; return the exit status."""
    return judged(args).status


def judged(args: argparse.Namespace, settings: Settings | None = None, pieces: list[Piece] | None = None) -> RunResult:
    """
    Judge the files of the command line, or *pieces*, and write all reports.

    Of a run that could not begin, the result has only the exit status.
    """
    if settings is None:
        settings = load(os.environ, os.curdir, file=args.config, flags=args.set, log=signed(say))
    pieces, passed_over = _pieces(args.files) if pieces is None else (pieces, [])
    try:
        wrong = None if args.revision is None else _no_revision(args.revision)
        if wrong is not None:
            raise ReportUsageError(wrong)
        with _ended_by_signals(), ExitStack() as stack:
            # A signal would leave a file behind that is just created.
            with signals_held("SIGINT", "SIGTERM", "SIGHUP"):
                reporting = stack.enter_context(Reporting(args, has_several=len(pieces) + len(passed_over) > 1))
            files = checked_files(pieces, _resolver(args), is_absolute=bool(args.cluster))
            terms = _terms(args, settings, reporting, files)
            status = _judged(args, reporting, terms, files, passed_over)
            return replace(reporting.result, status=status)
    except (ReportUsageError, ReportFileError, ClusterError) as error:
        return RunResult(status=_refuse(args, "", str(error)))


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end a run as Ctrl-C does: no process and no incomplete report is left behind."""

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    names = (getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP"))
    # A signal that is ignored, as under nohup, stays so. Only the main thread can have handlers.
    taken = [
        each
        for each in names
        if each is not None and current_thread() is main_thread() and signal.getsignal(each) is signal.SIG_DFL
    ]
    for each in taken:
        signal.signal(each, end)
    try:
        yield
    finally:
        for each in taken:
            signal.signal(each, signal.SIG_DFL)


def _terms(args: argparse.Namespace, settings: Settings, reporting: Reporting, files: list[CheckedFile]) -> CheckTerms:
    # `assay report` judges as this command does, and has no --max-ms: its page has all times.
    max_ms: int | None = getattr(args, "max_ms", None)
    slow = () if max_ms is None else (partial(SlowAnswers, max_ms),)
    return CheckTerms(
        settings,
        policy_of(settings, say) if args.policy else None,
        args.revision,
        args.literal,
        args.source,
        args.fields,
        args.party,
        args.compare,
        args.messages,
        (*reporting.digests, *slow),
        tuple((each.path, each.is_run) for each in files if each.error is None),
    )


def _judged(
    args: argparse.Namespace,
    reporting: Reporting,
    terms: CheckTerms,
    files: list[CheckedFile],
    passed_over: Sequence[str],
) -> int:
    """Judge all files and complete the reports; return the exit status."""
    worst = 2 if passed_over else 0
    for line in passed_over:
        reporting.pass_over(line)
        _refuse(args, "", line)
    with closing(_results(args, terms, files)) as results:
        for file, items in results:
            worst = max(worst, _check(args, file, items, reporting))
    stale = reporting.stale()
    for entry in stale:
        say(f"{args.baseline}: no longer found: {entry.key}", args.chosen)
    worst = max(worst, 1 if stale and args.fail_on_stale else 0)
    wrong = reporting.write_known()
    for line in [*([wrong] if wrong else []), *reporting.close(2 if wrong else worst)]:
        worst = _refuse(args, "", line)
    return worst


SMALL_INPUT: Final = 32 << 20
"""Bytes of all files up to which one process judges them: it takes less than a second."""


def _results(
    args: argparse.Namespace, terms: CheckTerms, files: list[CheckedFile]
) -> Generator[tuple[CheckedFile, Iterator[StreamItem]]]:
    """Yield the findings of each file, from this process or from several."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    jobs, size = args.jobs or cpus, sum(each.size for each in files)
    # It takes longer to start a process than to judge a small input.
    is_for_many = min(jobs, sum(each.error is None for each in files)) > 1 and size >= SMALL_INPUT
    with ProgressBar(f"assay {args.chosen}", size) as bar:
        if args.cluster or is_for_many:
            # 60 ms of modules for processes, which a small input does without.
            from assay.cli.checking.parallel import results_elsewhere  # noqa: PLC0415

            results = results_elsewhere(terms, files, bar.tick, jobs, args.cluster)
        else:
            results = (results_of(terms, each, bar.tick) for each in files)
        with closing(results):
            yield from zip(files, results, strict=True)


def _pieces(names: list[str]) -> tuple[list[Piece], list[str]]:
    """Return everything to judge, and why other names have nothing to judge."""
    pieces, passed_over = [], []
    for name in names:
        each = found(name)
        pieces += each.pieces
        passed_over += each.passed_over
        if not each.pieces and not each.passed_over:
            passed_over.append(f"no recordings (*.jsonl) in {name}")
    return pieces, passed_over


def _resolver(args: argparse.Namespace) -> Callable[[str], tuple[str, bool]]:
    """Return what finds the file of a name, or the run with this id. It raises `OSError`."""

    def resolve(name: str) -> tuple[str, bool]:
        if name == "-" or os.path.isfile(name) or is_url(name):
            return name, False

        # The settings are already loaded and their warnings printed.
        return chosen(name, Directories(args, lambda _: None))

    return resolve


def _no_revision(name: str) -> str | None:
    """Return an error if *name* is not a revision; None if it is one."""
    try:
        position(name)
    except ValueError as error:
        return str(error)
    return None


def _check(args: argparse.Namespace, file: CheckedFile, items: Iterator[StreamItem], reporting: Reporting) -> int:
    """Report the findings of one file as they come, so that memory stays bounded; return the exit status."""
    end, failed, unjudged = FileEnd(), False, 0
    reporting.begin(file.name)
    for item in items:
        if isinstance(item, JudgedRecord):
            message = reporting.add(item)
            for number, each in enumerate(message.findings):
                is_known = number in message.known
                failed = failed or counts_by(args.fail_on, each, is_known=is_known)
                unjudged += each.rule == NOT_JUDGED and not is_known
        elif isinstance(item, FileEnd):
            end = item
        elif isinstance(item, ChangedVerdict):
            reporting.differ(item)
        else:
            reporting.meet(item)
    if unjudged:
        calls = "1 call" if unjudged == 1 else f"{unjudged:,} calls"
        end.remarks.append(f"{calls} not judged by a contract: no list of tools has the tool")
    if end.error is not None:
        end.remarks = []
    slow = end.digests[-1] if end.digests else None
    lines = [*(() if args.compare else end.remarks), *(slow.lines() if isinstance(slow, SlowAnswers) else ())]
    for line in lines:
        say(f"{file.name}: {line}", args.chosen)
    if end.error is None:
        end.error = _lack(args, end)
    reporting.end(end)
    if end.error is not None:
        return _refuse(args, file.name, end.error)
    if args.compare:
        return 1 if end.compared["different"] else 0
    # A missing or unjudged message could have failed the build.
    is_partial = end.is_partial or bool(unjudged)
    return 1 if failed else 2 if is_partial and args.fail_on != "never" else 0


def _lack(args: argparse.Namespace, end: FileEnd) -> str | None:
    """Return why a file that was read to its end has nothing to judge or to compare; None if it has."""
    if args.compare:
        return comparison_problem(end.compared)
    # A build whose recorder failed must not pass.
    return None if end.is_judged else f"nothing to judge{end.remedy}"


def _refuse(args: argparse.Namespace, name: str, reason: str | None) -> int:
    """Print why a file cannot be judged, after its *name* if there is one; return the exit status."""
    sys.stdout.flush()
    say(f"{name and f'{name}: '}{reason}", args.chosen)
    return 2
