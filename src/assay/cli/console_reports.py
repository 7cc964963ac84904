"""The reports of `assay check` as exports of a console, with the verdicts that guards have recorded."""

from collections.abc import Mapping, Sequence
from functools import partial
from io import StringIO
from typing import Final

from assay.cli.checking.evidence import FileEnd
from assay.cli.reports.formats import digests_of, document_of, stream_of
from assay.cli.reports.options import FORMATS
from assay.cli.reports.result import ReportOptions, RunResult
from assay.cli.terminal.style import Style
from assay.console.exports import Exporter, ExportFile, Numbered
from assay.records.judged_records import JudgedRecord
from assay.records.record import seconds_of
from assay.rules import RULES

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


def report_exporters() -> Mapping[str, Exporter]:
    """Return the exports in the formats of `assay check` for programs and pages."""
    return {name: partial(_report, name) for name in FORMATS if name in _KINDS}


def _report(name: str, rows: Sequence[Numbered]) -> ExportFile:
    text, options, end = StringIO(), ReportOptions(), FileEnd(_FILE)
    result = RunResult(options, digests=[make() for make in digests_of(name)])
    stream = stream_of(name, options, text.write, Style(text, {}))
    left_out = 0
    for line, (_, record) in enumerate(rows, 1):
        metadata = record.metadata
        if not all(each.rule in RULES for each in record.findings):
            # A later version has written it.
            left_out += 1
            continue
        end.revision = metadata.revision or end.revision
        metadata.lacks = metadata.lacks or _LACKS
        time = seconds_of(record.ts, -1.0)
        latency = record.duration_ms if record.is_answer else None
        message = JudgedRecord(_FILE, line, record, time=time if time >= 0 else None, latency=latency)
        end.count(record)
        result.meet(metadata.server)
        for digest in result.digests:
            digest.add(message)
        if message.findings:
            result.add(message)
            if stream is not None:
                stream.add(message)
    end.is_partial = left_out > 0
    result.end(end)
    content = text.getvalue() if stream is not None else document_of(name)(result)
    kind, ending = _KINDS[name]
    return ExportFile(content.encode(errors="replace"), kind, ending, left_out)
