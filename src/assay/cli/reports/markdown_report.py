"""Findings as Markdown: for the summary of a job, a comment or a ticket."""

import re
from collections.abc import Iterator
from typing import Final

from assay.base.printable import plain
from assay.cli.reports.check_findings import CheckedMessage, Level
from assay.cli.reports.check_report import CheckReport, FileEnd, ReportOptions, RunEnd
from assay.cli.reports.finding_groups import FindingGroup, FindingGroups
from assay.cli.reports.report_outputs import ReportOutput
from assay.core.quarantined_names import counted
from assay.records.outcomes import WORDS

_MARKS: Final[dict[Level, str]] = {"error": "✗", "warning": "!"}

_MOST_FILES: Final = 1000
"""Maximal files in the table."""

_MOST_KNOWN: Final = 100
"""Maximal known findings that are listed."""

_BACKTICKS: Final = re.compile("`+")


def code(text: str, *, in_table: bool = False) -> str:
    """
    Return *text* as a code span, in which nothing is markup, a link or a mention.

    A row of a table is split at every vertical bar, even in a code span, unless it is escaped.
    """
    shown = plain(text) or " "
    fence = "`" * (1 + max((len(each) for each in _BACKTICKS.findall(shown)), default=0))
    room = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{room}{shown.replace('|', chr(92) + '|') if in_table else shown}{room}{fence}"


class MarkdownReport(CheckReport):
    """A table of files and a list of findings, written at the end."""

    def __init__(self, options: ReportOptions, output: ReportOutput) -> None:
        super().__init__(options, output)
        self.groups = FindingGroups()
        self._files: list[FileEnd] = []
        self._more_files = 0

    def begin(self, name: str) -> None:
        """Do nothing: a file is listed when it ends."""

    def add(self, message: CheckedMessage) -> None:
        """Add the findings of the message."""
        self.groups.add(message)

    def end(self, ended: FileEnd) -> None:
        """Keep the counts of the file."""
        if len(self._files) < _MOST_FILES:
            self._files.append(ended)
        else:
            self._more_files += 1

    def close(self, ended: RunEnd) -> None:
        """Write the report."""
        self.write("\n".join(self.lines(ended)) + "\n")

    def lines(self, ended: RunEnd, most: int | None = None) -> Iterator[str]:
        """Yield the lines of the report, with at most *most* groups of findings."""
        new = self.groups.new()
        yield "# assay check"
        yield ""
        yield from self._table()
        problems = [f"{file.name}: {line}" for file in self._files for line in _problems(file)] + [*ended.remarks]
        yield from [*(f"- {code(each)}" for each in problems), *([""] if problems else [])]
        yield from self._findings(new, most)
        known = [each for each in self.groups if each.first.is_known]
        if known:
            yield f"<details><summary>{counted(self.groups.known, 'finding')} ignored (in baseline)</summary>"
            yield ""
            for each in known[:_MOST_KNOWN]:
                yield from self._group(each)
            yield from _rest(len(known) - _MOST_KNOWN)
            yield "</details>"
            yield ""
        for stale in ended.stale:
            yield f"- no longer found, remove it from the baseline: {code(str(stale))}"

    def _table(self) -> Iterator[str]:
        yield f"| file | messages | {' | '.join(WORDS)} | never answered | revision |"
        yield f"| --- | ---: | {' | '.join('---:' for _ in WORDS)} | ---: | --- |"
        for file in self._files:
            counts = file.counts
            numbers = (counts.messages, *(counts[each] for each in (*WORDS, "missing")))
            cells = [code(file.name, in_table=True), *(f"{each:,}" for each in numbers), file.revision or ""]
            yield f"| {' | '.join(cells)} |"
        if self._more_files:
            yield ""
            yield f"and {counted(self._more_files, 'more file')}"
        yield ""

    def _findings(self, new: list[FindingGroup], most: int | None) -> Iterator[str]:
        if not new:
            yield "No new findings." if self.groups.known else "No findings."
            yield ""
            return
        yield "## Findings"
        yield ""
        for each in new[:most]:
            yield from self._group(each)
        yield from _rest(len(new) - most if most is not None else 0)
        if self.groups.rest:
            yield self.groups.rest
            yield ""

    def _group(self, group: FindingGroup) -> Iterator[str]:
        first = group.first
        violation, page = first.violation, self.options.page_of(first.violation.rule)
        rule = code(violation.rule) if page is None else f"[{code(violation.rule)}]({page})"
        line = f"line {first.line}" if first.line else "the end"
        yield f"- {_MARKS[group.level]} {group.level} {rule} in {code(first.file)}, {line}: {code(first.title)}"
        entry = "" if violation.entry is None else f" ({code(str(violation.entry))})"
        place = code(violation.at) if violation.at else "the message"
        yield f"  - {place}{entry}: expected {code(violation.expected)}, found {code(violation.found)}"
        yield f"  - {code(violation.source)}; to do: {code(violation.hint)}"
        if group.also:
            yield f"  - {group.also}"
        for each in group.places[1:]:
            yield f"  - line {each.line}: {code(each.at) if each.at else 'the message'}"
        yield ""


def _problems(file: FileEnd) -> list[str]:
    return [*file.remarks, *([] if file.error is None else [file.error])]


def _rest(number: int) -> Iterator[str]:
    if number > 0:
        yield f"and {counted(number, 'other kind')} of findings"
        yield ""


REPORT = MarkdownReport
