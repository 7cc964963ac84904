"""
Values that fit a part of our schema, and values that break it at one known place.

Knows the small language that `assay.spec.notation` writes, and nothing of conversations. What it makes is held against
the compiled schema, so that a mistake here cannot pass for one there.
"""

from base64 import b64encode
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

from hypothesis import strategies as st

from assay.schema.pointers import escaped
from assay.spec.schema import ProtocolSchema

Node = dict[str, Any]

_REFERENCE = "#/$defs/"

# Levels below which only what is required is made. The deepest definitions have seven; free JSON counts double.
_FUEL = 7


# ── scalars ──────────────────────────────────────────────────────────────────────────────────────────────────────────

# What parsers and printers stumble over; the rest is left to chance.
_TEXTS = (
    "", "a", "text", "0", "é", "漢字", "🙂", "a\u0301", '"', "\\", "\n", "\t\r", "\x00", "\x7f", "\u2028", "/", "~",
    "~1", "a/b~c", "null", "{}", '{"a":1}', ":", "\\u0041", "\ufeff", "\ud7ff", "\uffff", "x" * 200,
)  # fmt: skip
_INTEGERS = (0, 1, -1, 7, 2**31, -(2**31), 2**53 + 1, 2**63 - 1, -(2**63), 2**64 - 1)
_FRACTIONS = (0.5, -0.5, 1e-7, 1.5e300, -2.25, 0.1, 5e-324)

_URIS = (
    "file:///a/b.txt", "https://example.com/x?y=1#z", "urn:isbn:0451450523", "mailto:a@example.com", "a:",
    "x-y+z.1:%20", "https://[::1]:8080/", "data:text/plain,hello", "resource://schemas/a", "https://example.com/%E6%BC%A2",
)  # fmt: skip
_TEMPLATES = ("file:///{path}", "https://example.com/{a}{?b,c*}", "x:{+all}", "", "plain", "{/a:3}{#b}", "x:{a%20b}")

texts = st.one_of(st.sampled_from(_TEXTS), st.text(max_size=6))
"""Strings of every sort, most of them short."""

integers = st.one_of(st.sampled_from(_INTEGERS), st.integers(-(2**63), 2**63 - 1))
"""Integers within 64 bits."""

numbers = st.one_of(
    integers,
    st.sampled_from(_FRACTIONS),
    st.floats(allow_nan=False, allow_infinity=False),
)
"""Numbers that a double or 64 bits can hold."""

scalars = st.one_of(st.none(), st.booleans(), numbers, texts)


@cache
def values(fuel: int = 2) -> st.SearchStrategy[Any]:
    """Any JSON value, at most *fuel* containers deep."""
    if not fuel:
        return scalars
    below = values(fuel - 1)
    return st.one_of(scalars, st.lists(below, max_size=3), st.dictionaries(texts, below, max_size=3))


# ── what fits ────────────────────────────────────────────────────────────────────────────────────────────────────────


def part_of(schema: ProtocolSchema, definition: str, part: str = "") -> Node:
    """The schema that *part*, a JSON Pointer, names within *definition*."""
    node: Node = schema.definition(definition)
    for step in part.split("/")[1:]:
        node = node[step]
    return node


def instances(schema: ProtocolSchema, definition: str, part: str = "") -> st.SearchStrategy[Any]:
    """Values that fit *definition*, or the *part* of it that a JSON Pointer names."""
    return fitting(schema, part_of(schema, definition, part))


@st.composite
def fitting(draw: st.DrawFn, schema: ProtocolSchema, node: Node, fuel: int = _FUEL) -> Any:
    """Values that fit *node*, whose references are to definitions of *schema*."""
    return _draw(draw, schema, node, fuel)


