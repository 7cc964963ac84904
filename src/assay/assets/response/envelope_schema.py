"""The envelope of specs/004 as JSON Schema 2020-12."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from assay.base.limits import TIERS

TIMED: Final = frozenset({"pro", "enterprise"})
"""The tiers in which `duration_ms` is required (specs/004, Envelope Schema)."""

ENVELOPE: Final = "envelope-v1"
"""The capability of every result in this shape, as in the examples of specs/004."""

ERROR_CODES: Final[Mapping[str, str]] = MappingProxyType({
    "invalid_argument": "An argument is not valid.",
    "invalid_path": "A path is not valid.",
    "forbidden": "This is not allowed.",
    "not_found": "What was asked for was not found.",
    "timeout": "It took too long.",
    "too_large": "It is too large.",
    "resource_exhausted": "The server has run out of memory or of something else it needs.",
    "not_implemented": "This is not implemented.",
    "upgrade_required": "This needs a higher tier.",
    "dependency_unavailable": "Something that the tool depends on did not answer.",
    "internal_error": "The tool failed, and not for anything in the request.",
})  # fmt: skip
"""Every error code with its meaning, which is the message if nothing more specific is safe to show."""


DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

REQUIRED: Final = (
    "tier", "tool_version", "tool_id", "request_id", "capabilities", "error", "upgrade_hints", "data",
)  # fmt: skip
"""The fields of every envelope; `duration_ms` is required by tier."""

_NUMBER = "(?:0|[1-9][0-9]*)"
_LABEL = f"(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_BUILD = "[0-9A-Za-z-]+"
SEMANTIC_VERSION: Final = (
    rf"^{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-{_LABEL}(?:\.{_LABEL})*)?(?:\+{_BUILD}(?:\.{_BUILD})*)?$"
)
"""The grammar of semver.org, version 2.0.0."""

_TEXT: Final[Mapping[str, Any]] = {"type": "string", "minLength": 1}

# Keywords whose value is not a schema, and those whose value is an object of schemas by name.
_VALUES: Final = frozenset({"const", "default", "enum", "examples"})
_NAMED: Final = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})

_AT: Final = "#/$defs/data"
"""The place of the schema of `data`."""


def envelope(data: Mapping[str, Any] | bool) -> dict[str, Any]:
    """Return the schema of the envelope, including that of its `data`."""
    made: dict[str, Any] = {
        "$schema": DIALECT,
        "type": "object",
        "properties": {
            "tier": _word(TIERS),
            "tool_version": {"type": "string", "pattern": SEMANTIC_VERSION},
            "tool_id": dict(_TEXT),
            "request_id": dict(_TEXT),
            "capabilities": {"type": "array", "items": dict(_TEXT)},
            "duration_ms": {"type": "number", "minimum": 0},
            "error": {"anyOf": [_error(), {"type": "null"}]},
            "upgrade_hints": {"type": "array", "items": _hint()},
            # Anything; not `true`, because MCP requires each property of an outputSchema to be an object.
            "data": {},
        },
        "required": list(REQUIRED),
        "additionalProperties": False,
        "allOf": [
            {
                "if": {"properties": {"tier": _word(tier for tier in TIERS if tier in TIMED)}},
                "then": {"required": ["duration_ms"]},
            }
        ],
    }
    if data is not True:
        made["allOf"].append({
            "if": {"properties": {"error": {"type": "null"}}},
            "then": {"properties": {"data": {"$ref": _AT}}},
        })  # fmt: skip
        made["$defs"] = {"data": _embedded(data)}
    return made


def _error() -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "error": dict(_TEXT),
            "error_code": _word(ERROR_CODES),
            "error_details": {"type": ["object", "null"]},
        },
        "required": ["error", "error_code"],
        "additionalProperties": False,
    }


def _hint() -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"feature": dict(_TEXT), "tier": _word(TIERS), "reason": dict(_TEXT)},
        "required": ["feature", "tier", "reason"],
        "additionalProperties": False,
    }


def _word(words: Iterable[str]) -> dict[str, Any]:
    return {"type": "string", "enum": list(words)}


# ── the schema of data ───────────────────────────────────────────────────────────────────────────────────────────────


def _embedded(data: Mapping[str, Any] | bool) -> Any:
    """Return *data* with its references adapted to its new place."""
    if isinstance(data, bool):
        return data
    if not isinstance(data, Mapping):
        raise TypeError(f"data must be a JSON Schema, an object or a boolean, not of type {type(data).__name__}")
    if data.get("$schema", DIALECT) != DIALECT:
        raise ValueError(f"data must be a schema of {DIALECT}")
    return _moved({key: value for key, value in data.items() if key != "$schema"})


def _moved(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_moved(each) for each in schema]
    # A schema with its own base is a separate document, wherever it is.
    if not isinstance(schema, Mapping) or "$id" in schema:
        return schema
    return {keyword: _moved_keyword(keyword, value) for keyword, value in schema.items()}


def _moved_keyword(keyword: str, value: Any) -> Any:
    if keyword in _VALUES:
        return value
    if keyword in {"$ref", "$dynamicRef"} and isinstance(value, str):
        # An anchor (`#name`) keeps its name; only pointers start at the root.
        return _AT + value[1:] if value == "#" or value.startswith("#/") else value
    if keyword in _NAMED and isinstance(value, Mapping):
        return {name: _moved(each) for name, each in value.items()}
    return _moved(value)
