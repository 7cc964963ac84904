"""
A bound on what judging by a schema can cost the engine, computed before the schema is compiled.

The engine has no step limit and holds the interpreter while it works, so a schema that doubles its work at every level
must be recognized in advance. The bound is the most that any one value of an instance can take: a message costs at most
that much for each value in it, and `Budget` compares the product with what a message may cost.

A step of the engine is about 12 ns: one subschema that looks at one value. A string is counted again for each 64
characters, so a price for strings is a price for that many. The bound takes two passes. First each place is joined with
all places that judge the same value, through `$ref`, `allOf` and others. Then these are followed from level to level of
an instance, until nothing changes.

The computation is bounded itself: sums over shared tables in place of expansion, loops in place of recursion, and a
limit on the table entries that are read.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from assay.schema.fault import SchemaLimits, SchemaRefusal
from assay.schema.patterns import pattern_steps
from assay.schema.schema_index import SchemaIndex

DEPTH: Final = 128
"""Levels of an instance: the nesting limit of frames, so nothing deeper is ever judged."""

WORK, WORK_PER_BYTE = 5_000, 4
"""Table entries that may be read to compute the cost of a schema, and how many more for each byte of it: about 0.2 µs
each. The official schemas need less than one for ten bytes."""


class Work:
    """The table entries that may still be read for one schema."""

    __slots__ = ("left",)

    def __init__(self, length: int) -> None:
        """For a schema of *length* bytes."""
        self.left = WORK + WORK_PER_BYTE * length

    def read(self, entries: int) -> None:
        """Draw so many *entries*; raises `_TooCostly` if there are not as many left."""
        self.left -= entries
        if self.left < 0:
            raise _TooCostly


class _TooCostly(Exception):  # noqa: N818 - no error, but how a long computation ends
    """The cost of the schema takes too long to compute."""


def width_of(index: SchemaIndex, limits: SchemaLimits, work: Work) -> int | SchemaRefusal:
    """
    Return the width of a schema: the most steps of the engine that any one value of an instance can take.

    A refusal if judging by it could take too long or never end, or if the computation takes more than *work*.
    """
    calls = _calls(index)
    order = _innermost_first(calls)
    if isinstance(order, SchemaRefusal):
        return order
    closures = {**_TACIT}
    at = ""
    try:
        for at in order:
            closure = closures[at] = _closure(index, at, [(word, closures[each]) for word, each in calls[at]], work)
            if closure.chain > limits.chain:
                expected = f"at most {limits.chain} subschemas in a chain"
                return SchemaRefusal("contract/schema-cost", _pointer(at), expected, "more")
            if closure.size > limits.cost:
                return _too_costly(at, limits)
        at = ""
        levels = _Levels(closures, work)
        if levels.most(lambda kind: kind.size) > limits.cost:
            return _too_costly(at, limits)
        return levels.most(lambda kind: kind.steps) + _UNIQUE * levels.nested_unique()
    except _TooCostly:
        return _too_costly(at, limits)


def _too_costly(at: str, limits: SchemaLimits) -> SchemaRefusal:
    expected = f"at most {limits.cost:,} subschemas for one value"
    return SchemaRefusal("contract/schema-cost", _pointer(at), expected, "more")


def _pointer(at: str) -> str:
    """Return *at* if it is a pointer; the mark of a dynamic reference stands for the whole schema."""
    return at if at.startswith("/") else ""


# ── places that judge one value together ──────────────────────────────────────────────────────────────────────────────

_IN_PLACE: Final = frozenset(
    {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}
)
_JUDGED_AGAIN: Final = _IN_PLACE - {"allOf", "not"}
"""Below `unevaluated*` the engine judges by these again to find out what they covered."""

_Calls = dict[str, list[tuple[str, str]]]
"""For each place the places that it applies to the same value: keyword and pointer."""


def _calls(index: SchemaIndex) -> _Calls:
    """Return what each place applies to its own value; a mark stands for all targets of a dynamic reference."""
    calls: _Calls = {}
    for place in index.places.values():
        if isinstance(place.schema, dict):
            name = place.schema.get("$dynamicAnchor")
            if isinstance(name, str):
                calls.setdefault("#" + name, []).append(("$dynamicRef", place.at))
            if place.schema.get("$recursiveAnchor") is True:
                calls.setdefault("#", []).append(("$recursiveRef", place.at))
    marks = {mark: {at for _, at in targets} for mark, targets in calls.items()}
    for place in index.places.values():
        called = calls[place.at] = []
        for keyword, reference in index.references(place):
            target = index.referred(place, reference)
            if target is not None:
                mark = "#" + reference.partition("#")[2]
                called.append((keyword, mark if keyword != "$ref" and target.at in marks.get(mark, ()) else target.at))
        if not index.is_lone_reference(place):
            called += [(keyword, below.at) for keyword, _, below in index.inside(place) if keyword in _IN_PLACE]
    return calls


def _innermost_first(calls: _Calls) -> list[str] | SchemaRefusal:
    """Return all places, each after those that it applies to its own value; a refusal if there is a cycle."""
    order: list[str] = []
    done: dict[str, bool] = {}  # False while the place is being visited
    for start, called in calls.items():
        path = [(start, iter(called))] if start not in done else []
        done.setdefault(start, False)
        while path:
            at, rest = path[-1]
            keyword, following = next(rest, ("", None))
            if following is None:
                done[at] = True
                order.append(at)
                path.pop()
            elif following not in done:
                done[following] = False
                path.append((following, iter(calls[following])))
            elif not done[following]:
                expected = "references that end"
                return SchemaRefusal("contract/schema-cycle", _pointer(at), expected, f"a cycle through `{keyword}`")
    return order


_Table = dict[str | int, dict[str, int]]
"""The places that judge what lies one step further down, and how many times each does. A step is the name of a
property, the number of an item, or one of the negative numbers below."""

_ANY_PROPERTY, _ANY_ITEM, _ANY_KEY = -1, -2, -3

_UNEVALUATED: Final = ("unevaluatedProperties", "unevaluatedItems")
_STEPS_DOWN: Final = {
    **dict.fromkeys(("patternProperties", "additionalProperties", "unevaluatedProperties"), _ANY_PROPERTY),
    **dict.fromkeys(("items", "contains", "additionalItems", "unevaluatedItems"), _ANY_ITEM),
    "propertyNames": _ANY_KEY,
}


@dataclass(frozen=True, slots=True)
class _Closure:
    """A place together with all places that it applies to the same value."""

    size: int
    """Subschemas evaluated at one value."""
    steps: int
    """Steps of the engine that this takes."""
    chain: int = 0
    beyond: _Table = field(default_factory=dict)
    again: bool = False
    """Whether `unevaluated*` above makes the engine judge what lies beyond more than once."""


_UNIQUE: Final = 12
"""Steps for `uniqueItems`, for each value inside an array at any depth: 40 to 140 ns."""

_UNIQUE_LEVELS: Final = 32
"""Levels after which arrays of unique items inside each other count as a recursion."""

_KEY, _INSIDE = "!key", "!inside"
"""Work that belongs to no subschema: looking at a key, and reading all that is inside an item of an array of unique
items, at any depth. No pointer begins like this."""

_TACIT: Final = {_KEY: _Closure(0, 1), _INSIDE: _Closure(0, 0)}


def _closure(index: SchemaIndex, at: str, called: list[tuple[str, _Closure]], work: Work) -> _Closure:
    """Return the closure of the place or mark *at*, which applies what is *called* to its own value."""
    work.read(len(called))
    place = index.places.get(at)
    alone = place is None or isinstance(place.schema, bool) or index.is_lone_reference(place)
    schema: Any = {} if place is None or alone else place.schema
    inside = [*index.inside(place)] if place is not None and not alone else []
    unevaluated = {keyword for keyword, _, _ in inside if keyword in _UNEVALUATED}
    chain = max((closure.chain + 1 for _, closure in called), default=0)
    again = any(keyword in _JUDGED_AGAIN or closure.again for keyword, closure in called)
    times = fold = more = 1
    if unevaluated:
        # It asks again what every place in the closure covered; chains of it multiply (2.5 a link, measured).
        fold = 4
        # Measured growth for each level of the instance under `unevaluatedProperties`: `allOf` 1, `anyOf` 2, `anyOf` in
        # `anyOf` or in `allOf` 3, three deep 4; a second `unevaluated*` inside 3, a third 8. Under `unevaluatedItems`:
        # `allOf` 2, with `contains` in it 3. This counts no less.
        if called and (again or "unevaluatedItems" in unevaluated):
            times = 2 + chain
        # The engine judges by `unevaluated*` twice if it refuses, and by `contains` beside `unevaluatedItems` if it
        # does not (measured: both double with each level of the instance).
        more = max(times, 2)
    own: _Table = {}
    for keyword, key, below in inside:
        step = key if keyword == "properties" or isinstance(key, int) else _STEPS_DOWN.get(keyword)
        if step is not None and keyword not in _IN_PLACE:
            row = own.setdefault(step, {})
            row[below.at] = row.get(below.at, 0) + (more if keyword in ("contains", *_UNEVALUATED) else 1)
    each_key = _steps_for_each_key(schema)
    if each_key:
        own.setdefault(_ANY_KEY, {})[_KEY] = each_key
    if schema.get("uniqueItems") is True:
        own.setdefault(_ANY_ITEM, {})[_INSIDE] = 1
    return _Closure(
        size=fold * (1 + sum(closure.size for _, closure in called)),
        steps=fold * (1 + _steps_at_value(schema) + sum(closure.steps for _, closure in called)),
        chain=chain,
        beyond=_merged([(own, 1), *((closure.beyond, times) for _, closure in called)], work),
        again=again or bool(unevaluated),
    )


def _merged(parts: Iterable[tuple[_Table, int]], work: Work) -> _Table:
    """Return the sum of tables, each taken some number of times. A table that stands alone is shared, not copied."""
    tables = [(table, times) for table, times in parts if table]
    if len(tables) == 1 and tables[0][1] == 1:
        return tables[0][0]
    merged: _Table = {}
    for table, times in tables:
        for step, row in table.items():
            work.read(1 + len(row))
            into = merged.setdefault(step, {})
            for at, count in row.items():
                into[at] = into.get(at, 0) + count * times
    return merged


# ── from level to level of an instance ────────────────────────────────────────────────────────────────────────────────


class _Kind(NamedTuple):
    """All that counts of a closure. Most places of a large table are of one kind."""

    size: int
    steps: int
    table: int
    """The identity of its table, 0 for an empty one."""


_IS_INSIDE: Final = _Kind(0, 0, 0)

_Row = tuple[tuple[Any, int], ...]
"""What judges under one step down, and how many times each counts."""


class _Levels:
    """
    What the values at each level of an instance cost, whatever path leads to them.

    A table costs as much as its dearest row, each entry at its cost one level before. Which row an entry takes does not
    depend on its neighbors, so the sum is no less than the cost of any path. A place that leads no further down costs
    nothing from there on, so a recursion does not add up what it passes by.
    """

    def __init__(self, closures: Mapping[str, _Closure], work: Work) -> None:
        self._work = work
        self._kinds = {
            at: _Kind(one.size, one.steps, id(one.beyond) if one.beyond else 0) for at, one in closures.items()
        }
        self._root = self._kinds[""]
        self._first: dict[int, set[_Row]] = {}
        """For each table that the root leads to the rows of the kinds."""
        self._deeper: dict[int, set[_Row]] = {}
        """The same as rows of the tables of the kinds: all that counts further down."""
        self._above: dict[int, set[int]] = {}
        """The tables that lead to each."""
        tables = {id(one.beyond): one.beyond for one in closures.values()}
        waiting = [self._root.table] if self._root.table else []
        for table in waiting:  # grows during the loop
            rows = self._first[table] = self._rows(tables[table])
            self._deeper[table] = {_summed((kind.table, times) for kind, times in row if kind.table) for row in rows}
            for below in {below for row in self._deeper[table] for below, _ in row}:
                if below not in self._above:
                    self._above[below] = set()
                    waiting += [below] if below != self._root.table else []
                self._above[below].add(table)

    def _rows(self, table: _Table) -> set[_Row]:
        """Return the rows of *table*; what judges under any step is in each."""
        general = {step: self._row(table[step]) for step in _STEPS_DOWN.values() if step in table}
        rows = {*general.values()}
        for step, entries in table.items():
            if step not in general:
                beside = general.get(_ANY_PROPERTY if isinstance(step, str) else _ANY_ITEM, ())
                rows.add(self._row(entries, beside))
        return rows

    def _row(self, entries: Mapping[str, int], beside: _Row = ()) -> _Row:
        self._work.read(1 + len(entries) + len(beside))
        return _summed([*((self._kinds[at], times) for at, times in entries.items()), *beside])

    def most(self, own: Callable[[_Kind], int]) -> int:
        """Return the most that any one value costs, where a closure of each kind costs its *own*."""
        worth = {kind: own(kind) for kind in self._kinds.values()}
        costs = {table: self._dearest(rows, worth) for table, rows in self._first.items()}
        found = [worth[self._root], costs.get(self._root.table, 0)]
        due = {*costs}
        seen: set[tuple[int, ...]] = set()
        while len(found) < DEPTH:
            fresh = {table: self._dearest(self._deeper[table], costs) for table in due}
            changed = [table for table, cost in fresh.items() if cost != costs[table]]
            due = {above for table in changed for above in self._above.get(table, ())}
            costs.update(fresh)
            found.append(costs.get(self._root.table, 0))
            state = tuple(costs.values())
            self._work.read(len(state) >> 3)
            # Each level follows from the one before, so from a level that was there before they repeat themselves.
            if state in seen:
                break
            seen.add(state)
        return max(found)

    def nested_unique(self) -> int:
        """Return how many arrays of unique items any one value can be inside of, as each reads it again."""
        if not any(kind == _IS_INSIDE for rows in self._first.values() for row in rows for kind, _ in row):
            return 0
        costs = dict.fromkeys(self._first, 0)
        for _ in range(_UNIQUE_LEVELS):
            worth = {kind: (kind == _IS_INSIDE) + costs.get(kind.table, 0) for kind in self._kinds.values()}
            before, costs = costs, {table: self._dearest(rows, worth) for table, rows in self._first.items()}
            if costs == before:
                return costs.get(self._root.table, 0)
        # They are part of a recursion.
        return DEPTH * self.most(lambda kind: kind == _IS_INSIDE)

    def _dearest(self, rows: set[_Row], worth: Mapping[Any, int]) -> int:
        most = 0
        for row in rows:
            # A row takes some four times what an entry of a table does.
            self._work.read(4 + len(row))
            most = max(most, sum([times * worth[key] for key, times in row]))
        return most


def _summed(pairs: Iterable[tuple[Any, int]]) -> _Row:
    """Return the sum for each key, in a fixed order, so that equal rows are equal."""
    counts: dict[Any, int] = {}
    for key, times in pairs:
        counts[key] = counts.get(key, 0) + times
    return tuple(sorted(counts.items()))


# ── prices of keywords ────────────────────────────────────────────────────────────────────────────────────────────────

_SIMPLE: Final = 4
"""Steps to compare with a number or a plain value, or to look a key up."""
_MATCH: Final = 12
"""Steps to read all of a string, or one value inside a `const` or an `enum`: 40 to 200 ns."""
_EXACT: Final = 160
"""Steps to compare with a fraction or a number beyond 64 bits: 0.8 µs, 15 µs with extreme exponents."""


def _steps_at_value(schema: Mapping[str, Any]) -> int:
    """Return the steps at one value for the keywords of *schema*, without the subschemas in them."""
    return sum(_PRICES[keyword](value) for keyword, value in schema.items() if keyword in _PRICES)


def _steps_for_each_key(schema: Mapping[str, Any]) -> int:
    """Return the steps for each key of an object."""
    patterns = schema.get("patternProperties")
    steps = sum(map(pattern_steps, patterns)) if isinstance(patterns, dict) else 0
    return steps + ("properties" in schema) + _SIMPLE * ("required" in schema)


def _is_exact(value: Any) -> bool:
    """Whether the engine compares with *value* as a fraction."""
    return isinstance(value, float) or (isinstance(value, int) and value.bit_length() > 64)


def _compared(value: Any) -> int:
    """Return the steps of a comparison with *value*, which may hold others."""
    if isinstance(value, dict | list):
        inside = value.values() if isinstance(value, dict) else value
        return _MATCH + sum(max(_MATCH, _compared(one)) for one in inside)
    return _EXACT if _is_exact(value) else _SIMPLE


def _choice(values: Any) -> int:
    """Return the steps of an `enum`: the engine looks strings or integers up, and goes through a mixed list."""
    if not isinstance(values, list) or {*map(type, values)} in ({str}, {int}, set()):
        return _SIMPLE
    return sum(2 if isinstance(value, str) else _compared(value) for value in values)


_PRICES: Final[Mapping[str, Callable[[Any], int]]] = {
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), lambda _: 1),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "const"), _compared),
    **dict.fromkeys(("format", "contentEncoding"), lambda _: _MATCH),
    **dict.fromkeys(
        ("dependentRequired", "dependentSchemas", "dependencies"),
        lambda value: 2 * len(value) if isinstance(value, dict) else 0,
    ),
    "contentMediaType": lambda _: 80,
    "pattern": pattern_steps,
    # A step that is not an integer is divided by as a fraction: 2 µs, 41 µs with extreme exponents.
    "multipleOf": lambda value: 430 if _is_exact(value) else 25,
    "enum": _choice,
}
