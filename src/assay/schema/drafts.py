"""
The supported drafts of JSON Schema, as data: where each keeps its subschemas, identifiers and references.

Only for finding schemas inside a schema. What a keyword asks of an instance is left to the engine, except for the
formats that it does not know.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

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
    """Keywords that give a place a name; before 2019-09 an identifier like ``#name`` does this."""
    lone_reference: bool
    """Whether the keywords beside ``$ref`` are ignored (draft 7 and before)."""


_ONE_4 = frozenset({"not", "items", "additionalItems", "additionalProperties"})
_ONE_6 = _ONE_4 | {"contains", "propertyNames"}
_ONE_7 = _ONE_6 | {"if", "then", "else"}
_ONE_2019 = _ONE_7 | {"unevaluatedItems", "unevaluatedProperties", "contentSchema"}
_MANY_4 = frozenset({"allOf", "anyOf", "oneOf", "items"})
_NAMED_4 = frozenset({"properties", "patternProperties", "definitions", "dependencies"})
# `dependencies` and `definitions` are gone from the later drafts, but the engine still applies the former (measured,
# 0.60.3), and both are still in their metaschemas.
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

ANY_DRAFT = replace(
    DRAFT_2020_12,
    name="any draft",
    one=_ONE_2019,
    many=_MANY_4 | DRAFT_2020_12.many,
)
"""Every keyword that holds schemas in some draft, for walks that the choice of a draft must not change."""

# The engine accepts either scheme and an empty fragment. The same is accepted here, so that both use the same draft.
_BY_NAME = {
    draft.uri.removesuffix("#").partition(":")[2]: draft
    for draft in (DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019_09, DRAFT_2020_12)
}


def draft_named(uri: Any) -> Draft | None:
    """Return the draft that a ``$schema`` of *uri* names, or None if it is unknown."""
    if not isinstance(uri, str):
        return None
    scheme, _, rest = uri.removesuffix("#").partition(":")
    return _BY_NAME.get(rest) if scheme in ("http", "https") else None


def draft_of(schema: Any) -> Draft | None:
    """Return the draft that *schema* names, by default 2020-12; None if it names an unknown one."""
    if isinstance(schema, dict) and "$schema" in schema:
        return draft_named(schema["$schema"])
    return DRAFT_2020_12


_SPELT: Final = re.compile(
    r"(?:(?:https?://)?(?:www\.)?json-schema\.org/)?"
    r"(?:draft[-_/ ]?(?:v|0)?(?P<old>[467])|(?:draft[-_/ ]?)?(?P<new>2019-09|2020-12))"
    r"(?:/schema)?/?#?/?",
    re.IGNORECASE,
)
"""Every way to name one draft that leaves no doubt which: another scheme, host, number, slash or fragment."""

_LATEST: Final = re.compile(r"https?://(?:www\.)?json-schema\.org/schema/?#?", re.IGNORECASE)
"""The URI that once stood for the newest draft, whichever that was."""

_LONGEST_NAME: Final = 100
"""Characters of a ``$schema`` that is compared with other spellings: the longest URI of a draft has 44."""

_CHANGED: Final[Mapping[str, type | tuple[type, ...]]] = {
    "id": str, "items": list, "additionalItems": (dict, bool), "dependencies": dict, "exclusiveMinimum": bool,
    "exclusiveMaximum": bool, "$recursiveRef": str, "$recursiveAnchor": bool,
}  # fmt: skip
"""Keywords with a value of a type that means something in an older draft, and nothing or another thing in 2020-12."""


def draft_meant(schema: dict[str, Any]) -> Draft | None:
    """
    Return the draft that the ``$schema`` of *schema* means beyond doubt, in whatever spelling; None if there is doubt.

    The URI of the newest draft means 2020-12, unless a keyword of the schema means something else in an older draft.
    """
    uri = schema.get("$schema")
    if not isinstance(uri, str) or len(uri) > _LONGEST_NAME:
        return None
    spelt = _SPELT.fullmatch(uri.strip())
    if spelt is not None:
        return _BY_NUMBER[spelt["old"] or spelt["new"]]
    return DRAFT_2020_12 if _LATEST.fullmatch(uri.strip()) and not _is_older(schema) else None


_BY_NUMBER: Final = {
    "4": DRAFT_4, "6": DRAFT_6, "7": DRAFT_7, "2019-09": DRAFT_2019_09, "2020-12": DRAFT_2020_12
}  # fmt: skip


def _is_older(schema: dict[str, Any]) -> bool:
    """Return whether a keyword of *schema*, or of a schema in it, has a meaning that 2020-12 has dropped."""
    waiting = [schema]
    for one in waiting:  # grows during the loop
        if any(isinstance(one.get(keyword), kind) for keyword, kind in _CHANGED.items()):
            return True
        # Before 2019-09 the keywords beside a reference are ignored.
        if "$ref" in one and not one.keys() <= {"$ref", "$schema", "title", "description", "$comment", "$defs"}:
            return True
        waiting.extend(inner for _, _, inner in subschemas(one) if isinstance(inner, dict))
    return False


def subschemas(schema: dict[str, Any], draft: Draft = ANY_DRAFT) -> Iterator[tuple[str, str | int | None, Any]]:
    """
    Yield every place in *schema* where *draft* expects a schema: keyword, name or number under it, and the value.

    The value may be something else than a schema. Nothing inside `const`, `enum`, `default` or `examples` is yielded.
    """
    for keyword, value in schema.items():
        if isinstance(value, list) and keyword in draft.many:
            yield from ((keyword, number, one) for number, one in enumerate(value))
        elif keyword in draft.one:
            yield keyword, None, value
        elif keyword in draft.named and isinstance(value, dict):
            # In `dependencies` an array is a list of property names, not of schemas.
            yield from (
                (keyword, name, one)
                for name, one in value.items()
                if not (keyword == "dependencies" and isinstance(one, list))
            )


# ── formats ───────────────────────────────────────────────────────────────────────────────────────────────────────────

BASE64: Final = "Base64 data"
"""A string of the format `byte`, in words."""

_ALPHABET: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

_CHUNK: Final = 64 << 10
"""Characters that are checked together: common mistakes, a line break or `data:` in front, are in the first."""


def is_base64(text: str) -> bool:
    """
    Return whether *text* is Base64 with its padding (RFC 4648, section 4).

    Deleting the alphabet takes half the time of decoding or of a regular expression: 33 ms for 16 MiB.
    """
    if len(text) % 4 or not text.isascii():
        return False
    # At most two: a third one is outside the alphabet, like any other character.
    end = len(text) - len(text[-2:]) + len(text[-2:].rstrip("="))
    chunks = (text[at : min(at + _CHUNK, end)] for at in range(0, end, _CHUNK))
    return not any(each.encode().translate(None, _ALPHABET) for each in chunks)


FORMATS: Final[Mapping[str, Callable[[str], bool]]] = {"byte": is_base64}
"""The formats that the engine does not know, and the function that judges each."""
