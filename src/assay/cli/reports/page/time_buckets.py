"""Messages over time, in buckets that can be merged without loss. No I/O."""

from math import frexp
from typing import Final

_MOST_BUCKETS: Final = 240
"""Bars that a chart can show."""


class TimeBuckets:
    """
    Messages over time, in at most 240 buckets whose width is a power of two of a millisecond.

    The width depends on the first and the last time only: it doubles until both fit.
    """

    __slots__ = ("_counts", "_shift")

    def __init__(self) -> None:
        self._counts: dict[int, list[int]] = {}
        self._shift = 0

    def add(self, milliseconds: int, *, has_findings: bool) -> None:
        """Count one message."""
        if self._count(milliseconds >> self._shift, 1, int(has_findings)):
            self._fit()

    def merge(self, other: "TimeBuckets") -> None:
        """Add the messages of *other*."""
        self._coarsen(other._shift - self._shift)
        for bucket, (messages, faulty) in other._counts.items():
            self._count(bucket >> (self._shift - other._shift), messages, faulty)
        self._fit()

    def as_json(self) -> list[list[int]]:
        """Return the start of each bucket that is not empty, in milliseconds since 1970, and its numbers."""
        return [[bucket << self._shift, *numbers] for bucket, numbers in sorted(self._counts.items())]

    @property
    def width(self) -> int:
        """The width of a bucket in milliseconds."""
        return 1 << self._shift

    def _count(self, bucket: int, messages: int, faulty: int) -> bool:
        """Count messages; return whether the bucket is new."""
        found = self._counts.get(bucket)
        if found is None:
            self._counts[bucket] = [messages, faulty]
            return True
        found[0] += messages
        found[1] += faulty
        return False

    def _fit(self) -> None:
        if len(self._counts) < 2:
            return
        first, last = min(self._counts), max(self._counts)
        if last - first >= _MOST_BUCKETS:
            # The number of bits by which the span is too long, then one more if that was not enough.
            by = max(1, frexp((last - first + 1) / _MOST_BUCKETS)[1] - 1)
            self._coarsen(by)
            self._fit()

    def _coarsen(self, by: int) -> None:
        if by <= 0:
            return
        before, self._counts = self._counts, {}
        self._shift += by
        for bucket, (messages, faulty) in before.items():
            self._count(bucket >> by, messages, faulty)
