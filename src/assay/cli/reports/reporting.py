"""All reports of one run of `assay check`: they are opened before the first file, and get the same findings."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Final

from assay.cli.checking.files import shown_path
from assay.cli.reports.baseline import (
    LARGEST,
    Baseline,
    BaselineEntry,
    BaselineError,
    KnownFindings,
    NewBaseline,
    read_baseline,
    write_baseline,
)
from assay.cli.reports.formats import digests_of, document_of, stream_of
from assay.cli.reports.outputs import OutputFile, ReportFileError, ReportOutput, StandardOutput, TerminalOutput
from assay.cli.reports.result import ReportOptions, RunResult
from assay.records.rows import Meeting

if TYPE_CHECKING:
    from assay.cli.checking.evidence import ChangedVerdict, DigestFactory, FileEnd
    from assay.cli.reports.streams import StreamReport
    from assay.records.judged_records import JudgedRecord


class ReportUsageError(Exception):
    """The options for reports contradict each other, or a file of theirs cannot be used."""


class Reporting:
    """The reports, and the baseline."""

    def __init__(self, args: argparse.Namespace, *, has_several: bool = False) -> None:
        """Open all outputs; *has_several* if there are several files. Raises `ReportUsageError`."""
        self._write_to: str | None = args.write_baseline
        _no_conflicts(args)
        self._known = _known(args)
        options = ReportOptions(
            args.fail_on,
            is_all=args.all,
            with_messages=args.messages,
            has_several=has_several,
            docs_url=args.docs_url or _documentation(args),
        )
        self.result = RunResult(options)
        self._outputs: list[ReportOutput] = []
        self._streams: list[StreamReport] = []
        self._documents: list[tuple[str, ReportOutput]] = []
        self._has_errors = False
        try:
            self._open(args, options)
        except ReportFileError as error:
            self._abandon()
            raise ReportUsageError(str(error)) from None
        self.digests: tuple[DigestFactory, ...] = tuple(
            each for name, _ in self._documents for each in digests_of(name)
        )
        """What makes the digests that reports ask for."""
        self.result.digests = [make() for make in self.digests]

    def _open(self, args: argparse.Namespace, options: ReportOptions) -> None:
        if args.format is not None:
            shown = TerminalOutput() if args.format == "text" else StandardOutput()
            self._add("comparison" if args.compare else args.format, options, shown)
        for name, path in args.output:
            self._add(name, options, OutputFile(path))

    def _add(self, name: str, options: ReportOptions, output: ReportOutput) -> None:
        self._outputs.append(output)
        stream = stream_of(name, options, output.write, output.style)
        if stream is not None:
            self._streams.append(stream)
        else:
            self._documents.append((name, output))

    # ── one file after the other ─────────────────────────────────────────────────────────────────────────────────────

    def begin(self, name: str) -> None:
        """Start the file *name*."""
        for each in self._streams:
            each.begin(shown_path(name))

    def meet(self, meeting: Meeting) -> None:
        """Note that the next message is the first one of its conversation."""
        self.result.meet(meeting.server)
        for each in self._streams:
            each.meet(meeting)

    def add(self, message: JudgedRecord) -> JudgedRecord:
        """Add one message to every report, and return it with those findings marked that the baseline has."""
        message = self._known.marked(message)
        self.result.add(message)
        for each in self._streams:
            each.add(message)
        return message

    def differ(self, changed: ChangedVerdict) -> None:
        """Add a verdict of a journal that is another one today."""
        for each in self._streams:
            each.differ(changed)

    def end(self, file: FileEnd) -> None:
        """End the file."""
        self._has_errors = self._has_errors or file.error is not None
        self.result.end(file)
        for each in self._streams:
            each.end(file)

    def pass_over(self, problem: str) -> None:
        """Note that a name on the command line has nothing to judge."""
        self._has_errors = True
        self.result.remarks.append(problem)

    def stale(self) -> list[BaselineEntry]:
        """Return the entries of the baseline that were not found."""
        return self._known.stale() if isinstance(self._known, Baseline) else []

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def close(self, status: int) -> Iterable[str]:
        """Complete all reports. Yield the problems."""
        self.result.status = status
        self.result.stale = [(each.key, each.count) for each in self.stale()]
        made = {id(output): name for name, output in self._documents}
        for output in self._outputs:
            try:
                if id(output) in made:
                    output.write(document_of(made[id(output)])(self.result))
                output.finish()
            except ReportFileError as error:
                output.abandon()
                yield str(error)

    def write_known(self) -> str | None:
        """Write the new baseline, if one is asked for. Return why it cannot be written; None if it was."""
        if self._write_to is None or not isinstance(self._known, NewBaseline):
            return None
        if self._has_errors:
            return f"{self._write_to} is not written: not all files could be read"
        try:
            text = write_baseline(self._known.entries())
            file = OutputFile(self._write_to)
            file.write(text)
            file.finish()
        except ReportFileError as error:
            return str(error)
        except BaselineError as error:
            return f"{self._write_to} is not written: {error}"
        return None

    def __enter__(self) -> Reporting:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Leave no incomplete file behind after an error."""
        if kind is not None:
            self._abandon()

    def _abandon(self) -> None:
        for each in self._outputs:
            each.abandon()


def _no_conflicts(args: argparse.Namespace) -> None:
    """Refuse files that would replace each other, a recording or the baseline, and an option without its baseline."""
    if args.compare and args.format != "text":
        raise ReportUsageError(f"--compare prints text; --output {args.format}=FILE writes the findings")
    if args.fail_on_stale and not args.baseline:
        raise ReportUsageError("--fail-on-stale needs --baseline FILE")
    written = [path for _, path in args.output] + ([args.write_baseline] if args.write_baseline else [])
    real = [os.path.realpath(path) for path in written]
    read = {os.path.realpath(each) for each in args.files if each != "-"}
    for path, each in zip(written, real, strict=True):
        if each in read:
            raise ReportUsageError(f"{path}: a report would replace the recording")
        if args.baseline and path != args.write_baseline and each == os.path.realpath(args.baseline):
            raise ReportUsageError(f"{path}: a report would replace the baseline")
        if real.count(each) > 1:
            raise ReportUsageError(f"{path}: two outputs have the same file")


def _known(args: argparse.Namespace) -> KnownFindings:
    if args.write_baseline:
        earlier = args.baseline or (args.write_baseline if os.path.isfile(args.write_baseline) else None)
        return NewBaseline(_read(earlier) if earlier else ())
    return Baseline(_read(args.baseline)) if args.baseline else KnownFindings()


def _read(path: str) -> tuple[BaselineEntry, ...]:
    try:
        with open(path, "rb") as file:
            text = file.read(LARGEST + 1)
        if len(text) > LARGEST:
            raise BaselineError(f"more than {LARGEST >> 20} MiB")
        return read_baseline(text)
    except OSError as error:
        raise ReportUsageError(f"{path}: {error.strerror}") from None
    except BaselineError as error:
        raise ReportUsageError(f"{path}: {error}") from None


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
