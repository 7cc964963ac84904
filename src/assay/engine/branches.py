"""
Finds the branch of `anyOf` or `oneOf` that an instance was meant for, and describes the branches if that is unclear.

Reads schemas only, never asks the engine: first the type, then the properties whose values distinguish the branches.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from assay.engine.judges import Judges
from assay.engine.pointers import as_fragment
from assay.engine.schema_index import SchemaPlace
from assay.engine.wording import found, kinds, listed, name, one_of, shown, types_of, wanted

_NESTED = 8
"""References and `allOf` that are followed to describe a branch; deeper ones decide nothing in practice."""

_PROPERTIES = 512
"""Properties that are read to describe a branch. The largest known object has fewer than 200."""

_VALUES = 64
"""Values that a property may have and still distinguish one branch from another."""

_BRANCHES = 64
"""Branches that are read if a branch is itself a choice. The largest choice of the official schema has 17."""

_CHOICE = frozenset({"anyOf", "oneOf", "title", "description", "$comment", "examples", "default", "discriminator"})


@dataclass(slots=True)
class Traits:
    """The properties of a schema that distinguish it from others."""

    types: frozenset[str] | None = None
    """The accepted types; None for any."""
    fixed: dict[str, list[Any]] = field(default_factory=dict)
    """Properties that may have only these scalars. They distinguish one kind of object from another."""
    required: list[str] = field(default_factory=list)
    """Required properties."""
    looked: int = 0
    """How many properties were read."""


class Misfit(NamedTuple):
    """Why a value fits no branch."""

    expected: str
    found: str


class Branches:
    """The branches of one document."""

    __slots__ = ("_judges",)

    def __init__(self, judges: Judges) -> None:
        self._judges = judges

    def likely(self, branches: Sequence[SchemaPlace], value: Any) -> list[SchemaPlace] | Misfit:
        """Return the branches that *value* may be meant for, or why it fits none of them."""
        leaves = self._leaves(branches)
        fitting = [leaf for leaf in leaves if _type_fits(self.traits(leaf).types, value)]
        if not fitting:
            return Misfit(self.forms(leaves), found(value))
        if len(fitting) == 1 or not isinstance(value, dict):
            return fitting
        likely = self._by_fixed(fitting, value)
        return likely if isinstance(likely, Misfit) else self._by_required(likely, value)

    def takes_type(self, place: SchemaPlace, keyword: str, value: Any) -> bool:
        """Return whether a value of the JSON type of *value*, which *keyword* of *place* refuses, could fit there."""
        if keyword == "type" or not _type_fits(self.traits(place).types, value):
            return False
        outline = self._judges.outline
        if keyword not in ("anyOf", "oneOf") or outline is None:
            return True
        branches = [below for other, _, below in outline.inside(place) if other == keyword]
        return any(_type_fits(self.traits(leaf).types, value) for leaf in self._leaves(branches))

    def forms(self, branches: Sequence[SchemaPlace]) -> str:
        """Describe what *branches* accept together."""
        leaves = self._leaves(branches)
        traits = [self.traits(leaf) for leaf in leaves]
        values = [_only_values(leaf.schema) for leaf in leaves]
        if all(values):
            return one_of([value for some in values for value in some])
        if all(one.types == frozenset({"object"}) for one in traits):
            telling = _telling(traits)
            if telling is not None:
                return _whose(telling, traits)
        words = list(dict.fromkeys(self.described(leaf) for leaf in leaves))
        return listed(words, None, "or")

    def described(self, place: SchemaPlace) -> str:
        """Describe in a few words what *place* accepts."""
        place = self._judges.settled(place)
        traits = self.traits(place)
        if traits.types is not None and traits.types <= {"object"} and "const" not in _keys(place.schema):
            if traits.fixed:
                return _whose(next(iter(traits.fixed)), [traits])
            if traits.required:
                return f"an object with {listed([name(key) for key in traits.required])}"
        if not types_of(place.schema) and traits.types and not _only_values(place.schema):
            return kinds(sorted(traits.types))
        return wanted(place.schema) or f"a value that fits the schema at {as_fragment(place.at)[:60]}"

    def traits(self, place: SchemaPlace) -> Traits:
        """Return the traits of *place*, its references and `allOf` included."""
        place = self._judges.settled(place)
        traits = self._judges.kept.get(place.at)
        if not isinstance(traits, Traits):
            traits = self._judges.kept[place.at] = Traits()
            self._collect(place, traits, _NESTED, set())
        return traits

    def _collect(self, place: SchemaPlace, traits: Traits, depth: int, seen: set[str]) -> None:
        place = self._judges.settled(place)
        schema, outline = place.schema, self._judges.outline
        # A second visit adds nothing: without this check a chain of doubled references doubles the work.
        if not isinstance(schema, dict) or outline is None or not depth or place.at in seen:
            return
        seen.add(place.at)
        types = frozenset(types_of(schema)) or _types_of_values(_only_values(schema))
        if types:
            traits.types = types if traits.types is None else (traits.types & types) or types
        for key, property_schema in _items(schema.get("properties"))[: _PROPERTIES - traits.looked]:
            traits.looked += 1
            below = outline.below(place, "properties", key)
            values = _only_values(self._judges.settled(below).schema if below is not None else property_schema)
            if 0 < len(values) <= _VALUES and not any(isinstance(value, dict | list) for value in values):
                traits.fixed.setdefault(key, values)
        needs = schema.get("required")
        traits.required += [key for key in needs if isinstance(key, str)] if isinstance(needs, list) else []
        calls = [outline.referred(place, reference) for _, reference in outline.references(place)]
        calls += [below for keyword, _, below in outline.inside(place) if keyword == "allOf"]
        for called in calls[:_NESTED]:
            if called is not None:
                self._collect(called, traits, depth - 1, seen)

    def _leaves(self, branches: Sequence[SchemaPlace]) -> list[SchemaPlace]:
        """Return the branches, with each one that is only a choice replaced by its own branches."""
        outline = self._judges.outline
        leaves: list[SchemaPlace] = []
        waiting = list(reversed(branches))
        while waiting and outline is not None and len(leaves) + len(waiting) <= _BRANCHES:
            place = self._judges.settled(waiting.pop())
            schema = place.schema
            if isinstance(schema, dict) and ("anyOf" in schema) != ("oneOf" in schema) and _CHOICE.issuperset(schema):
                waiting.extend(reversed([below for _, _, below in outline.inside(place)]))
            else:
                leaves.append(place)
        return leaves + [self._judges.settled(place) for place in reversed(waiting)][: _BRANCHES - len(leaves)]

    def _by_fixed(self, fitting: list[SchemaPlace], value: dict[str, Any]) -> list[SchemaPlace] | Misfit:
        traits = [self.traits(place) for place in fitting]
        scores = [_score(one.fixed, value) for one in traits]
        right = [(matches, place) for place, (matches, misses) in zip(fitting, scores, strict=True) if not misses]
        if right:
            best = max(matches for matches, _ in right)
            telling = _telling(traits)
            if best == 0 and len(right) > 1 and telling is not None:
                # If the property is absent and only some branches require it, the others are meant.
                free = [place for _, place in right if telling not in self.traits(place).required]
                return free if 0 < len(free) < len(right) else Misfit(_whose(telling, traits), found(value))
            return [place for matches, place in right if matches == best]
        telling = _telling([one for one in traits if any(key in value for key in one.fixed)])
        if telling is not None and telling in value:
            return Misfit(_whose(telling, traits), f"one whose {name(telling)} is {_bare(value[telling])}")
        fewest = min(misses for _, misses in scores)
        return [place for place, (_, misses) in zip(fitting, scores, strict=True) if misses == fewest]

    def _by_required(self, likely: list[SchemaPlace], value: dict[str, Any]) -> list[SchemaPlace]:
        """Return those of the *likely* branches whose required properties *value* has; all of them if it has none."""
        needs = [self.traits(place).required for place in likely]
        whole = [
            place
            for place, needed in zip(likely, needs, strict=True)
            if needed and all(map(value.__contains__, needed))
        ]
        return whole or likely


def same(one: Any, other: Any) -> bool:
    """Whether two scalars are equal in JSON: 1 is 1.0, but true is not 1."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _score(fixed: dict[str, list[Any]], value: dict[str, Any]) -> tuple[int, int]:
    """Return how many of the *fixed* properties have one of their values in *value*, and how many another value."""
    verdicts = [any(same(value[key], one) for one in values) for key, values in fixed.items() if key in value]
    return sum(verdicts), len(verdicts) - sum(verdicts)


def _telling(traits: Sequence[Traits]) -> str | None:
    """Return a property that every branch fixes, but not all to the same value."""
    if len(traits) < 2:
        return None
    for key, first in traits[0].fixed.items():
        if all(key in one.fixed for one in traits) and any(one.fixed[key] != first for one in traits):
            return key
    return None


def _whose(key: str, traits: Sequence[Traits]) -> str:
    values: list[Any] = []
    for one in traits:
        values += [value for value in one.fixed.get(key, ()) if not any(same(value, seen) for seen in values[:64])]
    return f"an object whose {name(key)} is {one_of(values)}"


def _bare(value: Any) -> str:
    return shown(value) if isinstance(value, str) else found(value)


def _type_fits(types: frozenset[str] | None, value: Any) -> bool:
    return types is None or not types.isdisjoint(_types(value))


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
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    return list(values) if isinstance(values, list) else []


def _types_of_values(values: list[Any]) -> frozenset[str]:
    return frozenset().union(*map(_types, values))


def _items(value: Any) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, dict) else []


def _keys(schema: Any) -> frozenset[str]:
    return frozenset(schema) if isinstance(schema, dict) else frozenset()
