"""Findings that differ only in lines, ids, indices and values, with samples of their messages. No I/O."""

from typing import Any, Final, NamedTuple

from assay.cli.reports.page.smallest import Smallest, rank
from assay.records.digest import FindingKey, Level, key_of, level_of
from assay.records.judged_records import JudgedRecord
from assay.records.record import Finding

MOST_SAMPLES: Final = 2
"""Messages of one group that are kept beside the first one."""

_LAST: Final = 1 << 60
"""The line of what is found at the end of a recording."""


PagePlace = tuple[str, int, int]
"""The file, the line and the rank of a message: files are in the order of their names."""


class PageGroupKey(NamedTuple):
    """What the findings of a group have in common."""

    key: FindingKey
    level: Level


def group_key(message: JudgedRecord, finding: Finding) -> PageGroupKey:
    """Return the group of a finding of *message*."""
    return PageGroupKey(key_of(message.record, finding), level_of(finding))


def group_rank(key: PageGroupKey) -> int:
    """Return the rank of a group, which also is its name on the page."""
    return rank(*key.key, key.level)


def group_name(key: PageGroupKey) -> str:
    """Return the name of a group in addresses."""
    return f"{group_rank(key):016x}"


class PageSample(NamedTuple):
    """A finding of a group, with its message."""

    ident: int
    """The rank of the message."""
    message: dict[str, Any]
    """The message, as `shown_message` returns it; samples of several groups share it."""
    finding: int
    """The number of the finding in the message."""


class PageGroup:
    """All findings of one group: their number, the first and the last, and samples."""

    __slots__ = ("count", "first", "first_sample", "last", "period", "samples")

    def __init__(self) -> None:
        self.count = 0
        self.first: PagePlace | None = None
        self.last: PagePlace | None = None
        self.period: tuple[float, float] | None = None
        self.first_sample: PageSample | None = None
        self.samples: Smallest[int, PageSample] = Smallest(MOST_SAMPLES)

    def add(self, file: str, line: int, ident: int, time: float | None) -> bool:
        """Count one finding in the message *ident*; return whether it is the first one by its place."""
        at = (file, line or _LAST, ident)
        is_first = self.first is None or at < self.first
        self._widen(at, at, None if time is None else (time, time))
        self.count += 1
        return is_first

    def merge(self, other: "PageGroup") -> None:
        """Add the findings of *other*."""
        if other.first is None or other.last is None:
            return
        if self.first is None or other.first < self.first:
            self.first_sample = other.first_sample
        self._widen(other.first, other.last, other.period)
        self.count += other.count
        self.samples.merge(other.samples, lambda _, __: None)

    def _widen(self, first: PagePlace, last: PagePlace, period: tuple[float, float] | None) -> None:
        self.first = first if self.first is None else min(self.first, first)
        self.last = last if self.last is None else max(self.last, last)
        if period is not None:
            own = self.period or period
            self.period = (min(own[0], period[0]), max(own[1], period[1]))

    def shown_samples(self) -> list[PageSample]:
        """Return the samples, the first one by its place first."""
        first = [] if self.first_sample is None else [self.first_sample]
        return first + [each for each in self.samples.values() if first and each.ident != first[0].ident]

    def as_json(self) -> dict[str, Any]:
        """Return the group for a page, without its samples."""
        return {"count": self.count, "first": _place(self.first), "last": _place(self.last), "period": self.period}


def _place(at: PagePlace | None) -> list[Any] | None:
    return None if at is None else [at[0], at[1] % _LAST]
