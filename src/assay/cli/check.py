"""``assay check``, ``report`` and ``replay``: judge recorded conversations."""

from __future__ import annotations

import argparse
import json
import os
import signal
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from threading import current_thread, main_thread
from typing import Any, Final

from assay.cli.checking.evidence import CheckTerms, StreamItem, results_of
from assay.cli.checking.files import CheckedFile, FoundFiles, checked_file
from assay.cli.guard_plan import policy_of, signed
from assay.cli.journal_choice import Directories, chosen, why_not
from assay.cli.options import add_fail_on, add_settings
from assay.cli.program import say, speaker
from assay.cli.reports.formats import FORMATS
from assay.cli.reports.reporting import Reporting
from assay.cli.reports.result import RunResult
from assay.cli.slow_answers import SlowAnswers, add_max_ms
from assay.cli.terminal.progress_bar import ProgressBar
from assay.edges.standard_streams import write_utf8
from assay.edges.threads import signals_held
from assay.model.errors import UsageError
from assay.records.importers.importer_table import IMPORTERS
from assay.records.importers.message_lines import mapping_of
from assay.settings import Settings, load
from assay.spec.revisions import LATEST, named, position
from assay.spec.schema import suggestion

_CHECK = """\
A recording has one JSON object a line: {"dir": "c2s" or "s2c", "msg": "the line as it was seen"}.
`assay guard --record FILE` writes one. A journal must have payloads: --set journal.payloads=true. Logs and exports of
other programs are recognized, even if compressed with gzip or zstd.

Exit status: 0 no finding counts by --fail-on; 1 a finding counts; 2 a file could not be read or has no messages, or
there are no findings but some messages were not judged or are missing at the end. With --compare: 0 all verdicts are
the same, 1 a verdict differs, 2 a file could not be read or has nothing to compare.
"""

_REPORT = """\
The page is self-contained: it loads nothing from the network. Secrets are masked.

Exit status: 0 the page was written; 1 a finding counts by --fail-on; 2 a file could not be read, or the page could not
be written.
"""

_REPLAY = """\
The journal needs payloads: assay guard --set journal.payloads=true -- COMMAND. Redacted messages are judged,
but their verdicts are not compared. assay check --compare does the same for any number of files.

Exit status: 0 all verdicts are the same, 1 a verdict differs, 2 the file could not be read or has nothing to replay.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``check``, ``report`` and ``replay``."""
    check = subparsers.add_parser(
        "check",
        description="Judge every message of recorded conversations; report faults with their place and rule.",
        epilog=_CHECK,
    )
    _add_check(check)
    report = subparsers.add_parser(
        "report",
        description=(
            "Judge recorded conversations, and write one HTML page: findings with their messages, timelines, "
            "response times, sizes and tools."
        ),
        epilog=_REPORT,
    )
    # What the other commands have no options for is as check has it by default.
    defaults = vars(check.parse_args(["-"]))
    report.set_defaults(**defaults)
    _add_report(report)
    replay = subparsers.add_parser(
        "replay",
        description="Judge the messages of a journal again, in order, and compare the verdicts.",
        epilog=_REPLAY,
    )
    replay.set_defaults(**{**defaults, "compare": True})
    replay.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        help="journal with payloads, id of a run, directory (its newest run), or - for stdin;"
        " default: as for assay journal show",
    )
    add_settings(replay)
    replay.set_defaults(run=run_replay)


def _add_check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        help="recording, journal, log of another program, directory or URL; - for stdin",
    )
    add_source(parser)
    parser.add_argument("--all", action="store_true", help="show every finding, even if it repeats")
    parser.add_argument("--messages", action="store_true", help="show all messages, not only those with findings")
    _add_formats(parser)
    add_fail_on(parser, "report", "1 after any finding, or only if a message is refused")
    parser.add_argument(
        "--compare",
        action="store_true",
        help="compare verdicts with those in a journal; exit with 1 if one differs",
    )
    add_max_ms(parser)
    _add_judging(parser)
    parser.set_defaults(run=run)


def _add_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+", help="as for assay check; - for standard input")
    parser.add_argument(
        "-o",
        "--output",
        dest="page",
        metavar="FILE",
        default="assay-report.html",
        help="page to write; - for stdout (default: %(default)s)",
    )
    add_source(parser)
    add_fail_on(parser, "never", "1 after any finding, or only if a message is refused")
    parser.add_argument("--baseline", metavar="FILE", help="findings in FILE are known, and do not count by --fail-on")
    parser.add_argument("--docs-url", metavar="URL", help="the address of Assay's docs directory, for links to rules")
    _add_judging(parser)
    parser.set_defaults(run=run_report)


def _add_formats(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format",
        metavar="FORMAT",
        choices=FORMATS,
        default="text",
        help=f"format on stdout: {', '.join(FORMATS)}",
    )
    parser.add_argument(
        "--output",
        metavar="FORMAT=FILE",
        action="append",
        type=_output,
        default=[],
        help="also write a report to FILE; repeatable",
    )
    parser.add_argument("--baseline", metavar="FILE", help="findings in FILE are known, and do not count by --fail-on")
    parser.add_argument("--write-baseline", metavar="FILE", help="write all findings to FILE, as known ones")
    parser.add_argument("--fail-on-stale", action="store_true", help="exit with 1 if a finding of the baseline is gone")
    parser.add_argument("--docs-url", metavar="URL", help="the address of Assay's docs directory, for links to rules")
    parser.add_argument(
        "--schema", action=_PrintSchema, nargs=0, help="print the JSON Schema of --format json, and exit"
    )


