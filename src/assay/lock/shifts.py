"""
A table of certain cases: for each keyword of a schema, when a change narrows or widens what is accepted. No I/O.

Knows no references and no schemas inside a schema; `schemas` compares those.
"""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, Final, NamedTuple

from assay.engine.canonical import text
from assay.engine.pointers import NOWHERE, escaped
from assay.engine.wording import kinds, listed, name, shown

ABSENT: Final = NOWHERE
"""Stands for a missing value, since null is a value."""

Schema = dict[str, Any]


class Shift(NamedTuple):
    """One difference between two schemas. Without a flag it has no effect on what is accepted."""

    at: str
    """JSON Pointer from the root of the schema; into the old one if what was there is gone."""
    words: str
    old: Any
    new: Any
    narrows: bool = False
    """A value may be refused that was accepted before."""
    widens: bool = False
    """A value may be accepted that was refused before."""
    decided: bool = True
    """False if the effect is not certain: both are possible."""
    neutral: bool = False
    """Whether a caller or reader that uses only what is declared never notices the change."""

    @property
    def wording(self) -> bool:
        """Whether only the wording changes."""
        return self.decided and not (self.narrows or self.widens or self.neutral)


def undecided(at: str, words: str, old: Any, new: Any) -> Shift:
    """Return a difference whose effect is not certain."""
    return Shift(at, words, old, new, decided=False)


Rule = Callable[[str, Schema, Schema], Iterator[Shift]]
"""A row of the table: compares some keywords of two schemas that stand at one place."""


def was_is(old: Any, new: Any) -> str:
    """Describe both values in a few words."""
    if old is ABSENT:
        return f"new: {shown(new)}"
    return f"gone; was {shown(old)}" if new is ABSENT else f"was {shown(old)}, is {shown(new)}"


# ── types and values ─────────────────────────────────────────────────────────────────────────────────────────────────

_TYPES: Final = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})


def _types(schema: Schema) -> frozenset[str] | None:
    """Return the accepted types; None if `type` is invalid."""
    if "type" not in schema:
        return _TYPES
    given = schema["type"]
    named = [given] if isinstance(given, str) else given
    if not isinstance(named, list) or not all(isinstance(one, str) and one in _TYPES for one in named):
        return None
    return frozenset(named) | ({"integer"} if "number" in named else set())


def types(at: str, old: Schema, new: Schema) -> Iterator[Shift]:
    """Compare `type`."""
    was, now = old.get("type", ABSENT), new.get("type", ABSENT)
    if was == now:
        return
    before, after = _types(old), _types(new)
    place = f"{at}/type"
    if before is None or after is None:
        yield undecided(place, was_is(was, now), was, now)
        return
    words = f"was {_kinds(was)}, is {_kinds(now)}"
    yield Shift(place, words, was, now, narrows=not before <= after, widens=not after <= before)


def _kinds(given: Any) -> str:
    return "any value" if given is ABSENT else kinds([given] if isinstance(given, str) else given)


def values(at: str, old: Schema, new: Schema) -> Iterator[Shift]:
    """Compare `enum` and `const`, an enum of one value."""
    before, after = accepted_values(old), accepted_values(new)
    keyword = next((each for each in ("enum", "const") if each in new), "enum" if "enum" in old else "const")
    place, was, now = f"{at}/{keyword}", old.get(keyword, ABSENT), new.get(keyword, ABSENT)
    if before is None or after is None:
        if before is not None:
            yield Shift(place, "takes other values, too", was, now, widens=True)
        elif after is not None:
            yield Shift(place, f"only takes {_values(after)}", was, now, narrows=True)
        return
    gone, more = before.keys() - after.keys(), after.keys() - before.keys()
    if gone or more:
        parts = [f"no longer takes {_values({key: before[key] for key in gone})}"] if gone else []
        parts += [f"also takes {_values({key: after[key] for key in more})}"] if more else []
        yield Shift(place, ", ".join(parts), was, now, narrows=bool(gone), widens=bool(more))
    elif was is ABSENT or now is ABSENT:
        yield Shift(place, "the same values in another way", was, now)


def accepted_values(schema: Schema) -> dict[bytes, Any] | None:
    """Return the accepted values by their canonical text; None if there is no list of them."""
    given = schema.get("enum")
    chosen = {text(one): one for one in given} if isinstance(given, list) else None
    if "const" in schema:
        key = text(schema["const"])
        return {key: schema["const"]} if chosen is None or key in chosen else {}
    return chosen


def _values(chosen: dict[bytes, Any]) -> str:
    if not chosen:
        return "nothing at all"
    return listed([shown(chosen[key]) for key in sorted(chosen)[:4]], len(chosen))


