"""
Explains why an instance is invalid, within a budget.

The engine's own explanations (`validate`, `iter_errors`, `evaluate`) build the errors of every branch: a wrong leaf 8
levels down a recursive filter took 4.2 s and 649 MB. Here the engine is only asked whether a value is valid by a
subschema, and the walk goes only into values that are not.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, NamedTuple

import jsonschema_rs
import orjson

from assay.schema.compiled import Options, registered
from assay.schema.drafts import DRAFT_2020_12, Schema
from assay.schema.fault import Fault, Faults, SchemaRefusal
from assay.schema.pointers import as_fragment, escaped
from assay.schema.schema_index import SchemaIndex, SchemaPlace, indexed
from assay.schema.wording import (
    counted,
    expected,
    found,
    found_for,
    kinds,
    listed,
    name,
    one_of,
    shown,
    types_of,
    wanted,
)  # fmt: skip

STEPS: Final = 4_000
"""Questions to the engine for one explanation. The most expensive one measured took 0.3 s for 10,000, so this is about
0.1 s."""

_WIDE: Final = 8
"""The width from which on the values inside a value count more than once: with this an explanation of 10,000 questions
took at most 2 s. Ordinary schemas have a width of 2 to 60."""

_NODES_PER_STEP: Final = 2_048
"""Values inside a value that one question may visit before it counts as another: the engine visits about 80 in a µs
under a small schema."""

_COMPILED_PER_STEP: Final = 8
"""The size that is compiled in the time of one question, in subschemas of 4 µs each."""

_DEEPEST: Final = 150
"""Places that the walk enters one inside the other: three Python frames each, of a thousand that are allowed."""

_TRIALS: Final = 6
"""Branches that are tried out if neither type nor discriminator decides; more are only described."""

_TRIAL_STEPS: Final = 300
"""Questions to try out one branch. A trial tries out no branches itself, so trials do not multiply with depth."""

Judge = Callable[[Any], bool]
"""Whether a value is valid, as the engine decides."""


def explained(
    subschemas: "Subschemas", instance: Any, *, at: str = "", most: int = 20, steps: int = STEPS, width: int = 1
) -> tuple[Faults, int]:
    """
    Return the faults of *instance*, which is known to be invalid, and how many of the *steps* are left.

    There is at least one fault, however few steps there are.
    """
    if subschemas.root is None:
        return Faults((Fault(at, "$schema", "a value that fits the schema", found(instance), "#"),)), steps
    weights = _weights(instance, 1 + width // _WIDE) if steps else None
    # An instance that is too large to be weighed gets one fault for the whole.
    walk = _Walk(subschemas, max(most, 1), steps if weights is not None else 0, weights or {})
    walk.into(subschemas.root, instance, at)
    return Faults(tuple(walk.listed), walk.more), max(walk.steps, 0)


_MOST_CONTAINERS: Final = 65_000
"""Arrays and objects that are weighed: about 1 µs each, and a tenth of that for each value in them."""

_MOST_VALUES: Final = 500_000
"""Values in them."""


def _weights(instance: Any, times: int) -> dict[int, int] | None:
    """
    Return how many values are inside each large array or object of *instance*, by identity, multiplied by *times*.

    A string counts for its length. One pass, linear in time and memory. None if there are too many to weigh.
    """
    containers: list[Any] = [instance] if isinstance(instance, dict | list) else []
    parents = [0]
    sizes: list[int] = []
    seen = 0
    for number, one in enumerate(containers):  # grows during the loop
        inside = one.values() if isinstance(one, dict) else one
        seen += len(inside)
        if seen > _MOST_VALUES or len(containers) > _MOST_CONTAINERS:
            return None
        nested = [inner for inner in inside if isinstance(inner, (dict, list))]
        sizes.append(len(inside))
        if len(nested) < len(inside):
            sizes[number] += sum([len(inner) >> 6 for inner in inside if type(inner) is str])
        containers += nested
        parents += [number] * len(nested)
    for number in range(len(containers) - 1, 0, -1):
        sizes[parents[number]] += sizes[number]
    heavy = _NODES_PER_STEP // times  # anything lighter costs no more than one question
    return {id(one): size * times for one, size in zip(containers, sizes, strict=True) if size >= heavy}


# ── the walk ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Spot(NamedTuple):
    """A value that is invalid by the schema at its place."""

    place: SchemaPlace
    schema: dict[str, Any]
    """The schema at `place`."""
    value: Any
    at: str
    """JSON Pointer of the value."""


@dataclass(slots=True)
class _Walk:
    """One explanation in progress."""

    subschemas: "Subschemas"
    most: int
    """Faults that are listed; more are only counted."""
    steps: int
    """Questions that are left."""
    weights: dict[int, int]
    trial: bool = False
    depth: int = 0
    listed: list[Fault] = field(default_factory=list)
    more: int = 0

    @property
    def index(self) -> SchemaIndex:
        """The index of the schema document."""
        return self.subschemas.index

    @property
    def count(self) -> int:
        """The number of faults so far."""
        return len(self.listed) + self.more

    def judge(self, place: SchemaPlace) -> Judge:
        """Return the judge for *place*; costs nothing, unless a validator has to be compiled."""
        judge, compiled = self.subschemas.judge(place)
        self.steps -= compiled // _COMPILED_PER_STEP
        return judge

    def fits(self, place: SchemaPlace, value: Any) -> bool:
        """Whether *value* is valid by *place*; costs one question."""
        self.steps -= 1
        return self.judge(place)(value)

    def check(self, place: SchemaPlace | None, value: Any, at: str) -> None:
        """Explain *value* by *place* if it is invalid."""
        if place is not None and self.steps > 0 and not self.fits(place, value):
            self.into(place, value, at)

    def into(self, place: SchemaPlace, value: Any, at: str) -> None:
        """Record the faults of *value*, which is invalid by *place*: at least one."""
        if len(self.listed) >= self.most:
            self.more += 1
            self.steps -= 1
            return
        place = self.subschemas.settled(place)
        before = self.count
        self.steps -= 1 + self.weights.get(id(value), 0) // _NODES_PER_STEP
        if isinstance(place.schema, bool):
            self.listed.append(Fault(at, "false", "nothing here", found(value), as_fragment(place.at)))
            return
        spot = _Spot(place, place.schema, value, at)
        if self.steps > 0 and self.depth < _DEEPEST:
            self.depth += 1
            self.explain(spot)
            self.depth -= 1
        if self.count == before:
            # The part of the schema that refused the value was not found: one fault for the whole.
            keyword = next((one for one in _SAID if one in spot.schema), "$schema")
            self.add(spot, keyword, self.subschemas.described(place), found(value))

    def explain(self, spot: _Spot) -> None:
        """Check each keyword of *spot*."""
        if self.index.draft.lone_reference and "$ref" in spot.schema:
            return  # it leads to another document; what is beside it is ignored
        before = self.count
        if any(keyword in spot.schema and self.refuses(spot, keyword) for keyword in _DECISIVE):
            return
        for keyword in _SIMPLE:
            if keyword in spot.schema:
                self.refuses(spot, keyword)
        for keywords, check in _APPLYING:
            if self.steps > 0 and not spot.schema.keys().isdisjoint(keywords):
                check(self, spot)
        # Only if nothing else is wrong here can this be the reason.
        if self.count == before and self.steps > 0:
            self.check_unevaluated(spot)

    def add(self, spot: _Spot, keyword: str, wants: str, has: str, *, at: str = "", key: str = "") -> None:
        """
        Record that *keyword* refuses *spot*, or only count it if enough faults are listed.

        *at* is the place of the fault, if not the spot itself; *key* is the entry of the keyword that refused it.
        """
        self.steps -= 1
        if len(self.listed) >= self.most:
            self.more += 1
            return
        below = f"{spot.place.at}/{escaped(keyword)}" + (f"/{escaped(key)}" if key else "")
        wrong_type = not at and not self.subschemas.takes_type(spot.place, keyword, spot.value)
        self.listed.append(Fault(at or spot.at, keyword, wants, has, as_fragment(below), wrong_type))

    # ── each keyword ──────────────────────────────────────────────────────────────────────────────────────────────────

    def refuses(self, spot: _Spot, keyword: str) -> bool:
        """Whether *keyword*, which holds no subschema, refuses *spot*; if so, record the fault."""
        schema = spot.schema
        if keyword.startswith("exclusive") and isinstance(schema[keyword], bool):
            return False
        alone = {keyword: schema[keyword]}
        # In draft 4 a boolean beside a bound excludes the bound itself; in draft 7 a text is decoded first.
        beside = _BESIDE.get(keyword, keyword)
        if isinstance(schema.get(beside), bool | str):
            alone[beside] = schema[beside]
        judge, compiled = self.subschemas.judge_of((spot.place.at, keyword), alone)
        self.steps -= 1 + compiled // _COMPILED_PER_STEP
        if judge(spot.value):
            return False
        self.add(spot, keyword, expected(keyword, schema), found_for(keyword, spot.value))
        return True

    def check_required(self, spot: _Spot) -> None:
        """Report a missing property at the object that lacks it."""
        if not isinstance(spot.value, dict):
            return
        for key in _texts(spot.schema.get("required")):
            if key not in spot.value:
                self.add(spot, "required", f"the property {name(key)}", found(spot.value))
        for keyword in ("dependentRequired", "dependencies"):
            for cause, keys in _members(spot.schema, keyword).items():
                for key in _texts(keys) if cause in spot.value else ():
                    if key not in spot.value:
                        wants = f"the property {name(key)}, which {name(cause)} requires"
                        self.add(spot, keyword, wants, found(spot.value), key=cause)

    def check_members(self, spot: _Spot) -> None:
        """Check properties in the order of the instance, each by all subschemas that apply to it."""
        if not isinstance(spot.value, dict):
            return
        names = self.index.below(spot.place, "propertyNames")
        rest = self.index.below(spot.place, "additionalProperties")
        known = _members(spot.schema, "properties")
        for number, (key, member) in enumerate(spot.value.items()):
            self.steps -= number % 32 == 31
            if self.steps <= 0:
                return
            at = _below(spot.at, key)
            if names is not None and not self.fits(names, key):
                wants = f"a property name that is {self.subschemas.described(names)}"
                self.add(spot, "propertyNames", wants, f"the name {name(key)}", at=at)
            places = self.places_of(spot.place, key)
            for place in places:
                self.check(place, member, at)
            if places or self.steps <= 0:
                continue
            if rest is None or rest.schema is not False:
                self.check(rest, member, at)
            else:
                first = [name(one) for one in islice(known, 5)]
                wants = f"no property but {listed(first, len(known))}" if known else "no property with this name"
                self.add(spot, "additionalProperties", wants, f"the property {name(key)}", at=at)

    def places_of(self, place: SchemaPlace, key: str) -> list[SchemaPlace]:
        """Return the places under `properties` and `patternProperties` that apply to the property *key*."""
        places: list[SchemaPlace | None] = [self.index.below(place, "properties", key)]
        for pattern in _members(place.schema, "patternProperties"):
            if self.steps <= 1:
                self.steps = 0
                break
            # The engine that compiled the schema decides, never Python's own. No pointer is like this key.
            judge, compiled = self.subschemas.judge_of(("pattern", pattern), {"pattern": pattern})
            self.steps -= 1 + compiled // _COMPILED_PER_STEP
            if judge(key):
                places.append(self.index.below(place, "patternProperties", pattern))
        return [place for place in places if place is not None]

    def check_items(self, spot: _Spot) -> None:
        """Check items by number first, then the rest by the subschema for the rest."""
        if not isinstance(spot.value, list):
            return
        by_number, of_rest = self.subschemas.item_keywords(spot.place)
        fixed = self.subschemas.branches(spot.place, by_number)
        for number, (place, item) in enumerate(zip(fixed, spot.value, strict=False)):
            self.check(place, item, _below(spot.at, number))
        rest = self.index.below(spot.place, of_rest)
        if rest is None or len(spot.value) <= len(fixed):
            return
        if rest.schema is False:
            self.add(spot, of_rest, f"at most {counted(len(fixed), 'item')}", found(spot.value))
        elif self.steps > 0:
            self.steps -= 1
            fits = self.judge(rest)
            for number in range(len(fixed), len(spot.value)):
                self.steps -= number % 128 == 127  # the questions are short
                if self.steps <= 0:
                    return
                if not fits(spot.value[number]):
                    self.into(rest, spot.value[number], _below(spot.at, number))

    def check_contains(self, spot: _Spot) -> None:
        """Report a wrong number of matching items at the array, not at any one item."""
        sought = self.index.below(spot.place, "contains")
        if sought is None or not isinstance(spot.value, list):
            return
        bounds = spot.schema if not self.index.draft.lone_reference else {}  # both are newer than draft 7
        least, most = bounds.get("minContains", 1), bounds.get("maxContains")
        self.steps -= 1 + len(spot.value) // 32
        matches = sum(map(self.judge(sought), spot.value))
        if matches < least:
            keyword = "minContains" if "minContains" in bounds else "contains"
            limit = f"at least {counted(least, 'item')}"
        elif most is not None and matches > most:
            keyword, limit = "maxContains", f"at most {counted(most, 'item')}"
        else:
            return
        wants = f"{limit} that is {self.subschemas.described(sought)}"
        self.add(spot, keyword, wants, f"{matches} of {len(spot.value)}")

    def check_in_place(self, spot: _Spot) -> None:
        """Check each subschema that judges the same value, whatever else does."""
        for place in self.in_place(spot.place, spot.value):
            self.check(place, spot.value, spot.at)

    def in_place(self, place: SchemaPlace, value: Any) -> Iterator[SchemaPlace | None]:
        """
        Yield the subschemas by which *value* must be valid too, if it is to be valid by *place*.

        A dynamic reference is followed as if it were static; if that is wrong, nothing is reported. The condition of
        `if` is never at fault.
        """
        yield from self.subschemas.targets(place)
        yield from self.subschemas.branches(place, "allOf")
        condition = self.index.below(place, "if")
        if condition is not None:
            yield self.index.below(place, "then" if self.fits(condition, value) else "else")
        for keyword in ("dependentSchemas", "dependencies"):
            for cause in _members(place.schema, keyword) if isinstance(value, dict) else ():
                if cause in value:
                    yield self.index.below(place, keyword, cause)

    def check_choice(self, spot: _Spot) -> None:
        """Report that no branch accepts the value, or that too many do."""
        for keyword in ("anyOf", "oneOf"):
            branches = self.subschemas.branches(spot.place, keyword)
            matching = [branch for branch in branches if self.steps > 0 and self.fits(branch, spot.value)]
            if len(matching) > 1 and keyword == "oneOf":
                wants = f"exactly one of: {self.subschemas.forms(self.subschemas.leaves(matching))}"
                self.add(spot, keyword, wants, f"{found(spot.value)}, which fits {len(matching)} of them")
            elif branches and not matching and self.steps > 0:
                self.check_branches(spot, keyword, self.subschemas.leaves(branches))

    def check_branches(self, spot: _Spot, keyword: str, branches: "list[_Traits]") -> None:
        """Explain the branch that was meant, if that is clear; else describe the branches."""
        value = spot.value
        likely = [branch for branch in branches if branch.takes_type(value)]
        if len(likely) > 1 and isinstance(value, dict):
            branches = likely
            telling = _telling(branches)
            likely = _likely(branches, telling, value)
            if not likely and telling is not None:
                has = found(value)
                if telling in value:
                    wrong = value[telling]
                    has = f"one whose {name(telling)} is {shown(wrong) if isinstance(wrong, str) else found(wrong)}"
                self.add(spot, keyword, _whose(telling, branches), has)
                return
        if 1 < len(likely) <= _TRIALS and not self.trial:
            counts = [self.tried(branch.place, value) for branch in likely]
            likely = [branch for branch, count in zip(likely, counts, strict=True) if count == min(counts)]
        if len(likely) == 1:
            self.into(likely[0].place, value, spot.at)
        else:
            self.add(spot, keyword, self.subschemas.forms(likely or branches), found(value))

    def tried(self, branch: SchemaPlace, value: Any) -> int:
        """Return how many faults *value* has by *branch*, counted with a small part of the budget."""
        budget = max(min(_TRIAL_STEPS, self.steps), 0)
        trial = _Walk(self.subschemas, 8, budget, self.weights, trial=True, depth=self.depth)
        trial.into(branch, value, "")
        self.steps -= budget - trial.steps
        return trial.count

    def check_not(self, spot: _Spot) -> None:
        """Report that the value is valid by a schema that must refuse it."""
        refused = self.index.below(spot.place, "not")
        if refused is not None and self.fits(refused, spot.value):
            nothing = refused.schema in ({}, True)
            wants = "nothing here" if nothing else f"anything but {self.subschemas.described(refused)}"
            self.add(spot, "not", wants, found(spot.value))

    def check_unevaluated(self, spot: _Spot) -> None:
        """Report members that no other keyword covers and that are forbidden or invalid."""
        members: dict[Any, Any]
        if isinstance(spot.value, dict):
            keyword, members = "unevaluatedProperties", spot.value
        elif isinstance(spot.value, list):
            keyword, members = "unevaluatedItems", dict(enumerate(spot.value))
        else:
            return
        place = self.index.below(spot.place, keyword)
        for key, member in self.uncovered(spot, keyword, members).items() if place is not None else ():
            at = _below(spot.at, key)
            if place is None or place.schema is not False:
                self.check(place, member, at)
            elif self.steps > 0:
                has = f"the property {name(key)}" if isinstance(key, str) else found(member)
                self.add(spot, keyword, "nothing beyond the schema", has, at=at)

    def uncovered(self, spot: _Spot, keyword: str, members: dict[Any, Any]) -> dict[Any, Any]:
        """Return the *members* that neither the place covers nor what it applies to the same value; {} if not known."""
        for place in self.applied(spot):
            _, rest = self.subschemas.item_keywords(place)
            rest = "additionalProperties" if isinstance(spot.value, dict) else rest
            self.steps -= 1 + len(members) // 32
            covering = (rest,) if place is spot.place else (rest, keyword)
            if self.steps <= 0 or any(self.index.below(place, one) is not None for one in covering):
                return {}
            members = {key: member for key, member in members.items() if not self.covers(place, key, member)}
        return members if self.steps > 0 else {}

    def covers(self, place: SchemaPlace, key: str | int, member: Any) -> bool:
        """Whether *place*, which accepts the value, judges the member itself."""
        if isinstance(key, str):
            return bool(self.places_of(place, key))
        by_number, _ = self.subschemas.item_keywords(place)
        if self.index.below(place, by_number, key) is not None:
            return True
        # Since 2020-12 the items that `contains` finds count as covered.
        sought = self.index.below(place, "contains") if by_number == "prefixItems" else None
        return sought is not None and self.judge(sought)(member)

    def applied(self, spot: _Spot) -> list[SchemaPlace]:
        """Return the place and all that it applies to the same value and that accept it, except below `not`."""
        places = [spot.place]
        seen = {spot.place.at}
        for one in places:  # grows during the loop
            choices = self.subschemas.branches(one, "anyOf") + self.subschemas.branches(one, "oneOf")
            for other in (*self.in_place(one, spot.value), *choices, self.index.below(one, "if")):
                if other is not None and other.at not in seen and self.steps > 0 and self.fits(other, spot.value):
                    seen.add(other.at)
                    places.append(other)
        return places


# Keywords without subschemas, in the order of the report. After one of the first three the others are noise.
_DECISIVE: Final = ("type", "const", "enum")
_SIMPLE: Final = (
    *("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"),
    *("pattern", "format", "contentEncoding", "contentMediaType", "minItems", "maxItems", "uniqueItems"),
    *("minProperties", "maxProperties"),
)

_BESIDE: Final = {
    "minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum", "contentMediaType": "contentEncoding"
}  # fmt: skip
"""Keywords that change what another one beside them asks for."""

_APPLYING: Final[tuple[tuple[tuple[str, ...], Callable[[_Walk, _Spot], None]], ...]] = (
    (("required", "dependentRequired", "dependencies"), _Walk.check_required),
    (("properties", "patternProperties", "additionalProperties", "propertyNames"), _Walk.check_members),
    (("items", "prefixItems", "additionalItems"), _Walk.check_items),
    (("contains",), _Walk.check_contains),
    (("$ref", "$dynamicRef", "$recursiveRef", "allOf", "if", "dependentSchemas", "dependencies"), _Walk.check_in_place),
    (("anyOf", "oneOf"), _Walk.check_choice),
    (("not",), _Walk.check_not),
)
_SAID: Final = (
    *("unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef", *_DECISIVE, *_SIMPLE),
    *(keyword for keywords, _ in _APPLYING for keyword in keywords),
)
"""Keywords to name, in this order, if a refusal stays unexplained: first those with the least exact explanation."""


# ── what tells branches apart ─────────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class _Traits:
    """What distinguishes a schema from others."""

    place: SchemaPlace
    types: frozenset[str] | None = None
    """The accepted types; None for any."""
    fixed: dict[str, list[Any]] = field(default_factory=dict)
    """Properties that may have only these scalars. They distinguish one kind of object from another."""
    required: list[str] = field(default_factory=list)
    """Required properties."""
    looked: int = 0
    """How many properties were read."""

    def takes_type(self, value: Any) -> bool:
        """Whether a value of the JSON type of *value* could be valid."""
        return self.types is None or not self.types.isdisjoint(_types(value))

    def score(self, value: dict[str, Any]) -> tuple[int, int]:
        """Return how many of the fixed properties have another value in *value*, and minus how many have theirs."""
        right = [_is_one_of(value[key], values) for key, values in self.fixed.items() if key in value]
        return right.count(False), -right.count(True)


def _telling(branches: Sequence[_Traits]) -> str | None:
    """Return a property that tells *branches* apart: every one fixes it, but not all to the same value."""
    for key, first in branches[0].fixed.items() if branches else ():
        if all(key in one.fixed for one in branches) and any(one.fixed[key] != first for one in branches):
            return key
    return None


def _likely(branches: list[_Traits], telling: str | None, value: dict[str, Any]) -> list[_Traits]:
    """Return the *branches* that the properties of *value* point to; [] if its *telling* one is wrong or missing."""
    if telling is not None and telling in value:
        branches = [branch for branch in branches if _is_one_of(value[telling], branch.fixed[telling])]
    scores = [branch.score(value) for branch in branches]
    best = min(scores, default=None)
    branches = [branch for branch, score in zip(branches, scores, strict=True) if score == best]
    if len(branches) > 1 and best == (0, 0) and telling is not None:
        # The property is missing. If only some branches require it, the others are meant.
        free = [branch for branch in branches if telling not in branch.required]
        branches = free if len(free) < len(branches) else []
    return [branch for branch in branches if branch.required and value.keys() >= set(branch.required)] or branches


def _whose(key: str, branches: Sequence[_Traits]) -> str:
    values: list[Any] = []
    for one in branches:
        values += [value for value in one.fixed.get(key, ()) if not _is_one_of(value, values[:64])]
    return f"an object whose {name(key)} is {one_of(values)}"


def _is_one_of(value: Any, scalars: Sequence[Any]) -> bool:
    """Whether *value* equals one of *scalars* in JSON: 1 is 1.0, but true is not 1."""
    return any(isinstance(value, bool) == isinstance(one, bool) and value == one for one in scalars)


def _types(value: Any) -> frozenset[str]:
    if isinstance(value, bool):
        return frozenset({"boolean"})
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return frozenset({"integer", "number"})
    names: dict[type, str] = {float: "number", str: "string", list: "array", dict: "object"}
    return frozenset({names.get(type(value), "null")})


def _only_values(schema: Any) -> list[Any]:
    """Return the values that `const` or `enum` allows in *schema*, [] without either."""
    if not isinstance(schema, dict):
        return []
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    return values if isinstance(values, list) else []


# ── the schema, and the questions to the engine ───────────────────────────────────────────────────────────────────────

_HELD: Final = 20_000
"""The size of all cached validators together, in subschemas of about 1.7 kB each: at most about 30 MB."""

_NESTED: Final = 8
"""References and `allOf` that are followed to describe a branch; deeper ones decide nothing in practice."""

_PROPERTIES: Final = 512
"""Properties that are read to describe a branch. The largest known object has fewer than 200."""

_VALUES: Final = 64
"""Values that a property may have and still distinguish one branch from another."""

_BRANCHES: Final = 64
"""Branches that are read if a branch is itself a choice. The largest choice of the official schema has 17."""

_ANNOTATIONS: Final = frozenset(
    {"title", "description", "$comment", "default", "examples", "deprecated", "readOnly", "writeOnly"}
)
_SILENT: Final = _ANNOTATIONS | {"$ref", "$schema", "$defs", "definitions"}
"""Keywords that judge nothing beside a reference."""
_CHOICE: Final = _ANNOTATIONS | {"anyOf", "oneOf", "discriminator"}
"""Keywords of a place that is only a choice."""
_APART: Final = frozenset({"$defs", "definitions", "contentSchema"})
"""Keywords whose subschemas do not judge."""


class Subschemas:
    """
    The subschemas of one document: how each is described, and a validator for each.

    A validator is compiled when the first question comes. Compiling all of them at once (`validator_map_for`) takes
    31 ms and 15 MB for the official schema, and 77 MB for 600 subschemas that refer to each other; a validator that
    refers into a shared registry takes 10 to 700 µs.
    """

    __slots__ = ("_held", "_judges", "_options", "_registry", "_sizes", "_traits", "_uri", "index", "root")

    index: SchemaIndex
    root: SchemaPlace | None
    """The place that judges; None if the document cannot be indexed."""

    def __init__(self, document: Schema, entry: str, options: Options) -> None:
        """*entry* is the pointer of the place that judges."""
        self.index, self._uri, self._registry = _known(document, entry)
        self.root = self.index.places.get(entry)
        self._options = options
        self._judges: dict[tuple[str, str], Judge] = {}
        self._held = 0
        self._sizes: dict[str, int] = {}
        self._traits: dict[str, _Traits] = {}

    def settled(self, place: SchemaPlace) -> SchemaPlace:
        """Return the target of *place* if it is only a reference, else *place* itself."""
        for _ in range(64):
            schema = place.schema
            if not isinstance(schema, dict) or "$ref" not in schema:
                break
            if not self.index.draft.lone_reference and not _SILENT.issuperset(schema):
                break
            place = next(iter(self.targets(place)), place)
        return place

    def targets(self, place: SchemaPlace) -> list[SchemaPlace]:
        """Return where the references of *place* lead to."""
        targets = [self.index.referred(place, reference) for _, reference in self.index.references(place)]
        return [target for target in targets if target is not None]

    def branches(self, place: SchemaPlace, keyword: str) -> list[SchemaPlace]:
        """Return the subschemas in the array under *keyword*."""
        schemas = place.schema.get(keyword) if isinstance(place.schema, dict) else None
        numbers = range(len(schemas) if isinstance(schemas, list) else 0)
        branches = [self.index.below(place, keyword, number) for number in numbers]
        return [branch for branch in branches if branch is not None]

    def item_keywords(self, place: SchemaPlace) -> tuple[str, str]:
        """Return the keyword for items by number, and the one for the rest: 2020-12 renamed them."""
        if "prefixItems" in self.index.draft.many:
            return "prefixItems", "items"
        by_number = isinstance(place.schema, dict) and isinstance(place.schema.get("items"), list)
        return "items", "additionalItems" if by_number else "items"

    def leaves(self, branches: Sequence[SchemaPlace]) -> list[_Traits]:
        """Return the traits of *branches*, each one that is only a choice replaced by its own branches."""
        leaves: list[SchemaPlace] = []
        waiting = list(reversed(branches))
        while waiting:
            place = self.settled(waiting.pop())
            schema = place.schema if len(leaves) + len(waiting) < _BRANCHES else True
            if isinstance(schema, dict) and ("anyOf" in schema) != ("oneOf" in schema) and _CHOICE.issuperset(schema):
                waiting.extend(reversed(self.branches(place, "anyOf" if "anyOf" in schema else "oneOf")))
            else:
                leaves.append(place)
        return [self.traits(leaf) for leaf in leaves[:_BRANCHES]]

    def takes_type(self, place: SchemaPlace, keyword: str, value: Any) -> bool:
        """Return whether a value of the JSON type of *value*, which *keyword* of *place* refuses, could fit there."""
        if keyword == "type" or not self.traits(place).takes_type(value):
            return False
        if keyword not in ("anyOf", "oneOf"):
            return True
        return any(leaf.takes_type(value) for leaf in self.leaves(self.branches(place, keyword)))

    def forms(self, branches: Sequence[_Traits]) -> str:
        """Describe what *branches* accept together."""
        values = [_only_values(branch.place.schema) for branch in branches]
        if all(values):
            return one_of([value for some in values for value in some])
        telling = _telling(branches) if all(branch.types == frozenset({"object"}) for branch in branches) else None
        if telling is not None:
            return _whose(telling, branches)
        return listed(list(dict.fromkeys(self.described(branch.place) for branch in branches)), None, "or")

    def described(self, place: SchemaPlace) -> str:
        """Describe in a few words what *place* accepts."""
        place = self.settled(place)
        schema, traits = place.schema, self.traits(place)
        values = _only_values(schema)
        if traits.types is not None and traits.types <= {"object"} and not values:
            if traits.fixed:
                return _whose(next(iter(traits.fixed)), [traits])
            if traits.required:
                return f"an object with {listed([name(key) for key in traits.required])}"
        if not types_of(schema) and traits.types and not values:
            return kinds(sorted(traits.types))
        return wanted(schema) or f"a value that fits the schema at {as_fragment(place.at)[:60]}"

    def traits(self, place: SchemaPlace) -> _Traits:
        """Return the traits of *place*, its references and `allOf` included."""
        place = self.settled(place)
        traits = self._traits.get(place.at)
        if traits is None:
            traits = self._traits[place.at] = _Traits(place)
            self._collect(place, traits, _NESTED, set())
        return traits

    def _collect(self, place: SchemaPlace, traits: _Traits, depth: int, seen: set[str]) -> None:
        place = self.settled(place)
        schema = place.schema
        # A second visit adds nothing: without this check a chain of doubled references doubles the work.
        if not isinstance(schema, dict) or not depth or place.at in seen:
            return
        seen.add(place.at)
        types = frozenset(types_of(schema)) or frozenset().union(*map(_types, _only_values(schema)))
        if types:
            traits.types = types if traits.types is None else (traits.types & types) or types
        for key in islice(_members(schema, "properties"), _PROPERTIES - traits.looked):
            traits.looked += 1
            below = self.index.below(place, "properties", key)
            values = _only_values(self.settled(below).schema) if below is not None else []
            if 0 < len(values) <= _VALUES and not any(isinstance(value, dict | list) for value in values):
                traits.fixed.setdefault(key, values)
        traits.required += _texts(schema.get("required"))
        for called in [*self.targets(place), *self.branches(place, "allOf")][:_NESTED]:
            self._collect(called, traits, depth - 1, seen)

    def judge(self, place: SchemaPlace) -> tuple[Judge, int]:
        """Return the judge for *place*, and the size of what had to be compiled for it."""
        place = self.settled(place)
        if (place.at, "") in self._judges:
            return self._judges[place.at, ""], 0
        return self.judge_of((place.at, ""), {"$ref": self._uri + as_fragment(place.at)}, self._reach(place))

    def judge_of(self, key: tuple[str, str], schema: dict[str, Any], size: int = 0) -> tuple[Judge, int]:
        """Return the judge for *schema*, cached by *key*, and the *size* of what had to be compiled for it."""
        judge = self._judges.get(key)
        if judge is not None:
            return judge, 0
        size = size or _size(schema)
        self._held += size
        if self._held > _HELD:
            self._judges.clear()
            self._held = size
        try:
            whole = {"$schema": self.index.draft.uri, **schema}
            judge = jsonschema_rs.validator_for(whole, registry=self._registry, **self._options).is_valid
        except ValueError:
            # The whole document did compile. A part that does not compile alone is left out of the explanation.
            judge = jsonschema_rs.validator_for(True).is_valid
        self._judges[key] = judge
        return judge, size

    def _reach(self, place: SchemaPlace) -> int:
        """Return the size of all subschemas that can take part in judging by *place*."""
        seen = {place.at}
        waiting = [place]
        size = 0
        for one in waiting:  # grows during the loop
            if one.at not in self._sizes:
                self._sizes[one.at] = _size(one.schema)
            size += self._sizes[one.at]
            inside = [below for keyword, _, below in self.index.inside(one) if keyword not in _APART]
            for other in inside + self.targets(one):
                if other.at not in seen:
                    seen.add(other.at)
                    waiting.append(other)
        return size


_VALUES_OF: Final = ("enum", "const", "required")
"""Keywords whose values a validator has copies of, which take some 20 times their text."""


_COUNT: Final = re.compile(r"(\)?)\{([0-9]{0,5})(?:,([0-9]{0,5}))?\}")


def _copies(pattern: str) -> int:
    """Return about how many copies of a character a compiled *pattern* has: ``.{0,900}`` takes 1.5 MB."""
    copies = 1
    for group, least, most in _COUNT.findall(pattern):
        times = int(most or least or 1)
        copies = min(copies * times if group else copies + times, _HELD)
    return copies


def _size(schema: Any) -> int:
    """Return how many ordinary subschemas a compiled one counts for, without those inside: they take 1.7 kB each."""
    if not isinstance(schema, dict):
        return 1
    values = [schema[each] for each in _VALUES_OF if isinstance(schema.get(each), list | dict | str)]
    patterns = [schema.get("pattern"), *_members(schema, "patternProperties")]
    states = sum(_copies(each) for each in patterns if isinstance(each, str))
    try:
        return 1 + states + (len(orjson.dumps(values)) >> 7)
    except orjson.JSONEncodeError:
        # An integer beyond 64 bits.
        return 1 + states + (len(repr(values)) >> 7)


_LATELY: dict[int, tuple[SchemaIndex, str, jsonschema_rs.Registry]] = {}
"""The documents of the last questions, by identity: the many parts of the protocol's schema share one index."""


def _known(document: Schema, entry: str) -> tuple[SchemaIndex, str, jsonschema_rs.Registry]:
    """Return the index of *document*, which is empty if it cannot be indexed; its URI; and a registry that has it."""
    known = _LATELY.get(id(document))
    if known is not None and entry in known[0].places:
        return known
    index = indexed(document, entry=entry)
    if isinstance(index, SchemaRefusal):
        return SchemaIndex(document, DRAFT_2020_12, ""), *registered(document)
    while len(_LATELY) >= 4:
        _LATELY.pop(next(iter(_LATELY)), None)
    # The index holds the document, so no other one gets its identity meanwhile.
    _LATELY[id(document)] = known = (index, *registered(document))
    return known


_LONGEST: Final = 2_000
"""Characters of a pointer that are kept: a finding shows half of them, and a peer chose the keys."""


def _below(at: str, key: str | int) -> str:
    """Return the pointer of the member *key* of what is at *at*."""
    return f"{at[:_LONGEST]}/{key if isinstance(key, int) else escaped(key[:_LONGEST])}"


def _texts(value: Any) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _members(schema: Schema, keyword: str) -> dict[str, Any]:
    members = schema.get(keyword) if isinstance(schema, dict) else None
    return members if isinstance(members, dict) else {}
