"""How the cost of judging grows with the depth of the instance. Plain arithmetic over tables; knows no keywords."""

from collections.abc import Iterator
from dataclasses import dataclass, field

DEPTH = 128
"""Levels of an instance: the frame's own nesting limit, so nothing deeper is ever judged."""

_WORK = 100_000
"""Entries looked at while the cost of a recursive schema grows level by level: 0.03 s at 0.27 µs each."""

Token = str | int
"""A step of an instance path: a property, the number of an item, or a negative number for any other of a kind."""
Table = dict[Token, dict[str, int]]
"""Which places judge what lies one step on, and how many times each."""


@dataclass(slots=True)
class _Sheet:
    """One table, shared by every place that has it."""

    table: Table
    dearest: int = 0
    """The size of the largest place with this table, and which one that is."""
    at: str = ""
    beyond: int = 0
    """What the dearest step costs, as far as we know."""
    rows: list[tuple[int, dict[int, int]]] = field(default_factory=list)
    """For each step: a settled part, and how many times which other sheets count."""


def grown(places: dict[str, tuple[int, Table]], limit: int) -> str | None:
    """
    A place where judging costs more than *limit* on some instance of `DEPTH` levels, or None.

    Each of *places* has the evaluations it costs at one value, and its table. A step may be any of the table's own;
    the one for any other property or item counts with every property or item.
    """
    sheets: dict[int, _Sheet] = {}
    for at, (size, table) in places.items():
        sheet = sheets.setdefault(id(table), _Sheet(table))
        if size >= sheet.dearest:
            sheet.dearest, sheet.at = size, at
    unsettled = _settle(sheets, places, limit)
    over = next((sheet.at for sheet in sheets.values() if sheet.dearest + sheet.beyond > limit), None)
    # The root is at "": falsy, but a place.
    return over if over is not None else _grow([sheets[key] for key in unsettled], sheets, limit)


def _settle(sheets: dict[int, _Sheet], places: dict[str, tuple[int, Table]], limit: int) -> list[int]:
    """Finishes every sheet that leads to no recursion; gives the others, their settled parts summed up."""
    below = {key: {id(places[at][1]) for row in sheet.table.values() for at in row} for key, sheet in sheets.items()}
    above: dict[int, list[int]] = {key: [] for key in sheets}
    for key, keys in below.items():
        for other in keys:
            above[other].append(key)
    open_below = {key: len(keys) for key, keys in below.items()}
    ready = [key for key, count in open_below.items() if not count]
    settled = set(ready)
    for key in ready:  # which grows meanwhile
        sheet = sheets[key]
        sheet.rows = list(_rows(sheet.table, places, sheets, settled))
        sheet.beyond = min(max((fixed for fixed, _ in sheet.rows), default=0), limit + 1)
        for other in above[key]:
            open_below[other] -= 1
            if not open_below[other]:
                settled.add(other)
                ready.append(other)
    rest = [key for key in sheets if key not in settled]
    for key in rest:
        sheets[key].rows = list(_rows(sheets[key].table, places, sheets, settled))
    return rest


def _rows(
    table: Table, places: dict[str, tuple[int, Table]], sheets: dict[int, _Sheet], settled: set[int]
) -> Iterator[tuple[int, dict[int, int]]]:
    for token in table:
        # Any other property (or item) counts with each property (or item) there is.
        general = -1 if isinstance(token, str) else -2
        fixed = 0
        growing: dict[int, int] = {}
        for step in {token, general} if not _is_general(token) else {token}:
            for at, times in table.get(step, {}).items():
                size, other = places[at]
                fixed += times * size
                if id(other) in settled:
                    fixed += times * sheets[id(other)].beyond
                else:
                    growing[id(other)] = growing.get(id(other), 0) + times
        yield fixed, growing


def _is_general(token: Token) -> bool:
    return isinstance(token, int) and token < 0


def _grow(rest: list[_Sheet], sheets: dict[int, _Sheet], limit: int) -> str | None:
    """Adds one level of the instance after the other, until past *limit* or sure never to be."""
    entries = sum(1 + len(growing) for sheet in rest for _, growing in sheet.rows)
    linear = all(sum(growing.values()) <= 1 for sheet in rest for _, growing in sheet.rows)
    for level in range(DEPTH if rest else 0):
        costs = [
            max(
                fixed + sum(times * sheets[key].beyond for key, times in growing.items())
                for fixed, growing in sheet.rows
            )
            for sheet in rest
        ]
        growth = max(cost - sheet.beyond for cost, sheet in zip(costs, rest, strict=True))
        for cost, sheet in zip(costs, rest, strict=True):
            sheet.beyond = cost
            if sheet.dearest + cost > limit or (level + 1) * entries > _WORK:
                return sheet.at
        # Where no step leads to two growing places, no level can add more than the one before it did.
        if linear and max(sheet.dearest + sheet.beyond for sheet in rest) + (DEPTH - level) * growth <= limit:
            return None
    return None


def widest(places: dict[str, tuple[int, Table]], root: str, limit: int) -> int:
    """
    How many times at most the engine looks at one value of an instance; *limit* where that takes too long to find out.

    Level by level of the instance: what judges a value is what was called in by whatever judges the value above it.
    """
    now = {at: size for at, (size, _) in places.items()}
    rows = {at: [list(_step(table, token)) for token in table] for at, (_, table) in places.items() if table}
    entries = sum(len(row) + 1 for each in rows.values() for row in each)
    width = now[root]
    for level in range(1, DEPTH):
        if level * entries > _WORK:
            return limit
        then = {at: max(sum(times * now.get(to, 0) for to, times in row) for row in each) for at, each in rows.items()}
        if then == now:
            break
        now = then
        width = max(width, now.get(root, 0))
        if not any(now.values()):
            break
    return min(width, limit)


def _step(table: Table, token: Token) -> Iterator[tuple[str, int]]:
    """What judges the value that *token* leads to; any other property (or item) counts with each there is."""
    general = -1 if isinstance(token, str) else -2
    for step in {token, general} if not _is_general(token) else {token}:
        yield from table.get(step, {}).items()
