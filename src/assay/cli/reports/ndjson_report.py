"""Findings for scripts: one JSON object for each message with findings, as soon as it is judged."""

from typing import Any

from assay.cli.reports.check_findings import CheckedMessage, CheckFinding, cut
from assay.cli.reports.check_report import CheckReport, FileEnd, RunEnd
from assay.cli.reports.report_json import dumped
from assay.core.render import as_json


class NdjsonReport(CheckReport):
    """One line a message. Nothing is kept in memory, so nothing is left out."""

    def begin(self, name: str) -> None:
        """Do nothing: each line names its file."""

    def add(self, message: CheckedMessage) -> None:
        """Write the message, if it has findings or all messages are asked for."""
        if message.findings or self.options.with_messages:
            self.write(dumped(self._record(message)) + "\n")

    def end(self, ended: FileEnd) -> None:
        """Do nothing: problems with files go to standard error."""

    def close(self, ended: RunEnd) -> None:
        """Do nothing: there is no summary."""

    def _record(self, message: CheckedMessage) -> dict[str, Any]:
        judged = message.judged
        verdict = judged.verdict
        record: dict[str, Any] = {
            "file": message.file,
            "line": judged.line,
            "party": verdict.party,
            "kind": verdict.kind,
            "method": message.method,
            "tool": message.tool,
            "revision": verdict.revision,
            "verdict": message.outcome,
            "violations": [_violation(each) for each in message.findings],
            "more": verdict.more,
        }
        if message.server:
            record["server"] = message.server
        if judged.lacks:
            record["lacks"] = judged.lacks
        if judged.conversation:
            record["conversation"] = judged.conversation
        if verdict.quarantined:
            hide = self.options.masking.redactor.entry
            record["quarantined"] = [hide(each._replace(name=cut(each.name, 200))) for each in verdict.quarantined]
        return record


def _violation(finding: CheckFinding) -> dict[str, Any]:
    shown = as_json(finding.violation)
    return {**shown, "known": True} if finding.is_known else shown


REPORT = NdjsonReport
