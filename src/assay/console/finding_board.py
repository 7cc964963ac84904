"""Findings by server, rule, tool and place: how many, since when, and what enforce mode would have blocked. No I/O."""

from collections import deque
from collections.abc import Iterator
from typing import Any, Final

from assay.console.console_rows import FindingLine, RuleText, TrendCounts
from assay.console.row_cells import cut, faults
from assay.records.journal.reading import Record, is_audited
from assay.records.outcomes import recorded_outcome
from assay.rules import RULES

MOST_GROUPS: Final = 2_000
"""Maximal groups; random names make one for each message. Further ones are counted by their rule alone."""

_MOST_PARTS: Final = 48
"""Counts of a trend."""

_MOST_SAMPLES: Final = 10


class TrendBuckets:
    """Counts over time. The width of a part doubles whenever there are too many parts."""

    __slots__ = ("_counts", "_start", "_width")

    def __init__(self, start: float) -> None:
        self._start = float(int(start))
        self._width = 1.0
        self._counts: dict[int, int] = {}

    def add(self, at: float) -> None:
        """Count one at the time *at*; one before the start counts as the first."""
        part = max(0, int((at - self._start) / self._width))
        while part >= _MOST_PARTS:
            self._width *= 2
            merged: dict[int, int] = {}
            for each, count in self._counts.items():
                merged[each // 2] = merged.get(each // 2, 0) + count
            self._counts = merged
            part = int((at - self._start) / self._width)
        self._counts[part] = self._counts.get(part, 0) + 1

    def answer(self) -> TrendCounts:
        """Return the counts for a page."""
        counts = [self._counts.get(each, 0) for each in range(max(self._counts, default=-1) + 1)]
        return {"start": self._start, "seconds": self._width, "counts": counts}


class FindingStats:
    """The findings of one group."""

    __slots__ = (
        "action", "blocked", "count", "expected", "first", "found", "hint", "id", "key", "last", "party", "quarantined",
        "samples", "tick", "trend", "would_block", "would_quarantine",
    )  # fmt: skip

    def __init__(self, ident: int, key: tuple[int, str, str, str, str, str], time: float) -> None:
        self.id, self.key = ident, key
        self.count = self.blocked = self.would_block = self.quarantined = self.would_quarantine = self.tick = 0
        self.first = self.last = time
        self.action = self.expected = self.found = self.hint = self.party = ""
        self.trend = TrendBuckets(time)
        self.samples: deque[int] = deque(maxlen=_MOST_SAMPLES)

    def answer(self) -> FindingLine:
        """Return the group for a page."""
        server, rule, method, tool, at, entry = self.key
        return {
            "id": self.id,
            "server": server,
            "rule": rule,
            "method": method,
            "tool": tool,
            "at": at,
            "entry": entry,
            "party": self.party,
            "count": self.count,
            "first": self.first,
            "last": self.last,
            "blocked": self.blocked,
            "wouldBlock": self.would_block,
            "quarantined": self.quarantined,
            "wouldQuarantine": self.would_quarantine,
            "action": self.action,
            "expected": self.expected,
            "found": self.found,
            "hint": self.hint,
            "trend": self.trend.answer(),
            "samples": list(reversed(self.samples)),
        }


class FindingBoard:
    """All groups."""

    def __init__(self) -> None:
        self._groups: dict[tuple[int, str, str, str, str, str], FindingStats] = {}
        self.blocked = self.would_block = 0
        """Messages that were blocked, and that enforce mode would have blocked."""
        self.merged = 0
        """Findings that were counted without their place, because there were too many groups."""

    def take(self, record: Record, seq: int, time: float, server: int, tick: int) -> None:
        """Count the findings of *record*."""
        found = faults(record)
        metadata = record["metadata"]
        outcome = recorded_outcome(record)
        would_block = outcome.is_forwarded
        blocked = outcome.word == "blocked" and not would_block
        self.blocked += blocked
        self.would_block += would_block
        audited = is_audited(record)
        seen: set[int] = set()
        for each in found:
            group = self._group(record, each, server, time)
            group.tick = tick
            group.count += 1
            group.last = max(group.last, time)
            group.first = min(group.first, time)
            group.trend.add(time)
            self._describe(group, each, metadata)
            if group.id in seen:
                continue
            seen.add(group.id)
            group.samples.append(seq)
            stops = group.action in {"refuse", "drop"}
            group.blocked += blocked and stops
            group.would_block += would_block and stops
            removes = group.action == "quarantine"
            group.quarantined += removes and not audited
            group.would_quarantine += removes and audited

    def _describe(self, group: FindingStats, fault: dict[str, Any], metadata: dict[str, Any]) -> None:
        group.action = action_of(fault)
        group.expected, group.found, group.hint = (cut(fault.get(name)) or "" for name in ("expected", "found", "hint"))
        group.party = cut(metadata.get("party")) or ""

    def _group(self, record: Record, fault: dict[str, Any], server: int, time: float) -> FindingStats:
        rule = cut(fault.get("rule")) or ""
        entry = fault.get("entry")
        named = f"{entry.get('kind')} {entry.get('name')}" if isinstance(entry, dict) else ""
        place = "/".join("*" if each.isdecimal() else each for each in (cut(fault.get("at")) or "").split("/"))
        tool = cut(record["metadata"].get("tool")) or ""
        key = (server, rule, cut(record["method"]) or "", tool, place, cut(named) or "")
        if key not in self._groups and len(self._groups) >= MOST_GROUPS:
            self.merged += 1
            # A file can name any number of rules, so unknown ones are counted together.
            key = (0, rule if rule in RULES else "others", "", "", "", "")
        found = self._groups.get(key)
        if found is None:
            found = self._groups[key] = FindingStats(len(self._groups) + 1, key, time)
        return found

    def changed(self, tick: int) -> list[FindingLine]:
        """Return the groups that have changed since *tick*."""
        return [each.answer() for each in self._groups.values() if each.tick > tick]

    def answer(self) -> list[FindingLine]:
        """Return all groups, with most findings first."""
        return [each.answer() for each in sorted(self._groups.values(), key=lambda one: -one.count)]

    def rules(self) -> Iterator[tuple[str, RuleText]]:
        """Yield the rules of all groups."""
        for rule in sorted({key[1] for key in self._groups}):
            about = rule_text(rule)
            if about is not None:
                yield rule, about


def action_of(fault: dict[str, Any]) -> str:
    """Return the action of a violation, which a record has only if it is not the default of its rule."""
    action, rule = fault.get("action"), fault.get("rule")
    if isinstance(action, str):
        return cut(action) or ""
    return RULES[rule].action if isinstance(rule, str) and rule in RULES else ""


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
