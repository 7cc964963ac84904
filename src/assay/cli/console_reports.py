"""The reports of `assay check` as exports of a console, with the verdicts that guards have recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from io import StringIO
from typing import TYPE_CHECKING, Final

import orjson

from assay.base.verdict import Verdict
from assay.cli.reports.check_findings import FindingMask, KnownFindings, MessageCounts
from assay.cli.reports.check_report import FileEnd, ReportOptions, RunEnd, report_of
from assay.cli.reports.report_options import FORMATS
from assay.cli.reports.report_outputs import ReportOutput
from assay.cli.terminal.style import Style
from assay.console.console_exports import Exporter, ExportFile, Numbered
from assay.core.redaction import Redactor
from assay.records.importers.importer import seconds
from assay.records.journal.reading import Record, server_of
from assay.records.journal.recorded_verdict import recorded_verdict
from assay.records.outcomes import recorded_outcome
from assay.records.transcript import Judged

if TYPE_CHECKING:
    from assay.settings import Settings

_KINDS: Final = {
    "json": ("application/json", "report.json"),
    "ndjson": ("application/x-ndjson", "findings.ndjson"),
    "sarif": ("application/sarif+json", "findings.sarif"),
    "junit": ("application/xml", "junit.xml"),
    "gitlab": ("application/json", "gitlab.json"),
    "markdown": ("text/markdown; charset=utf-8", "findings.md"),
    "html": ("text/html; charset=utf-8", "report.html"),
}
"""The media type and the name of each format. Others are for terminals and logs."""

_FILE: Final = "assay-journal.jsonl"
"""The file that findings refer to: the export of the same rows as a journal."""

_LACKS: Final = "the verdict of the guard"


class MemoryOutput(ReportOutput):
    """A report in memory."""

    def __init__(self) -> None:
        self._text = StringIO()
        self.style = Style(self._text, {})

    def write(self, text: str) -> None:
        """Write *text*."""
        self._text.write(text)

    def finish(self) -> None:
        """Do nothing: the text is there."""

    def abandon(self) -> None:
        """Do nothing: the text is dropped with the object."""

    def content(self) -> bytes:
        """Return the report."""
        return self._text.getvalue().encode(errors="replace")


def report_exporters(settings: Settings) -> Mapping[str, Exporter]:
    """Return the exports in the formats of `assay check` for programs and pages."""
    return {name: partial(_report, name, settings) for name in FORMATS if name in _KINDS}


def _report(name: str, settings: Settings, rows: Sequence[Numbered]) -> ExportFile:
    masking = FindingMask(Redactor(settings.journal.redact), with_messages=True)
    options = ReportOptions("report", masking, with_messages=False)
    output = MemoryOutput()
    report = report_of(name, options, output)
    digest = report.digest() if report.digest is not None else None
    counts, known, left_out = MessageCounts(), KnownFindings(), 0
    revision: str | None = None
    report.begin(_FILE)
    for line, (_, record) in enumerate(rows, 1):
        verdict = _verdict(record)
        if verdict is None:
            left_out += 1
            continue
        revision = verdict.revision or revision
        judged = Judged(line, verdict, 0, server_of(record), _LACKS, seconds(record["ts"]))
        if not counts:
            report.meet(0, masking.name(judged.server))
        # Without its payload, a message says only in its record that it failed.
        message = masking.message(judged, _FILE, known)._replace(outcome=recorded_outcome(record).word)
        if digest is not None:
            digest.add(message)
        counts.count(message)
        if message.findings:
            report.add(message)
    report.end(FileEnd(_FILE, counts, revision, is_partial=left_out > 0))
    if digest is not None:
        report.use(digest)
    report.close(RunEnd(0))
    kind, ending = _KINDS[name]
    return ExportFile(output.content(), kind, ending, left_out)


def _verdict(record: Record) -> Verdict | None:
    """Return the recorded verdict, with the message if it is there; None if this version cannot read it."""
    made = recorded_verdict(record)
    frame = record["metadata"].get("frame")
    if made is not None and isinstance(frame, str):
        made.frame = frame.encode()
        try:
            value = orjson.loads(frame)
        except orjson.JSONDecodeError:
            return made
        if isinstance(value, dict):
            made.value = value
    return made
