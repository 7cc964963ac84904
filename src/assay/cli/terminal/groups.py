"""Group equal findings: show the first one, how many there are, and in which lines. Memory is bounded."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from assay.base.verdict import Verdict, Violation
from assay.cli.terminal.style import Style
from assay.cli.terminal.verdicts import place_lines, rule_lines, without_repeats

MOST_GROUPS: Final = 1000
"""Maximal number of groups. Peers can make every finding different; beyond this number they are only counted."""

_MOST_LINES: Final = 5
"""Maximal line numbers to list with a finding."""

_NUMBER: Final = re.compile(r"(?<!\w)\d+(?!\w)")
"""A number by itself, unlike in ``tool2``: ids and indices differ between findings that are otherwise equal."""

_LONGEST_NAME: Final = 200
"""Maximal characters of a tool's name that are compared."""

_Key = tuple[str | None, ...]

Excerpt = Callable[[], list[str]]
"""Returns the lines of an excerpt."""


class _Group:
    """Equal findings."""

    __slots__ = ("last", "lines", "more", "places", "rule")

    def __init__(self, violation: Violation, line: int, excerpt: list[str], style: Style) -> None:
        self.places = [*place_lines(violation, style), *excerpt]
        self.rule = rule_lines(violation, style)
        self.last = line
        self.lines: list[int] = []
        self.more = 0

    def add(self, line: int) -> None:
        """Count one more finding, in *line*."""
        self.more += 1
        if line != self.last and len(self.lines) <= _MOST_LINES:
            self.lines.append(line)
        self.last = line


class Groups:
    """The findings of one recording, in order of first appearance."""

    def __init__(self, style: Style) -> None:
        self._style = style
        self._groups: dict[_Key, _Group] = {}
        self._blocks: list[tuple[str, list[_Group], int]] = []
        self._left_out = 0

    def add(
        self,
        verdict: Verdict,
        findings: Iterable[tuple[Violation, Excerpt]],
        *,
        line: int,
        server: str,
        head: Callable[[], str],
    ) -> None:
        """
        Add the *findings* of one message, each with a function that returns an excerpt of the message.

        *head* returns the line for the message. Both functions are called only for what is shown.
        """
        new: list[_Group] = []
        for violation, excerpt in findings:
            key = _key(verdict, server, violation)
            group = self._groups.get(key)
            if group is not None:
                group.add(line)
            elif len(self._groups) < MOST_GROUPS:
                self._groups[key] = _Group(violation, line, excerpt(), self._style)
                new.append(self._groups[key])
            else:
                self._left_out += 1
        if new:
            self._blocks.append((head(), new, verdict.more))

    def lines(self) -> Iterator[str]:
        """Return the lines for all groups."""
        for head, groups, more in self._blocks:
            yield head
            yield from without_repeats([([*each.places, *self._repeats(each)], each.rule) for each in groups])
            if more:
                yield f"         and at least {more} more"
        if self._left_out:
            yield f"and {self._left_out:,} other findings, which --all lists"

    def _repeats(self, group: _Group) -> list[str]:
        """Return how often a finding was repeated, and where."""
        if not group.more:
            return []
        where = _where(group)
        text = f"and {group.more:,} more like this{where and f', {where}'}"
        return [self._style.paint(line, "dim") for line in self._style.wrapped(text, 9)]


def _key(verdict: Verdict, server: str, violation: Violation) -> _Key:
    """Return the key by which findings are grouped."""
    # Contract findings are grouped by tool, and unanswered requests are listed one by one: readers need those details.
    own = violation.rule.startswith(("contract/", "lock/")) or verdict.kind == "missing"
    texts = (violation.at, violation.expected, violation.found)
    return (
        server,
        verdict.party,
        violation.rule,
        violation.action,
        violation.reason,
        (verdict.tool or "")[:_LONGEST_NAME] if own else None,
        str(violation.entry),
        *(_NUMBER.sub("0", each) for each in texts),
    )


def _where(group: _Group) -> str:
    listed = [str(each) for each in group.lines[:_MOST_LINES] if each]
    if not listed:
        return ""
    rest = f" … {group.last}" if len(group.lines) > _MOST_LINES else ""
    return f"in line{'' if len(listed) == 1 and not rest else 's'} {', '.join(listed)}{rest}"
