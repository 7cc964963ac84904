"""Which members of a value some keyword other than `unevaluated*` already speaks of. Needs a walk to ask the engine."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from assay.engine.schema_index import SchemaPlace

if TYPE_CHECKING:
    from assay.engine.explain import Walk

_ALWAYS = ("allOf", "anyOf", "oneOf", "if")
_DEPENDENT = ("dependentSchemas", "dependencies")


def covered_names(walk: "Walk", place: SchemaPlace, value: dict[str, Any]) -> set[str]:
    """The properties of *value* that *place* and what it calls in speak of."""
    names: set[str] = set()
    for schema in _applied(walk, place, value):
        walk.steps -= len(value) // 256
        if "additionalProperties" in schema or (schema is not place.schema and "unevaluatedProperties" in schema):
            return set(value)
        properties = schema.get("properties")
        names.update(key for key in value if isinstance(properties, dict) and key in properties)
        for pattern in schema.get("patternProperties") or ():
            walk.steps -= 1 + len(value) // 32
            if walk.steps <= 0:
                return set(value)  # not known: then nothing is blamed
            names.update(filter(walk.judges.pattern(pattern), value))
    return names


def covered_items(walk: "Walk", place: SchemaPlace, value: list[Any]) -> set[int]:
    """The numbers of the items of *value* that *place* and what it calls in speak of."""
    numbers: set[int] = set()
    tuples = walk.outline.draft.many & {"items", "prefixItems"}
    for schema in _applied(walk, place, value):
        items = schema.get("items")
        if isinstance(items, dict | bool) or (schema is not place.schema and "unevaluatedItems" in schema):
            return set(range(len(value)))
        if isinstance(items, list) and "additionalItems" in schema:
            return set(range(len(value)))
        for keyword in tuples:
            fixed = schema.get(keyword)
            numbers.update(range(min(len(value), len(fixed))) if isinstance(fixed, list) else ())
    # Since 2020-12, what `contains` found counts as covered.
    if "prefixItems" in tuples:
        numbers.update(_contained(walk, place, value))
    return numbers


def _contained(walk: "Walk", place: SchemaPlace, value: list[Any]) -> Iterator[int]:
    for one in _places(walk, place, value):
        sought = walk.outline.below(one, "contains")
        if sought is not None:
            fits, _ = walk.judges.of(sought)
            walk.steps -= 1 + len(value) // 32
            if walk.steps <= 0:
                yield from range(len(value))  # not known: then nothing is blamed
                return
            yield from (number for number, item in enumerate(value) if fits(item))


def _applied(walk: "Walk", place: SchemaPlace, value: Any) -> Iterator[dict[str, Any]]:
    return (one.schema for one in _places(walk, place, value) if isinstance(one.schema, dict))


def _places(walk: "Walk", place: SchemaPlace, value: Any) -> list[SchemaPlace]:
    """*place* and every place it calls in that *value* fits, which are those whose word counts."""
    places = [place]
    seen = {place.at}
    for one in places:  # which grows meanwhile
        for called in _called(walk, one, value):
            if called.at not in seen and walk.steps > 0 and walk.fits(called, value):
                seen.add(called.at)
                places.append(called)
    return places


def _called(walk: "Walk", place: SchemaPlace, value: Any) -> Iterator[SchemaPlace]:
    """The places *place* calls in at the same value; `not` gives none, since it says nothing of what it refuses."""
    for _, reference in walk.outline.references(place):
        target = walk.outline.referred(place, reference)
        if target is not None:
            yield target
    present = value if isinstance(value, dict) else ()
    for keyword, key, below in walk.outline.inside(place):
        if keyword in _ALWAYS or (keyword in _DEPENDENT and key in present):
            yield below
    condition = walk.outline.below(place, "if")
    if condition is not None:
        outcome = walk.outline.below(place, "then" if walk.fits(condition, value) else "else")
        if outcome is not None:
            yield outcome
