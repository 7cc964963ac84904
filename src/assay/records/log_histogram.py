"""Histograms of durations and sizes that can be merged without loss. No I/O."""

from collections.abc import Iterator
from math import log2
from typing import Any, Final

STEPS: Final = 8
"""Buckets for each power of two: the limits of a bucket are 9 % apart, so its middle is within 4.5 % of each value."""

PRECISION: Final = 2 ** (1 / (2 * STEPS)) - 1
"""The largest relative error of a percentile."""

_LAST: Final = 64 * STEPS
"""The last bucket, for everything from 2**64 on."""


class LogHistogram:
    """Whole numbers from 0 on, such as microseconds or bytes, counted in buckets of a fixed ratio."""

    __slots__ = ("buckets", "count", "least", "most", "total")

    def __init__(self) -> None:
        self.buckets: dict[int, int] = {}
        self.count = 0
        self.total = 0
        self.least: int | None = None
        self.most: int | None = None

    def add(self, value: int) -> None:
        """Count one value."""
        bucket = _bucket(value)
        self.buckets[bucket] = self.buckets.get(bucket, 0) + 1
        self.count += 1
        self.total += value
        self._widen(value, value)

    def merge(self, other: "LogHistogram") -> None:
        """Add the values of *other*."""
        for bucket, number in other.buckets.items():
            self.buckets[bucket] = self.buckets.get(bucket, 0) + number
        self.count += other.count
        self.total += other.total
        if other.least is not None and other.most is not None:
            self._widen(other.least, other.most)

    def _widen(self, least: int, most: int) -> None:
        self.least = least if self.least is None or least < self.least else self.least
        self.most = most if self.most is None or most > self.most else self.most

    def quantile(self, part: float) -> float:
        """Return the value that *part* of all values do not exceed, within `PRECISION`."""
        left = part * self.count
        for bucket in sorted(self.buckets):
            left -= self.buckets[bucket]
            if left <= 0:
                return min(max(_middle(bucket), self.least or 0), self.most or 0)
        return self.most or 0

    def as_json(self) -> dict[str, Any] | None:
        """Return the numbers for a page; None without any value."""
        if not self.count:
            return None
        shown = {f"p{round(100 * part)}": round(self.quantile(part), 3) for part in (0.5, 0.95, 0.99)}
        limits = {"count": self.count, "total": self.total, "least": self.least, "most": self.most}
        return limits | shown | {"buckets": list(self._shown())}

    def _shown(self) -> Iterator[list[float]]:
        """Yield the limits and the number of each bucket, without gaps, four to a power of two."""
        wide: dict[int, int] = {}
        for bucket, number in self.buckets.items():
            at = (bucket - 1) // 2 if bucket else -1
            wide[at] = wide.get(at, 0) + number
        for at in range(min(wide), max(wide) + 1):
            yield [0 if at < 0 else _start(2 * at + 1), _start(2 * at + 3), wide.get(at, 0)]

    def bounds(self) -> list[tuple[float, int]]:
        """Return the upper bound and the number of each bucket that is not empty, in order."""
        return [(_start(bucket + 1), self.buckets[bucket]) for bucket in sorted(self.buckets)]


def _bucket(value: int) -> int:
    if value < 1:
        return 0
    # A whole number may be too large for a float.
    power = log2(value) if value < 1 << 64 else 64
    return min(1 + int(power * STEPS), _LAST)


def _start(bucket: int) -> float:
    return round(float(2 ** ((bucket - 1) / STEPS)), 3)


def _middle(bucket: int) -> float:
    return 0.0 if bucket == 0 else float(2 ** ((bucket - 0.5) / STEPS))
