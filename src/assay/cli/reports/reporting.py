"""All reports of one run of `assay check`: they are opened before the first file, and get the same findings."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import partial
from typing import Final

from assay.cli.checking.evidence import ChangedVerdict, FileEnd, StreamItem
from assay.cli.checking.files import CheckedFile
from assay.cli.program import speaker
from assay.cli.reports.baseline import LARGEST, Baseline, BaselineEntry, BaselineError, read_baseline
from assay.cli.reports.formats import digests_of, document_of, stream_of
from assay.cli.reports.outputs import OutputFile, ReportFileError, ReportOutput
from assay.cli.reports.result import ReportOptions, RunResult, counts_by
from assay.cli.reports.streams import StreamReport, comparison_problem
from assay.cli.slow_answers import SlowAnswers
from assay.judge.topics.tools import NOT_JUDGED
from assay.model.errors import UsageError
from assay.model.printable import counted
from assay.records.judged_records import JudgedRecord


class Reporting:
    """The reports, the baseline and the exit status."""

    def __init__(self, args: argparse.Namespace, stack: ExitStack, *, has_several: bool) -> None:
        """
        Open all outputs; *has_several* if there are several files. Raises `UsageError`.

        If *stack* ends with an error, no incomplete file is left behind.
        """
        self._args = args
        self._say = speaker(args.chosen)
        _no_conflicts(args)
        self._baseline = _baseline(args)
        docs_url = args.docs_url or _documentation(args)
        self._options = ReportOptions(args.fail_on, args.all, args.messages, has_several, docs_url)
        self._result = RunResult(self._options)
        self._streams: list[StreamReport] = []
        self._outputs: list[tuple[ReportOutput, str | None]] = []
        """Each output, with the format of the document that is written to it in the end."""
        if args.format is not None:
            self._open("comparison" if args.compare else args.format, ReportOutput(for_people=args.format == "text"))
        for name, path in args.output:
            file = OutputFile(path)
            stack.push(partial(_abandoned, file))
            self._open(name, file)
        self._new_baseline = OutputFile(args.write_baseline) if args.write_baseline else None
        if self._new_baseline is not None:
            stack.push(partial(_abandoned, self._new_baseline))
        self.digests = tuple(each for _, name in self._outputs if name is not None for each in digests_of(name))
        """What makes the digests that reports ask for."""
        self._result.digests = [make() for make in self.digests]

    def _open(self, name: str, output: ReportOutput) -> None:
        stream = stream_of(name, self._options, output.write, output.style)
        self._outputs.append((output, name if stream is None else None))
        self._streams += [] if stream is None else [stream]

    def _refuse(self, reason: str) -> None:
        """Print why something cannot be judged or written."""
        self._result.status = 2
        self._say(reason)

    def pass_over(self, problem: str) -> None:
        """Note that a name on the command line has nothing to judge."""
        self._result.remarks.append(problem)
        self._refuse(problem)

    def take(self, file: CheckedFile, items: Iterator[StreamItem]) -> None:
        """Report the findings of one file as they come, so that memory stays bounded."""
        end, failed, unjudged = FileEnd(), False, 0
        for stream in self._streams:
            stream.begin(file.shown)
        for item in items:
            if isinstance(item, JudgedRecord):
                message = self._baseline.marked(item)
                self._result.add(message)
                for stream in self._streams:
                    stream.add(message)
                for number, each in enumerate(message.findings):
                    is_known = number in message.known
                    failed = failed or counts_by(self._options.fail_on, each, is_known=is_known)
                    unjudged += each.rule == NOT_JUDGED and not is_known
            elif isinstance(item, FileEnd):
                end = item
            elif isinstance(item, ChangedVerdict):
                for stream in self._streams:
                    stream.differ(item)
            else:
                self._result.meet(item.server)
                for stream in self._streams:
                    stream.meet()
        if unjudged:
            end.remarks.append(f"{counted(unjudged, 'call')} not judged by a contract: no list of tools has the tool")
        self._end(file.name, end)
        if end.error is not None:
            self._refuse(f"{file.name}: {end.error}")
        elif self._args.compare:
            self._worsen(1 if end.compared["different"] else 0)
        else:
            # A missing or unjudged message could have failed the build.
            is_partial = (end.is_partial or bool(unjudged)) and self._options.fail_on != "never"
            self._worsen(1 if failed else 2 if is_partial else 0)

    def _end(self, name: str, end: FileEnd) -> None:
        if end.error is not None:
            end.remarks = []
        lines = [] if self._args.compare else [*end.remarks]
        if end.digests and isinstance(end.digests[-1], SlowAnswers):
            lines += end.digests[-1].lines()
        for line in lines:
            self._say(f"{name}: {line}")
        if end.error is None and self._args.compare:
            end.error = comparison_problem(end.compared)
        elif end.error is None and not end.is_judged:
            # A build whose recorder failed must not pass.
            end.error = f"nothing to judge{end.remedy}"
        self._result.end(end)
        for stream in self._streams:
            stream.end(end)

    def _worsen(self, status: int) -> None:
        self._result.status = max(self._result.status, status)

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def finish(self) -> RunResult:
        """Complete all reports and the new baseline; return what the run has found."""
        result, args = self._result, self._args
        stale = self._baseline.stale()
        for entry in stale:
            self._say(f"{args.baseline}: no longer found: {entry.key}")
        if stale and args.fail_on_stale:
            self._worsen(1)
        result.stale = [(each.key, each.count) for each in stale]
        if self._new_baseline is not None:
            self._write_baseline(self._new_baseline)
        for output, document in self._outputs:
            if args.chosen == "report" and not result.is_judged:
                # A page without a message would replace one that is good.
                output.abandon()
                continue
            try:
                if document is not None:
                    output.write(document_of(document)(result))
                output.finish()
            except ReportFileError as error:
                output.abandon()
                self._refuse(str(error))
        return result

    def _write_baseline(self, file: OutputFile) -> None:
        try:
            if self._result.remarks or any(each.error is not None for each in self._result.files):
                raise BaselineError("not all files could be read")
            file.write(self._baseline.text())
            file.finish()
        except ReportFileError as error:
            file.abandon()
            self._refuse(str(error))
        except BaselineError as error:
            file.abandon()
            self._refuse(f"{file.path} is not written: {error}")


def _abandoned(output: ReportOutput, kind: type[BaseException] | None, *_: object) -> None:
    if kind is not None:
        output.abandon()


def _no_conflicts(args: argparse.Namespace) -> None:
    """Refuse files that would replace each other, a recording or the baseline, and an option without its baseline."""
    if args.compare and args.format != "text":
        raise UsageError(f"--compare prints text; --output {args.format}=FILE writes the findings")
    if args.fail_on_stale and not args.baseline:
        raise UsageError("--fail-on-stale needs --baseline FILE")
    written = [path for _, path in args.output] + ([args.write_baseline] if args.write_baseline else [])
    real = [os.path.realpath(path) for path in written]
    read = {os.path.realpath(each) for each in args.files if each != "-"}
    for path, each in zip(written, real, strict=True):
        if each in read:
            raise UsageError(f"{path}: a report would replace the recording")
        if args.baseline and path != args.write_baseline and each == os.path.realpath(args.baseline):
            raise UsageError(f"{path}: a report would replace the baseline")
        if real.count(each) > 1:
            raise UsageError(f"{path}: two outputs have the same file")


def _baseline(args: argparse.Namespace) -> Baseline:
    if args.write_baseline:
        earlier = args.baseline or (args.write_baseline if os.path.isfile(args.write_baseline) else None)
        return Baseline(_read(earlier) if earlier else (), is_new=True)
    return Baseline(_read(args.baseline) if args.baseline else ())


def _read(path: str) -> tuple[BaselineEntry, ...]:
    try:
        with open(path, "rb") as file:
            text = file.read(LARGEST + 1)
        if len(text) > LARGEST:
            raise BaselineError(f"more than {LARGEST >> 20} MiB")
        return read_baseline(text)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except BaselineError as error:
        raise UsageError(f"{path}: {error}") from None


_LINKED: Final = frozenset({"json", "sarif", "github", "markdown", "html"})
"""Formats with links to the documentation."""


def _documentation(args: argparse.Namespace) -> str | None:
    """Return the address of the documentation in the metadata of the package; None if it has none or none is needed."""
    if _LINKED.isdisjoint({args.format, *(name for name, _ in args.output)}):
        return None
    # 18 ms, which only reports with links need.
    from importlib.metadata import PackageNotFoundError, metadata  # noqa: PLC0415

    with suppress(PackageNotFoundError):
        for each in metadata("mcp-assay").get_all("Project-URL") or ():
            name, _, address = str(each).partition(",")
            if name.strip().lower() == "documentation":
                return address.strip()
    return None