# ── bounds ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def bound(keyword: str, *, lower: bool) -> Rule:
    """A keyword whose value bounds something from below or above; without it there is no bound."""

    def compare(at: str, old: Schema, new: Schema) -> Iterator[Shift]:
        was, now = old.get(keyword, ABSENT), new.get(keyword, ABSENT)
        if was == now and type(was) is type(now):
            return
        place = f"{at}/{keyword}"
        if not all(one is ABSENT or _is_number(one) for one in (was, now)):
            # Draft 4 has booleans in two of these places.
            yield undecided(place, was_is(was, now), was, now)
        elif was is ABSENT or now is ABSENT:
            yield Shift(place, was_is(was, now), was, now, narrows=was is ABSENT, widens=now is ABSENT)
        else:
            narrows = now > was if lower else now < was
            yield Shift(place, was_is(was, now), was, now, narrows=narrows, widens=not narrows)

    return compare


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def multiples(at: str, old: Schema, new: Schema) -> Iterator[Shift]:
    """Compare `multipleOf`."""
    was, now = old.get("multipleOf", ABSENT), new.get("multipleOf", ABSENT)
    if was == now:
        return
    place = f"{at}/multipleOf"
    if was is ABSENT or now is ABSENT:
        yield Shift(place, was_is(was, now), was, now, narrows=was is ABSENT, widens=now is ABSENT)
    elif type(was) is int and type(now) is int and was > 0 and now > 0:
        yield Shift(place, was_is(was, now), was, now, narrows=was % now != 0, widens=now % was != 0)
    else:
        yield undecided(place, was_is(was, now), was, now)


def required(at: str, old: Schema, new: Schema) -> Iterator[Shift]:
    """Compare `required`."""
    was, now = old.get("required", []), new.get("required", [])
    place = f"{at}/required"
    if not isinstance(was, list) or not isinstance(now, list):
        # Draft 3 has booleans here, and is not supported.
        if was != now:
            yield undecided(place, was_is(was, now), was, now)
        return
    before, after = ({text(one): one for one in each} for each in (was, now))
    for key in sorted(after.keys() - before.keys()):
        yield Shift(place, f"now requires {name(str(after[key]))}", was, now, narrows=True)
    for key in sorted(before.keys() - after.keys()):
        yield Shift(place, f"no longer requires {name(str(before[key]))}", was, now, widens=True)


def flag(keyword: str) -> Rule:
    """Return the row of a keyword that asks for something if it is true."""

    def compare(at: str, old: Schema, new: Schema) -> Iterator[Shift]:
        was, now = old.get(keyword, False), new.get(keyword, False)
        if was is not now:
            yield Shift(f"{at}/{keyword}", was_is(was, now), was, now, narrows=now is not False, widens=now is not True)

    return compare


def opaque(*keywords: str) -> Rule:
    """Return the row of keywords that are compared as a whole: new ones narrow, lost ones widen."""

    def compare(at: str, old: Schema, new: Schema) -> Iterator[Shift]:
        was = {each: old[each] for each in keywords if each in old}
        now = {each: new[each] for each in keywords if each in new}
        if text(was) == text(now):
            return
        keyword = next(each for each in keywords if each in was or each in now)
        before, after = was.get(keyword, ABSENT), now.get(keyword, ABSENT)
        if not was or not now:
            yield Shift(f"{at}/{keyword}", was_is(before, after), before, after, narrows=not was, widens=not now)
        else:
            yield undecided(f"{at}/{keyword}", was_is(before, after), before, after)

    return compare


def said(at: str, old: Schema, new: Schema) -> Iterator[Shift]:
    """Compare what judges nothing: titles, descriptions, defaults, unknown keywords; and what changes how others are
    read.
    """
    for keyword in sorted((old.keys() | new.keys()) - OWN - _HOLDING):
        was, now = old.get(keyword, ABSENT), new.get(keyword, ABSENT)
        if was is ABSENT or now is ABSENT or text(was) != text(now):
            place = f"{at}/{escaped(keyword)}"
            yield Shift(place, was_is(was, now), was, now, decided=keyword not in _FATEFUL)


_LOWER: Final = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_UPPER: Final = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_TOGETHER: Final = (
    ("pattern",),
    ("format",),
    ("dependentRequired",),
    ("oneOf",),
    ("not",),
    ("if", "then", "else"),
    ("contains", "minContains", "maxContains"),
    ("dependentSchemas",),
    ("dependencies",),
)

OWN: Final = frozenset(
    {"type", "enum", "const", *_LOWER, *_UPPER, "multipleOf", "required", "uniqueItems", *chain(*_TOGETHER)}
)
"""The keywords that have a row in the table."""

_HOLDING: Final = frozenset(
    {
        "$ref", "$defs", "definitions", "properties", "patternProperties", "additionalProperties", "items",
        "prefixItems", "additionalItems", "propertyNames", "allOf", "anyOf",
    }
)  # fmt: skip
"""Keywords that hold schemas, or lead to one, and are compared in `schemas`."""

_FATEFUL: Final = frozenset(
    {
        "$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$dynamicRef",
        "$recursiveRef", "unevaluatedProperties", "unevaluatedItems", "x-mcp-header",
    }
)  # fmt: skip
"""Keywords that decide how others are read, or more than what is accepted: a change in them cannot be classified."""

OPAQUE: Final = frozenset({"oneOf", "not", "if", "then", "else", "contains", "dependentSchemas", "dependencies"})
"""Keywords that hold schemas and are compared as a whole: in them wider may mean narrower."""

READING: Final = _FATEFUL - {"$schema", "$id", "x-mcp-header"}
"""Keywords with which a change in one place may have an effect in another."""

JUDGING: Final = OWN | _HOLDING | _FATEFUL
"""All keywords that can decide whether a value is accepted."""

RULES: Final[tuple[Rule, ...]] = (
    types,
    values,
    *(bound(keyword, lower=True) for keyword in _LOWER),
    *(bound(keyword, lower=False) for keyword in _UPPER),
    multiples,
    required,
    flag("uniqueItems"),
    *(opaque(*keywords) for keywords in _TOGETHER),
    said,
)
"""The table of certain cases: each row compares the keywords that stand for themselves."""
