"""Differences between the verdicts of a journal and those of today, for people."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from assay.base.printable import plain
from assay.cli.reports.check_findings import CheckedMessage
from assay.cli.reports.check_report import CheckReport, FileEnd, ReportOptions, RunEnd
from assay.cli.reports.report_outputs import ReportOutput

if TYPE_CHECKING:
    from assay.cli.checking.check_stream import ChangedVerdict

_REASONS: Final = {
    "no payload": "without payloads",
    "redacted": "redacted",
    "by its headers": "blocked for its headers",
    "by a lock": "compared with a lock",
    "not judged": "not judged",
    "broken": "not a record",
}
"""Why a record is not compared."""

_PAYLOADS: Final = "; a guard or server writes them with --set journal.payloads=true"


class ComparisonReport(CheckReport):
    """The differences of each file as they are found, and counts below them."""

    def __init__(self, options: ReportOptions, output: ReportOutput) -> None:
        super().__init__(options, output)
        self._name = ""

    def begin(self, name: str) -> None:
        """Print the name of the file, if there are several."""
        if self.options.has_several:
            self.write(f"{self.output.style.paint(plain(name), 'bold')}\n")

    def add(self, message: CheckedMessage) -> None:
        """Do nothing: findings are not differences."""

    def differ(self, difference: "ChangedVerdict") -> None:
        """Print a difference."""
        self.write(f"{difference.text}\n")

    def end(self, ended: FileEnd) -> None:
        """Print how many records are the same."""
        if ended.error is None:
            self.write(f"{_total(ended.outcomes)}\n")

    def close(self, ended: RunEnd) -> None:
        """Do nothing: problems of the run go to standard error."""


def comparison_problem(outcomes: Mapping[str, int]) -> str | None:
    """Return why nothing was compared; None if something was."""
    if outcomes.get("same") or outcomes.get("different"):
        return None
    return f"nothing to replay{_left_out(outcomes)}{_PAYLOADS if outcomes.get('no payload') else ''}"


def _total(outcomes: Mapping[str, int]) -> str:
    total, same, different = sum(outcomes.values()), outcomes.get("same", 0), outcomes.get("different", 0)
    shown = f", {different} different" if different else ""
    return f"{total:,} record{'' if total == 1 else 's'}: {same:,} the same{shown}{_left_out(outcomes)}"


def _left_out(outcomes: Mapping[str, int]) -> str:
    """Return how many records were not compared, with the reasons."""
    reasons = [f"{outcomes[each]:,} {words}" for each, words in _REASONS.items() if outcomes.get(each)]
    return f"; not replayable: {', '.join(reasons)}" if reasons else ""


REPORT = ComparisonReport