def least(schema: ProtocolSchema, node: Node) -> Any:
    """A plain value that fits *node*, with nothing in it that may be left out."""
    node = settled(schema, node)
    if "const" in node or "enum" in node:
        return node["const"] if "const" in node else node["enum"][0]
    if "anyOf" in node:
        return least(schema, node["anyOf"][0])
    kind = next(iter(types_of(node)), "object")
    if kind == "object":
        return {name: least(schema, node["properties"][name]) for name in node.get("required", [])}
    plain: dict[str, Any] = {"string": "a:b", "array": [], "boolean": False, "null": None}
    return plain.get(kind, node.get("minimum", 0))


def _draw(draw: st.DrawFn, schema: ProtocolSchema, node: Node, fuel: int) -> Any:
    node = settled(schema, node)
    if "const" in node:
        return node["const"]
    if "enum" in node:
        return draw(st.sampled_from(node["enum"]))
    if "anyOf" in node:
        return _draw(draw, schema, draw(st.sampled_from(node["anyOf"])), fuel)
    kinds = types_of(node)
    if not kinds:
        return draw(values(2 if fuel > 2 else 0))
    kind = draw(st.sampled_from(kinds)) if len(kinds) > 1 else kinds[0]
    if kind == "object":
        return _draw_object(draw, schema, node, fuel)
    if kind == "array":
        most = min(node.get("maxItems", 3), 3) if fuel > 0 else node.get("minItems", 0)
        # One item is worth more than none: what is wrong is found in items.
        count = draw(st.sampled_from([number for number in (1, 2, 0, 3) if node.get("minItems", 0) <= number <= most]))
        return [_draw(draw, schema, node.get("items", {}), fuel - 1) for _ in range(count)]
    return draw(_scalar(kind, node.get("minimum"), node.get("maximum"), node.get("format")))


def _draw_object(draw: st.DrawFn, schema: ProtocolSchema, node: Node, fuel: int) -> dict[str, Any]:
    properties, required = node.get("properties", {}), node.get("required", [])
    if not properties:
        entries = node.get("additionalProperties", {})
        keys = draw(_keys) if fuel > 0 else []
        return {key: _draw(draw, schema, entries, fuel - 3) for key in keys}
    optional = [name for name in properties if name not in required]
    # One number for all of them: a choice for each would take most of the time.
    chosen = draw(st.integers(0, 2 ** (len(optional) + 1) - 1)) if fuel > 0 else 0
    present = {*required, *(name for index, name in enumerate(optional) if chosen >> index & 1)}
    made = {name: _draw(draw, schema, below, fuel - 1) for name, below in properties.items() if name in present}
    if chosen >> len(optional) & 1:
        # No definition has a name that begins so: it is in no branch of a union, and means nothing to a conversation.
        made[f"x-{draw(texts)}"] = draw(values(1))
    return made


_keys = st.lists(texts, max_size=3, unique=True)


@cache
def _scalar(kind: str, low: int | None, high: int | None, form: str | None) -> st.SearchStrategy[Any]:
    match kind:
        case "null":
            return st.none()
        case "boolean":
            return st.booleans()
        case "string" if form == "uri":
            return st.sampled_from(_URIS)
        case "string" if form == "uri-template":
            return st.sampled_from(_TEMPLATES)
        case "string" if form == "byte":
            return st.binary(max_size=9).map(lambda data: b64encode(data).decode())
        case "string":
            return texts
        case "integer" if low is None and high is None:
            # 3.0 is an integer to JSON Schema, which knows no other difference between numbers than their value.
            return st.one_of(integers, integers, st.sampled_from((3.0, -2.0)))
        case "integer":
            return st.integers(low if low is not None else -(2**63), high if high is not None else 2**63 - 1)
        case "number" if low is None and high is None:
            return numbers
        case "number":
            return st.one_of(
                st.sampled_from([bound for bound in (low, high) if bound is not None]), st.floats(low, high)
            )
    raise AssertionError(f"the notation has no type {kind}")


