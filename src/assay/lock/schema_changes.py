"""
Compares two schemas keyword by keyword, and weighs each difference by a table. No I/O.

References are not followed: a definition is compared where it stands. A keyword without a row in the table, and a
change whose effect depends on another place of the schema, is undecided, never harmless.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any, Final, Literal, NamedTuple

from assay.engine.canonical import text
from assay.engine.drafts import DRAFT_2020_12, draft_of, subschemas
from assay.engine.pointers import escaped
from assay.engine.wording import listed, name, shown, wanted
from assay.lock.change import ABSENT, Change, Weight, was_is

Schema = dict[str, Any]

Effect = Literal["narrows", "widens", "breaks", "adds", "text", "unclear"]
"""
What a difference does to the accepted values.

*breaks* takes some away and adds others; *adds* declares a property that nobody who keeps to declared ones has used.
"""

Weights = Mapping[Effect, Weight]

ARGUMENTS: Final[Weights] = {
    "narrows": "breaking",
    "widens": "compatible",
    "breaks": "breaking",
    "adds": "compatible",
    "text": "wording",
    "unclear": "undecided",
}
"""The weights in a schema of arguments: a caller fails if less is accepted."""

RESULTS: Final[Weights] = {**ARGUMENTS, "narrows": "compatible", "widens": "breaking"}
"""The weights in a schema of results: a reader fails if more is possible."""

_UNCLEAR: Final[Weights] = {**dict.fromkeys(ARGUMENTS, "undecided"), "text": "wording"}
"""The weights in a place where wider may mean narrower."""


class _Effects(NamedTuple):
    """The effects of a keyword, or of a schema that it holds, that is added, removed or changed."""

    added: Effect = "unclear"
    removed: Effect = "unclear"
    changed: Effect = "unclear"


_LOWER: Final = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"})
_UPPER: Final = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"})

_TABLE: Final[Mapping[str, _Effects]] = {
    **dict.fromkeys(
        ("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment"),
        _Effects("text", "text", "text"),
    ),
    **dict.fromkeys(("type", "enum", "const", *_LOWER, *_UPPER), _Effects("narrows", "widens", "breaks")),
    **dict.fromkeys(
        ("required", "pattern", "format", "multipleOf", "uniqueItems", "dependentRequired", "dependentSchemas",
         "dependencies", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "contains"),
        _Effects("narrows", "widens"),
    ),
    **dict.fromkeys(("$defs", "definitions"), _Effects("text")),
}  # fmt: skip
"""The effects by keyword. A keyword without a row is unclear."""

_TRUE: Final = frozenset({"additionalProperties", "items", "propertyNames"})
"""Keywords with a schema that accepts everything if it is missing."""

_DEFAULTS: Final[Mapping[str, Any]] = {**dict.fromkeys(_TRUE, True), "properties": {}, "required": []}
"""The values that mean the same as a missing keyword."""

_ONE: Final = _TRUE | {"not", "if", "then", "else", "contains"}
_MANY: Final = frozenset({"allOf", "anyOf", "oneOf"})
_NAMED: Final = frozenset({"patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"})

_TURNING: Final = frozenset({"oneOf", "not", "if", "contains"})
"""Keywords with schemas in which wider may mean narrower."""

_FAR: Final = frozenset(
    {
        "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$dynamicRef", "$recursiveRef",
        "unevaluatedProperties", "unevaluatedItems",
    }
)  # fmt: skip
"""Keywords with which a change in one place may have an effect in another."""


def schema_changes(at: str, old: Any, new: Any, weights: Weights) -> list[Change]:
    """Return the changes between two schemas that stand *at* one place; both are canonical and differ."""
    if _acts_elsewhere(old) or _acts_elsewhere(new):
        weights = {effect: "undecided" if each == "compatible" else each for effect, each in weights.items()}
    found = list(_compare(at, old, new, weights))
    return found or [Change("undecided", at, "something else has changed", old, new)]


_Pairs = Iterator[tuple[str | int, Any, Any]]
"""The schemas that a keyword holds: the name or position, the old and the new one."""


def _compare(at: str, old: Any, new: Any, weights: Weights) -> Iterator[Change]:
    old, new = _as_object(old), _as_object(new)
    if not isinstance(old, dict) or not isinstance(new, dict):
        if text(old) != text(new):
            effect: Effect = "narrows" if new is False else "widens" if old is False else "unclear"
            yield Change(weights[effect], at, was_is(old, new, _described), old, new)
        return
    for keyword in sorted(old.keys() | new.keys()):
        place, default = f"{at}/{escaped(keyword)}", _DEFAULTS.get(keyword, ABSENT)
        was, now = old.get(keyword, default), new.get(keyword, default)
        inside = _UNCLEAR if keyword in _TURNING else weights
        if keyword in _ONE and _are((dict, bool), was, now):
            # Without a function in between, the calls are not deeper than the schema.
            yield from _compare(place, was, now, inside)
        elif keyword in _MANY and _are(list, was, now):
            effects = _Effects("widens", "narrows") if keyword == "anyOf" else _TABLE[keyword]
            yield from _children(place, effects, _in_turn(was, now), inside)
        elif keyword == "properties" and _are(dict, was, now):
            yield from _children(place, _Effects(_new_property(old), "breaks"), _by_name(was, now), weights)
        elif keyword in _NAMED and _are(dict, was, now):
            yield from _children(place, _TABLE.get(keyword, _Effects()), _by_name(was, now), weights)
        elif keyword == "required" and _are(list, was, now):
            yield from _required(place, was, now, weights)
        elif not _same(was, now):
            effect, words = _value(keyword, was, now)
            yield Change(weights[effect], place, words, was, now)


# ── keywords that hold schemas ───────────────────────────────────────────────────────────────────────────────────────


def _children(at: str, effects: _Effects, pairs: _Pairs, weights: Weights) -> Iterator[Change]:
    """Yield the changes of the schemas that a keyword holds."""
    for key, was, now in pairs:
        place = f"{at}/{escaped(str(key))}"
        if was is ABSENT or now is ABSENT:
            effect = effects.removed if now is ABSENT else "unclear" if now is False else effects.added
            yield Change(weights[effect], place, was_is(was, now, _described), was, now)
        else:
            yield from _compare(place, was, now, weights)


def _by_name(was: Schema, now: Schema) -> _Pairs:
    return ((key, was.get(key, ABSENT), now.get(key, ABSENT)) for key in sorted(was.keys() | now.keys()))


def _in_turn(was: list[Any], now: list[Any]) -> _Pairs:
    """Yield the schemas of two lists in which the order means nothing, without those that both have."""
    for one, other in zip_longest(_unequal(was, now), _unequal(now, was)):
        before, after = one or (0, ABSENT), other or (0, ABSENT)
        yield after[0] if other else before[0], before[1], after[1]


def _unequal(some: list[Any], others: list[Any]) -> Iterator[tuple[int, Any]]:
    """Yield the values of *some* that have no equal one in *others*, with their position."""
    equal = Counter(map(text, others))
    for position, one in enumerate(some):
        key = text(one)
        equal[key] -= 1
        if equal[key] < 0:
            yield position, one


def _described(schema: Any) -> str:
    return wanted(schema) or "a value"


def _as_object(schema: Any) -> Any:
    return {} if schema is True else schema


def _new_property(old: Schema) -> Effect:
    """Return the effect of a property that the schema *old* does not have."""
    others = _as_object(old.get("additionalProperties", True))
    if "patternProperties" in old or others not in (False, {}):
        return "unclear"
    return "adds" if others == {} else "widens"


def _acts_elsewhere(document: Any) -> bool:
    """Whether a change in one place of *document* may have an effect in another."""
    met: set[str] = set()
    draft = draft_of(document) or DRAFT_2020_12
    waiting = [document]
    for one in waiting:  # grows during the loop
        if isinstance(one, dict):
            if _is_joint(one) or (one is not document and "$id" in one):
                return True
            met |= one.keys()
            waiting += [below for _, _, below in subschemas(one, draft)]
    return not met.isdisjoint(_FAR) or ("$ref" in met and not met.isdisjoint(_TURNING))


def _is_joint(schema: Schema) -> bool:
    """Whether several schemas apply to the same value: then one may declare what is new in another."""
    every = schema.get("allOf")
    others = ("properties", "$ref", "anyOf", "oneOf", "if", "not", "dependentSchemas", "dependencies")
    return sum(keyword in schema for keyword in others) + (len(every) if isinstance(every, list) else 0) > 1


# ── keywords that hold values ────────────────────────────────────────────────────────────────────────────────────────


def _value(keyword: str, was: Any, now: Any) -> tuple[Effect, str]:
    """Return the effect of another value of *keyword*, and its description."""
    effects = _TABLE.get(keyword, _Effects())
    words = was_is(was, now, lambda value: _in_words(keyword, value))
    if was is ABSENT or now is ABSENT:
        return effects.added if was is ABSENT else effects.removed, words
    if keyword in _LOWER | _UPPER and type(was) in {int, float} and type(now) in {int, float}:
        return "narrows" if (now > was) == (keyword in _LOWER) else "widens", words
    if keyword == "enum" and _are(list, was, now):
        return _other_values(was, now)
    if keyword == "type":
        before, after = _accepted(was), _accepted(now)
        return "narrows" if after < before else "widens" if before < after else effects.changed, words
    return effects.changed, words


def _in_words(keyword: str, value: Any) -> str:
    known = keyword == "type" or (keyword == "enum" and isinstance(value, list))
    return (wanted({keyword: value}) if known else "") or shown(value)


def _accepted(types: Any) -> frozenset[str]:
    """Return the names in `type`; a number may be an integer."""
    named = frozenset(map(str, types if isinstance(types, list) else [types]))
    return named | {"integer"} if "number" in named else named


def _other_values(was: list[Any], now: list[Any]) -> tuple[Effect, str]:
    gone, more = ([shown(one) for _, one in _unequal(*pair)] for pair in ((was, now), (now, was)))
    words = [f"no longer takes {listed(gone)}"] * bool(gone) + [f"also takes {listed(more)}"] * bool(more)
    return "breaks" if gone and more else "narrows" if gone else "widens", ", ".join(words)


def _required(at: str, was: list[Any], now: list[Any], weights: Weights) -> Iterator[Change]:
    before, after = ({str(one) for one in each} for each in (was, now))
    for each in sorted(after - before):
        yield Change(weights["narrows"], at, f"now requires {name(each)}", was, now)
    for each in sorted(before - after):
        yield Change(weights["widens"], at, f"no longer requires {name(each)}", was, now)


def _same(was: Any, now: Any) -> bool:
    return was is now or (was is not ABSENT and now is not ABSENT and text(was) == text(now))


def _are(kind: type | tuple[type, ...], *values: Any) -> bool:
    return all(isinstance(each, kind) for each in values)
