"""
Describes what a schema asks for and what an instance has, in a few plain words.

Both are untrusted: quoted text is short, on one line and printable. Knows nothing of references.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

from assay.schema.drafts import BASE64

SHORT = 40
"""Characters of a quoted value: enough to recognize it, too few to leak much or to flood a report."""

_NOUNS: Final = {
    "string": "a string", "integer": "an integer", "number": "a number", "boolean": "a boolean", "array": "an array",
    "object": "an object", "null": "null",
}  # fmt: skip


def found(value: Any) -> str:
    """Describe *value*: a scalar as JSON, shortened; an array or object by its size or names."""
    if isinstance(value, dict):
        if not value:
            return "an empty object"
        return f"an object with {listed([name(key) for key in islice(value, 4)], len(value))}"
    if isinstance(value, list):
        return f"an array of {counted(len(value), 'item')}" if value else "an empty array"
    return f"the string {shown(value)}" if isinstance(value, str) else shown(value)


def shown(value: Any) -> str:
    """Return *value* as JSON if it is a scalar, at most `SHORT` characters; else its type."""
    if isinstance(value, str):
        return f'"{_plain(value, SHORT)}"'
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, int):
        # Python refuses to write an integer of several thousand digits.
        return str(value)[:SHORT] if value.bit_length() < 128 else f"an integer of {value.bit_length()} bits"
    if isinstance(value, float):
        return repr(value)[:SHORT]
    return "an object" if isinstance(value, dict) else "an array"


def name(key: str) -> str:
    """Return the name of a property, quoted."""
    return f"`{_plain(str(key), SHORT)}`"


def listed(words: Sequence[str], total: int | None = None, joint: str = "and") -> str:
    """Return *words* as a list in a sentence: ``a, b and 3 more``; *total* includes the words that are left out."""
    total = len(words) if total is None else total
    if total > len(words) or len(words) > 4:
        kept = list(words[: min(3, len(words))])
        return f"{', '.join(kept)} {joint} {total - len(kept)} more"
    return f" {joint} ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def counted(number: Any, noun: str) -> str:
    """Return *number* with *noun* in the right form: ``1 item``, ``2 properties``."""
    if number == 1:
        return f"1 {noun}"
    return f"{shown(number)} {'properties' if noun == 'property' else noun + 's'}"


def one_of(values: Sequence[Any]) -> str:
    """Describe a choice of *values*, which are not empty: ``"a"``, ``"a" or "b"``, ``one of "a", "b" or 3 more``."""
    if len(values) <= 2:
        return " or ".join(map(shown, values))
    return f"one of {listed([shown(value) for value in values[:5]], len(values), 'or')}"


def kinds(types: Iterable[str]) -> str:
    """Return *types* of JSON Schema as nouns: ``a string or an integer``."""
    nouns = [_NOUNS.get(one, _plain(str(one), SHORT)) for one in types]
    return listed(nouns, None, "or") if len(nouns) < 5 else f"{', '.join(nouns[:-1])} or {nouns[-1]}"


def types_of(schema: Any) -> list[str]:
    """Return the types that *schema* allows, [] without `type`."""
    types = schema.get("type") if isinstance(schema, dict) else None
    if isinstance(types, str):
        return [types]
    return [one for one in types if isinstance(one, str)] if isinstance(types, list) else []


def wanted(schema: Any) -> str:
    """Describe *schema* in a few words: ``an integer of at least 1``; "" if a few words do not suffice."""
    if not isinstance(schema, dict):
        return "anything" if schema else "nothing at all"
    for keyword in ("const", "enum"):
        if keyword in schema:
            return expected(keyword, schema)
    types = types_of(schema)
    noun = kinds(types) if types else ""
    limits = list(_limits(schema, types))
    if "pattern" in schema and noun in ("", "a string"):
        noun = expected("pattern", schema)
    elif "format" in schema and noun in ("", "a string"):
        noun = expected("format", schema)
    elif not noun and isinstance(schema.get("required"), list) and schema["required"]:
        members = schema["required"]
        noun = f"an object with {listed([name(str(member)) for member in members[:5]], len(members))}"
    return _within(noun or "a value", limits[:3]) if noun or limits else ""


def expected(keyword: str, schema: dict[str, Any]) -> str:
    """Describe what *keyword* of *schema* asks for."""
    asked = schema[keyword]
    match keyword:
        case "type":
            return wanted({key: value for key, value in schema.items() if key not in ("const", "enum")})
        case "const":
            return shown(asked)
        case "enum":
            return one_of(asked) if asked else "nothing at all"
        case "pattern":
            return f"a string that matches {_plain(str(asked), 2 * SHORT)}"
        case "format":
            return BASE64 if asked == "byte" else f"a string in the format {_plain(str(asked), SHORT)}"
        case "uniqueItems":
            return "items that all differ"
        case "contentEncoding":
            return f"a string in {_plain(str(asked), SHORT)}"
        case "contentMediaType":
            return f"a string that holds {_plain(str(asked), SHORT)}"
    if keyword in _BOUNDS:
        return _within("an integer" if types_of(schema) == ["integer"] else "a number", [_limit(keyword, schema)])
    return _limit(keyword, schema)


def found_for(keyword: str, value: Any) -> str:
    """Describe *value* in the terms of *keyword*: for a limit on length, the length of a string."""
    if isinstance(value, str) and keyword in ("minLength", "maxLength"):
        return f"a string of {counted(len(value), 'character')}"
    if value and isinstance(value, dict) and keyword in ("minProperties", "maxProperties"):
        return f"an object of {counted(len(value), 'property')}"
    return found(value)


_BOUNDS: Final = {
    "minimum": "at least", "exclusiveMinimum": "greater than", "maximum": "at most", "exclusiveMaximum": "less than",
    "multipleOf": "a multiple of",
}  # fmt: skip
_NUMBERS: Final = frozenset({"number", "integer"})
_RANGES: Final = (
    ("minimum", "maximum", "", _NUMBERS),
    ("minLength", "maxLength", "character", frozenset({"string"})),
    ("minItems", "maxItems", "item", frozenset({"array"})),
    ("minProperties", "maxProperties", "property", frozenset({"object"})),
)
"""Lower and upper limits of the same kind; what they count, if they count; and the types that they limit."""


def _limits(schema: dict[str, Any], types: list[str]) -> Iterator[str]:
    """Describe the limits on values of *types*; a lower and an upper limit of the same kind are one range."""
    for low, high, noun, limited in _RANGES:
        given = [keyword for keyword in (low, high) if keyword in schema]
        if types and limited.isdisjoint(types):
            continue
        # In draft 4 a boolean beside a bound excludes the bound itself.
        strict = schema.get("exclusiveMinimum") is True or schema.get("exclusiveMaximum") is True
        if len(given) < 2 or (strict and not noun):
            yield from (_limit(keyword, schema) for keyword in given)
        elif not noun:
            yield f"from {shown(schema[low])} to {shown(schema[high])}"
        elif shown(schema[low]) == shown(schema[high]):
            yield counted(schema[low], noun)
        else:
            yield f"{shown(schema[low])} to {counted(schema[high], noun)}"
        if not noun and "multipleOf" in schema:
            yield _limit("multipleOf", schema)


def _limit(keyword: str, schema: dict[str, Any]) -> str:
    """Describe one limit: ``at least 2 characters``, ``greater than 0``."""
    for low, high, noun, _ in _RANGES:
        if noun and keyword in (low, high):
            return f"at {'least' if keyword == low else 'most'} {counted(schema[keyword], noun)}"
    strict = f"exclusive{keyword.capitalize()}"
    return f"{_BOUNDS[strict if schema.get(strict) is True else keyword]} {shown(schema[keyword])}"


def _within(noun: str, limits: Sequence[str]) -> str:
    """Return *noun* with its *limits*: ``an integer from 1 to 50``, ``a string of at least 1 character``."""
    if not limits:
        return noun
    if noun.startswith(("a string that ", "a string in ", "an object with ")):
        joint = ", of"
    elif limits[0].startswith(("at ", *"0123456789")):
        joint = " of"
    else:
        joint = " that is" if limits[0].startswith("a ") else ""
    return f"{noun}{joint} {' and '.join(limits)}"


def _plain(text: str, most: int) -> str:
    """Return *text* on one line, at most *most* characters, without characters that control a terminal."""
    cut = text[:most]
    if not cut.isprintable():
        cut = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in cut)[:most]
    return cut.replace('"', '\\"') + ("…" if len(text) > most else "")


# ── schemas that do not compile ───────────────────────────────────────────────────────────────────────────────────────

_HOLDS_NAMES: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_SCHEMA: Final = "a schema (an object or a boolean)"
_COUNT: Final = "an integer of at least 0"
_ALLOWED: Final = {
    "type": "one of array, boolean, integer, null, number, object, string, or an array of them",
    "enum": "an array",
    "required": "an array of property names",
    "pattern": "a regular expression",
    "multipleOf": "a number greater than 0",
    **dict.fromkeys(("minimum", "maximum"), "a number"),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minContains", "maxContains"), _COUNT),
    **dict.fromkeys(("minProperties", "maxProperties"), _COUNT),
    **dict.fromkeys(("$ref", "$id", "$schema", "$anchor", "$comment", "title", "description", "format"), "a string"),
    **dict.fromkeys(("uniqueItems", "readOnly", "writeOnly", "deprecated"), "a boolean"),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), "an array of at least one schema"),
    **dict.fromkeys(_HOLDS_NAMES, "an object of schemas"),
    **dict.fromkeys(
        ("additionalProperties", "items", "contains", "propertyNames", "not", "if", "then", "else"), _SCHEMA
    ),
}
"""What the drafts allow for a keyword, where a few words suffice."""


def allowed(path: Sequence[Any]) -> str:
    """Return what a schema may have at *path*, a list of steps that is not empty; "" if a few words do not suffice."""
    *before, last = path
    if before and before[-1] in _HOLDS_NAMES and not (len(before) > 1 and before[-2] in _HOLDS_NAMES):
        return _SCHEMA
    if not isinstance(last, str) and before and before[-1] == "required":
        return "the name of a property, once"
    return _ALLOWED.get(last, "") if isinstance(last, str) else ""


def found_at(path: Sequence[Any], value: Any) -> str:
    """Describe *value*, which a schema has at *path*: names of types as written, anything else as `found` does."""
    if path and path[-1] == "type" and isinstance(value, list) and value:
        return f"an array of {listed([shown(each) for each in value[:5]], len(value))}"
    return found(value)