def settled(schema: ProtocolSchema, node: Node) -> Node:
    """*node* with its reference followed, and the objects of an `allOf` made one."""
    while "$ref" in node:
        node = schema.definition(node["$ref"].removeprefix(_REFERENCE))
    if "allOf" not in node:
        return node
    merged: Node = {"type": "object", "properties": {}, "required": []}
    for one in node["allOf"]:
        each = settled(schema, one)
        if "anyOf" in each:
            return {
                "anyOf": [{"allOf": [branch, *(x for x in node["allOf"] if x is not one)]} for branch in each["anyOf"]]
            }
        for name, below in each.get("properties", {}).items():
            known = merged["properties"].get(name)
            merged["properties"][name] = {"allOf": [known, below]} if known is not None and known != below else below
        merged["required"] += [name for name in each.get("required", []) if name not in merged["required"]]
    return merged


def types_of(node: Node) -> list[str]:
    """The JSON types that *node* names; none if it takes any."""
    kind = node.get("type", [])
    return [kind] if isinstance(kind, str) else kind


# ── what does not ────────────────────────────────────────────────────────────────────────────────────────────────────


class Break(NamedTuple):
    """A value with one fault."""

    value: Any
    at: str
    """JSON Pointer to the fault: the value that is wrong, or the object that lacks something."""
    what: str
    union: str | None
    """Pointer to the outermost value around it that may be one of several things; None if there is none."""


class _Candidate(NamedTuple):
    at: tuple[str | int, ...]
    what: str
    make: Callable[[Any], Any]
    """The wrong value, from the right one."""
    union: tuple[str | int, ...] | None


def breaks(schema: ProtocolSchema, definition: str, value: Any, part: str = "") -> st.SearchStrategy[Break]:
    """*value*, which fits, with exactly one fault, anywhere but in its own type."""
    validator = schema.validator(definition, part)
    return broken(schema, part_of(schema, definition, part), value, validator.is_valid)


@st.composite
def broken(draw: st.DrawFn, schema: ProtocolSchema, node: Node, value: Any, is_valid: Callable[[Any], bool]) -> Break:
    """
    *value*, which fits *node*, with one fault.

    What another branch of a union accepts after all is no fault: *is_valid* says so, and the next candidate is taken.
    """
    candidates = list(_candidates(schema, node, value, (), None))
    if not candidates:
        return Break(value, "", "nothing", None)
    # The depth first: most candidates are shallow, most mistakes of a judge are not.
    depth = draw(st.sampled_from(sorted({len(each.at) for each in candidates})))
    first = draw(st.sampled_from([index for index, each in enumerate(candidates) if len(each.at) == depth]))
    for candidate in candidates[first:] + candidates[:first]:
        made = _replaced(value, candidate.at, candidate.make)
        if not is_valid(made):
            union = None if candidate.union is None else pointer(candidate.union)
            return Break(made, pointer(candidate.at), candidate.what, union)
    return Break(value, "", "nothing", None)


def pointer(steps: tuple[str | int, ...]) -> str:
    """*steps* as a JSON Pointer."""
    return "".join(f"/{escaped(str(step))}" for step in steps)


def _candidates(
    schema: ProtocolSchema, node: Node, value: Any, at: tuple[str | int, ...], union: tuple[str | int, ...] | None
) -> Iterator[_Candidate]:
    node = settled(schema, node)
    if "anyOf" in node:
        for branch in node["anyOf"]:
            if fits(schema, branch, value):
                yield from _candidates(schema, branch, value, at, at if union is None else union)
        return
    if at:
        yield from _wrong_values(node, value, at, union)
    if isinstance(value, dict):
        yield from _in_object(schema, node, value, at, union)
    elif isinstance(value, list):
        if "maxItems" in node:
            filler = value[0] if value else ""
            yield _Candidate(at, "too long", lambda old: old + [filler] * (node["maxItems"] + 1 - len(old)), union)
        for index, item in enumerate(value):
            yield from _candidates(schema, node.get("items", {}), item, (*at, index), union)


def _without(name: str) -> Callable[[Any], Any]:
    return lambda old: {key: old[key] for key in old if key != name}


