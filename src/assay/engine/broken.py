"""
What is wrong with a schema itself, in words: what a keyword may hold, and whether a pattern is a regular expression.

Only schemas that do not compile get here. Knows nothing of references.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

from assay.engine.wording import SHORT, found, listed, shown

TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")
"""What `type` can name, in every draft."""

_TYPE: Final = f"one of {', '.join(TYPES)}, or an array of them"
_NUMBER: Final = "a number"
_COUNT: Final = "an integer, at least 0"
_TEXT: Final = "a string"
_FLAG: Final = "a boolean"
_NAMES: Final = "an array of property names"
_SCHEMA: Final = "a schema: an object or a boolean"
_SCHEMAS: Final = "an array of at least one schema"
_NAMED: Final = "an object of schemas"

_ALLOWED: Final = {
    "type": _TYPE,
    "enum": "an array",
    "required": _NAMES,
    "pattern": "a regular expression",
    "multipleOf": "a number, more than 0",
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
"""What the drafts allow for a keyword, where a few words can say it."""

_HOLDS_NAMES: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})


def allowed(path: Sequence[Any]) -> str:
    """What a schema may have at *path*, a list of steps that is not empty; "" if a few words cannot say it."""
    *before, last = path
    if before and before[-1] in _HOLDS_NAMES and not (len(before) > 1 and before[-2] in _HOLDS_NAMES):
        return _SCHEMA
    if not isinstance(last, str) and before and before[-1] == "required":
        return "the name of a property, once"
    return _ALLOWED.get(last, "") if isinstance(last, str) else ""


def found_at(path: Sequence[Any], value: Any) -> str:
    """What a schema has at *path*: the names of types as they are spelt, anything else as ever."""
    if path and path[-1] == "type" and isinstance(value, list) and value:
        return f"an array of {listed([shown(each) for each in value[:5]], len(value))}"
    return found(value)


# ── patterns ─────────────────────────────────────────────────────────────────────────────────────────────────────────

_LONGEST: Final = 1000
"""Characters of a pattern that is looked at: a person who reads the message sees the first few anyway."""

_SET: Final = re.compile(r"\[\^?(?:[^\]\\]|\\.)*+\]", re.DOTALL)
_TIMES: Final = re.compile(r"\{([0-9]{1,9})(?:(,)([0-9]{1,9})?)?\}")


def found_pattern(pattern: Any) -> str:
    """What *pattern* is, which no engine takes: if it is broken, that; else only the beginning of it."""
    if not isinstance(pattern, str):
        return found(pattern)
    text = f'"{pattern}"' if len(pattern) <= SHORT and pattern.isprintable() else shown(pattern)
    return f"{text}, which is not a valid regular expression" if is_broken(pattern) else f"the string {text}"


def is_broken(pattern: str) -> bool:
    """
    Whether *pattern* is certainly no regular expression, by any standard.

    Looked at by hand: Python's own compiler has another standard, and warns of patterns of the peer's.
    """
    if len(pattern) > _LONGEST:
        return False
    depth = at = 0
    last = "start"
    while at < len(pattern) and depth >= 0:
        char = pattern[at]
        times = _TIMES.match(pattern, at) if char == "{" else None
        if char in "*+?" or times is not None:
            # Behind a quantifier `?` makes it lazy and `+` possessive; another one has nothing to repeat.
            if last == "start" or (last == "times" and char not in "+?") or (times is not None and _falls(times)):
                return True
            last = "atom" if last == "times" else "times"
            at = times.end() if times is not None else at + 1
            continue
        last = "start" if char in "(|" else "atom"
        depth += (char == "(") - (char == ")")
        at = _behind(pattern, at)
        if at < 0:
            return True
    return depth != 0


def _behind(pattern: str, at: int) -> int:
    """Where the next part of *pattern* begins, -1 if the one *at* does not end."""
    if pattern[at] == "[":
        ended = _SET.match(pattern, at)
        return ended.end() if ended is not None else -1
    if pattern[at] == "\\":
        return at + 2 if at + 1 < len(pattern) else -1
    return at + (2 if pattern.startswith("(?", at) else 1)


def _falls(times: re.Match[str]) -> bool:
    """Whether a quantifier has a lower bound that is above the upper one."""
    return times[3] is not None and int(times[1]) > int(times[3])
