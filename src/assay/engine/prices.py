"""
What a subschema costs the engine by itself, in steps of about 12 ns (measured, jsonschema-rs 0.60.3).

The path cost counts subschemas; this is for the width, where it matters that some keywords take a hundred times what
others do. A string is counted for each 64 characters, so what is here for strings is for so many.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

UNIQUE = 12
"""What `uniqueItems` takes for each value inside an array, at any depth: 40 to 140 ns."""

_MATCH = 12
"""Matching a pattern as an automaton does: 64 ns for a few characters, 200 ns for 64."""
_THREAD = 37
"""Each state that is alive where a pattern has no automaton of modest size: 7 ns a character."""
MANY_STATES = 32
"""States below which a pattern is taken to have an automaton. Ours: `[ab]*a[ab]{50}c` has none within 1 MiB."""
STEPPING_BACK = 60
"""Matching with steps back, where it takes few: those that take more are counted when it is known on which text."""
_LOOK_UP = 4
"""What `required` takes for each property that is there: 17 to 90 ns; the first that is not ends it."""
_NODE = 14
"""Comparing with an array or object, for each value in it: 170 ns. A number with a fraction takes ten times that."""
_FRACTION = 160

_WEIGHTS = {
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), 1),
    "contentEncoding": 12,
    "contentMediaType": 80,
    "format": 12,
}
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_DEPENDENT = ("dependentRequired", "dependentSchemas", "dependencies")
_FEW = 2
"""Each entry of a list the engine goes through: 18 ns."""


def at_value(schema: Mapping[str, Any]) -> int:
    """The steps *schema* takes at one value for the keywords that hold no subschema."""
    weight = 1
    for keyword, value in schema.items():
        weight += _WEIGHTS.get(keyword, 0)
        if keyword in _BOUNDS:
            weight += _FRACTION if _is_exact(value) else 4
        elif keyword in _DEPENDENT:
            weight += _FEW * len(value) if isinstance(value, dict) else 0
    for keyword, price in _PRICES.items():
        if keyword in schema:
            weight += price(schema[keyword])
    return weight


def at_each_key(schema: Mapping[str, Any]) -> int:
    """The steps *schema* takes for each property of an object, whatever the property's value."""
    patterns = schema.get("patternProperties")
    weight = sum(map(_pattern, patterns)) if isinstance(patterns, dict) else 0
    return weight + ("properties" in schema) + _LOOK_UP * ("required" in schema)


def states(pattern: str) -> int:
    """
    How many states of *pattern* may be alive at once while it is matched, or more.

    Every atom as often as its counted repetitions say. Where a pattern is a plain sequence from the start of the
    text, only those that different ways of having matched what comes before can be at: ``^.{1,1000}$`` has one.
    """
    pieces, plain = _pieces(pattern)
    return alive(pieces, plain=plain and pattern.startswith("^"))


def alive(pieces: "Sequence[Piece]", *, plain: bool) -> int:
    """How many states of *pieces* may be alive at once; *plain* for a sequence that can begin in one place only."""
    if not plain:
        return min(sum(size * _copies(least, most) for size, least, most in pieces), UNBOUNDED)
    count, ways = 0, 1
    for size, least, most in pieces:
        count += min(size * _copies(least, most), ways)
        ways = min(ways * (most - least + 1), UNBOUNDED) if most < UNBOUNDED else UNBOUNDED
    return min(count, UNBOUNDED)


UNBOUNDED = 1 << 20
"""What stands for any number of times."""

Piece = tuple[int, int, int]
"""Atoms, and at least and at most how many times; `UNBOUNDED` for any number."""


