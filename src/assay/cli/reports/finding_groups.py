"""Findings of a whole run, one group for each file and fingerprint. Memory is bounded, however long the recordings."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from assay.cli.reports.check_findings import SEVERITY, CheckedMessage, CheckFinding

MOST_GROUPS: Final = 2000
"""Maximal number of groups: some 4 KB each. GitHub shows at most 5,000 results of a run."""

MOST_PLACES: Final = 10
"""Maximal places that are listed of one group."""


class FindingPlace(NamedTuple):
    """Where a finding of a group is."""

    line: int
    at: str


class FindingGroup:
    """Findings of one file with the same fingerprint."""

    __slots__ = ("count", "first", "level", "places")

    def __init__(self, first: CheckFinding) -> None:
        self.first = first
        self.level = first.level
        self.count = 0
        self.places: list[FindingPlace] = []
        """The first places, without repeats."""

    def add(self, finding: CheckFinding) -> None:
        """Count one finding."""
        self.count += 1
        self.level = min(self.level, finding.level, key=SEVERITY.index)
        place = FindingPlace(finding.line, finding.violation.at)
        if len(self.places) < MOST_PLACES and place not in self.places:
            self.places.append(place)

    @property
    def fingerprint(self) -> str:
        """The fingerprint of each of its findings."""
        return self.first.key.fingerprint

    @property
    def also(self) -> str:
        """The other places, for people; "" if there is only one."""
        if self.count == 1:
            return ""
        listed = [f"line {line}" if line else "the end" for line in dict.fromkeys(each.line for each in self.places)]
        rest = self.count - len(self.places)
        return f"{self.count:,} times: {', '.join(listed)}{f' and {rest:,} more' if rest > 0 else ''}"


class FindingGroups:
    """All groups, in order of first appearance."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, object, bool], FindingGroup] = {}
        self.left_out = 0
        """Findings of groups beyond the limit."""
        self.known = 0
        """Findings that the baseline has."""

    def add(self, message: CheckedMessage) -> None:
        """Add the findings of one message."""
        for each in message.findings:
            self.known += each.is_known
            key = (each.file, each.key, each.is_known)
            group = self._groups.get(key)
            if group is None:
                if len(self._groups) >= MOST_GROUPS:
                    self.left_out += 1
                    continue
                group = self._groups[key] = FindingGroup(each)
            group.add(each)

    def __iter__(self) -> Iterator[FindingGroup]:
        return iter(self._groups.values())

    def new(self) -> list[FindingGroup]:
        """Return the groups that the baseline does not have, the worst first."""
        found = [each for each in self if not each.first.is_known]
        return sorted(found, key=lambda each: SEVERITY.index(each.level))

    @property
    def rest(self) -> str:
        """A sentence about findings beyond the limit; "" without any."""
        return f"{self.left_out:,} other findings are not listed; --format ndjson lists all" if self.left_out else ""
