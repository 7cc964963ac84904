"""Divide the conversations of a scanned recording into units of work that give the same results as the whole."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from assay.cli.checking.work_units import FilePart, SharedRows
from assay.records.recording.judging import END, MOST_CONVERSATIONS, RecordingPart
from assay.records.transcript import members_of

if TYPE_CHECKING:
    from assay.cli.checking.block_scan import ScannedPage

SMALLEST: Final = 4 << 20
"""Minimal bytes of a unit: starting on one, and reading the lines of its neighbours, must not count."""

LARGEST: Final = 64 << 20
"""Maximal bytes of a unit, unless one conversation has more: a lost unit is done again."""

_UNITS_A_JOB: Final = 4
"""Units for each process of what is left of the file: the last ones are small, so that all are busy until the end."""


class _TalkGroup(NamedTuple):
    """Conversations that have to be judged together, and the pages from the first to the last that has a row."""

    numbers: tuple[int, ...]
    first: int
    last: int
    rows: int


def split(path: str, shown: str, pages: Sequence[ScannedPage], jobs: int) -> list[SharedRows | FilePart]:
    """Return the units for a file with these *pages*; one that is empty if it is better judged as a whole."""
    befores = [0, *accumulate(page.lines for page in pages)]
    shared = [(befores[index] + at + 1, line) for index, page in enumerate(pages) for at, line in page.shared]
    end_of_file = pages[-1].offset + pages[-1].size
    units: list[FilePart] = []
    for first, last in _segments(pages):
        is_foreign = first == 0 and not any(map(_is_of_guard, pages[: last + 1]))
        groups = _joined(pages, first, last)
        if _may_drop(groups, is_foreign=is_foreign):
            groups = [_TalkGroup(tuple(n for each in groups for n in each.numbers), first, last, 1)] if groups else []
        end = befores[last + 1] + 1 if last + 1 < len(pages) else END
        start = befores[first] + 1 if pages[first].begins else 0
        for unit in _balanced(pages, groups, end_of_file, jobs):
            begin, size = pages[unit.first].offset, _bytes(pages, unit.first, unit.last)
            part = RecordingPart(frozenset(unit.numbers), is_foreign, end, start)
            units.append(FilePart(path, shown, begin, size, befores[unit.first], part))
    if len(units) < 2:
        return []
    total = sum(each.size for each in units)
    whole = sum(page.size for page in pages)
    counted = [each._replace(share=each.size * whole // total) for each in sorted(units, key=lambda each: each.offset)]
    return [SharedRows(shown, tuple(shared)), *counted]


def _is_of_guard(page: ScannedPage) -> bool:
    """Return whether a page shows that a guard wrote it: the start of a recording, or its end."""
    # The other one of these rows is cut off, whatever words are left of it; only as the first line it is an error.
    return page.begins or any(members_of(2, line) for _, line in page.shared)


def _bytes(pages: Sequence[ScannedPage], first: int, last: int) -> int:
    return pages[last].offset + pages[last].size - pages[first].offset


def _segments(pages: Sequence[ScannedPage]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last page of each recording in the file."""
    begins = [0, *(index for index, page in enumerate(pages) if page.begins and index)]
    for first, following in zip(begins, [*begins[1:], len(pages)], strict=True):
        if following > first:
            yield first, following - 1


def _joined(pages: Sequence[ScannedPage], first: int, last: int) -> list[_TalkGroup]:
    """Return the conversations of these pages, those that share tools together, in order of their first page."""
    leaders: dict[int, int] = {}

    def leader(number: int) -> int:
        while (above := leaders.get(number, number)) != number:
            leaders[number] = number = leaders.get(above, above)
        return number

    spans: dict[int, list[int]] = {}
    for index in range(first, last + 1):
        for number, rows in pages[index].rows.items():
            span = spans.setdefault(number, [index, index, 0])
            span[1] = index
            span[2] += rows
        for one, other in pages[index].links:
            leaders[leader(one)] = leader(other)
    groups: dict[int, list[int]] = {}
    for number in spans:
        groups.setdefault(leader(number), []).append(number)
    made = [
        _TalkGroup(
            tuple(numbers),
            min(spans[each][0] for each in numbers),
            max(spans[each][1] for each in numbers),
            sum(spans[each][2] for each in numbers),
        )
        for numbers in groups.values()
    ]
    return sorted(made, key=lambda each: (each.first, each.last))


def _may_drop(groups: Sequence[_TalkGroup], *, is_foreign: bool) -> bool:
    """
    Return whether judging all conversations together might drop one that still has rows, for lack of memory.

    The one that was silent for longest is dropped, so as many others must have had rows in the meantime.
    """
    count = sum(len(each.numbers) for each in groups)
    if count < MOST_CONVERSATIONS:
        return False
    if is_foreign or any(len(each.numbers) > 1 for each in groups):
        # At the end each open request of the former is reported, and tools are dropped with the latter.
        return True
    firsts, lasts = sorted(each.first for each in groups), sorted(each.last for each in groups)
    return any(
        bisect_right(firsts, each.last) - bisect_left(lasts, each.first) >= MOST_CONVERSATIONS for each in groups
    )


def _target(size: int, jobs: int) -> int:
    """Return the bytes of the next unit, if *size* bytes are left."""
    return min(max(size // (jobs * _UNITS_A_JOB), SMALLEST), LARGEST)


def _balanced(pages: Sequence[ScannedPage], groups: Sequence[_TalkGroup], end: int, jobs: int) -> Iterator[_TalkGroup]:
    """
    Yield units of neighbouring conversations, of a file that *end* bytes are in; the last ones are the smallest.

    Long conversations are spread over some units.
    """
    longest = 4 * _target(end - pages[0].offset, jobs)
    long = [each for each in groups if _bytes(pages, each.first, each.last) > longest]
    yield from _spread(long, jobs)
    unit: list[_TalkGroup] = []
    for each in groups:
        if _bytes(pages, each.first, each.last) > longest:
            continue
        if unit:
            begin = pages[unit[0].first].offset
            if pages[each.first].offset + pages[each.first].size - begin > _target(end - begin, jobs):
                yield _united(unit)
                unit = []
        unit.append(each)
    if unit:
        yield _united(unit)


def _spread(groups: Sequence[_TalkGroup], jobs: int) -> Iterator[_TalkGroup]:
    """Yield at most *jobs* units with about as many rows each. Each reads most of the file."""
    units: list[list[_TalkGroup]] = [[] for _ in range(min(jobs, len(groups)))]
    rows = [0] * len(units)
    for each in sorted(groups, key=lambda each: -each.rows):
        least = rows.index(min(rows))
        units[least].append(each)
        rows[least] += each.rows
    yield from map(_united, units)


def _united(groups: Iterable[_TalkGroup]) -> _TalkGroup:
    listed = list(groups)
    return _TalkGroup(
        tuple(number for each in listed for number in each.numbers),
        min(each.first for each in listed),
        max(each.last for each in listed),
        sum(each.rows for each in listed),
    )