def _pieces(pattern: str) -> tuple[list[Piece], bool]:
    """The pieces of *pattern*, a group as one of them; and whether there are no groups and no alternatives."""
    levels: list[list[Piece]] = [[]]
    plain, at = True, 0
    while at < len(pattern):
        char = pattern[at]
        if char == "(":
            levels.append([])
            plain, at = False, at + 1
            continue
        if char == "|":
            plain, at = False, at + 1
            continue
        size = 1
        if char == ")" and len(levels) > 1:
            size = min(sum(one * _copies(least, most) for one, least, most in levels.pop()), UNBOUNDED)
        at = after_atom(pattern, at)
        least, most, at = repeated(pattern, at)
        levels[-1].append((size, least, most))
    return [piece for level in levels for piece in level], plain


def _copies(least: int, most: int) -> int:
    """How many copies of an atom are made: one that may come any number of times has a loop at its last."""
    return most if most < UNBOUNDED else max(least, 1)


def after_atom(pattern: str, at: int) -> int:
    if pattern[at] == "\\":
        braces = pattern[at + 1 : at + 2] in ("p", "P", "x", "u", "U") and pattern[at + 2 : at + 3] == "{"
        end = pattern.find("}", at) if braces else at + 1
        return (end if end >= 0 else at + 1) + 1
    if pattern[at] == "[":
        end = at + 1 + (pattern[at + 1 : at + 2] == "^")
        end += pattern[end : end + 1] == "]"
        while end < len(pattern) and pattern[end] != "]":
            end += 2 if pattern[end] == "\\" else 1
        return end + 1
    return at + 1


def repeated(pattern: str, at: int) -> tuple[int, int, int]:
    """How often at least and at most the atom before *at* comes, and where what follows it begins."""
    least, most = 1, 1
    while at < len(pattern) and pattern[at] in "*+?{":
        if pattern[at] == "{":
            end = pattern.find("}", at)
            low, comma, high = pattern[at + 1 : end].partition(",")
            if end < 0 or not _is_count(low) or not (high == "" or _is_count(high)):
                break
            least *= int(low)
            most *= int(high) if high else (max(int(low), 1) if not comma else UNBOUNDED)
            at = end
        elif pattern[at] == "?":
            least = 0
        else:
            least, most = (0 if pattern[at] == "*" else least), UNBOUNDED
        at += 1
    return least, min(most, UNBOUNDED), at


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 8


def may_step_back(pattern: str) -> bool:
    """Whether *pattern* looks like one with look-around or back-references; those within brackets look so, too."""
    return _LOOKING.search(pattern) is not None


_LOOKING: Final = re.compile(r"\(\?<?[=!]|\\[1-9k]")


def _pattern(pattern: Any) -> int:
    if not isinstance(pattern, str):
        return _MATCH
    if may_step_back(pattern):
        return STEPPING_BACK
    many = states(pattern)
    return _MATCH + (_THREAD * many if many >= MANY_STATES else 0)


def _multiple(value: Any) -> int:
    # A step that is no integer is divided by as a fraction: 2 µs, 41 µs with extreme exponents.
    return 430 if _is_exact(value) else 25


def _constant(value: Any) -> int:
    return _nodes(value) if isinstance(value, dict | list) or _is_exact(value) else 4


def _choice(values: Any) -> int:
    """The engine looks strings or integers up; it goes through what is mixed."""
    if not isinstance(values, list) or len(set(map(type, values)) & {str, int}) == len(set(map(type, values))) == 1:
        return 4
    return sum(2 if isinstance(value, str) else _constant(value) for value in values)


def _nodes(value: Any) -> int:
    waiting = [value]
    for one in waiting:  # which grows meanwhile
        if isinstance(one, dict | list):
            waiting.extend(one.values() if isinstance(one, dict) else one)
    return sum(_FRACTION if _is_exact(one) else _NODE for one in waiting)


def _is_exact(value: Any) -> bool:
    """Whether the engine compares with *value* as a fraction: 0.8 µs for a bound, 15 µs with extreme exponents."""
    return isinstance(value, float) or (isinstance(value, int) and value.bit_length() > 64)


_PRICES = {"pattern": _pattern, "multipleOf": _multiple, "const": _constant, "enum": _choice}
