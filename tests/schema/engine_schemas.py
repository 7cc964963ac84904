"""Schemas that several tests of the engine speak of."""

from typing import Any

DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_2019 = "https://json-schema.org/draft/2019-09/schema"

STRINGS: dict[str, Any] = {"type": "string"}


def branch(key: str, below: dict[str, Any]) -> dict[str, Any]:
    """One kind of filter: an object with *key* and nothing else."""
    return {"type": "object", "properties": {key: below}, "required": [key], "additionalProperties": False}


FILTER: dict[str, Any] = {
    "$ref": "#/$defs/filter",
    "$defs": {
        "filter": {
            "anyOf": [
                branch("and", {"type": "array", "items": {"$ref": "#/$defs/filter"}}),
                branch("or", {"type": "array", "items": {"$ref": "#/$defs/filter"}}),
                branch("not", {"$ref": "#/$defs/filter"}),
                {
                    "type": "object",
                    "properties": {"field": {"type": "string"}, "equals": {"type": "integer"}},
                    "required": ["field", "equals"],
                    "additionalProperties": False,
                },
            ]
        }
    },
}

JSON_VALUE: dict[str, Any] = {
    "$ref": "#/$defs/value",
    "$defs": {
        "value": {
            "anyOf": [
                {"type": ["string", "number", "boolean", "null"]},
                {"type": "array", "items": {"$ref": "#/$defs/value"}},
                {"type": "object", "additionalProperties": {"$ref": "#/$defs/value"}},
            ]
        }
    },
}

METASCHEMA: dict[str, Any] = {
    "$schema": DRAFT_7,
    "$id": "http://example.com/metaschema#",
    "definitions": {
        "schemas": {"type": "array", "minItems": 1, "items": {"$ref": "#"}},
        "names": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
    },
    "type": ["object", "boolean"],
    "properties": {
        "additionalItems": {"$ref": "#"},
        "items": {"anyOf": [{"$ref": "#"}, {"$ref": "#/definitions/schemas"}]},
        "required": {"$ref": "#/definitions/names"},
        "properties": {"type": "object", "additionalProperties": {"$ref": "#"}},
        "patternProperties": {"type": "object", "additionalProperties": {"$ref": "#"}},
        "dependencies": {
            "type": "object",
            "additionalProperties": {"anyOf": [{"$ref": "#"}, {"$ref": "#/definitions/names"}]},
        },
        "allOf": {"$ref": "#/definitions/schemas"},
        "anyOf": {"$ref": "#/definitions/schemas"},
        "not": {"$ref": "#"},
    },
}


def wrong_filter(levels: int) -> dict[str, Any]:
    """A filter whose innermost condition compares with a string where an integer belongs."""
    value: dict[str, Any] = {"field": "age", "equals": "forty"}
    for level in range(levels):
        value = {"and": [{"field": "id", "equals": level}, value]} if level % 2 else {"or": [value]}
    return value


def doubling(link: Any, levels: int = 30) -> dict[str, Any]:
    """Definitions each of which *link* makes out of a reference to the next: about a kilobyte of schema."""
    definitions = {f"d{level}": link({"$ref": f"#/$defs/d{level + 1}"}) for level in range(levels)}
    return {"$ref": "#/$defs/d0", "$defs": {**definitions, f"d{levels}": STRINGS}}


def nested(link: Any, levels: int, leaf: Any = None) -> Any:
    """*leaf* with *link* put around it *levels* times."""
    value = STRINGS if leaf is None else leaf
    for _ in range(levels):
        value = link(value)
    return value
