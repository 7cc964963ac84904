"""Rates and durations of a server. Bounded. No I/O, no clock: the time is given."""

from typing import Final

from assay.records.log_histogram import LogHistogram

MINUTE: Final = 60
"""Seconds of a rate."""

_MOST_MS: Final = 1e7
"""The longest duration that is distinguished, some hours."""


class DurationHistogram:
    """Durations in milliseconds."""

    __slots__ = ("_microseconds",)

    def __init__(self) -> None:
        self._microseconds = LogHistogram()

    @property
    def total(self) -> int:
        """The number of durations."""
        return self._microseconds.count

    @property
    def bounds(self) -> list[tuple[float, int]]:
        """The upper bound of each bucket that is not empty, in milliseconds, and its number."""
        return [(bound / 1000, number) for bound, number in self._microseconds.bounds()]

    def add(self, milliseconds: float) -> None:
        """Count one duration."""
        self._microseconds.add(round(min(max(milliseconds, 0), _MOST_MS) * 1000))

    def quantile(self, share: float) -> float | None:
        """Return the milliseconds that this *share* of the durations does not exceed; None without any."""
        return self._microseconds.quantile(share) / 1000 if self.total else None


class RateWindow:
    """Counts by second of the last minute."""

    __slots__ = ("_counts", "_newest")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._newest = 0

    def add(self, at: float, count: int = 1) -> None:
        """Count at the time *at*, in seconds."""
        second = int(at)
        if second > self._newest - MINUTE:
            self._counts[second] = self._counts.get(second, 0) + count
            self._newest = max(self._newest, second)
            if len(self._counts) > 2 * MINUTE:
                self._counts = {each: n for each, n in self._counts.items() if each > self._newest - MINUTE}

    def per_minute(self, now: float) -> int:
        """Return how many there were in the last minute."""
        return sum(count for second, count in self._counts.items() if now - MINUTE < second <= now)

    def series(self, now: float, parts: int = 12) -> list[int]:
        """Return the counts of the last minute in so many *parts*, oldest first."""
        made = [0] * parts
        for second, count in self._counts.items():
            age = int(now) - second
            if 0 <= age < MINUTE:
                made[parts - 1 - age * parts // MINUTE] += count
        return made
