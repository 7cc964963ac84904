"""
A bound on what judging by a schema can cost the engine, computed before the schema is compiled.

The engine has no step limit and holds the interpreter while it works, so a schema that doubles its work at every level
must be recognized in advance. The bound is the most that any one value of an instance can take: a message costs at most
that much for each value in it, and `Budget` compares the product with what a message may cost.

The computation is bounded itself: sums over shared tables in place of expansion, loops in place of recursion, and a
limit on the table entries that are read.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from assay.engine.closures import (
    ANY_ITEM,
    ANY_KEY,
    ANY_PROPERTY,
    UNIQUE,
    Closure,
    Table,
    Work,
    closure_of,
    nodes_of,
    pointer_of,
    tacit,
)  # fmt: skip
from assay.engine.fault import SchemaLimits, SchemaRefusal
from assay.engine.schema_index import SchemaIndex

DEPTH: Final = 128
"""Levels of an instance: the nesting limit of frames, so nothing deeper is ever judged."""

WORK, WORK_PER_BYTE = 5_000, 4
"""Table entries that may be read to compute the cost of a schema, and how many more for each byte of it: about 0.2 µs
each. The official schemas need less than one for ten bytes."""


_UNIQUE_LEVELS: Final = 32
"""Levels after which arrays of unique items inside each other count as a recursion."""


@dataclass(frozen=True, slots=True)
class Measure:
    """The cost of a schema."""

    width: int
    """The most steps of the engine that any one value of an instance can take."""
    effort: int
    """Table entries that were read to compute it."""


def check_cost(outline: SchemaIndex, limits: SchemaLimits, length: int) -> Measure | SchemaRefusal:
    """Return the cost of a schema of *length* bytes, or a refusal if judging by it could take too long or never end."""
    nodes = nodes_of(outline)
    if isinstance(nodes, SchemaRefusal):
        return nodes
    most = WORK + WORK_PER_BYTE * length
    work = Work(most)
    closures = tacit()
    for at, node in nodes.items():
        closure = closures[at] = closure_of(node, closures, work)
        if closure.chain > limits.chain:
            expected = f"at most {limits.chain} subschemas in a chain"
            return SchemaRefusal("contract/schema-cost", pointer_of(at), expected, "more", most - work.left)
        if work.left < 0 or closure.size > limits.cost:
            return _too_costly(at, limits, most - work.left)
    growth = _Growth(closures, work)
    if growth.evaluations() > limits.cost or work.left < 0:
        return _too_costly("", limits, most - work.left)
    width = growth.width()
    return Measure(width, most - work.left) if work.left >= 0 else _too_costly("", limits, most - work.left)


def _too_costly(at: str, limits: SchemaLimits, effort: int) -> SchemaRefusal:
    expected = f"at most {limits.cost:,} subschemas for one value"
    return SchemaRefusal("contract/schema-cost", pointer_of(at), expected, "more", effort)


_Alike = tuple[int, int, int, int]
"""All that counts of a place: its size, its steps, whether it reads all that is inside an item, and its table. Most
places of a large table are alike."""

_Row = tuple[tuple[Any, int], ...]
"""How many times each place counts, by what they have in common; further down, how many times each table counts."""

_Groups = Sequence[tuple[_Row, Sequence[_Row]]]
"""The rows of a table for properties, items and keys: one that counts with all others, and the others."""


class _Growth:
    """
    What the values at each level of an instance cost, whatever path leads to them.

    Level by level: a table costs as much as its dearest row, each entry at its cost one level before. Which row an
    entry takes does not depend on its neighbors, so the sum is no less than the cost of any path. A place that leads no
    further down costs nothing from there on, so a recursion does not add up what it passes by.
    """

    __slots__ = ("_above", "_closures", "_deeper", "_first", "_whole", "_work")

    def __init__(self, closures: dict[str, Closure], work: Work) -> None:
        self._closures = closures
        self._work = work
        tables = {id(closure.beyond): closure.beyond for closure in closures.values() if closure.beyond}
        alike = {
            at: (one.size, one.steps, one.unique, id(one.beyond) if one.beyond else 0) for at, one in closures.items()
        }
        self._whole = alike[""]
        self._first = {key: self._grouped(table, alike) for key, table in tables.items()}
        self._deeper = {key: _by_table(groups) for key, groups in self._first.items()}
        self._above: dict[int, set[int]] = {key: set() for key in tables}
        for key, groups in self._deeper.items():
            for below in _keys(groups):
                self._above[below].add(key)

    def evaluations(self) -> int:
        """Return the most subschemas that judge any one value."""
        return max(self._levels(0))

    def width(self) -> int:
        """Return the most steps of the engine that any one value takes."""
        return max(self._levels(1)) + UNIQUE * self._unique()

    def _unique(self) -> int:
        """Return how many arrays whose items must differ any one value can be inside of, as each reads it again."""
        kinds = {alike for groups in self._first.values() for alike in _keys(groups)}
        if not any(alike[2] for alike in kinds):
            return 0
        costs = dict.fromkeys(self._first, 0)
        for _ in range(_UNIQUE_LEVELS):
            own = {alike: alike[2] + costs.get(alike[3], 0) for alike in kinds}
            before, costs = costs, {key: self._dearest(groups, own) for key, groups in self._first.items()}
            if costs == before:
                return costs.get(id(self._closures[""].beyond), 0)
        # They are part of a recursion.
        return DEPTH * max(self._levels(2))

    def _levels(self, which: int) -> list[int]:
        """Return the cost of the whole schema at each level: sizes (0), steps (1) or arrays of unique items (2)."""
        own = {alike: alike[which] for groups in self._first.values() for alike in _keys(groups)}
        costs = {key: self._dearest(groups, own) for key, groups in self._first.items()}
        root, whole = id(self._closures[""].beyond), self._whole[which]
        found = [whole, costs.get(root, 0)]
        due = set(costs)
        seen: dict[tuple[int, ...], int] = {}
        while len(found) < DEPTH and self._work.left >= 0:
            fresh = {key: self._dearest(self._deeper[key], costs) for key in due}
            due = {above for key, cost in fresh.items() if cost != costs[key] for above in self._above[key]}
            costs.update(fresh)
            found.append(costs.get(root, 0))
            state = tuple(costs.values())
            self._work.left -= len(state) >> 3
            # Each level follows from the one before, so from a level that was there before they repeat themselves.
            period = len(found) - seen.setdefault(state, len(found))
            while period and len(found) < DEPTH:
                found.append(found[-period])
        return found

    def _dearest(self, groups: _Groups, costs: Mapping[Any, int]) -> int:
        most = 0
        for general, rows in groups:
            named = 0
            for row in rows:
                # A row takes some four times what an entry of a table does.
                self._work.left -= 4 + len(row)
                named = max(named, sum([times * costs[key] for key, times in row]))
            most = max(most, named + sum([times * costs[key] for key, times in general]))
        self._work.left -= 4
        return most

    def _grouped(self, table: Table, alike: Mapping[str, _Alike]) -> _Groups:
        """Return the rows of *table*, those that are alike once."""
        groups: dict[int, set[_Row]] = {ANY_PROPERTY: set(), ANY_ITEM: set(), ANY_KEY: set()}
        general: dict[int | str, _Row] = {}
        for step, entries in table.items():
            self._work.left -= 1 + len(entries)
            row = _counted((alike[at], times) for at, times in entries.items())
            if step in groups:
                general[step] = row
            else:
                groups[ANY_PROPERTY if isinstance(step, str) else ANY_ITEM].add(row)
        return [(general.get(kind, ()), [*rows]) for kind, rows in groups.items() if rows or kind in general]


def _keys(groups: _Groups) -> set[Any]:
    return {key for general, rows in groups for row in (general, *rows) for key, _ in row}


def _by_table(groups: _Groups) -> _Groups:
    """Return the same rows by the tables of their places; a place without one leads no further."""

    def tables(row: _Row) -> _Row:
        return _counted((table, times) for (*_, table), times in row if table)

    found = [(tables(general), {*map(tables, rows)} - {()}) for general, rows in groups]
    return [(general, [*rows]) for general, rows in found if general or rows]


def _counted(pairs: Iterable[tuple[Any, int]]) -> _Row:
    """Return the sum for each key, in a fixed order, so that equal rows are equal."""
    counts: dict[Any, int] = {}
    for key, times in pairs:
        counts[key] = counts.get(key, 0) + times
    return tuple(sorted(counts.items()) if len(counts) > 1 else counts.items())
