"""
Which places of a schema judge one value together, and which of them judge what lies one step further down.

Counts subschemas and steps of the engine. Refuses nothing but a cycle.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from assay.engine.fault import SchemaRefusal
from assay.engine.patterns import pattern_steps
from assay.engine.schema_index import SchemaIndex, SchemaPlace

Table = dict[str | int, dict[str, int]]
"""The places that judge what lies one step further down, and how many times each does. A step is the name of a
property, the number of an item, or one of the negative numbers below."""

ANY_PROPERTY, ANY_ITEM, ANY_KEY = -1, -2, -3

_KEY, _INSIDE = "!key", "!inside"
"""Work that belongs to no subschema: looking at a key, and reading all that is inside an item. No pointer begins like
this."""

_UNEVALUATED: Final = ("unevaluatedProperties", "unevaluatedItems")
_IN_PLACE: Final = frozenset(
    {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}
)
_STEPS_DOWN: Final = {
    **dict.fromkeys(("patternProperties", "additionalProperties", "unevaluatedProperties"), ANY_PROPERTY),
    **dict.fromkeys(("items", "contains", "additionalItems", "unevaluatedItems"), ANY_ITEM),
    "propertyNames": ANY_KEY,
}
_JUDGED_AGAIN: Final = _IN_PLACE - {"allOf", "not"}
"""Below `unevaluated*` the engine judges by these again to find out what they covered."""


@dataclass(slots=True)
class Work:
    """How many table entries may still be read; below zero the computation stops."""

    left: int


@dataclass(slots=True)
class Node:
    """The work of one place by itself."""

    here: list[tuple[str, str]] = field(default_factory=list)
    """The places that judge the same value too: keyword and pointer."""
    beyond: Table = field(default_factory=dict)
    unevaluated: frozenset[str] = frozenset()
    """Its `unevaluated*` keywords, and the places under them."""
    contains: str = ""
    """The place under `contains`, if there is one."""
    steps: int = 1


@dataclass(slots=True)
class Closure:
    """A place together with all places that it applies to the same value."""

    size: int
    """Subschemas evaluated at one value."""
    steps: int
    """Steps of the engine that this takes."""
    unique: int = 0
    """1 for reading all that is inside an item, at any depth, to find out whether items differ."""
    chain: int = 0
    beyond: Table = field(default_factory=dict)
    again: bool = False
    """Whether `unevaluated*` above makes the engine judge what lies beyond more than once."""


def tacit() -> dict[str, Closure]:
    """Return the closures of the work that belongs to no subschema."""
    return {_KEY: Closure(0, 1), _INSIDE: Closure(0, 0, unique=1)}


def nodes_of(outline: SchemaIndex) -> "dict[str, Node] | SchemaRefusal":
    """
    Return the work of each place, so ordered that all that a place applies at its own value come before it.

    A refusal if places apply each other in a cycle.
    """
    goals = _goals(outline)
    nodes = {place.at: _node(outline, place, goals) for place in outline.order}
    nodes |= {mark: Node([("", at) for at in places]) for mark, places in goals.items()}
    return _innermost_first(nodes)


def _node(outline: SchemaIndex, place: SchemaPlace, goals: dict[str, list[str]]) -> Node:
    node = Node()
    if not isinstance(place.schema, dict):
        return node
    node.here.extend(_referred(outline, place, goals))
    if outline.draft.lone_reference and "$ref" in place.schema:
        return node
    node.steps = _at_value(place.schema)
    each_key = _at_each_key(place.schema)
    if each_key:
        node.beyond[ANY_KEY] = {_KEY: each_key}
    if place.schema.get("uniqueItems") is True:
        node.beyond[ANY_ITEM] = {_INSIDE: 1}
    for keyword, key, below in outline.inside(place):
        if keyword in _IN_PLACE:
            node.here.append((keyword, below.at))
            continue
        node.contains = below.at if keyword == "contains" else node.contains
        node.unevaluated |= {keyword, below.at} if keyword in _UNEVALUATED else set()
        step = key if keyword == "properties" or isinstance(key, int) else _STEPS_DOWN.get(keyword)
        if step is not None:
            row = node.beyond.setdefault(step, {})
            row[below.at] = row.get(below.at, 0) + 1
    return node


def pointer_of(at: str) -> str:
    """Return *at* if it is a pointer; the mark of a dynamic reference stands for the whole schema."""
    return at if at.startswith("/") else ""


def _goals(outline: SchemaIndex) -> dict[str, list[str]]:
    """Return the possible targets of dynamic references: the mark of a target, and every place that has the mark."""
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
    """Yield the targets of the references at *place*; a mark where the target depends on the path taken."""
    for keyword, reference in outline.references(place):
        target = outline.referred(place, reference)
        if target is not None:
            mark = "#" + reference.partition("#")[2]
            dynamic = keyword != "$ref" and target.at in goals.get(mark, ()) and len(goals[mark]) > 1
            yield keyword, mark if dynamic else target.at


def _innermost_first(nodes: dict[str, Node]) -> dict[str, Node] | SchemaRefusal:
    order: dict[str, Node] = {}
    done: dict[str, bool] = {}  # False while the place is being visited
    for start, node in nodes.items():
        path = [(start, iter(node.here))] if start not in done else []
        done.setdefault(start, False)
        while path:
            at, rest = path[-1]
            keyword, following = next(rest, ("", None))
            if following is None:
                done[at] = True
                order[at] = nodes[at]
                path.pop()
            elif following not in done:
                done[following] = False
                path.append((following, iter(nodes[following].here)))
            elif not done[following]:
                expected = "references that end"
                return SchemaRefusal("contract/schema-cycle", pointer_of(at), expected, f"a cycle through `{keyword}`")
    return order


def closure_of(node: Node, closures: dict[str, Closure], work: Work) -> Closure:
    """Return the closure of *node*; *closures* has those of all places that it applies at the same value."""
    called = [(keyword, closures[at]) for keyword, at in node.here]
    work.left -= len(called)
    chain = max((closure.chain + 1 for _, closure in called), default=0)
    again = any(keyword in _JUDGED_AGAIN or closure.again for keyword, closure in called)
    # Measured growth for each level of the instance under `unevaluatedProperties`: `allOf` 1, `anyOf` 2, `anyOf` in
    # `anyOf` or in `allOf` 3, three deep 4; a second `unevaluated*` inside 3, a third 8. Under `unevaluatedItems`:
    # `allOf` 2, with `contains` in it 3. This counts no less.
    times = 2 + chain if node.unevaluated and (again or "unevaluatedItems" in node.unevaluated) else 1
    own = _own(node, times if called else 1)
    # `unevaluated*` asks again what every place in the closure covered; chains of it multiply (2.5 a link, measured).
    fold = 4 if node.unevaluated else 1
    return Closure(
        size=fold * (1 + sum(closure.size for _, closure in called)),
        steps=fold * (node.steps + sum(closure.steps for _, closure in called)),
        chain=chain,
        beyond=_merged([(own, 1), *((closure.beyond, times) for _, closure in called)], work),
        again=again or bool(node.unevaluated),
    )


def _own(node: Node, times: int) -> Table:
    """
    Return what *node* itself applies one step down, where all it calls is judged *times* as often.

    The engine judges by `unevaluated*` twice if it refuses, and by `contains` beside `unevaluatedItems` if it does not
    (measured: both double with each level of the instance).
    """
    if not node.unevaluated:
        return node.beyond
    twice = {below: max(times, 2) for below in (node.contains, *node.unevaluated) if below}
    return {step: {at: count * twice.get(at, 1) for at, count in row.items()} for step, row in node.beyond.items()}


def _merged(parts: list[tuple[Table, int]], work: Work) -> Table:
    """Return the sum of tables, each taken some number of times. A table that stands alone is shared, not copied."""
    counts: dict[int, tuple[Table, int]] = {}
    for table, times in parts:
        if table:
            counts[id(table)] = table, times + counts.get(id(table), (table, 0))[1]
    match list(counts.values()):
        case []:
            return {}
        case [(table, 1)]:
            return table
    merged: Table = {}
    for table, times in counts.values():
        for step, row in table.items():
            work.left -= 1 + len(row)
            into = merged.setdefault(step, {})
            for at, count in row.items():
                into[at] = into.get(at, 0) + count * times
        if work.left < 0:
            break
    return merged


# ── steps of the engine for one keyword ──────────────────────────────────────────────────────────────────────────────
# A step is about 12 ns (measured, jsonschema-rs 0.60.3). A string is counted again for each 64 characters, so a price
# for strings is a price for that many.

UNIQUE: Final = 12
"""`uniqueItems`, for each value inside an array at any depth: 40 to 140 ns."""
_LOOK_UP: Final = 4
"""`required`, for each property that is present: 17 to 90 ns. The first missing one ends it."""
_NODE: Final = 14
"""A comparison with an array or object, for each value in it: 170 ns."""
_FRACTION: Final = 160
"""A comparison with a number that has a fraction or more than 64 bits: 0.8 µs for a bound, 15 µs with extreme
exponents."""


def _at_value(schema: Mapping[str, Any]) -> int:
    """Return the steps at one value for the keywords of *schema* that hold no subschema."""
    return 1 + sum(_PRICES[keyword](value) for keyword, value in schema.items() if keyword in _PRICES)


def _at_each_key(schema: Mapping[str, Any]) -> int:
    """Return the steps for each key of an object."""
    patterns = schema.get("patternProperties")
    steps = sum(map(pattern_steps, patterns)) if isinstance(patterns, dict) else 0
    return steps + ("properties" in schema) + _LOOK_UP * ("required" in schema)


def _is_exact(value: Any) -> bool:
    """Whether the engine compares with *value* as a fraction."""
    return isinstance(value, float) or (isinstance(value, int) and value.bit_length() > 64)


def _constant(value: Any) -> int:
    return _nodes(value) if isinstance(value, dict | list) or _is_exact(value) else 4


def _choice(values: Any) -> int:
    """The engine looks strings or integers up, and goes through a mixed list."""
    if not isinstance(values, list) or {*map(type, values)} in ({str}, {int}, set()):
        return 4
    return sum(2 if isinstance(value, str) else _constant(value) for value in values)


def _nodes(value: Any) -> int:
    waiting = [value]
    for one in waiting:  # grows during the loop
        if isinstance(one, dict | list):
            waiting.extend(one.values() if isinstance(one, dict) else one)
    return sum(_FRACTION if _is_exact(one) else _NODE for one in waiting)


def _entries(value: Any) -> int:
    """18 ns for each entry of an object that the engine goes through."""
    return 2 * len(value) if isinstance(value, dict) else 0


_Price = Callable[[Any], int]
_PRICES: Final[dict[str, _Price]] = {
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), lambda _: 1),
    **dict.fromkeys(
        ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        lambda value: _FRACTION if _is_exact(value) else 4,
    ),
    **dict.fromkeys(("dependentRequired", "dependentSchemas", "dependencies"), _entries),
    "contentEncoding": lambda _: 12,
    "contentMediaType": lambda _: 80,
    "format": lambda _: 12,
    "pattern": pattern_steps,
    # A step that is not an integer is divided by as a fraction: 2 µs, 41 µs with extreme exponents.
    "multipleOf": lambda value: 430 if _is_exact(value) else 25,
    "const": _constant,
    "enum": _choice,
}
