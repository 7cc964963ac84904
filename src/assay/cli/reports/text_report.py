"""Findings for people: equal ones once, each with the part of the message that is wrong."""

from collections.abc import Iterator
from functools import partial

from assay.base.printable import plain
from assay.base.verdict import Violation
from assay.cli.reports.check_findings import CheckedMessage, cut
from assay.cli.reports.check_report import CheckReport, FileEnd, ReportOptions, RunEnd
from assay.cli.reports.report_outputs import ReportOutput
from assay.cli.terminal.excerpts import excerpt_lines
from assay.cli.terminal.groups import Excerpt, Groups
from assay.cli.terminal.verdicts import Summary, header, place_lines, rule_lines, without_repeats
from assay.core.quarantined_names import counted

_INDENT = 9
"""Columns before the lines about a finding."""

_KNOWN = "ignored (in baseline)"


class TextReport(CheckReport):
    """Findings of each file, and counts below them."""

    def __init__(self, options: ReportOptions, output: ReportOutput) -> None:
        super().__init__(options, output)
        self._style = output.style
        self._redactor = options.masking.redactor
        self._each = options.is_all or options.with_messages
        self._is_first = True
        self.begin("")

    def begin(self, name: str) -> None:
        """Start the file *name*. The name is printed with its first message."""
        self._name = name
        self._is_named = False
        self._summary = Summary()
        self._groups = Groups(self._style)
        self._known = 0

    def meet(self, conversation: int, server: str) -> None:
        """Print the name of the file before its first message."""
        del conversation, server
        if not self._is_named:
            self._print(("" if self._is_first else "\n") + self._style.paint(plain(self._name), "bold"))
            self._is_first, self._is_named = False, True

    def add(self, message: CheckedMessage) -> None:
        """Print the message, or keep its findings until the end of the file."""
        self._summary.add(message.judged.verdict)
        self._known += sum(each.is_known for each in message.findings)
        if not self._each:
            self._group(message)
        elif self.options.with_messages or message.findings:
            self._print("\n".join(self._lines(message)))

    def end(self, ended: FileEnd) -> None:
        """Print the findings, and the counts if the file was judged to its end."""
        for line in self._groups.lines():
            self._print(line)
        if ended.error is None:
            self._print("\n".join(self._summary.lines(ended.counts, ended.revision, self._style, self._redactor.text)))
        if self._known:
            rest = "" if self._each else f"; --all shows {'it' if self._known == 1 else 'them'}"
            self._print(self._style.paint(f"{counted(self._known, 'finding')} ignored (in baseline){rest}", "dim"))

    def close(self, ended: RunEnd) -> None:
        """Do nothing: problems of the run go to standard error."""

    def _group(self, message: CheckedMessage) -> None:
        verdict, new = message.judged.verdict, []
        for each, raw in zip(message.findings, verdict.violations, strict=True):
            if not each.is_known:
                new.append((each.violation, self._excerpt(message, raw)))
        head = partial(self._header, message)
        self._groups.add(verdict, new, line=message.judged.line, server=message.server, head=head)

    def _lines(self, message: CheckedMessage) -> Iterator[str]:
        """Yield the lines of one message with all of its findings."""
        verdict = message.judged.verdict
        yield self._header(message)
        shown = []
        for each, raw in zip(message.findings, verdict.violations, strict=True):
            places = [*place_lines(each.violation, self._style), *self._excerpt(message, raw)()]
            known = [self._style.paint(" " * _INDENT + _KNOWN, "dim")] if each.is_known else []
            shown.append((places, [*rule_lines(each.violation, self._style), *known]))
        yield from without_repeats(shown)
        if verdict.more:
            yield f"{' ' * _INDENT}and at least {verdict.more} more"

    def _header(self, message: CheckedMessage) -> str:
        judged = message.judged
        return header(judged._replace(server=cut(judged.server, 40)), self._style, self._redactor.text)

    def _excerpt(self, message: CheckedMessage, raw: Violation) -> Excerpt:
        if message.judged.lacks:
            # What is recorded is not what was judged.
            return list
        return partial(excerpt_lines, message.judged.verdict, raw, self._redactor, self._style, _INDENT)

    def _print(self, text: str) -> None:
        self.write(f"{text}\n")


REPORT = TextReport
