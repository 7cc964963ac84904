"""The output of `assay demo`: two columns, and below them the findings of the guard. No I/O."""

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Final

from assay.base.printable import plain
from assay.cli.demonstration.demo_comparison import DemoRow, Finding
from assay.cli.demonstration.strict_client import DemoOutcome
from assay.cli.terminal.style import Style

_LABEL: Final = 15
"""Width of the column with the requests."""

_GAP: Final = 2

_MOST_DETAILS: Final = 3
"""Maximal lines of the server's stderr to show."""


class DemoColumns:
    """Results of a client without the guard, next to results with it."""

    def __init__(self, style: Style) -> None:
        self._style = style
        total = min(style.width, 100)
        self._cell = (total - _LABEL - 2 * _GAP) // 2

    def head(self) -> Iterator[str]:
        """Return the header line."""
        without, guarded = ("without the guard", "with the guard") if self._cell > 17 else ("without", "with")
        yield self._style.paint(f"{'':<{_LABEL + _GAP}}{without:<{self._cell + _GAP}}{guarded}", "bold")

    def lines(self, row: DemoRow) -> Iterator[str]:
        """Return the lines for one request."""
        label = wrap(row.request, _LABEL)
        without, guarded = self._outcome(row.without), self._outcome(row.guarded)
        for number in range(max(len(label), len(without), len(guarded))):
            cells = [_at(label, number).ljust(_LABEL), _at(without, number).ljust(self._cell), _at(guarded, number)]
            cells[1] = self._painted(cells[1], row.without)
            cells[2] = self._painted(cells[2], row.guarded)
            yield (" " * _GAP).join(cells).rstrip()

    def _outcome(self, outcome: DemoOutcome) -> list[str]:
        mark = "✓" if outcome.good else "✗"
        return wrap(plain(f"{mark} {outcome.text}"), self._cell, subsequent_indent="  ")

    def _painted(self, cell: str, outcome: DemoOutcome) -> str:
        return self._style.paint(cell, "green" if outcome.good else "red")


def finding_lines(finding: Finding, details: Sequence[str], program: str, style: Style) -> Iterator[str]:
    """Return the lines for one finding: the fault, the rule, and the fix. *program* is the command to show in hints."""
    yield f"  {style.paint(plain(finding.tool), 'bold')}: {finding.done}"
    place = finding.place or "the message"
    what = f"{place}: expected {finding.expected}, found {finding.found}"
    yield from style.wrapped(plain(what), 4)
    yield from (
        style.paint(line, "dim") for line in style.wrapped(f"{finding.rule}; {program} explain {finding.rule}", 4)
    )
    yield from style.wrapped(plain(f"→ {finding.hint}"), 4, 2)
    shown = list(details)[-_MOST_DETAILS:]
    if shown:
        yield "    The last lines of the server's stderr:"
        yield from (style.paint(f"    | {plain(line)}", "dim") for line in shown)


def _at(lines: list[str], number: int) -> str:
    return lines[number] if number < len(lines) else ""
