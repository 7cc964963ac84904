"""
Describes what a schema asks for and what an instance has, in a few plain words.

Both are untrusted: quoted text is short, on one line and printable. Knows nothing of references.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from assay.engine.drafts import BASE64

SHORT = 40
"""Characters of a quoted value: enough to recognize it, too few to leak much or to flood a report."""

_NOUNS = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "a boolean",
    "array": "an array",
    "object": "an object",
    "null": "null",
}


def found(value: Any) -> str:
    """Describe *value*: a scalar as JSON, shortened; an array or object by its size or names."""
    if isinstance(value, dict):
        return (
            f"an object with {listed([name(key) for key in _first(value, 4)], len(value))}"
            if value
            else "an empty object"
        )
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
    clauses = [
        clause for keywords, clause in _limits(schema) if all(_speaks_of(keyword, types) for keyword in keywords)
    ]
    if "pattern" in schema and noun in ("", "a string"):
        noun = expected("pattern", schema)
    elif "format" in schema and noun in ("", "a string"):
        noun = expected("format", schema)
    elif not noun and isinstance(schema.get("required"), list) and schema["required"]:
        members = schema["required"]
        noun = f"an object with {listed([name(str(member)) for member in members[:5]], len(members))}"
    return _within(noun or "a value", clauses[:3]) if noun or clauses else ""


def expected(keyword: str, schema: dict[str, Any]) -> str:
    """Describe what *keyword* of *schema* asks for."""
    if keyword == "type":
        return wanted({key: value for key, value in schema.items() if key not in ("const", "enum")})
    if keyword in _NUMERIC:
        types = types_of(schema)
        return _within("an integer" if types == ["integer"] else "a number", [_CLAUSES[keyword](schema)])
    phrase = _CLAUSES.get(keyword) or _PHRASES.get(keyword)
    return phrase(schema) if phrase is not None else f"what `{keyword}` asks for"


def _within(noun: str, clauses: Sequence[str]) -> str:
    """Return *noun* with its limits: ``an integer from 1 to 50``, ``a string of at least 1 character``."""
    if not clauses:
        return noun
    first = clauses[0]
    if noun.startswith(("a string that ", "a string in ", "an object with ")):
        return f"{noun}, of {' and '.join(clauses)}"
    if first.startswith(("at ", *"0123456789")):
        return f"{noun} of {' and '.join(clauses)}"
    return f"{noun}{' that is' if first.startswith('a ') else ''} {' and '.join(clauses)}"


def _limits(schema: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the limits in *schema* with their keywords; a lower and an upper limit of the same kind are one range."""
    done = set()
    for low, high, noun in _RANGES:
        both = [schema.get(keyword) for keyword in (low, high)]
        strict = schema.get("exclusiveMinimum") is True or schema.get("exclusiveMaximum") is True
        if None not in both and not (strict and not noun):
            least, most = map(shown, both)
            if noun:
                yield (low, high), counted(both[0], noun) if least == most else f"{least} to {counted(both[1], noun)}"
            else:
                yield (low, high), f"from {least} to {most}"
            done |= {low, high}
    for keyword, clause in _CLAUSES.items():
        if keyword in schema and keyword not in done:
            yield (keyword,), clause(schema)


def found_for(keyword: str, value: Any) -> str:
    """Describe *value* in the terms of *keyword*: for a limit on length, the length of a string."""
    if isinstance(value, str) and keyword in ("minLength", "maxLength"):
        return f"a string of {counted(len(value), 'character')}"
    if value and isinstance(value, dict) and keyword in ("minProperties", "maxProperties"):
        return f"an object of {counted(len(value), 'property')}"
    return found(value)


def _bound(word: str, keyword: str, strict: str) -> Callable[[dict[str, Any]], str]:
    def clause(schema: dict[str, Any]) -> str:
        # Draft 4 has a boolean beside the bound that excludes the bound itself.
        if schema.get(strict) is True:
            return f"{'greater' if word == 'at least' else 'less'} than {shown(schema[keyword])}"
        return f"{word} {shown(schema[keyword])}"

    return clause


def _number_of(word: str, keyword: str, noun: str) -> Callable[[dict[str, Any]], str]:
    return lambda schema: f"{word} {counted(schema[keyword], noun)}"


_NUMERIC = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")

