"""
The questions of an explanation to the engine: is a value valid by a subschema, and which members are covered.

Each subschema gets a validator when the first question about it comes. Compiling all of them at once
(`validator_map_for`) takes 31 ms and 15 MB for the official schema, and 77 MB for 600 subschemas that refer to each
other; a validator that refers into a shared registry takes 10 to 700 µs.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import jsonschema_rs

from assay.engine.compiled import Options, registered
from assay.engine.drafts import Schema
from assay.engine.fault import SchemaRefusal
from assay.engine.pointers import as_fragment
from assay.engine.schema_index import SchemaIndex, SchemaPlace, outlined

if TYPE_CHECKING:
    from assay.engine.explain import Walk

Judge = Callable[[Any], bool]

_HELD = 20_000
"""Subschemas in all cached validators together: about 1.7 kB each, so at most about 30 MB."""

# Beside a reference these judge nothing.
_SILENT = frozenset(
    {"$ref", "$comment", "$defs", "definitions", "title", "description", "default", "examples", "deprecated"}
    | {"readOnly", "writeOnly", "$schema"}
)
_APART = frozenset({"$defs", "definitions", "contentSchema"})


class Judges:
    """Validators for the subschemas of one document, compiled on first use and cached up to a limit."""

    __slots__ = (
        "_held",
        "_keywords",
        "_options",
        "_patterns",
        "_places",
        "_registry",
        "_uri",
        "kept",
        "outline",
        "root",
    )

    outline: SchemaIndex | None
    """None for a document that cannot be indexed."""
    root: SchemaPlace | None
    """The place that judges."""

    def __init__(self, document: Schema, entry: str, options: Options) -> None:
        outline, self._uri, self._registry = _known(document, entry)
        self.outline = None if isinstance(outline, SchemaRefusal) else outline
        self.root = None if isinstance(outline, SchemaRefusal) else outline.places[entry]
        self._options = options
        self._places: dict[str, Judge] = {}
        self._keywords: dict[tuple[str, str], Judge] = {}
        self._patterns: dict[str, Judge] = {}
        self._held = 0
        self.kept: dict[str, Any] = {}
        """Cached results of an explanation, by place."""

    def settled(self, place: SchemaPlace) -> SchemaPlace:
        """Return the target of *place* if it is only a reference, else *place* itself."""
        for _ in range(64):
            schema = place.schema
            if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str) or self.outline is None:
                break
            if not self.outline.draft.lone_reference and not _SILENT.issuperset(schema):
                break
            place = self.outline.referred(place, schema["$ref"]) or place
        return place

    def of(self, place: SchemaPlace) -> tuple[Judge, int]:
        """Return the judge for *place*, and how many subschemas had to be compiled for it."""
        place = self.settled(place)
        judge = self._places.get(place.at)
        if judge is not None:
            return judge, 0
        if isinstance(place.schema, bool):
            judge, size = _always if place.schema else _never, 0
        else:
            size = self._reach(place)
            judge = self._made({"$ref": self._uri + as_fragment(place.at)}, size)
        self._places[place.at] = judge
        return judge, size

    def keyword(self, place: SchemaPlace, keyword: str) -> Judge:
        """Return the judge for one keyword of *place* that holds no subschema."""
        judge = self._keywords.get((place.at, keyword))
        if judge is None and isinstance(place.schema, dict):
            judge = self._keywords[place.at, keyword] = self._made(_alone(place.schema, keyword), 1)
        return judge or _always

    def pattern(self, pattern: str) -> Judge:
        """Return the judge for *pattern*: the engine that compiled the schema, never Python's own."""
        judge = self._patterns.get(pattern)
        if judge is None:
            judge = self._patterns[pattern] = self._made({"pattern": pattern}, 1)
        return judge

    def _made(self, schema: dict[str, Any], size: int) -> Judge:
        self._held += size
        if self._held > _HELD:
            self._places.clear()
            self._keywords.clear()
            self._patterns.clear()
            self._held = size
        draft = self.outline.draft.uri if self.outline is not None else ""
        try:
            whole = {"$schema": draft, **schema}
            return jsonschema_rs.validator_for(whole, registry=self._registry, **self._options).is_valid
        except ValueError:
            # The whole document did compile. A part that does not compile alone is left out of the explanation.
            return _always

    def _reach(self, place: SchemaPlace) -> int:
        """Return how many subschemas can take part in judging by *place*."""
        outline = self.outline
        if outline is None:
            return 1
        seen = {place.at}
        waiting = [place]
        for one in waiting:  # grows during the loop
            following = [below for keyword, _, below in outline.inside(one) if keyword not in _APART]
            following += [
                found for _, written in outline.references(one) if (found := outline.referred(one, written)) is not None
            ]
            for other in following:
                if other.at not in seen:
                    seen.add(other.at)
                    waiting.append(other)
        return len(seen)


