"""What there is in a schema, for whoever compares two of them. Follows references within a document; no I/O."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from assay.engine.drafts import DRAFT_2020_12, Draft, draft_of, subschemas
from assay.engine.pointers import NOWHERE, escaped, from_fragment, looked_up
from assay.engine.wording import wanted
from assay.lock.canonical import text
from assay.lock.shifts import ABSENT, FATEFUL, OWN, Schema, Shift, taken_values, undecided, was_is

_LONGEST_CHAIN: Final = 60
"""References that are followed, one after the other."""

_READING: Final = FATEFUL - {"$schema", "$id", "x-mcp-header"}
"""Keywords with which a change in one place may do something in another."""

INSIDE: Final = frozenset(
    {
        "$ref", "$defs", "definitions", "properties", "patternProperties", "additionalProperties", "items",
        "prefixItems", "additionalItems", "propertyNames", "allOf", "anyOf", "oneOf",
    }
)  # fmt: skip
"""Keywords that hold schemas, or lead to one."""


def as_object(schema: Any) -> Any:
    """*schema* without booleans: true asks for nothing, and None is what takes nothing."""
    return {} if schema is True else None if schema is False else schema


def member(schema: Any, keyword: str) -> dict[str, Any]:
    value = schema.get(keyword) if isinstance(schema, dict) else None
    return value if isinstance(value, dict) else {}


def has_plain_items(schema: Schema) -> bool:
    """Whether all items are asked the same."""
    return not isinstance(schema.get("items"), list) and schema.keys().isdisjoint({"prefixItems", "additionalItems"})


def is_joint(schema: Schema) -> bool:
    """Whether more than one schema speaks of the same value."""
    every = schema.get("allOf")
    one_each = ("properties", "$ref", "anyOf", "oneOf", "if", "not", "dependentSchemas", "dependencies")
    return sum(keyword in schema for keyword in one_each) + (len(every) if isinstance(every, list) else 0) > 1


def referred(root: Any, reference: Any) -> tuple[str, Any] | None:
    """Where a reference within the document leads: the pointer, and what is there."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    pointer = from_fragment(reference[1:])
    if pointer is None or (pointer and not pointer.startswith("/")):
        return None
    found = looked_up(root, pointer)
    return None if found is NOWHERE else (pointer, found)


def followed(root: Any, schema: Any) -> Any:
    for _ in range(_LONGEST_CHAIN):
        target = referred(root, schema["$ref"]) if isinstance(schema, dict) and "$ref" in schema else None
        if target is None:
            break
        schema = target[1]
    return schema


def paired(was: Sequence[Any], now: Sequence[Any]) -> tuple[list[tuple[Any, int, Any]], list[Any], list[int]]:
    """Those that are spelt alike, with their number now; those of before without one; the numbers of the new ones."""
    waiting: dict[bytes, list[int]] = {}
    for number in reversed(range(len(now))):
        waiting.setdefault(text(now[number]), []).append(number)
    pairs, gone = [], []
    for one in was:
        same = waiting.get(text(one))
        if same:
            number = same.pop()
            pairs.append((one, number, now[number]))
        else:
            gone.append(one)
    return pairs, gone, sorted(number for numbers in waiting.values() for number in numbers)


def in_words(some: Sequence[Any]) -> str:
    first = wanted(some[0]) or "an alternative"
    return first if len(some) == 1 else f"{first} and {len(some) - 1} more"


def disjoint(one: Any, other: Any) -> bool:
    """Whether surely nothing is taken by both."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return one is False or other is False
    values = taken_values(one), taken_values(other)
    if values[0] is not None and values[1] is not None:
        return not values[0].keys() & values[1].keys()
    types = [_named_types(each) for each in (one, other)]
    if types[0] and types[1] and not types[0] & types[1]:
        return True
    # Two shapes that tell themselves apart by a constant. What is no object must be out of the question.
    if types != [{"object"}, {"object"}]:
        return False
    shared = set(_strings(one.get("required"))) & set(_strings(other.get("required")))
    properties = member(one, "properties"), member(other, "properties")
    return any(
        disjoint(properties[0][name], properties[1][name])
        for name in shared
        if name in properties[0] and name in properties[1]
    )


def _named_types(schema: Schema) -> set[str]:
    given = schema.get("type")
    named = {given} if isinstance(given, str) else set(_strings(given))
    return named | {"integer"} if "number" in named else named


def _strings(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def check_said(at: str, old: Schema, new: Schema) -> Iterator[Shift]:
    """What asks for nothing: titles, descriptions, defaults, keywords that nobody knows. And what nobody can tell."""
    for keyword in sorted((old.keys() | new.keys()) - OWN - INSIDE):
        was, now = old.get(keyword, ABSENT), new.get(keyword, ABSENT)
        if was is not ABSENT and now is not ABSENT and text(was) == text(now):
            continue
        place = f"{at}/{escaped(keyword)}"
        if keyword in FATEFUL:
            yield undecided(place, was_is(was, now), was, now)
        else:
            yield Shift(place, was_is(was, now), was, now)


def _walk(schema: Any, found: Callable[[Schema], bool]) -> bool:
    """Whether *found* says so of any schema in the document."""
    draft: Draft = draft_of(schema) or DRAFT_2020_12
    waiting = [schema]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            if found(one):
                return True
            waiting += [below for _, _, below in subschemas(one, draft)]
    return False


def reads_otherwise(document: Any) -> bool:
    """Whether a change in one place of *document* may do something in another."""
    nested = _walk(document, lambda one: one is not document and "$id" in one)
    return nested or _walk(document, lambda one: not _READING.isdisjoint(one))


def references(value: Any) -> Iterator[str]:
    """Every reference in *value*."""
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for one in value.values():
            yield from references(one)
    elif isinstance(value, list):
        for one in value:
            yield from references(one)
