"""Findings as annotations of GitHub Actions, and a summary of the job."""

import os
from typing import Final

from assay.base.printable import plain, plain_lines
from assay.cli.reports.check_findings import CheckedMessage, Level, is_inside
from assay.cli.reports.check_report import CheckReport, FileEnd, ReportOptions, RunEnd
from assay.cli.reports.finding_groups import FindingGroup
from assay.cli.reports.markdown_report import MarkdownReport
from assay.cli.reports.report_json import described
from assay.cli.reports.report_outputs import ReportFileError, ReportOutput

SUMMARY: Final = "GITHUB_STEP_SUMMARY"
"""The variable with the path of the summary, which is Markdown."""

_COMMANDS: Final[dict[Level, str]] = {"error": "error", "warning": "warning"}

_MOST_IN_SUMMARY: Final = 100
"""Maximal groups of findings in the summary, which GitHub drops if it is over 1 MiB. A group has at most some 6 KB."""


class GithubReport(CheckReport):
    """
    One annotation for each group of equal findings that the baseline does not have, written at the end.

    GitHub shows ten errors, ten warnings and ten notices of a step, so the worst come first.
    """

    def __init__(self, options: ReportOptions, output: ReportOutput) -> None:
        super().__init__(options, output)
        self._summary = MarkdownReport(options, output)
        self._groups = self._summary.groups
        self._problems: list[str] = []

    def begin(self, name: str) -> None:
        """Start the file *name* in the summary."""
        self._summary.begin(name)

    def add(self, message: CheckedMessage) -> None:
        """Add the findings of the message."""
        self._summary.add(message)

    def end(self, ended: FileEnd) -> None:
        """Keep the counts of the file, and an error for a file that could not be judged."""
        self._summary.end(ended)
        if ended.error is not None:
            self._problems.append(_command("error", _located(ended.name, ended.error), **_place(ended.name)))

    def close(self, ended: RunEnd) -> None:
        """Write the annotations and the summary. Raises `ReportFileError`."""
        problems = [_command("error", each) for each in ended.remarks]
        stale = [_command("notice", f"no longer found, remove it from the baseline: {each}") for each in ended.stale]
        rest = [_command("notice", self._groups.rest)] if self._groups.left_out else []
        for line in [*self._problems, *problems, *map(_annotation, self._groups.new()), *stale, *rest]:
            self.write(f"{line}\n")
        path = os.environ.get(SUMMARY)
        if path:
            _append(path, "\n".join(self._summary.lines(ended, _MOST_IN_SUMMARY)) + "\n")


def _annotation(group: FindingGroup) -> str:
    first = group.first
    lines = [described(first), plain(first.violation.hint)]
    lines += [f"line {each.line}: {plain(each.at) or 'the message'}" for each in group.places[1:]]
    if group.also:
        lines.append(group.also)
    text = _located(first.file, "\n".join(lines))
    return _command(_COMMANDS[group.level], text, **_place(first.file, first.line), title=first.key.rule)


def _place(file: str, line: int = 0) -> dict[str, str]:
    """Return where an annotation is shown: nowhere for a recording outside of the repository."""
    return {"file": file, **({"line": str(line)} if line else {})} if is_inside(file) else {}


def _located(file: str, text: str) -> str:
    """Return *text* with the name of its file, if the place of the annotation does not have it."""
    return text if is_inside(file) else f"{text}\n{plain(file)}"


def _command(name: str, text: str, **properties: str) -> str:
    """Return a workflow command on one line. The runner decodes the escapes."""
    listed = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name}{f' {listed}' if listed else ''}::{_data(text)}"


def _data(text: str) -> str:
    # The runner decodes the escapes and prints the text, so that a log would act on control characters.
    return plain_lines(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(plain(text)).replace(":", "%3A").replace(",", "%2C")


def _append(path: str, text: str) -> None:
    try:
        with open(path, "a", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError as error:
        raise ReportFileError(path, error) from None


REPORT = GithubReport