_Known = tuple[SchemaIndex | SchemaRefusal, str, jsonschema_rs.Registry]

_LATELY: dict[int, tuple[Schema, _Known]] = {}
"""The documents of the last questions, by identity: the many parts of the protocol's schema share one index."""


def _known(document: Schema, entry: str) -> _Known:
    schema, known = _LATELY.get(id(document), (None, None))
    if known is not None and schema is document and isinstance(known[0], SchemaIndex) and entry in known[0].places:
        return known
    known = (outlined(document, entry=entry), *registered(document))
    while len(_LATELY) >= 4:
        _LATELY.pop(next(iter(_LATELY), 0), None)
    _LATELY[id(document)] = (document, known)
    return known


def _alone(schema: dict[str, Any], keyword: str) -> dict[str, Any]:
    """Return *keyword* with its companions: draft 4 has a boolean beside a bound, draft 7 decodes first."""
    alone = {keyword: schema[keyword]}
    strict = {"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"}.get(keyword, "")
    if isinstance(schema.get(strict), bool):
        alone[strict] = schema[strict]
    if keyword == "contentMediaType" and "contentEncoding" in schema:
        alone["contentEncoding"] = schema["contentEncoding"]
    return alone


def _always(_: Any) -> bool:
    return True


def _never(_: Any) -> bool:
    return False


# ── members that are covered ──────────────────────────────────────────────────────────────────────────────────────────

_ALWAYS = ("allOf", "anyOf", "oneOf", "if")
_DEPENDENT = ("dependentSchemas", "dependencies")


def covered_names(walk: "Walk", place: SchemaPlace, value: dict[str, Any]) -> set[str]:
    """Return the properties of *value* that *place*, and what it applies to the same value, cover."""
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
                return set(value)  # not known: then nothing is at fault
            names.update(filter(walk.judges.pattern(pattern), value))
    return names


def covered_items(walk: "Walk", place: SchemaPlace, value: list[Any]) -> set[int]:
    """Return the numbers of the items of *value* that *place*, and what it applies to the same value, cover."""
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
    # Since 2020-12 the items that `contains` finds count as covered.
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
                yield from range(len(value))  # not known: then nothing is at fault
                return
            yield from (number for number, item in enumerate(value) if fits(item))


def _applied(walk: "Walk", place: SchemaPlace, value: Any) -> Iterator[dict[str, Any]]:
    return (one.schema for one in _places(walk, place, value) if isinstance(one.schema, dict))


def _places(walk: "Walk", place: SchemaPlace, value: Any) -> list[SchemaPlace]:
    """Return *place* and every place that it applies to *value* and that accepts it: only these cover members."""
    places = [place]
    seen = {place.at}
    for one in places:  # grows during the loop
        for called in _called(walk, one, value):
            if called.at not in seen and walk.steps > 0 and walk.fits(called, value):
                seen.add(called.at)
                places.append(called)
    return places


def _called(walk: "Walk", place: SchemaPlace, value: Any) -> Iterator[SchemaPlace]:
    """Yield the places that *place* applies to the same value, except `not`, which covers nothing."""
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
