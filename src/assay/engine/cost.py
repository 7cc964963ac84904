"""
What judging by a schema can cost the engine, computed without judging anything.

The engine has no step limit and holds the interpreter while it works, so a schema that doubles its work at every
level has to be recognised before. Everything here is bounded itself: sums over shared tables instead of expansion,
loops instead of recursion, and a limit on the tables.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from assay.engine.growth import ANY_ITEM, ANY_PROPERTY, Reach, Table, Token, Work, grown
from assay.engine.prices import UNIQUE, at_each_key, at_value
from assay.engine.schema_index import SchemaIndex, SchemaPlace
from assay.engine.schema_limits import SchemaLimits, SchemaRefusal

WORK, WORK_PER_BYTE = 5_000, 4
"""Entries of tables that may be looked at to find out what a schema costs, and as many more for each byte of it: about
0.2 µs each. The official schemas need under one for each ten bytes."""

_EACH_KEY = "!key"
_EACH_INSIDE = "!inside"
# What no subschema stands for but the engine does nonetheless: looking at a key, and going through whatever is inside
# a value. Both count for the width only, not along a path. No pointer begins so.
_TACIT = {
    _EACH_KEY: Reach(0, 1, {}),
    _EACH_INSIDE: Reach(0, UNIQUE, {ANY_PROPERTY: {_EACH_INSIDE: 1}, ANY_ITEM: {_EACH_INSIDE: 1}}),
}

_UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")
_IN_PLACE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"})
_STEP_ON = {
    "patternProperties": ANY_PROPERTY,
    "additionalProperties": ANY_PROPERTY,
    "unevaluatedProperties": ANY_PROPERTY,
    "propertyNames": ANY_PROPERTY,
    "items": ANY_ITEM,
    "contains": ANY_ITEM,
    "additionalItems": ANY_ITEM,
    "unevaluatedItems": ANY_ITEM,
}
# Below `unevaluated*` the engine judges these again to see what they covered.
_JUDGED_AGAIN = _IN_PLACE - {"allOf", "not"}


_NOTHING: Table = {}


@dataclass(slots=True)
class _Node:
    """What one place asks for by itself."""

    here: list[tuple[str, str]] = field(default_factory=list)
    """The places that judge the same value too: keyword and pointer."""
    beyond: Table = field(default_factory=dict)
    """The places that judge what lies one step on."""
    unevaluated: frozenset[str] = frozenset()
    """The `unevaluated*` keywords it has, and the places under them."""
    contains: str = ""
    """The place under `contains`, if there is one."""
    weight: int = 1
    """The engine's steps for its keywords that hold no subschema."""


@dataclass(frozen=True, slots=True)
class Measure:
    """What a schema was found to cost."""

    width: int
    """The most steps of the engine that any one value of an instance can take, at one place of it."""
    effort: int
    """Entries looked at to find that out."""


@dataclass(slots=True)
class _Whole:
    """What one place asks for together with all those it calls in at the same value."""

    size: int
    weight: int
    chain: int
    beyond: Table
    again: bool
    """Whether `unevaluated*` above makes the engine judge what lies beyond more than once."""
    extra: int
    """How many times more than the chain alone would tell."""


def check_cost(outline: SchemaIndex, limits: SchemaLimits, length: int) -> Measure | SchemaRefusal:
    """What judging by this schema of *length* bytes costs, or why that could take too long, or never end."""
    goals = _goals(outline)
    nodes = {place.at: _node(outline, place, goals) for place in outline.order}
    nodes |= {mark: _Node([("", at) for at in places]) for mark, places in goals.items()}
    order = _innermost_first(nodes)
    if isinstance(order, SchemaRefusal):
        return order
    wholes: dict[str, _Whole] = {}
    most = WORK + WORK_PER_BYTE * length
    work = Work(most)
    for at in order:
        whole = _whole(nodes[at], wholes, work)
        if whole.chain > limits.chain:
            expected = f"at most {limits.chain} subschemas in a chain"
            return SchemaRefusal("contract/schema-cost", _shown(at), expected, "more", most - work.left)
        if work.left < 0 or whole.size > limits.cost:
            return _too_dear(at, limits, most - work.left)
        wholes[at] = whole
    reaches = {at: Reach(whole.size, whole.weight, whole.beyond) for at, whole in wholes.items()}
    width = grown(_TACIT | reaches, limits.cost, work)
    effort = most - work.left
    return Measure(width, effort) if isinstance(width, int) else _too_dear(width, limits, effort)


def _node(outline: SchemaIndex, place: SchemaPlace, goals: dict[str, list[str]]) -> _Node:
    node = _Node()
    if not isinstance(place.schema, dict):
        return node
    node.here.extend(_referred(outline, place, goals))
    if outline.draft.lone_reference and "$ref" in place.schema:
        return node
    node.weight = at_value(place.schema)
    each = at_each_key(place.schema)
    if each:
        node.beyond[ANY_PROPERTY] = {_EACH_KEY: each}
    if place.schema.get("uniqueItems") is True:
        node.beyond[ANY_ITEM] = {_EACH_INSIDE: 1}
    for keyword, key, below in outline.inside(place):
        if keyword in _IN_PLACE:
            node.here.append((keyword, below.at))
        else:
            node.contains = below.at if keyword == "contains" else node.contains
            node.unevaluated |= {keyword, below.at} if keyword in _UNEVALUATED else set()
            token = _token(keyword, key)
            if token is not None:
                row = node.beyond.setdefault(token, {})
                row[below.at] = row.get(below.at, 0) + 1
    return node


