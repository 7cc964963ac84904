"""Findings as JUnit XML: one test case for each rule and conversation, so that dashboards show their history."""

from collections.abc import Iterator
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from assay.base.printable import plain
from assay.cli.reports.check_findings import CheckedMessage, CheckFinding, counts
from assay.cli.reports.check_report import CheckReport, FileEnd, ReportOptions, RunEnd
from assay.cli.reports.finding_groups import MOST_PLACES
from assay.cli.reports.report_json import described
from assay.cli.reports.report_outputs import ReportOutput
from assay.rules import RULES

_MOST_CONVERSATIONS: Final = 100
"""Maximal conversations of a file with test cases of their own. The findings of the others share a last one."""

_OTHERS: Final = -1
"""The number for conversations beyond the limit."""

_RECORDING: Final = "recording"
"""The name of the test case about the file itself."""

_NOT_JUDGED: Final = frozenset({"lock", "draft"})
"""Rungs without a passed test case: a lock is not compared here, and drafts count only with `--preview`."""


class _Case:
    """The findings of one rule in one conversation."""

    __slots__ = ("count", "failed", "known", "lines")

    def __init__(self) -> None:
        self.count = self.failed = self.known = 0
        self.lines: list[str] = []

    def add(self, finding: CheckFinding, fail_on: str) -> None:
        """Add one finding."""
        self.count += 1
        self.known += finding.is_known
        self.failed += counts(fail_on, finding)
        if len(self.lines) < MOST_PLACES:
            line = f"line {finding.line}" if finding.line else "end"
            self.lines.append(f"{line}: {described(finding)}")

    @property
    def text(self) -> str:
        """The findings, one a line."""
        rest = self.count - len(self.lines)
        return "\n".join([*self.lines, *([f"and {rest:,} more"] if rest else [])])


class JunitReport(CheckReport):
    """One suite for each conversation, written at the end of its file. A file with one conversation is one suite."""

    def __init__(self, options: ReportOptions, output: ReportOutput) -> None:
        super().__init__(options, output)
        self._suites: dict[int, dict[str, _Case]] = {}
        self._servers: dict[int, str] = {}
        self.write('<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="assay check">\n')

    def begin(self, name: str) -> None:
        """Start a new file."""
        del name
        self._suites = {}
        self._servers = {}

    def meet(self, conversation: int, server: str) -> None:
        """Start the suite of the conversation."""
        number = self._suite_of(conversation)
        if number not in self._suites:
            self._suites[number], self._servers[number] = {}, server

    def add(self, message: CheckedMessage) -> None:
        """Add the findings of the message to the suite of its conversation."""
        suite = self._suites[self._suite_of(message.judged.conversation)]
        for each in message.findings:
            suite.setdefault(each.key.rule, _Case()).add(each, self.options.fail_on)

    def _suite_of(self, conversation: int) -> int:
        if conversation in self._suites or len(self._suites) < _MOST_CONVERSATIONS:
            return conversation
        return _OTHERS

    def end(self, ended: FileEnd) -> None:
        """Write the suites of the file."""
        problem = "\n".join([*ended.remarks, *([] if ended.error is None else [ended.error])])
        is_wrong = ended.error is not None or (ended.is_partial and self.options.fail_on != "never")
        about = _about_file(ended.name, problem, is_wrong=is_wrong)
        has_cases = 0 in self._suites
        only = self._suites.pop(0, {})
        cases = [about, *(_cases(ended.name, only) if has_cases else ())]
        self.write(_suite(ended.name, cases, only, errors=int(is_wrong)))
        for number, found in self._suites.items():
            name = ended.name + _named(number, self._servers[number])
            self.write(_suite(name, list(_cases(name, found)), found))

    def close(self, ended: RunEnd) -> None:
        """End the document, with the problems that belong to no file."""
        problems = [*ended.remarks, *(f"no longer found: {each}" for each in ended.stale)]
        if problems:
            errors = len(ended.remarks)
            about = _about_file("command line", "\n".join(problems), is_wrong=bool(errors))
            self.write(_suite("command line", [about], {}, errors=int(bool(errors))))
        self.write("</testsuites>\n")


def _named(number: int, server: str) -> str:
    """Return what follows the name of the file."""
    if number == _OTHERS:
        return " (other conversations)"
    return f" ({server + ', ' if server else ''}conversation {number})"


def _about_file(name: str, problem: str, *, is_wrong: bool) -> str:
    inside = ""
    if problem:
        inside = _failure("error", problem) if is_wrong else f"<system-out>{_text(problem)}</system-out>"
    return _case(name, _RECORDING, inside)


def _cases(suite: str, found: dict[str, _Case]) -> Iterator[str]:
    """Yield a test case for every rule, in the order of the rules."""
    for rule in RULES.values():
        case = found.get(rule.id)
        if case is not None:
            yield _case(suite, rule.id, _outcome(case))
        elif rule.rung not in _NOT_JUDGED:
            yield _case(suite, rule.id, "")


def _outcome(case: _Case) -> str:
    if case.failed:
        return _failure("failure", case.text)
    if case.known == case.count:
        return f"<skipped>known findings of the baseline:\n{_text(case.text)}</skipped>"
    return f"<system-out>{_text(case.text)}</system-out>"


def _failure(element: str, text: str) -> str:
    return f"<{element} message={_attribute(text.partition(chr(10))[0])}>{_text(text)}</{element}>"


def _case(suite: str, name: str, inside: str) -> str:
    return f"    <testcase classname={_attribute(suite)} name={_attribute(name)}>{inside}</testcase>\n"


def _suite(name: str, cases: list[str], found: dict[str, _Case], *, errors: int = 0) -> str:
    known = found.values()
    failures = sum(bool(each.failed) for each in known)
    skipped = sum(not each.failed and each.known == each.count for each in known)
    numbers = f'tests="{len(cases)}" failures="{failures}" errors="{errors}" skipped="{skipped}"'
    return f"  <testsuite name={_attribute(name)} {numbers}>\n{''.join(cases)}  </testsuite>\n"


def _text(text: str) -> str:
    """Return *text* with its lines as XML. Characters that XML does not allow are never printable."""
    return escape("\n".join(plain(each) for each in text.split("\n")))


def _attribute(text: str) -> str:
    return quoteattr(plain(text))


REPORT = JunitReport
