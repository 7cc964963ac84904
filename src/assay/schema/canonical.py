"""
The canonical form of definitions, in which equal meaning is equal text. No I/O.

The order of keys does not matter, nor that of `required`, `enum`, `type` and of the alternatives of a schema; and 1.0
is 1.
"""

from hashlib import sha256
from typing import Any, Final

import orjson

from assay.schema.drafts import DRAFT_2020_12, Draft, draft_of

SCHEMAS: Final = frozenset({"inputSchema", "outputSchema"})
"""The members of a definition that hold schemas."""

_SETS: Final = frozenset({"required", "enum", "type"})
_UNORDERED: Final = frozenset({"allOf", "anyOf", "oneOf"})

_EXACT: Final = 2.0**53
"""Up to here a double stands for exactly one integer."""


def canonical(definition: Any) -> Any:
    """Return a definition of a tool, template or prompt in canonical form."""
    if not isinstance(definition, dict):
        return plain(definition)
    return {
        member: canonical_schema(value) if member in SCHEMAS else plain(value) for member, value in definition.items()
    }


def canonical_schema(schema: Any) -> Any:
    """Return a schema in canonical form."""
    return _schema(schema, draft_of(schema) or DRAFT_2020_12)


def plain(value: Any) -> Any:
    """Return a JSON value with its numbers in canonical form."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, float) and value.is_integer() and abs(value) <= _EXACT:
        return int(value)
    return value


def text(value: Any) -> bytes:
    """Return a canonical value as bytes, which are equal if and only if the values are; `1` and `true` differ."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def fingerprint(value: Any) -> str:
    """Return the SHA-256 of *value* as canonical JSON, in hexadecimal: the same for any order of keys."""
    return sha256(text(value)).hexdigest()


def _schema(schema: Any, draft: Draft) -> Any:
    if not isinstance(schema, dict):
        return plain(schema)
    return {keyword: _below(keyword, value, draft) for keyword, value in schema.items()}


def _below(keyword: str, value: Any, draft: Draft) -> Any:
    if isinstance(value, list):
        if keyword in draft.many:
            schemas = [_schema(one, draft) for one in value]
            return sorted(schemas, key=text) if keyword in _UNORDERED else schemas
        return sorted((plain(one) for one in value), key=text) if keyword in _SETS else plain(value)
    if keyword in draft.named and isinstance(value, dict):
        return {name: _schema(one, draft) for name, one in value.items()}
    return _schema(value, draft) if keyword in draft.one else plain(value)