_CLAUSES: dict[str, Callable[[dict[str, Any]], str]] = {
    "minimum": _bound("at least", "minimum", "exclusiveMinimum"),
    "exclusiveMinimum": lambda schema: f"greater than {shown(schema['exclusiveMinimum'])}",
    "maximum": _bound("at most", "maximum", "exclusiveMaximum"),
    "exclusiveMaximum": lambda schema: f"less than {shown(schema['exclusiveMaximum'])}",
    "multipleOf": lambda schema: f"a multiple of {shown(schema['multipleOf'])}",
    "minLength": _number_of("at least", "minLength", "character"),
    "maxLength": _number_of("at most", "maxLength", "character"),
    "minItems": _number_of("at least", "minItems", "item"),
    "maxItems": _number_of("at most", "maxItems", "item"),
    "minProperties": _number_of("at least", "minProperties", "property"),
    "maxProperties": _number_of("at most", "maxProperties", "property"),
}

_RANGES: Final = (
    ("minimum", "maximum", ""),
    ("minLength", "maxLength", "character"),
    ("minItems", "maxItems", "item"),
    ("minProperties", "maxProperties", "property"),
)
"""Lower and upper limits of the same kind, and what they count, if they count."""

_PHRASES: dict[str, Callable[[dict[str, Any]], str]] = {
    "const": lambda schema: shown(schema["const"]),
    "enum": lambda schema: one_of(schema["enum"]) if schema["enum"] else "nothing at all",
    "pattern": lambda schema: f"a string that matches {_plain(str(schema['pattern']), 2 * SHORT)}",
    "format": lambda schema: (
        BASE64 if schema["format"] == "byte" else f"a string in the format {_plain(str(schema['format']), SHORT)}"
    ),
    "uniqueItems": lambda _: "items that all differ",
    "contentEncoding": lambda schema: f"a string in {_plain(str(schema['contentEncoding']), SHORT)}",
    "contentMediaType": lambda schema: f"a string that holds {_plain(str(schema['contentMediaType']), SHORT)}",
}

_ABOUT = {"Length": "string", "Items": "array", "Properties": "object"}


def _speaks_of(keyword: str, types: list[str]) -> bool:
    """Whether *keyword* applies to values of *types*."""
    if keyword.startswith("exclusive") or not types:
        return not keyword.startswith("exclusive")
    about = next((kind for ending, kind in _ABOUT.items() if keyword.endswith(ending)), None)
    return about in types if about else not {"number", "integer"}.isdisjoint(types)


def _first(names: Iterable[str], most: int) -> list[str]:
    return [key for key, _ in zip(names, range(most), strict=False)]


def _plain(text: str, most: int) -> str:
    """Return *text* on one line, at most *most* characters, without characters that control a terminal."""
    cut = text[:most]
    if not cut.isprintable():
        cut = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in cut)[:most]
    return cut.replace('"', '\\"') + ("…" if len(text) > most else "")


# ── schemas that do not compile ───────────────────────────────────────────────────────────────────────────────────────

TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")
"""What `type` can name, in every draft."""

_TYPE: Final = f"one of {', '.join(TYPES)}, or an array of them"
_NUMBER: Final = "a number"
_COUNT: Final = "an integer of at least 0"
_TEXT: Final = "a string"
_FLAG: Final = "a boolean"
_NAMES: Final = "an array of property names"
_SCHEMA: Final = "a schema (an object or a boolean)"
_SCHEMAS: Final = "an array of at least one schema"
_NAMED: Final = "an object of schemas"

_ALLOWED: Final = {
    "type": _TYPE,
    "enum": "an array",
    "required": _NAMES,
    "pattern": "a regular expression",
    "multipleOf": "a number greater than 0",
    **dict.fromkeys(("minimum", "maximum"), _NUMBER),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _COUNT),
    **dict.fromkeys(("minContains", "maxContains"), _COUNT),
    **dict.fromkeys(("$ref", "$id", "$schema", "$anchor", "$comment", "title", "description", "format"), _TEXT),
    **dict.fromkeys(("uniqueItems", "readOnly", "writeOnly", "deprecated"), _FLAG),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), _SCHEMAS),
    **dict.fromkeys(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"), _NAMED),
    **dict.fromkeys(
        ("additionalProperties", "items", "contains", "propertyNames", "not", "if", "then", "else"), _SCHEMA
    ),
}
"""What the drafts allow for a keyword, where a few words suffice."""

_HOLDS_NAMES: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})


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
