"""Findings as JUnit XML: a test case is named by server, tool and rule, so that dashboards show its history."""

from collections.abc import Iterator
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from assay.base.printable import plain, plain_lines
from assay.cli.reports.check_findings import CheckedMessage, CheckFinding, counts
from assay.cli.reports.check_report import CheckReport, FileEnd, ReportOptions, RunEnd
from assay.cli.reports.finding_groups import MOST_GROUPS, MOST_PLACES
from assay.cli.reports.report_json import described
from assay.cli.reports.report_outputs import ReportOutput
from assay.rules import RULES

_MOST_SERVERS: Final = 100
"""Maximal servers with a suite of their own. The findings of the others share a last one."""

_OTHERS: Final = "other servers"
_NAMELESS: Final = "server"
"""The suites of servers beyond the limit, and of a recording that does not name its server."""

_RECORDINGS: Final = "recordings"
"""The suite with one test case, about the files themselves."""

_NOT_JUDGED: Final = frozenset({"lock"})
"""Rungs without a passed test case: a lock is not compared here."""


class _Case:
    """The findings of one rule about one tool or method of one server."""

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
            place = f"line {finding.line}" if finding.line else "the end"
            self.lines.append(f"{described(finding)} ({plain(finding.file)}, {place})")

    @property
    def text(self) -> str:
        """The findings, one a line."""
        rest = self.count - len(self.lines)
        return "\n".join([*self.lines, *([f"and {rest:,} more"] if rest else [])])


class JunitReport(CheckReport):
    """One suite for each server, written at the end. No name in it depends on the name of a file."""

    def __init__(self, options: ReportOptions, output: ReportOutput) -> None:
        super().__init__(options, output)
        self._suites: dict[str, dict[tuple[str, str], _Case]] = {}
        """The test cases of each server, by rule and subject."""
        self._size = 0
        self._problems: list[str] = []
        self._is_wrong = False

    def begin(self, name: str) -> None:
        """Do nothing: findings name their file."""

    def meet(self, conversation: int, server: str) -> None:
        """Start the suite of the server."""
        del conversation
        self._suite_of(server)

    def add(self, message: CheckedMessage) -> None:
        """Add the findings of the message to the suite of its server."""
        suite = self._suite_of(message.server)
        for each in message.findings:
            key = (each.key.rule, each.subject)
            if key not in suite:
                # Peers choose the names of tools, so there may be any number.
                key = key if self._size < MOST_GROUPS else (each.key.rule, "others")
                self._size += key not in suite
            suite.setdefault(key, _Case()).add(each, self.options.fail_on)

    def _suite_of(self, server: str) -> dict[tuple[str, str], _Case]:
        name = server or _NAMELESS
        if name not in self._suites and len(self._suites) >= _MOST_SERVERS:
            name = _OTHERS
        return self._suites.setdefault(name, {})

    def end(self, ended: FileEnd) -> None:
        """Keep the problems of the file."""
        problems = [*ended.remarks, *([] if ended.error is None else [ended.error])]
        self._problems += [f"{plain(ended.name)}: {each}" for each in problems]
        self._is_wrong |= ended.error is not None or (ended.is_partial and self.options.fail_on != "never")

    def close(self, ended: RunEnd) -> None:
        """Write the document, with the problems of the files and of the command line in a test case of their own."""
        problems = [*self._problems, *ended.remarks, *(f"no longer found: {each}" for each in ended.stale)]
        is_wrong = self._is_wrong or bool(ended.remarks)
        self.write('<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="assay check">\n')
        about = _about_files("\n".join(problems), is_wrong=is_wrong)
        self.write(_suite(_RECORDINGS, [about], {}, errors=int(is_wrong)))
        for server, found in self._suites.items():
            self.write(_suite(server, list(_cases(server, found)), found))
        self.write("</testsuites>\n")


def _about_files(problem: str, *, is_wrong: bool) -> str:
    inside = ""
    if problem:
        inside = _failure("error", problem) if is_wrong else f"<system-out>{_text(problem)}</system-out>"
    return _case(_RECORDINGS, "judged", inside)


def _cases(server: str, found: dict[tuple[str, str], _Case]) -> Iterator[str]:
    """
    Yield a test case for every rule, in the order of the rules.

    A rule with findings has one for each tool or method; a rule without has one for the server.
    """
    for rule in RULES.values():
        cases = {subject: case for (broken, subject), case in found.items() if broken == rule.id}
        for subject, case in cases.items():
            yield _case(f"{server}.{subject}", rule.id, _outcome(case))
        if not cases and rule.rung not in _NOT_JUDGED:
            yield _case(server, rule.id, "")


def _outcome(case: _Case) -> str:
    if case.failed:
        return _failure("failure", case.text)
    if case.known == case.count:
        return f"<skipped>ignored (in baseline):\n{_text(case.text)}</skipped>"
    return f"<system-out>{_text(case.text)}</system-out>"


def _failure(element: str, text: str) -> str:
    return f"<{element} message={_attribute(text.partition(chr(10))[0])}>{_text(text)}</{element}>"


def _case(suite: str, name: str, inside: str) -> str:
    return f"    <testcase classname={_attribute(suite)} name={_attribute(name)}>{inside}</testcase>\n"


def _suite(name: str, cases: list[str], found: dict[tuple[str, str], _Case], *, errors: int = 0) -> str:
    known = found.values()
    failures = sum(bool(each.failed) for each in known)
    skipped = sum(not each.failed and each.known == each.count for each in known)
    numbers = f'tests="{len(cases)}" failures="{failures}" errors="{errors}" skipped="{skipped}"'
    return f"  <testsuite name={_attribute(name)} {numbers}>\n{''.join(cases)}  </testsuite>\n"


def _text(text: str) -> str:
    """Return *text* with its lines as XML. Characters that XML does not allow are never printable."""
    return escape(plain_lines(text))


def _attribute(text: str) -> str:
    return quoteattr(plain(text))


REPORT = JunitReport