def _always(value: Any) -> Callable[[Any], Any]:
    return lambda _: value


def _in_object(
    schema: ProtocolSchema,
    node: Node,
    value: dict[str, Any],
    at: tuple[str | int, ...],
    union: tuple[str | int, ...] | None,
) -> Iterator[_Candidate]:
    for name in node.get("required", []):
        yield _Candidate(at, f"no {name}", _without(name), union)
    properties = node.get("properties", {})
    for key, item in value.items():
        below = properties.get(key) if properties else node.get("additionalProperties")
        if below is not None:
            yield from _candidates(schema, below, item, (*at, key), union)


# One value of each JSON type, and two numbers: an integer is a number, a fraction is not an integer.
_SAMPLES: dict[str, Any] = {
    "null": None, "boolean": True, "integer": 5, "number": 2.5, "string": "5", "array": [], "object": {},
}  # fmt: skip


def _wrong_values(
    node: Node, value: Any, at: tuple[str | int, ...], union: tuple[str | int, ...] | None
) -> Iterator[_Candidate]:
    allowed = node["enum"] if "enum" in node else [node["const"]] if "const" in node else None
    kinds = (
        types_of(node) if allowed is None else [name for name, one in _SAMPLES.items() if type(one) is type(allowed[0])]
    )
    if not kinds:
        return
    taken = {*kinds, "integer"} if "number" in kinds else set(kinds)
    for kind, sample in _SAMPLES.items():
        if kind not in taken:
            yield _Candidate(at, f"{kind} for {'/'.join(kinds)}", _always(sample), union)
    if allowed is not None:
        other = f"{allowed[0]}?" if isinstance(allowed[0], str) else allowed[0] + 1
        yield _Candidate(at, "another constant", lambda _: other, union)
    if isinstance(value, int | float):
        if "minimum" in node:
            yield _Candidate(at, "too small", lambda _: node["minimum"] - 1, union)
        if "maximum" in node:
            yield _Candidate(at, "too large", lambda _: node["maximum"] + 1, union)


def _replaced(value: Any, at: tuple[str | int, ...], make: Callable[[Any], Any]) -> Any:
    if not at:
        return make(value)
    step, rest = at[0], at[1:]
    if isinstance(value, list):
        return [_replaced(item, rest, make) if index == step else item for index, item in enumerate(value)]
    return {key: _replaced(item, rest, make) if key == step else item for key, item in value.items()}


# ── a judge of our own ───────────────────────────────────────────────────────────────────────────────────────────────


def fits(schema: ProtocolSchema, node: Node, value: Any) -> bool:
    """Whether *value* fits *node*, formats aside: a second opinion, forty lines long, beside the engine's."""
    node = settled(schema, node)
    if "const" in node:
        return _same(node["const"], value)
    if "enum" in node:
        return any(_same(one, value) for one in node["enum"])
    if "anyOf" in node:
        return any(fits(schema, branch, value) for branch in node["anyOf"])
    kinds = types_of(node)
    if kinds and not any(_is(kind, value) for kind in kinds):
        return False
    if isinstance(value, dict):
        return _fits_object(schema, node, value)
    if isinstance(value, list):
        few = node.get("minItems", 0) <= len(value) <= node.get("maxItems", len(value))
        return few and all(fits(schema, node.get("items", {}), item) for item in value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return bool(node.get("minimum", value) <= value <= node.get("maximum", value))
    return True


def _fits_object(schema: ProtocolSchema, node: Node, value: dict[str, Any]) -> bool:
    properties, others = node.get("properties", {}), node.get("additionalProperties", {})
    return all(name in value for name in node.get("required", [])) and all(
        fits(schema, properties.get(key, others), item) for key, item in value.items()
    )


def _same(one: Any, other: Any) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _is(kind: str, value: Any) -> bool:
    match kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "string":
            return isinstance(value, str)
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, dict)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and (kind == "number" or value == int(value))
