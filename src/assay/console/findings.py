"""Findings of all servers in groups: how many, since when, and what enforce mode would have blocked. No I/O."""

from collections.abc import Iterable
from typing import Any

from assay.records.digest import FindingGroup, FindingGroups
from assay.records.judged_records import JudgedRecord
from assay.rules import RULES
from assay.rules.sentences import sentence


class FindingBoard:
    """All groups. The file of a group is the number of its server."""

    def __init__(self) -> None:
        self.groups = FindingGroups()
        self._ticks: dict[int, int] = {}
        """When each group last changed."""

    def take(self, message: JudgedRecord, tick: int) -> None:
        """Count the findings of a message."""
        for group in self.groups.add(message):
            self._ticks[group.id] = tick

    def answer(self, since: int = -1) -> dict[str, Any]:
        """Return the groups that have changed *since* a tick, and the rules that they name."""
        found = [each for each in self.groups if self._ticks[each.id] > since]
        return {"groups": [line(each, int(each.file)) for each in found], "rules": rules_of(found)}


def line(group: FindingGroup, server: int) -> dict[str, Any]:
    """Return a group for a page, with the number of its server."""
    key, finding, trend = group.key, group.finding, group.trend
    return {
        "id": group.id,
        "server": server,
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
        "known": group.is_known,
        "says": sentence(finding),
        "expected": finding.expected,
        "found": finding.found,
        "hint": finding.hint,
        "trend": {"start": trend.start, "seconds": trend.width, "counts": trend.series},
        "samples": list(reversed(group.lasts)),
    }


def rules_of(groups: Iterable[FindingGroup]) -> dict[str, Any]:
    """Return the known rules of all *groups*."""
    found = {rule: rule_text(rule) for rule in sorted({each.key.rule for each in groups})}
    return {rule: about for rule, about in found.items() if about is not None}


def rule_text(rule: str) -> dict[str, str] | None:
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
