"""Describes a schema of the protocol in a few words. Knows only the keywords that our facts compile to."""

from json import dumps
from typing import Final

from assay.spec.notation import Schema

_FORMATS: Final = {"uri": "URI", "uri-template": "URI template", "byte": "Base64"}


def words(schema: Schema | bool) -> str:
    """Describe *schema* in a few words: ``string or integer``, ``array of Tool``, ``object {name, title?}``."""
    if not isinstance(schema, dict):
        # The documents of operators have it in `additionalProperties`; our own facts do not.
        return "nothing"
    alternatives = members(schema)
    if len(alternatives) > 1:
        return " or ".join(words(each) for each in alternatives)
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "const" in schema:
        return dumps(schema["const"], ensure_ascii=False)
    if "items" in schema:
        return f"array of {_grouped(schema['items'])}" + _limit(schema)
    if "additionalProperties" in schema:
        return f"object of {_grouped(schema['additionalProperties'])}"
    if "properties" in schema:
        required = schema.get("required", ())
        return f"object {{{', '.join(name if name in required else f'{name}?' for name in schema['properties'])}}}"
    kind = str(schema.get("type", "any value"))
    return _FORMATS.get(schema.get("format", ""), kind) + _range(schema)


def members(schema: Schema) -> list[Schema]:
    """Return the alternatives of *schema*; the schema itself if it has none."""
    if "anyOf" in schema:
        return [member for each in schema["anyOf"] for member in members(each)]
    if "enum" in schema:
        return [{"const": value} for value in schema["enum"]]
    if isinstance(schema.get("type"), list):
        return [{"type": name} for name in schema["type"]]
    return [schema]


def _grouped(schema: Schema | bool) -> str:
    several = isinstance(schema, dict) and len(members(schema)) > 1
    return f"({words(schema)})" if several else words(schema)


def _limit(schema: Schema) -> str:
    return f", at most {schema['maxItems']}" if "maxItems" in schema else ""


def _range(schema: Schema) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f" from {low} to {high}"
    return "" if low is None else f", at least {low}"
