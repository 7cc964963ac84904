"""
How the cost of judging grows with the depth of the instance. Plain arithmetic over tables; knows no keywords.

Places that have the same table share a sheet. Sheets that lead back to each other are reckoned together, innermost
first, so that whatever only leads into a recursion takes its result and repeats nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

DEPTH = 128
"""Levels of an instance: the frame's own nesting limit, so nothing deeper is ever judged."""

_LEVELS, _PERIOD = 20, 12
"""Levels that are reckoned one by one where a recursion is linear, and the last ones of them that are taken for the
pattern of all others: twelve has the periods 1, 2, 3, 4 and 6 in it, and goes nine times into what is left of 128."""

Token = str | int
"""A step of an instance path: a property, the number of an item, or a negative number for any other of a kind."""
Table = dict[Token, dict[str, int]]
"""Which places judge what lies one step on, and how many times each."""

ANY_PROPERTY = -1
ANY_ITEM = -2


@dataclass(slots=True)
class Work:
    """What may still be spent on finding out what a schema costs; below zero, nothing more is found out."""

    left: int


@dataclass(frozen=True, slots=True)
class Reach:
    """What a place asks for, together with all it calls in at the same value."""

    size: int
    """Subschemas evaluated at one value."""
    weight: int
    """The engine's steps that takes."""
    table: Table


@dataclass(slots=True)
class _Sheet:
    """One table, shared by every place that has it."""

    table: Table
    dearest: int = -1
    """The size of the largest place with this table, and which one that is."""
    at: str = ""
    heaviest: int = 0
    below: set[int] = field(default_factory=set)
    """The sheets one step on."""
    beyond: int = 0
    """What the dearest path from here costs, the place itself not counted."""
    width: int = 0
    """The most steps spent on any one value on a path from here, the place's own not counted."""
    height: int = 0
    """How many levels of an instance it reaches down."""


@dataclass(slots=True)
class _Row:
    """What one step leads to: a settled part, and how many times which sheets of the same recursion."""

    fixed: int = 0
    apart: dict[int, int] = field(default_factory=dict)
    """Steps by places outside of the recursion, by the height they reach down."""
    growing: dict[int, int] = field(default_factory=dict)

    def raise_to(self, other: "_Row") -> None:
        """Takes what is dearer in *other*, which goes the same way on."""
        self.fixed = max(self.fixed, other.fixed)
        if self.growing:
            _raise(self.apart, other.apart)
        elif other.apart:
            # Nothing follows, so only the sum counts: one entry, under the greatest height.
            ends = [*self.apart.items(), *other.apart.items()]
            self.apart = {max(height for height, _ in ends): max(steps for _, steps in ends)}

    def add(self, other: "_Row") -> None:
        """Counts *other* too."""
        self.fixed += other.fixed
        for mine, theirs in ((self.apart, other.apart), (self.growing, other.growing)):
            for key, number in theirs.items():
                mine[key] = mine.get(key, 0) + number


def grown(places: dict[str, Reach], limit: int, work: Work) -> int | str:
    """
    The most steps spent on any one value of an instance of `DEPTH` levels, judged by the place at "".

    Or the pointer of a place: where a path costs more than *limit* evaluations, or it would take more than *work* to
    tell. A step may be any of a table's own; the one for any other property or item counts with every one.
    """
    sheets: dict[int, _Sheet] = {}
    alike: dict[str, _Alike] = {}
    for at, reach in places.items():
        key = id(reach.table)
        sheet = sheets.get(key) or sheets.setdefault(key, _Sheet(reach.table))
        alike[at] = (reach.size, reach.weight, key)
        sheet.heaviest = max(sheet.heaviest, reach.weight)
        if reach.size > sheet.dearest:
            sheet.dearest, sheet.at = reach.size, at
    for sheet in sheets.values():
        sheet.below = {alike[at][2] for row in sheet.table.values() for at in row}
    over = _Reckoning(sheets, alike, limit, work).over()
    return over if over is not None else max(places[""].weight, sheets[id(places[""].table)].width)


_Alike = tuple[int, int, int]
"""All that counts of a place: its size, its weight and its sheet. Most of the places in a large table are alike."""


