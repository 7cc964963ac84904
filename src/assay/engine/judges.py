"""
The validators that explaining needs: one for each subschema that is asked about, made when it is first asked.

Compiling every subschema at once (`validator_map_for`) takes 31 ms and 15 MB for the official schema, and 77 MB for one
of 600 subschemas that refer to each other; a validator that refers into a shared registry takes 10 to 700 µs.
"""

from collections.abc import Callable
from typing import Any

import jsonschema_rs

from assay.engine.compiled import Options, registered
from assay.engine.drafts import Schema
from assay.engine.pointers import as_fragment
from assay.engine.schema_index import SchemaIndex, SchemaPlace, outlined
from assay.engine.schema_limits import SchemaRefusal

Judge = Callable[[Any], bool]

_HELD = 20_000
"""Subschemas that all kept validators together may cover: about 1.7 kB each, so some 30 MB at the very most."""

# Beside a reference these say nothing about an instance.
_SILENT = frozenset(
    {"$ref", "$comment", "$defs", "definitions", "title", "description", "default", "examples", "deprecated"}
    | {"readOnly", "writeOnly", "$schema"}
)
_APART = frozenset({"$defs", "definitions", "contentSchema"})


class Judges:
    """Says of any subschema of one document whether a value fits it. Grows as it is asked, up to a limit."""

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
    """None for a document we cannot find our way in."""
    root: SchemaPlace | None
    """The place that is judged by."""

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
        """For whoever explains: what is worth finding out only once about a place."""

    def settled(self, place: SchemaPlace) -> SchemaPlace:
        """Where *place* leads if it is nothing but a reference, else itself."""
        for _ in range(64):
            schema = place.schema
            if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str) or self.outline is None:
                break
            if not self.outline.draft.lone_reference and not _SILENT.issuperset(schema):
                break
            place = self.outline.referred(place, schema["$ref"]) or place
        return place

    def of(self, place: SchemaPlace) -> tuple[Judge, int]:
        """The judge for *place*, and how many subschemas had to be compiled for it."""
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
        """The judge for one keyword of *place* that holds no subschema."""
        judge = self._keywords.get((place.at, keyword))
        if judge is None and isinstance(place.schema, dict):
            judge = self._keywords[place.at, keyword] = self._made(_alone(place.schema, keyword), 1)
        return judge or _always

    def pattern(self, pattern: str) -> Judge:
        """Whether a string matches *pattern*, by the engine the schema was compiled with: never by Python's own."""
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
            # The document as a whole did compile. What does not by itself is left unexplained, never wrongly blamed.
            return _always

    def _reach(self, place: SchemaPlace) -> int:
        """How many subschemas judging by *place* may involve."""
        outline = self.outline
        if outline is None:
            return 1
        seen = {place.at}
        waiting = [place]
        for one in waiting:  # which grows meanwhile
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
"""The documents asked about last, by identity: the many parts of the protocol's schema share one outline."""


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
    """*keyword* with what it is judged together with: draft 4 has a boolean beside a bound, draft 7 decodes first."""
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