class _PrintSchema(argparse.Action):
    """Prints the schema and exits, as `--help` does: no FILE is needed."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Print the schema."""
        from assay.cli.reports.documents import SCHEMA  # noqa: PLC0415 - as other documents, where it is asked for

        write_utf8(json.dumps(SCHEMA, indent=2) + "\n")
        parser.exit()


def _output(given: str) -> tuple[str, str]:
    """Return the format and the path of FORMAT=FILE."""
    name, _, path = given.partition("=")
    if not path:
        raise argparse.ArgumentTypeError("expected FORMAT=FILE, such as sarif=assay.sarif")
    if name not in FORMATS:
        remedy = suggestion(name, FORMATS) or f"; there are {', '.join(FORMATS)}"
        raise argparse.ArgumentTypeError(f"unknown format {name!r}{remedy}")
    if path == "-":
        raise argparse.ArgumentTypeError(f"give a file; --format {name} writes to standard output")
    return name, path


def _add_judging(parser: argparse.ArgumentParser) -> None:
    """Add the options for large inputs, and those that change how messages are judged."""
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
    parser.add_argument(
        "--revision",
        metavar="REVISION",
        type=named,
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


def run(args: argparse.Namespace) -> int:
    """Judge the files; return the exit status."""
    return _judged(args, _found(args.files), _settings(args)).status


def run_report(args: argparse.Namespace) -> int:
    """Write the page; return the exit status."""
    is_printed = args.page == "-"
    args.format = "html" if is_printed else None
    args.output = [] if is_printed else [("html", args.page)]
    found = _found(args.files)
    if not is_printed and os.path.isfile(args.page):
        page = os.path.realpath(args.page)
        if any(os.path.realpath(each.name) == page for each in found.chosen):
            raise UsageError(f"{args.page}: the page would replace a recording")
    result = _judged(args, found, _settings(args))
    if not result.is_judged:
        # The reasons are printed already, and a page from before stays.
        return result.status
    # 30 ms of modules, which a run that cannot begin does without.
    from assay.cli.reports.page import verdict  # noqa: PLC0415

    size = "" if is_printed else f" ({_size(os.stat(args.page).st_size)})"
    say(f"{'standard output' if is_printed else args.page}{size}: {verdict(result)['sentence']}", "report")
    return result.status


def _size(number: int) -> str:
    return f"{number / 1e6:.1f} MB" if number >= 1e6 else f"{number / 1e3:.0f} kB"


def run_replay(args: argparse.Namespace) -> int:
    """Judge one journal again; return the exit status."""
    settings = load(os.environ, os.curdir, file=args.config, flags=args.set, log=speaker("replay"))
    try:
        journal = chosen(args.file, Directories(settings.journal))
    except OSError as error:
        raise UsageError(why_not(error)) from None
    if args.file is None:
        say(f"replaying {journal.name}", "replay")
    args.files = [journal.name]
    found = FoundFiles()
    found.chosen.append(journal)
    return _judged(args, found, settings).status


def _found(names: list[str]) -> FoundFiles:
    found = FoundFiles()
    for name in names:
        found.add(name, f"no recordings (*.jsonl) in {name}")
    return found


def _settings(args: argparse.Namespace) -> Settings:
    return load(os.environ, os.curdir, file=args.config, flags=args.set, log=signed(say))


def _judged(args: argparse.Namespace, found: FoundFiles, settings: Settings) -> RunResult:
    """Judge files, and write all reports. Raises `UsageError`, also if a report cannot be written."""
    try:
        position(args.revision or LATEST)
    except ValueError as error:
        raise UsageError(str(error)) from None
    with _ended_by_signals(), ExitStack() as stack:
        # A signal would leave a file behind that is just created.
        with signals_held("SIGINT", "SIGTERM", "SIGHUP"):
            reporting = Reporting(args, stack, has_several=len(found) > 1)
        directories = Directories(settings.journal)
        files = [checked_file(each, directories, is_absolute=bool(args.cluster)) for each in found.chosen]
        slow = () if args.max_ms is None else (partial(SlowAnswers, args.max_ms),)
        terms = CheckTerms(
            settings,
            policy=policy_of(settings, say) if args.policy else None,
            revision=args.revision,
            is_literal=args.literal,
            source=args.source,
            fields=args.fields,
            party=args.party,
            is_compared=args.compare,
            with_messages=args.messages,
            digests=(*reporting.digests, *slow),
            evidence=tuple((each.path, each.is_run) for each in files if each.error is None),
        )
        for line in found.passed_over:
            reporting.pass_over(line)
        with closing(_results(args, terms, files)) as results:
            for file, items in results:
                reporting.take(file, items)
        return reporting.finish()


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
