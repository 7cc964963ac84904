"""
What one keyword of a schema takes after a change that it did not take before, and the other way round. No I/O.

Knows no references and no schemas inside a schema: those are put together in `schemas`.
"""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, Final, NamedTuple

from assay.engine.pointers import NOWHERE
from assay.engine.wording import kinds, listed, name, shown
from assay.lock.canonical import text

ABSENT: Final = NOWHERE
"""What is compared where there is nothing: null is a value."""

Schema = dict[str, Any]


class Shift(NamedTuple):
    """One difference between two schemas. With neither of the flags it changes nothing about what is taken."""

    at: str
    """JSON Pointer from the root of the schema; into the old one if what was there is gone."""
    words: str
    old: Any
    new: Any
    narrows: bool = False
    """Something may be refused that was taken before."""
    widens: bool = False
    """Something may be taken that was refused before."""
    decided: bool = True
    """Whether that could be told; if not, both are possible."""
    neutral: bool = False
    """Whether a caller or reader that keeps to what it knows never notices, although it is about what is taken."""

    @property
    def wording(self) -> bool:
        """Whether it is only about what is said."""
        return self.decided and not (self.narrows or self.widens or self.neutral)


def undecided(at: str, words: str, old: Any, new: Any) -> Shift:
    """A difference of which nobody here can tell what it does."""
    return Shift(at, words, old, new, decided=False)


Rule = Callable[[str, Schema, Schema], Iterator[Shift]]
"""Compares some keywords of two schemas that stand at one place."""


def was_is(old: Any, new: Any) -> str:
    """Both values, in a few words."""
    if old is ABSENT:
        return f"new: {shown(new)}"
    return f"gone; was {shown(old)}" if new is ABSENT else f"was {shown(old)}, is {shown(new)}"


# ── types and values ─────────────────────────────────────────────────────────────────────────────────────────────────

_TYPES: Final = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})


def _types(schema: Schema) -> frozenset[str] | None:
    """The types that are taken; None if there is something else in place of them."""
    if "type" not in schema:
        return _TYPES
    given = schema["type"]
    named = [given] if isinstance(given, str) else given
    if not isinstance(named, list) or not all(isinstance(one, str) and one in _TYPES for one in named):
        return None
    return frozenset(named) | ({"integer"} if "number" in named else set())


def types(at: str, old: Schema, new: Schema) -> Iterator[Shift]:
    """`type`."""
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
    """`enum` and `const`, which is one of one."""
    before, after = taken_values(old), taken_values(new)
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


def taken_values(schema: Schema) -> dict[bytes, Any] | None:
    """The values that are taken, by their one spelling; None if any are."""
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
    """`multipleOf`."""
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
    """`required`."""
    was, now = old.get("required", []), new.get("required", [])
    place = f"{at}/required"
    if not isinstance(was, list) or not isinstance(now, list):
        # Draft 3 has booleans here, and nobody judges by that.
        if was != now:
            yield undecided(place, was_is(was, now), was, now)
        return
    before, after = ({text(one): one for one in each} for each in (was, now))
    for key in sorted(after.keys() - before.keys()):
        yield Shift(place, f"now requires {name(str(after[key]))}", was, now, narrows=True)
    for key in sorted(before.keys() - after.keys()):
        yield Shift(place, f"no longer requires {name(str(before[key]))}", was, now, widens=True)


def flag(keyword: str) -> Rule:
    """A keyword that asks for something if it is true."""

    def compare(at: str, old: Schema, new: Schema) -> Iterator[Shift]:
        was, now = old.get(keyword, False), new.get(keyword, False)
        if was is not now:
            yield Shift(f"{at}/{keyword}", was_is(was, now), was, now, narrows=now is not False, widens=now is not True)

    return compare


def opaque(*keywords: str) -> Rule:
    """Keywords that only say together what they ask for; that there are some asks for more than that there are none."""

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


_LOWER: Final = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_UPPER: Final = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_TOGETHER: Final = (
    ("pattern",),
    ("format",),
    ("not",),
    ("if", "then", "else"),
    ("contains", "minContains", "maxContains"),
    ("dependentRequired",),
    ("dependentSchemas",),
    ("dependencies",),
)

RULES: Final[tuple[Rule, ...]] = (
    types,
    values,
    *(bound(keyword, lower=True) for keyword in _LOWER),
    *(bound(keyword, lower=False) for keyword in _UPPER),
    multiples,
    required,
    flag("uniqueItems"),
    *(opaque(*keywords) for keywords in _TOGETHER),
)
"""What compares the keywords that stand for themselves."""

OWN: Final = frozenset(
    {"type", "enum", "const", *_LOWER, *_UPPER, "multipleOf", "required", "uniqueItems", *chain(*_TOGETHER)}
)
"""The keywords that they compare."""

FATEFUL: Final = frozenset(
    {
        "$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$dynamicRef",
        "$recursiveRef", "unevaluatedProperties", "unevaluatedItems", "x-mcp-header",
    }
)  # fmt: skip
"""Keywords that decide how others are read, or more than what is taken: of a change in them nothing can be told."""
