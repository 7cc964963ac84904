"""Merge the results of the parts of a file: in the order of its lines, as if one process had read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import islice
from typing import TYPE_CHECKING

from assay.cli.checking.check_stream import StreamItem, UnitEnd, moved, order_of
from assay.cli.checking.work_units import FilePart, SharedRows, WholeFile

if TYPE_CHECKING:
    from assay.cli.checking.check_terms import CheckTerms
    from assay.cli.checking.range_units import PlacedRange

Stream = Callable[[int], Iterator[StreamItem]]
"""Returns the results of the unit with this index, as soon as it is done."""


def merged(
    terms: CheckTerms, whole: WholeFile, units: Sequence[SharedRows | FilePart], stream: Stream
) -> Iterator[StreamItem]:
    """
    Yield the results of a file, given the *units* that it was split into, in the order of their first lines.

    If one of them cannot be judged apart, the *whole* is judged here: what was already yielded is the same.
    """
    end, done = UnitEnd(), 0
    for item in _in_order([unit.before if isinstance(unit, FilePart) else 0 for unit in units], stream):
        if not isinstance(item, UnitEnd):
            done += 1
            yield item
        elif item.error is None:
            end.merge(item)
        else:
            # The counts of the other parts go beyond the error.
            yield from islice(whole.results(terms, lambda _: None), done, None)
            return
    yield end


def put_together(terms: CheckTerms, shown: str, ranges: Sequence[PlacedRange], stream: Stream) -> Iterator[StreamItem]:
    """Yield the results of a file, given its *ranges*, of which it is proved that they have every row once."""
    rows = tuple((number + each.more, text) for each in ranges for number, text in each.counts.shared)
    end = SharedRows(shown, rows).end(terms)
    befores = [each.before for each in ranges]
    for item in _in_order(befores, lambda index: (moved(each, ranges[index].more) for each in stream(index))):
        if isinstance(item, UnitEnd):
            end.merge(item)
        else:
            yield item
    yield end


def _in_order(befores: Sequence[int], stream: Stream) -> Iterator[StreamItem]:
    """
    Yield the results of all units, and the end of each before anything that comes behind its first line.

    *befores* are the lines before the first one of each.
    """
    waiting: list[tuple[tuple[int, int], int, StreamItem, Iterator[StreamItem]]] = []
    for index, before in enumerate(befores):
        # All parts that begin above are known, so what is above this one is complete.
        yield from _until(before, waiting)
        items = stream(index)
        yield from _advance(index, items, waiting)
    yield from _until(None, waiting)


def _until(
    line: int | None, waiting: list[tuple[tuple[int, int], int, StreamItem, Iterator[StreamItem]]]
) -> Iterator[StreamItem]:
    """Yield everything up to *line*; everything that is left without one."""
    while waiting and (line is None or waiting[0][0][0] <= line):
        _, index, item, items = heappop(waiting)
        yield item
        yield from _advance(index, items, waiting)


def _advance(
    index: int,
    items: Iterator[StreamItem],
    waiting: list[tuple[tuple[int, int], int, StreamItem, Iterator[StreamItem]]],
) -> Iterator[StreamItem]:
    """Put the next item of a unit into its place; yield its end."""
    item = next(items)
    if isinstance(item, UnitEnd):
        yield item
    else:
        heappush(waiting, (order_of(item), index, item, items))
