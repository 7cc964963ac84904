"""
The drafts of JSON Schema we judge by, as data: where each keeps its subschemas, identifiers and references.

What a keyword asks of an instance is the engine's business; this is only about finding schemas inside a schema.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Schema = dict[str, Any] | bool


@dataclass(frozen=True, slots=True)
class Draft:
    """One revision of JSON Schema."""

    name: str
    uri: str
    identifier: str
    """The keyword that names a resource: ``$id``, or ``id`` in draft 4."""
    one: frozenset[str]
    """Keywords that hold a schema."""
    many: frozenset[str]
    """Keywords that hold an array of schemas. `items` is in both where the draft has both forms."""
    named: frozenset[str]
    """Keywords that hold an object of schemas."""
    references: frozenset[str]
    anchors: frozenset[str]
    """Keywords that give a place a name; before 2019-09 an identifier like ``#name`` does that."""
    lone_reference: bool
    """Whether whatever stands beside ``$ref`` is ignored (draft 7 and before)."""


_ONE_4 = frozenset({"not", "items", "additionalItems", "additionalProperties"})
_ONE_6 = _ONE_4 | {"contains", "propertyNames"}
_ONE_7 = _ONE_6 | {"if", "then", "else"}
_ONE_2019 = _ONE_7 | {"unevaluatedItems", "unevaluatedProperties", "contentSchema"}
_MANY_4 = frozenset({"allOf", "anyOf", "oneOf", "items"})
_NAMED_4 = frozenset({"properties", "patternProperties", "definitions", "dependencies"})
# `dependencies` and `definitions` left the later drafts, but the engine still judges by the former (measured, 0.60.3)
# and both still stand in their metaschemas.
_NAMED_2019 = _NAMED_4 | {"$defs", "dependentSchemas"}
_REF = frozenset({"$ref"})
_NONE: frozenset[str] = frozenset()

DRAFT_4 = Draft(
    "draft-04", "http://json-schema.org/draft-04/schema#", "id", _ONE_4, _MANY_4, _NAMED_4, _REF, _NONE, True
)
DRAFT_6 = Draft(
    "draft-06", "http://json-schema.org/draft-06/schema#", "$id", _ONE_6, _MANY_4, _NAMED_4, _REF, _NONE, True
)
DRAFT_7 = Draft(
    "draft-07", "http://json-schema.org/draft-07/schema#", "$id", _ONE_7, _MANY_4, _NAMED_4, _REF, _NONE, True
)
DRAFT_2019_09 = Draft(
    name="2019-09",
    uri="https://json-schema.org/draft/2019-09/schema",
    identifier="$id",
    one=_ONE_2019,
    many=_MANY_4,
    named=_NAMED_2019,
    references=_REF | {"$recursiveRef"},
    anchors=frozenset({"$anchor"}),
    lone_reference=False,
)
DRAFT_2020_12 = Draft(
    name="2020-12",
    uri="https://json-schema.org/draft/2020-12/schema",
    identifier="$id",
    one=_ONE_2019 - {"additionalItems"},
    many=(_MANY_4 - {"items"}) | {"prefixItems"},
    named=_NAMED_2019,
    references=_REF | {"$dynamicRef"},
    anchors=frozenset({"$anchor", "$dynamicAnchor"}),
    lone_reference=False,
)

# The engine takes either scheme and an empty fragment; so do we, or we would judge by another draft than it does.
_BY_NAME = {
    draft.uri.removesuffix("#").partition(":")[2]: draft
    for draft in (DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019_09, DRAFT_2020_12)
}


def draft_named(uri: Any) -> Draft | None:
    """The draft a ``$schema`` of *uri* asks for, or None if we do not know it."""
    if not isinstance(uri, str):
        return None
    scheme, _, rest = uri.removesuffix("#").partition(":")
    return _BY_NAME.get(rest) if scheme in ("http", "https") else None


def draft_of(schema: Any, otherwise: Draft = DRAFT_2020_12) -> Draft | None:
    """The draft *schema* is written in: the one it names, else *otherwise*; None if it names one we do not know."""
    if isinstance(schema, dict) and "$schema" in schema:
        return draft_named(schema["$schema"])
    return otherwise


def subschemas(schema: dict[str, Any], draft: Draft) -> Iterator[tuple[str, str | int | None, Any]]:
    """
    Every place in *schema* where *draft* expects a schema: keyword, name or number under it, and what is there.

    What is there may be no schema at all. Nothing inside `const`, `enum`, `default` or `examples` is ever given.
    """
    for keyword, value in schema.items():
        if isinstance(value, list):
            if keyword in draft.many:
                yield from ((keyword, number, one) for number, one in enumerate(value))
            elif keyword in draft.one:
                yield keyword, None, value
        elif keyword in draft.one:
            yield keyword, None, value
        elif keyword in draft.named and isinstance(value, dict):
            # In `dependencies` an array is a list of property names, not of schemas.
            yield from (
                (keyword, name, one)
                for name, one in value.items()
                if not (keyword == "dependencies" and isinstance(one, list))
            )
