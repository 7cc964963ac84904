"""The contracts of the asset server's own seven tools, as specs/001 (IO Contracts) states them. Data only."""

from typing import Any, Final

Schema = dict[str, Any]

_ANY: Final[Schema] = {}
_STRING: Final[Schema] = {"type": "string"}
_OBJECT: Final[Schema] = {"type": "object"}
_BOOLEAN: Final[Schema] = {"type": "boolean"}


def _object(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    """Return the schema of an object with only these members."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": sorted(required),
        "additionalProperties": False,
    }


def _array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _constant(value: Any) -> Schema:
    return {"const": value}


_FAULTS: Final = _array(_object({"path": _STRING, "msg": _STRING}))
_NOT_FOUND: Final = _object({"ok": _constant(False), "reason": _constant("not_found")})
_VALID: Final = _object({"ok": _constant(True)}, {"errors": {"type": "array", "maxItems": 0}})
_INVALID: Final = _object({"ok": _constant(False)}, {"reason": _constant("validation_failed"), "errors": _FAULTS})


def _found_or_not(found: dict[str, Schema]) -> Schema:
    return {"type": "object", "oneOf": [_object({"ok": _constant(True), **found}), _NOT_FOUND]}


_OPERATION: Final = _object({"op": {"enum": ["add", "remove", "replace"]}, "path": _STRING}, {"value": _ANY})

_BACKEND_ERROR: Final = _object(
    {"ok": _constant(False), "reason": {"enum": ["validation_failed", "backend_error", "unsupported"]}},
    {"errors": _FAULTS, "status": {"type": "integer"}, "detail": _STRING},
)

# An asset is any JSON value here: an invalid one is refused by its own schema, with a pointer, as specs/001 asks; and a
# patch can replace the whole document.
TOOLS: Final[dict[str, tuple[Schema, Schema]]] = {
    "list_schemas": (
        _object({}),
        _object(
            {"ok": _constant(True), "schemas": _array(_object({"name": _STRING, "version": _STRING, "path": _STRING}))}
        ),
    ),
    "get_schema": (_object({"name": _STRING}), _found_or_not({"schema": _OBJECT, "version": _STRING})),
    "list_examples": (
        _object({}, {"component": _STRING}),
        _object({"ok": _constant(True), "examples": _array(_object({"component": _STRING, "path": _STRING}))}),
    ),
    "get_example": (
        _object({"path": _STRING}),
        _found_or_not({"example": _OBJECT, "schema": _STRING, "validated": _BOOLEAN}),
    ),
    "validate_asset": (
        _object({"asset": _ANY, "schema": _STRING}),
        {"type": "object", "oneOf": [_VALID, _INVALID]},
    ),
    "diff_assets": (
        _object({"base": _ANY, "new": _ANY}),
        _object({"ok": _constant(True), "patch": _array(_OPERATION)}),
    ),
    "populate_backend": (
        _object({"asset": _ANY}, {"validate_first": _BOOLEAN}),
        {
            "type": "object",
            "oneOf": [_object({"ok": _constant(True), "asset_id": _STRING, "backend_url": _STRING}), _BACKEND_ERROR],
        },
    ),
}
"""Input and output schema by tool."""
