"""
Compares two schemas keyword by keyword, and says by a table what each difference does to the accepted values. No I/O.

References are not followed, unless the caller does it. A keyword without a row in the table, and a change whose effect
depends on another place of the schema, has an unclear effect.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final, Literal, NamedTuple

from assay.schema.canonical import text
from assay.schema.drafts import DRAFT_2020_12, draft_of, subschemas
from assay.schema.pointers import NOWHERE, escaped

Schema = dict[str, Any]

Effect = Literal["narrows", "widens", "breaks", "adds", "text", "unclear"]
"""
What a difference does to the accepted values.

*breaks* takes some away and adds others; *adds* declares a property that nobody who keeps to declared ones has used.
"""


class SchemaDifference(NamedTuple):
    """One keyword that differs between two schemas, or one of the schemas that it holds."""

    effect: Effect
    at: str
    """JSON Pointer into the compared schemas; into the old one if what was there is gone."""
    keyword: str
    """The keyword; "" where one of the schemas is `false`, or not a schema."""
    key: str | None
    """The name or number of a schema that was added or removed under the keyword; the name of a required property."""
    old: Any
    new: Any
    """The old and the new value, of `required` the name of one property; `NOWHERE` for a missing one."""
    before: Any
    after: Any
    """The two schemas with the keyword, before they were prepared."""


class _Effects(NamedTuple):
    """The effects of a keyword, or of a schema that it holds, that is added, removed or changed."""

    added: Effect = "unclear"
    removed: Effect = "unclear"
    changed: Effect = "unclear"


_LOWER: Final = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"})
_UPPER: Final = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"})

_UNCLEAR: Final = _Effects()

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
_NAMED: Final = frozenset(
    {"properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"}
)

_TURNING: Final = frozenset({"oneOf", "not", "if", "contains"})
"""Keywords with schemas in which wider may mean narrower."""

_FAR: Final = frozenset(
    {
        "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$dynamicRef", "$recursiveRef",
        "unevaluatedProperties", "unevaluatedItems",
    }
)  # fmt: skip
"""Keywords with which a change in one place may have an effect in another."""

Prepare = Callable[[Any, Any], tuple[Any, Any]]
"""Returns two schemas, which stand in the same place, in the form in which they are compared."""


def schema_differences(old: Any, new: Any, prepare: Prepare | None = None) -> Iterator[SchemaDifference]:
    """Yield the differences between two schemas in canonical form; *prepare* gets each pair first."""
    waiting = [("", old, new, False)]
    while waiting:  # a loop, since a schema may be nested more deeply than calls may be
        at, before, after, is_turned = waiting.pop()
        before, after = _as_object(before), _as_object(after)
        was, now = (before, after) if prepare is None else prepare(before, after)
        if not isinstance(was, dict) or not isinstance(now, dict):
            if text(was) != text(now):
                effect: Effect = "narrows" if now is False else "widens" if was is False else "unclear"
                yield SchemaDifference("unclear" if is_turned else effect, at, "", None, was, now, before, after)
            continue
        below = []
        for keyword in sorted(was.keys() | now.keys()):
            place = f"{at}/{escaped(keyword)}"
            for part in _parts(keyword, was, now):
                here = place if part.key is None or keyword == "required" else f"{place}/{escaped(part.key)}"
                is_inside = part.effect is None or part.key is not None
                turned = is_turned or (is_inside and keyword in _TURNING)
                if part.effect is None:
                    below.append((here, part.old, part.new, turned))
                else:
                    effect = "unclear" if turned and part.effect != "text" else part.effect
                    yield SchemaDifference(effect, here, keyword, part.key, part.old, part.new, before, after)
        waiting += reversed(below)


class _Part(NamedTuple):
    """The old and the new value of a keyword, or of one schema that it holds."""

    effect: Effect | None
    """None for two schemas, which are to be compared."""
    old: Any
    new: Any
    key: str | None = None


def _parts(keyword: str, old: Schema, new: Schema) -> Iterator[_Part]:
    """Yield the parts of a keyword: schemas in both, and what differs."""
    default = _DEFAULTS.get(keyword, NOWHERE)
    was, now = old.get(keyword, default), new.get(keyword, default)
    if type(was) is str and was == now:
        return  # most keywords hold the same text
    if keyword in _ONE and _are((dict, bool), was, now):
        yield _Part(None, was, now)
    elif keyword in _MANY and _are(list, was, now):
        yield from _schemas(_effects_inside(keyword, old), _in_turn(was, now))
    elif keyword in _NAMED and _are(dict, was, now):
        names = sorted(was.keys() | now.keys())
        yield from _schemas(
            _effects_inside(keyword, old), ((name, was.get(name, NOWHERE), now.get(name, NOWHERE)) for name in names)
        )
    elif keyword == "required" and _are(list, was, now):
        before, after = ({str(one) for one in each} for each in (was, now))
        yield from (_Part("narrows", NOWHERE, name, name) for name in sorted(after - before))
        yield from (_Part("widens", name, NOWHERE, name) for name in sorted(before - after))
    elif was is NOWHERE or now is NOWHERE:
        effects = _TABLE.get(keyword, _UNCLEAR)
        yield _Part(effects.added if was is NOWHERE else effects.removed, was, now)
    elif text(was) != text(now):
        yield _Part(_effect_of_change(keyword, was, now), was, now)


# ── keywords that hold schemas ───────────────────────────────────────────────────────────────────────────────────────

_Pairs = Iterable[tuple[str, Any, Any]]
"""The schemas that a keyword holds: the name or position, the old and the new one."""


def _schemas(effects: _Effects, pairs: _Pairs) -> Iterator[_Part]:
    for key, was, now in pairs:
        effect: Effect | None = None
        if now is NOWHERE:
            effect = effects.removed
        elif was is NOWHERE:
            effect = "unclear" if now is False else effects.added
        yield _Part(effect, was, now, key)


def _effects_inside(keyword: str, old: Schema) -> _Effects:
    """Return the effects of a schema that is added to, or removed from, those that *keyword* of *old* holds."""
    if keyword == "properties":
        return _Effects(_new_property(old), "breaks")
    return _Effects("widens", "narrows") if keyword == "anyOf" else _TABLE.get(keyword, _UNCLEAR)


def _new_property(old: Schema) -> Effect:
    """Return the effect of a property that the schema *old* does not have."""
    others = _as_object(old.get("additionalProperties", True))
    if "patternProperties" in old or others not in (False, {}):
        return "unclear"
    return "adds" if others == {} else "widens"


def _in_turn(was: list[Any], now: list[Any]) -> _Pairs:
    """Yield the schemas of two lists in which the order means nothing, without those that both have."""
    for one, other in zip_longest(unequal(was, now), unequal(now, was)):
        before, after = one or (0, NOWHERE), other or (0, NOWHERE)
        yield str(after[0] if other else before[0]), before[1], after[1]


def unequal(some: Sequence[Any], others: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """Yield the values of *some* that have no equal one in *others*, with their position."""
    equal = Counter(map(text, others))
    for position, one in enumerate(some):
        key = text(one)
        equal[key] -= 1
        if equal[key] < 0:
            yield position, one


# ── keywords that hold values ────────────────────────────────────────────────────────────────────────────────────────


def _effect_of_change(keyword: str, was: Any, now: Any) -> Effect:
    if keyword in _LOWER | _UPPER and type(was) in {int, float} and type(now) in {int, float}:
        return "narrows" if (now > was) == (keyword in _LOWER) else "widens"
    if keyword == "enum" and _are(list, was, now):
        gone, more = any(unequal(was, now)), any(unequal(now, was))
        return "breaks" if gone and more else "narrows" if gone else "widens"
    if keyword == "type":
        before, after = _accepted(was), _accepted(now)
        return "narrows" if after < before else "widens" if before < after else "breaks"
    return _TABLE.get(keyword, _UNCLEAR).changed


def _accepted(types: Any) -> frozenset[str]:
    """Return the names in `type`; a number may be an integer."""
    named = frozenset(map(str, types if isinstance(types, list) else [types]))
    return named | {"integer"} if "number" in named else named


# ── effects in other places ──────────────────────────────────────────────────────────────────────────────────────────


def acts_elsewhere(schema: Any) -> bool:
    """Return whether a change in one place of a document may have an effect in another."""
    met: set[str] = set()
    draft = draft_of(schema) or DRAFT_2020_12
    waiting = [schema]
    for one in waiting:  # grows during the loop
        if isinstance(one, dict):
            if _is_joint(one) or (one is not schema and "$id" in one):
                return True
            met |= one.keys()
            waiting += [below for _, _, below in subschemas(one, draft)]
    return not met.isdisjoint(_FAR) or ("$ref" in met and not met.isdisjoint(_TURNING))


def _is_joint(schema: Schema) -> bool:
    """Whether several schemas apply to the same value: then one may declare what is new in another."""
    every = schema.get("allOf")
    others = ("properties", "$ref", "anyOf", "oneOf", "if", "not", "dependentSchemas", "dependencies")
    return sum(keyword in schema for keyword in others) + (len(every) if isinstance(every, list) else 0) > 1


def _as_object(schema: Any) -> Any:
    return {} if schema is True else schema


def _are(kind: type | tuple[type, ...], *values: Any) -> bool:
    return all(isinstance(each, kind) for each in values)