@dataclass(slots=True)
class _Reckoning:
    sheets: dict[int, _Sheet]
    alike: dict[str, _Alike]
    limit: int
    work: Work

    def over(self) -> str | None:
        """Finishes every sheet; gives the first place found too dear."""
        for group in _groups(self.sheets):
            members = [self.sheets[key] for key in group]
            inside = set(group) if len(group) > 1 or group[0] in members[0].below else set()
            rows = [list(self._rows(sheet.table, inside)) for sheet in members]
            if not inside:
                self._settle(members[0], rows[0])
            elif all(sum(row.growing.values()) <= 1 for some in rows for row in some):
                self._extend(group, rows)
            else:
                self._multiply(group, rows)
            for sheet in members:
                if sheet.dearest + sheet.beyond > self.limit or self.work.left < 0:
                    return sheet.at
        return None

    def _rows(self, table: Table, inside: set[int]) -> Iterator[_Row]:
        """The rows of *table*, of those with the same way on the dearest only."""
        general: dict[Token, _Row] = {
            kind: self._row(table[kind], inside) for kind in (ANY_PROPERTY, ANY_ITEM) if kind in table
        }
        kept: dict[frozenset[tuple[int, int]], _Row] = {}
        seen: set[Any] = set()
        alike = self.alike
        self.work.left -= len(table)
        for token, entries in table.items():
            kind = isinstance(token, str)
            same = (kind, *[(alike[at], times) for at, times in entries.items()])
            if same in seen and token not in general:
                continue
            seen.add(same)
            row = self._row(entries, inside) if token not in general else _Row()
            # Any other property (or item) counts with each property (or item) there is.
            beside = general.get(token) or general.get(ANY_PROPERTY if kind else ANY_ITEM)
            if beside is not None:
                row.add(beside)
            if not row.growing and row.apart:
                row.apart = {max(row.apart): sum(row.apart.values())}
            known = kept.setdefault(frozenset(row.growing.items()), row)
            if known is not row:
                known.raise_to(row)
        return iter(kept.values())

    def _row(self, entries: dict[str, int], inside: set[int]) -> _Row:
        self.work.left -= 1 + len(entries)
        row = _Row()
        for at, times in entries.items():
            size, weight, key = self.alike[at]
            row.fixed += times * size
            if key in inside:
                row.growing[key] = row.growing.get(key, 0) + times
            else:
                sheet = self.sheets[key]
                row.fixed += times * sheet.beyond
                steps = times * max(weight, sheet.width)
                row.apart[sheet.height] = row.apart.get(sheet.height, 0) + steps
        return row

    def _settle(self, sheet: _Sheet, rows: list[_Row]) -> None:
        """A sheet that is part of no recursion."""
        sheet.beyond = max((row.fixed for row in rows), default=0)
        sheet.width = max((sum(row.apart.values()) for row in rows), default=0)
        sheet.height = min(1 + max((height for row in rows for height in row.apart), default=-1), DEPTH)

    def _extend(self, group: list[int], rows: list[list[_Row]]) -> None:
        """
        A recursion in which no step leads to two members at once.

        Then no twelve levels can add more than the twelve before them did. On one value meet: one member, or what a
        last step out of the recursion leads to; and of what the members on the way lead to, as much as reaches down.
        """
        costs = dict.fromkeys(group, 0)
        history = [costs]
        for _ in range(_LEVELS):
            costs = self._next(group, rows, costs)
            history.append(costs)
            if self.work.left < 0 or max(costs.values()) > self.limit:
                break
        growth = max(costs[key] - history[-1 - _PERIOD][key] for key in group) if len(history) > _PERIOD else 0
        periods = (DEPTH - _LEVELS) // _PERIOD
        along = _alongside([row.apart for some in rows for row in some if row.growing])
        ends = max((sum(row.apart.values()) for some in rows for row in some if not row.growing), default=0)
        width = max(ends, *(self.sheets[key].heaviest for key in group)) + along
        for key in group:
            sheet = self.sheets[key]
            sheet.beyond, sheet.width, sheet.height = costs[key] + periods * growth, width, DEPTH

    def _multiply(self, group: list[int], rows: list[list[_Row]]) -> None:
        """A recursion that may multiply: adds one level of the instance after the other."""
        costs = dict.fromkeys(group, 0)
        widths = {key: self.sheets[key].heaviest for key in group}
        for _ in range(DEPTH):
            costs = self._next(group, rows, costs)
            widths = {
                key: max(
                    widths[key],
                    *(
                        sum(row.apart.values()) + sum(times * widths[to] for to, times in row.growing.items())
                        for row in some
                    ),
                )
                for key, some in zip(group, rows, strict=True)
            }
            if self.work.left < 0 or max(costs.values()) > self.limit:
                break
        for key in group:
            sheet = self.sheets[key]
            sheet.beyond, sheet.width, sheet.height = costs[key], widths[key], DEPTH

    def _next(self, group: list[int], rows: list[list[_Row]], costs: dict[int, int]) -> dict[int, int]:
        """What *costs* become with one more level."""
        # A row takes some five times what an entry of a table does.
        self.work.left -= 5 * sum(len(row.growing) for some in rows for row in some) + 5 * len(group)
        return {
            key: max(row.fixed + sum(times * costs[to] for to, times in row.growing.items()) for row in some)
            for key, some in zip(group, rows, strict=True)
        }


def _alongside(rows: list[dict[int, int]]) -> int:
    """What *rows*, taken one a level, can bring to bear on one value: each counts for as many levels as it reaches."""
    if not rows:
        return 0
    highest: dict[int, int] = {}
    for row in rows:
        _raise(highest, row)
    return sum(steps * min(height + 1, DEPTH) for height, steps in highest.items())


def _raise(into: dict[int, int], other: dict[int, int]) -> None:
    for key, number in other.items():
        into[key] = max(into.get(key, 0), number)


def _groups(sheets: dict[int, _Sheet]) -> Iterator[list[int]]:
    """The sheets that lead back to each other, each group after all it leads to (Tarjan, with a list for a stack)."""
    low: dict[int, int] = {}
    number: dict[int, int] = {}
    open_: list[int] = []
    for start, sheet in sheets.items():
        path = [(start, iter(sheet.below))] if start not in number else []
        while path:
            key, rest = path[-1]
            if key not in number:
                number[key] = low[key] = len(number)
                open_.append(key)
            following = next(rest, None)
            if following is None:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[key])
                if low[key] == number[key]:
                    group = [open_.pop()]
                    while group[-1] != key:
                        group.append(open_.pop())
                    low.update(dict.fromkeys(group, len(sheets)))  # closed: counts for nobody any more
                    yield group
            elif following not in number:
                path.append((following, iter(sheets[following].below)))
            else:
                low[key] = min(low[key], low[following])
