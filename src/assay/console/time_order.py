"""
Items of several guards in the order of their times. Bounded. No I/O, no clock: the time is given.

A guard gathers its records before it sends them, so what two guards judged one after the other can come the other way
round. Items are held until those of all guards from the same time have come.
"""

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import Any, Final, NamedTuple

from assay.console.console_state import ConsoleSource
from assay.records.journal.reading import recorded_time
from assay.records.live.feed_items import FeedItem

WINDOW: Final = 0.1
"""Seconds that an item is held: a guard gathers for 50 ms, and takes some milliseconds to send."""

MOST_HELD: Final = 10_000
"""Maximal items that are held, some 25 MB; beyond this the oldest is released early. Guards make 50,000 a second."""

MOST_BYTES: Final = 32 << 20
"""Maximal bytes of messages that are held, for items with payloads."""

_FRAMES: Final = ("frame", "frameBase64")
"""The members of a record with its message, as text or as other bytes."""


class TimedItem(NamedTuple):
    """An item of a source, and its time in seconds since 1970; a number keeps the order of equal times."""

    time: float
    number: int
    source: ConsoleSource
    item: FeedItem


class TimeOrder:
    """What came from all guards, until it is released in order. Items of one source keep their order."""

    def __init__(self) -> None:
        self._heap: list[TimedItem] = []
        self._last: dict[ConsoleSource, float] = {}
        """The time of the last item of each source."""
        self._count = 0
        self._bytes = 0
        self._now = 0.0

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, source: ConsoleSource, item: FeedItem, now: float) -> None:
        """Hold an item that came *now*."""
        self.clock(now)
        self._count += 1
        # A clock that is ahead, or an invalid time, must not hold the item back for longer than any other.
        time = max(min(recorded_time(_ts(item), now), now), self._last.get(source, 0.0))
        if item.event == "bye":
            self._last.pop(source, None)
        else:
            self._last[source] = time
        self._bytes += _size(item)
        heappush(self._heap, TimedItem(time, self._count, source, item))

    def clock(self, now: float) -> None:
        """Note the time. If the clock was set back, nothing that is held waits until it is as late again."""
        if now < self._now:
            self._last = {source: min(last, now) for source, last in self._last.items()}
            self._heap = [each._replace(time=min(each.time, now)) for each in self._heap]
            heapify(self._heap)
        self._now = now

    def due(self, before: float) -> Iterator[TimedItem]:
        """Yield the items from before the time *before*, and those that are too many; the oldest first."""
        while self._heap and (self._heap[0].time <= before or self.is_full):
            found = heappop(self._heap)
            self._bytes -= _size(found.item)
            yield found

    @property
    def is_full(self) -> bool:
        """Whether items are to be released early."""
        return len(self._heap) > MOST_HELD or self._bytes > MOST_BYTES


def in_order(source: ConsoleSource, items: Iterable[FeedItem], now: float) -> Iterator[TimedItem]:
    """Yield the *items* of one source with their times, which never go back."""
    last = 0.0
    for number, item in enumerate(items):
        last = max(last, min(recorded_time(_ts(item), now), now))
        yield TimedItem(last, number, source, item)


def _ts(item: FeedItem) -> str:
    ts = item.data.get("ts")
    return ts if isinstance(ts, str) else ""


def _size(item: FeedItem) -> int:
    metadata: Any = item.data.get("metadata")
    frames = [metadata.get(name) for name in _FRAMES] if isinstance(metadata, dict) else ()
    return sum(len(each) for each in frames if isinstance(each, str))
