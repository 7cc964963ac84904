"""Findings as SARIF 2.1.0, which code scanning services and editors read."""

from typing import Any, Final

from assay import __version__
from assay.base.printable import plain
from assay.cli.reports.check_findings import CheckedMessage, Level, is_inside
from assay.cli.reports.check_report import CheckReport, FileEnd, ReportOptions, RunEnd
from assay.cli.reports.finding_groups import FindingGroup, FindingGroups, FindingPlace
from assay.cli.reports.report_json import described, dumped, uri_of
from assay.cli.reports.report_outputs import ReportOutput
from assay.rules import RULES, Rule

_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

_DEFAULT_LEVELS: Final[dict[str, Level]] = {"refuse": "error", "quarantine": "error", "report": "warning"}


class SarifReport(CheckReport):
    """One run with one result for each group of equal findings, written at the end."""

    def __init__(self, options: ReportOptions, output: ReportOutput) -> None:
        super().__init__(options, output)
        self._groups = FindingGroups()
        self._notices: list[dict[str, Any]] = []

    def begin(self, name: str) -> None:
        """Do nothing: results name their file."""

    def add(self, message: CheckedMessage) -> None:
        """Add the findings of the message."""
        self._groups.add(message)

    def end(self, ended: FileEnd) -> None:
        """Keep the remarks about the file."""
        for each in ended.remarks:
            self._notices.append(_notice(each, file=ended.name))
        if ended.error is not None:
            self._notices.append(_notice(ended.error, "error", file=ended.name))

    def close(self, ended: RunEnd) -> None:
        """Write the document."""
        rules = {rule: index for index, rule in enumerate(dict.fromkeys(each.first.key.rule for each in self._groups))}
        notices = [
            *self._notices,
            *(_notice(each, "error") for each in ended.remarks),
            *(_notice(f"no longer found: {each}") for each in ended.stale),
            *([_notice(self._groups.rest)] if self._groups.left_out else []),
        ]
        run = {
            "tool": {"driver": {
                "name": "Assay",
                "version": __version__,
                "semanticVersion": __version__,
                "rules": [self._rule(RULES[each]) for each in rules],
            }},
            "invocations": [{
                "executionSuccessful": ended.status != 2,
                "exitCode": ended.status,
                "toolExecutionNotifications": notices,
            }],
            "columnKind": "unicodeCodePoints",
            "results": [_result(each, rules[each.first.key.rule]) for each in self._groups],
        }  # fmt: skip
        self.write(dumped({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=True) + "\n")

    def _rule(self, rule: Rule) -> dict[str, Any]:
        source = rule.source.replace("{revision}", "(the revision in use)")
        parts = (rule.asks, rule.why, f"Source: {source}.", f"What to do: {rule.fix}")
        page = self.options.page_of(rule.id)
        return {
            "id": rule.id,
            "shortDescription": {"text": rule.asks},
            "fullDescription": {"text": f"{rule.asks} {rule.why}"},
            "help": {"text": "\n".join(parts), "markdown": "\n\n".join(parts)},
            **({} if page is None else {"helpUri": page}),
            "defaultConfiguration": {"level": _DEFAULT_LEVELS[rule.action]},
            "properties": {"tags": ["mcp", rule.rung]},
        }


def _notice(text: str, level: Level = "warning", file: str = "") -> dict[str, Any]:
    if file and not is_inside(file):
        text = f"{file}: {text}"
    found: dict[str, Any] = {"level": level, "message": {"text": plain(text)}}
    if file and is_inside(file):
        found["locations"] = [{"physicalLocation": {"artifactLocation": {"uri": uri_of(file)}}}]
    return found


def _result(group: FindingGroup, index: int) -> dict[str, Any]:
    first, fingerprint = group.first, group.fingerprint
    locations = [_location(first.file, each) for each in group.places]
    result = {
        "ruleId": first.key.rule,
        "ruleIndex": index,
        "level": group.level,
        "message": {"text": f"{described(first)}. {plain(first.violation.hint)}"},
        "locations": locations[:1],
        "relatedLocations": [{"id": number, **each} for number, each in enumerate(locations[1:], 1)],
        "occurrenceCount": group.count,
        # GitHub compares the second one. It would compute it from the line, which differs in every recording.
        "partialFingerprints": {"assayFinding/v1": fingerprint, "primaryLocationLineHash": f"{fingerprint}:1"},
        "properties": {
            "party": first.key.party,
            "action": first.violation.action,
            "server": first.key.server,
            "subject": first.subject,
            "recording": first.file,
        },
    }
    if first.is_known:
        result["suppressions"] = [{"kind": "external", "justification": "The baseline has it."}]
    return result


def _location(file: str, place: FindingPlace) -> dict[str, Any]:
    named = (
        {"fullyQualifiedName": place.at, "kind": "member"} if place.at else {"name": "the message", "kind": "object"}
    )
    location: dict[str, Any] = {"logicalLocations": [named]}
    if not is_inside(file):
        return location
    physical: dict[str, Any] = {"artifactLocation": {"uri": uri_of(file)}}
    if place.line:
        physical["region"] = {"startLine": place.line}
    return {"physicalLocation": physical, **location}


REPORT = SarifReport
