"""All reports of one run of `assay check`: they are opened before the first file, and get the same findings."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Final

from assay.cli.reports.baseline import (
    LARGEST,
    Baseline,
    BaselineEntry,
    BaselineError,
    NewBaseline,
    read_baseline,
    write_baseline,
)
from assay.cli.reports.check_findings import CheckedMessage, FindingMask, KnownFindings, MessageCounts, shown_path
from assay.cli.reports.check_report import CheckReport, FileEnd, ReportOptions, RunEnd, report_of
from assay.cli.reports.report_outputs import OutputFile, ReportFileError, ReportOutput, StandardOutput, TerminalOutput
from assay.core.redaction import Redactor
from assay.records.transcript import Meeting

if TYPE_CHECKING:
    from assay.cli.checking.check_stream import ChangedVerdict, UnitEnd
    from assay.cli.checking.check_terms import DigestFactory
    from assay.settings import Settings


class ReportUsageError(Exception):
    """The options for reports contradict each other, or a file of theirs cannot be used."""


class Reporting:
    """The reports, and the baseline."""

    def __init__(self, args: argparse.Namespace, settings: Settings, *, has_several: bool = False) -> None:
        """Open all outputs; *has_several* if there are several files. Raises `ReportUsageError`."""
        self._write_to: str | None = args.write_baseline
        _no_conflicts(args)
        self._known = _known(args)
        options = ReportOptions(
            args.fail_on,
            FindingMask(Redactor(settings.journal.redact), with_messages=args.messages),
            is_all=args.all,
            with_messages=args.messages,
            has_several=has_several,
            docs_url=args.docs_url or _documentation(args),
        )
        self._outputs: list[ReportOutput] = []
        self._reports: list[CheckReport] = []
        self._counts = MessageCounts()
        self._name = ""
        self._has_errors = False
        try:
            self._open(args, options)
            self._digests = [make() for make in self.digests]
        except ReportFileError as error:
            self._abandon()
            raise ReportUsageError(str(error)) from None

    def _open(self, args: argparse.Namespace, options: ReportOptions) -> None:
        if args.format is not None:
            shown = TerminalOutput() if args.format == "text" else StandardOutput()
            self._outputs.append(shown)
            self._reports.append(report_of("comparison" if args.compare else args.format, options, shown))
        for name, path in args.output:
            file = OutputFile(path)
            self._outputs.append(file)
            self._reports.append(report_of(name, options, file))

    # ── one file after the other ─────────────────────────────────────────────────────────────────────────────────────

    def begin(self, name: str) -> None:
        """Start the file *name*."""
        self._name = shown_path(name)
        self._counts = MessageCounts()
        for each in self._reports:
            each.begin(self._name)

    def meet(self, meeting: Meeting) -> None:
        """Note that the next message is the first one of its conversation."""
        for each in self._reports:
            each.meet(meeting.conversation, meeting.server)

    def add(self, message: CheckedMessage) -> CheckedMessage:
        """Add one message to every report, and return it with those findings marked that the baseline has."""
        message = self._known.marked(message)
        self._counts.count(message)
        for each in self._reports:
            each.add(message)
        return message

    def differ(self, difference: ChangedVerdict) -> None:
        """Add a verdict of a journal that is another one today."""
        for each in self._reports:
            each.differ(difference)

    @property
    def digests(self) -> tuple[DigestFactory, ...]:
        """What makes the digests that reports ask for."""
        return tuple(each.digest for each in self._reports if each.digest is not None)

    def end(self, ended: UnitEnd, *, remarks: Sequence[str] = ()) -> None:
        """End the file."""
        self._has_errors = self._has_errors or ended.error is not None
        self._counts["ok"] += ended.good - ended.failed
        self._counts["failed"] += ended.failed
        self._counts["unjudged"] += ended.unjudged.total()
        for mine, theirs in zip(self._digests, ended.digests, strict=False):
            mine.merge(theirs)
        revision, is_partial = (ended.revision, ended.is_partial) if ended.error is None else (None, False)
        known = FileEnd(self._name, self._counts, revision, remarks, is_partial, ended.error, ended.outcomes)
        for each in self._reports:
            each.end(known)

    def pass_over(self) -> None:
        """Note that a name on the command line has nothing to judge."""
        self._has_errors = True

    def stale(self) -> list[BaselineEntry]:
        """Return the entries of the baseline that were not found."""
        return self._known.stale() if isinstance(self._known, Baseline) else []

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def close(self, status: int, remarks: Sequence[str]) -> Iterable[str]:
        """Complete all reports. Yield the problems."""
        ended = RunEnd(status, remarks, self.stale())
        wanting = (each for each in self._reports if each.digest is not None)
        for report, digest in zip(wanting, self._digests, strict=True):
            report.use(digest)
        for report, output in zip(self._reports, self._outputs, strict=True):
            try:
                report.close(ended)
                output.finish()
            except ReportFileError as error:
                output.abandon()
                yield str(error)

    @property
    def summary(self) -> str:
        """The run in one sentence, if a report has one and is complete; "" otherwise."""
        return next((each.summary for each in self._reports if each.summary), "")

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
