"""Put what a file has into the order of its times, in bounded memory. No I/O."""

from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from math import inf, nextafter
from typing import Final, TypeVar

T = TypeVar("T")

MOST_HELD: Final = 32 << 20
"""Bytes of messages to hold at a time. Recorders write in the order of time, but for streams, written at their end."""

MOST_ITEMS: Final = 500_000
"""Items to hold at a time, some 300 bytes each beside the message: a message may be empty."""


def with_times(
    items: Iterable[T],
    begin: Callable[[T], float | None],
    end: Callable[[T], float | None],
    size: Callable[[T], int],
) -> Iterator[tuple[float, T]]:
    """
    Yield *items* in the order of the file, each with its time; one without a time is put between its neighbours.

    It is put as late as possible, just before the next one with a time: what ended in between most likely comes before
    it. At the end of the file it is put behind everything.
    """
    undated: list[T] = []
    held, last, latest = 0, 0.0, 0.0
    for item in items:
        time = begin(item)
        if time is not None:
            # In a file that runs backwards the next one is the earlier one.
            between = time if time >= last else nextafter(last, -inf)
            latest = max(latest, time, end(item) or time)
            last = time
        else:
            undated.append(item)
            held += size(item)
            if held <= MOST_HELD and len(undated) <= MOST_ITEMS:
                continue
            between = last
        yield from ((between, each) for each in undated)
        undated, held = [], 0
        if time is not None:
            yield time, item
    yield from ((latest, each) for each in undated)


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
