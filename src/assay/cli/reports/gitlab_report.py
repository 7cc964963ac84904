"""Findings as a code quality report of GitLab: a JSON array, shown in merge requests."""

import os
from collections import Counter
from hashlib import sha256
from typing import Any, Final

from assay.base.printable import plain
from assay.cli.reports.check_findings import CheckedMessage, Level, is_inside
from assay.cli.reports.check_report import CheckReport, FileEnd, ReportOptions, RunEnd
from assay.cli.reports.finding_groups import FindingGroup, FindingGroups
from assay.cli.reports.report_json import described, dumped
from assay.cli.reports.report_outputs import ReportOutput

_SEVERITIES: Final[dict[Level, str]] = {"error": "major", "warning": "minor"}

_PROBLEM: Final = "assay/recording"
"""The name of the check for a file that could not be judged, and for findings that are not listed."""


class GitlabReport(CheckReport):
    """One entry for each group of equal findings that the baseline does not have, written at the end."""

    def __init__(self, options: ReportOptions, output: ReportOutput) -> None:
        super().__init__(options, output)
        self._groups = FindingGroups()
        self._problems: list[dict[str, Any]] = []

    def begin(self, name: str) -> None:
        """Do nothing: entries name their file."""

    def add(self, message: CheckedMessage) -> None:
        """Add the findings of the message."""
        self._groups.add(message)

    def end(self, ended: FileEnd) -> None:
        """Add an entry for a file that could not be judged."""
        if ended.error is not None:
            self._problems.append(_problem(ended.name, ended.error, "blocker"))

    def close(self, ended: RunEnd) -> None:
        """Write the array."""
        counted: Counter[str] = Counter()
        entries = []
        for each in self._groups.new():
            entries.append(_entry(each, counted[each.fingerprint]))
            counted[each.fingerprint] += 1
        self._problems += [_problem("-", each, "blocker") for each in ended.remarks]
        if self._groups.left_out:
            self._problems.append(_problem("-", self._groups.rest, "info"))
        self.write(dumped([*entries, *self._problems], indent=True) + "\n")


def _entry(group: FindingGroup, before: int) -> dict[str, Any]:
    """Return the entry of a group; *before* is how many other files have had the same one."""
    first = group.first
    places = [f"- line {each.line}: {plain(each.at) or 'the message'}" for each in group.places]
    return {
        "description": f"{described(first)}{f' ({group.also})' if group.also else ''}",
        "check_name": first.key.rule,
        # Unique in the report: GitLab counts entries with the same fingerprint once. Without the name of the recording,
        # which differs in every run.
        "fingerprint": _unique(group.fingerprint, str(before)) if before else group.fingerprint,
        "severity": _SEVERITIES[group.level],
        # A line is required; a request that was never answered has none.
        "location": {"path": _path(first.file), "lines": {"begin": first.line or 1}},
        "content": {"body": "\n".join([plain(first.violation.hint), "", *places])},
    }


def _problem(file: str, text: str, severity: str) -> dict[str, Any]:
    return {
        "description": plain(text),
        "check_name": _PROBLEM,
        "fingerprint": _unique(_PROBLEM, f"{file}\0{text}"),
        "severity": severity,
        "location": {"path": _path(file), "lines": {"begin": 1}},
    }


def _path(file: str) -> str:
    """Return the path in the repository, which is required; the name alone of a file that is elsewhere."""
    return file if is_inside(file) else os.path.basename(file)


def _unique(*parts: str) -> str:
    return sha256("\0".join(parts).encode(errors="replace")).hexdigest()[:32]


REPORT = GitlabReport
