"""Put what a file has into the order of its times, in bounded memory. No I/O."""

from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from typing import Final, TypeVar

T = TypeVar("T")

MOST_HELD: Final = 32 << 20
"""Bytes of messages to hold at a time. Recorders write in the order of time, but for streams, written at their end."""

MOST_ITEMS: Final = 500_000
"""Items to hold at a time, some 300 bytes each beside the message: a message may be empty."""


def in_order(items: Iterable[T], time: Callable[[T], float], size: Callable[[T], int]) -> Iterator[T]:
    """
    Yield *items* by their time; those of equal time in the order of the file.

    Not more than `MOST_HELD` bytes are held, by the *size* of each, and not more than `MOST_ITEMS`. In a larger file,
    an item that comes later than so many bytes after its time is not moved to its place.
    """
    held: list[tuple[float, int, T]] = []
    total = 0
    for number, item in enumerate(items):
        heappush(held, (time(item), number, item))
        total += size(item)
        while total > MOST_HELD or len(held) > MOST_ITEMS:
            first = heappop(held)[2]
            total -= size(first)
            yield first
    while held:
        yield heappop(held)[2]
