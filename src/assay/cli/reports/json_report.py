"""All findings of a run as one JSON document. `assay check --schema` prints its JSON Schema."""

from collections import Counter
from typing import Any

from assay import __version__
from assay.cli.reports.check_findings import CheckedMessage, FindingKey
from assay.cli.reports.check_report import CheckReport, FileEnd, ReportOptions, RunEnd
from assay.cli.reports.finding_groups import FindingGroup, FindingGroups
from assay.cli.reports.json_schema import SCHEMA, VERSION
from assay.cli.reports.report_json import dumped
from assay.cli.reports.report_outputs import ReportOutput


class JsonReport(CheckReport):
    """One document, written at the end. Equal findings of a file are one entry with a count."""

    def __init__(self, options: ReportOptions, output: ReportOutput) -> None:
        super().__init__(options, output)
        self._files: list[dict[str, Any]] = []
        self._groups = FindingGroups()
        self._rules: Counter[str] = Counter()

    def begin(self, name: str) -> None:
        """Do nothing: a file is listed when it ends."""

    def add(self, message: CheckedMessage) -> None:
        """Add the findings of the message."""
        self._groups.add(message)
        self._rules.update(each.violation.rule for each in message.findings)

    def end(self, ended: FileEnd) -> None:
        """List the file with its counts."""
        self._files.append(
            {
                "file": ended.name,
                "revision": ended.revision,
                **ended.counts.as_json(),
                "complete": ended.error is None and not ended.is_partial,
                "remarks": list(ended.remarks),
                **({} if ended.error is None else {"error": ended.error}),
            }
        )

    def close(self, ended: RunEnd) -> None:
        """Write the document."""
        document = {
            "$schema": SCHEMA["$id"],
            "version": VERSION,
            "assay": __version__,
            "status": ended.status,
            "files": self._files,
            "findings": [self._finding(each) for each in self._groups],
            "leftOut": self._groups.left_out,
            "known": self._groups.known,
            "rules": dict(sorted(self._rules.items())),
            "remarks": list(ended.remarks),
            "stale": [{**_members(each.key), "count": each.count} for each in ended.stale],
        }
        self.write(dumped(document, indent=True) + "\n")

    def _finding(self, group: FindingGroup) -> dict[str, Any]:
        first = group.first
        violation, page = first.violation, self.options.page_of(first.violation.rule)
        shown: dict[str, Any] = {
            "fingerprint": group.fingerprint,
            "level": group.level,
            "action": violation.action,
            "known": first.is_known,
            "count": group.count,
            "file": first.file,
            "line": first.line,
            "at": violation.at,
            "title": first.title,
            "revision": first.revision,
            **_members(first.key),
            "expected": violation.expected,
            "found": violation.found,
            "source": violation.source,
            "hint": violation.hint,
            "places": [each._asdict() for each in group.places],
        }
        more = {"schemaAt": violation.schema_at, "reason": violation.reason, "help": page}
        return shown | {name: each for name, each in more.items() if each is not None}


def _members(key: FindingKey) -> dict[str, str]:
    """Return the members of a key that are not empty, besides the rule and the party."""
    return {name: each for name, each in key._asdict().items() if each or name in {"rule", "party"}}


REPORT = JsonReport