def _token(keyword: str, key: str | int | None) -> Token | None:
    if keyword == "properties":
        return key
    if isinstance(key, int) and keyword in ("prefixItems", "items"):
        return key
    return _STEP_ON.get(keyword)


def _goals(outline: SchemaIndex) -> dict[str, list[str]]:
    """Where dynamic references may lead: the mark of a goal, and every place that bears it."""
    goals: dict[str, list[str]] = {}
    for place in outline.order:
        if isinstance(place.schema, dict):
            name = place.schema.get("$dynamicAnchor")
            if isinstance(name, str):
                goals.setdefault("#" + name, []).append(place.at)
            if place.schema.get("$recursiveAnchor") is True:
                goals.setdefault("#", []).append(place.at)
    return goals


def _referred(outline: SchemaIndex, place: SchemaPlace, goals: dict[str, list[str]]) -> Iterator[tuple[str, str]]:
    """
    The places the references at *place* lead to.

    Where that depends on the way taken, it is the mark itself, which stands for every place that bears it.
    """
    for keyword, reference in outline.references(place):
        target = outline.referred(place, reference)
        if target is not None:
            mark = "#" + reference.partition("#")[2]
            dynamic = keyword != "$ref" and target.at in goals.get(mark, ()) and len(goals[mark]) > 1
            yield keyword, mark if dynamic else target.at


def _innermost_first(nodes: dict[str, _Node]) -> list[str] | SchemaRefusal:
    """The places so ordered that all a place calls in at its own value come before it; or where they go in a circle."""
    order: list[str] = []
    state: dict[str, bool] = {}  # False while we are inside, True when done
    for start, node in nodes.items():
        path = [(start, iter(node.here))] if start not in state else []
        state.setdefault(start, False)
        while path:
            at, rest = path[-1]
            keyword, following = next(rest, ("", None))
            if following is None:
                state[at] = True
                order.append(at)
                path.pop()
            elif following not in state:
                state[following] = False
                path.append((following, iter(nodes[following].here)))
            elif not state[following]:
                expected = "references that come to an end at one value"
                return SchemaRefusal("contract/schema-cycle", _shown(at), expected, f"a circle through `{keyword}`")
    return order


def _whole(node: _Node, wholes: dict[str, _Whole], work: Work) -> _Whole:
    """*node* with all it calls in."""
    called = [(keyword, wholes[at]) for keyword, at in node.here]
    work.left -= len(called)
    size = 1 + sum(whole.size for _, whole in called)
    weight = node.weight + sum(whole.weight for _, whole in called)
    chain = max((whole.chain + 1 for _, whole in called), default=0)
    again = any(keyword in _JUDGED_AGAIN or whole.again for keyword, whole in called)
    extra = max(bool(node.unevaluated), bool(node.contains), *(whole.extra for _, whole in called), 0)
    times = [_times(node, whole, again) for _, whole in called]
    parts = [(_own(node, max(times, default=1)), 1)]
    parts += [(whole.beyond, count) for (_, whole), count in zip(called, times, strict=True)]
    beyond = _merged([part for part in parts if part[0]], work)
    # `unevaluated*` asks again what every place in the closure covered; chains of it multiply (2.5 a link, measured).
    fold = 4 if node.unevaluated else 1
    return _Whole(size * fold, weight * fold, chain, beyond, again or bool(node.unevaluated), extra)


def _times(node: _Node, whole: _Whole, again: bool) -> int:
    """
    How many times what lies beyond *whole* is judged when *node* calls it in; *again* if it calls in anything that is
    judged again below `unevaluated*`.

    Measured growth for each level of the instance, under `unevaluatedProperties`: `allOf` 1, `anyOf` 2, `anyOf` in
    `anyOf` or in `allOf` 3, three deep 4; a second `unevaluated*` inside 3, a third 8. Under `unevaluatedItems`:
    `allOf` 2, with `contains` in it 3. This says no less.
    """
    if node.unevaluated and (again or "unevaluatedItems" in node.unevaluated):
        return 2 + whole.chain + whole.extra
    return 1


def _own(node: _Node, times: int) -> Table:
    """
    What *node* itself asks of what lies beyond, where all it calls in is judged *times* as often.

    The engine judges by `unevaluated*` twice when it refuses, and by `contains` beside `unevaluatedItems` when it does
    not (measured: both double with each level of the instance).
    """
    if not node.unevaluated:
        return node.beyond
    twice = {below: max(times, 2) for below in (node.contains, *node.unevaluated) if below}
    return {token: {at: count * twice.get(at, 1) for at, count in row.items()} for token, row in node.beyond.items()}


def _merged(parts: list[tuple[Table, int]], work: Work) -> Table:
    """The sum of tables, each taken some number of times. A table that stands alone is shared, not copied."""
    if not parts:
        return _NOTHING
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0]
    merged: Table = {}
    for table, times in parts:
        for token, row in table.items():
            work.left -= 1 + len(row)
            into = merged.setdefault(token, {})
            for at, count in row.items():
                into[at] = into.get(at, 0) + count * times
        if work.left < 0:
            break
    return merged


def _too_dear(at: str, limits: SchemaLimits, effort: int) -> SchemaRefusal:
    expected = f"at most {limits.cost:,} subschemas to judge along one path of a value"
    return SchemaRefusal("contract/schema-cost", _shown(at), expected, "more", effort)


def _shown(at: str) -> str:
    """*at* as a pointer: the mark of dynamic references is none, and stands for the whole schema."""
    return at if at.startswith("/") else ""
