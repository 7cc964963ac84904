"""Findings of all servers in groups: how many, since when, and what enforce mode would have blocked. No I/O."""

from collections.abc import Iterator

from assay.console.console_rows import FindingLine, RuleText
from assay.records.digest import FindingGroup, FindingGroups
from assay.records.judged_records import JudgedRecord
from assay.records.outcomes import recorded_outcome
from assay.rules import RULES


class FindingBoard:
    """All groups. The file of a group is the number of its server."""

    def __init__(self) -> None:
        self._groups = FindingGroups()
        self._ticks: dict[int, int] = {}
        """When each group last changed."""
        self.blocked = self.would_block = 0
        """Messages that were blocked, and that enforce mode would have blocked."""

    @property
    def left_out(self) -> int:
        """Findings that are only counted, because there were too many groups."""
        return self._groups.left_out

    def take(self, message: JudgedRecord, tick: int) -> None:
        """Count the findings of a message."""
        outcome = recorded_outcome(message.record)
        if outcome.word == "blocked":
            self.would_block += outcome.is_forwarded
            self.blocked += not outcome.is_forwarded
        for group in self._groups.add(message):
            self._ticks[group.id] = tick

    def changed(self, tick: int) -> list[FindingLine]:
        """Return the groups that have changed since *tick*."""
        return [_line(each) for each in self._groups if self._ticks[each.id] > tick]

    def answer(self) -> list[FindingLine]:
        """Return all groups, with most findings first."""
        return [_line(each) for each in sorted(self._groups, key=lambda one: -one.count)]

    def rules(self) -> Iterator[tuple[str, RuleText]]:
        """Yield the rules of all groups."""
        for rule in sorted({each.key.rule for each in self._groups}):
            about = rule_text(rule)
            if about is not None:
                yield rule, about


def _line(group: FindingGroup) -> FindingLine:
    key, finding, trend = group.key, group.finding, group.trend
    counts = trend.counts
    return {
        "id": group.id,
        "server": int(group.file),
        "rule": key.rule,
        "method": key.method,
        "tool": key.tool,
        "at": key.place,
        "entry": key.entry,
        "party": key.party,
        "count": group.count,
        "first": group.first or 0.0,
        "last": group.last or 0.0,
        "blocked": group.blocked,
        "wouldBlock": group.would_block,
        "quarantined": group.quarantined,
        "wouldQuarantine": group.would_quarantine,
        "action": finding.done,
        "expected": finding.expected,
        "found": finding.found,
        "hint": finding.hint,
        "trend": {"start": counts[0][0] if counts else 0.0, "seconds": trend.width, "counts": trend.series},
        "samples": list(reversed(group.lasts)),
    }


def rule_text(rule: str) -> RuleText | None:
    """Return what is known of a rule; None for an unknown one."""
    found = RULES.get(rule)
    if found is None:
        return None
    return {
        "id": found.id,
        "asks": found.asks,
        "why": found.why,
        "source": found.source.replace(" {revision}", ""),
        "fix": found.fix,
        "action": found.action,
        "example": found.example,
    }
