"""Explains the refusal of each keyword. Every function here reads one spot and changes only the walk."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from assay.engine.branches import Misfit
from assay.engine.judges import covered_items, covered_names
from assay.engine.pointers import escaped
from assay.engine.schema_index import SchemaPlace
from assay.engine.wording import counted, found, listed, name

if TYPE_CHECKING:
    from assay.engine.explain import Spot, Walk

Check = Callable[["Walk", "Spot"], None]

TRIALS = 6
"""Branches that are tried out if neither type nor discriminator decides; more are only described."""

# Keywords without subschemas, in the order of the report. After one of the first three the others are noise.
DECISIVE = ("type", "const", "enum")
SIMPLE = (
    *("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"),
    *("pattern", "format", "contentEncoding", "contentMediaType", "minItems", "maxItems", "uniqueItems"),
    *("minProperties", "maxProperties"),
)


def check_required(walk: "Walk", spot: "Spot") -> None:
    """Report a missing property at the object that lacks it."""
    if not isinstance(spot.value, dict):
        return
    for key in _names(spot.schema.get("required")):
        if key not in spot.value:
            walk.add(spot, "required", f"the property {name(key)}", found(spot.value))
    for keyword in ("dependentRequired", "dependencies"):
        for cause, keys in _entries(spot.schema.get(keyword)):
            for key in _names(keys) if cause in spot.value else ():
                if key not in spot.value:
                    wants = f"the property {name(key)}, which {name(cause)} requires"
                    walk.add(spot, keyword, wants, found(spot.value), key=cause)


def check_members(walk: "Walk", spot: "Spot") -> None:
    """Check properties in the order of the instance, each by all subschemas that apply to it."""
    if not isinstance(spot.value, dict):
        return
    names = walk.outline.below(spot.place, "propertyNames")
    for number, (key, member) in enumerate(spot.value.items()):
        walk.steps -= number % 32 == 31
        if walk.steps <= 0:
            return
        at = f"{spot.at}/{escaped(key)}"
        if names is not None and not walk.fits(names, key):
            wants = f"a property name that is {walk.branches.described(names)}"
            walk.add(spot, "propertyNames", wants, f"the name {name(key)}", at=at)
        speaking = _speaking(walk, spot, key)
        for place in speaking:
            walk.check(place, member, at)
        if not speaking:
            _check_other(walk, spot, key, member, at)


def _speaking(walk: "Walk", spot: "Spot", key: str) -> list[SchemaPlace]:
    """Return the places under `properties` and `patternProperties` that apply to the property *key*."""
    places = [walk.outline.below(spot.place, "properties", key)] if key in _names_of(spot.schema, "properties") else []
    for pattern in _names_of(spot.schema, "patternProperties"):
        walk.steps -= 1
        if walk.steps <= 0:
            break
        if walk.judges.pattern(pattern)(key):
            places.append(walk.outline.below(spot.place, "patternProperties", pattern))
    return [place for place in places if place is not None]


def _check_other(walk: "Walk", spot: "Spot", key: str, member: Any, at: str) -> None:
    place = walk.outline.below(spot.place, "additionalProperties")
    if place is None or place.schema is not False:
        walk.check(place, member, at)
        return
    known = _names_of(spot.schema, "properties")
    first = [name(one) for one, _ in zip(known, range(5), strict=False)]
    wants = f"no property but {listed(first, len(known))}" if known else "no property with this name"
    walk.add(spot, "additionalProperties", wants, f"the property {name(key)}", at=at)


def check_items(walk: "Walk", spot: "Spot") -> None:
    """Check items by number first, then the rest by the subschema for the rest."""
    if not isinstance(spot.value, list):
        return
    by_number, of_rest = _item_keywords(walk, spot)
    fixed = len(spot.schema[by_number]) if isinstance(spot.schema.get(by_number), list) else 0
    for number, item in enumerate(spot.value[:fixed]):
        walk.check(walk.outline.below(spot.place, by_number, number), item, f"{spot.at}/{number}")
    rest = walk.outline.below(spot.place, of_rest)
    if rest is None or len(spot.value) <= fixed:
        return
    if rest.schema is False:
        walk.add(spot, of_rest, f"at most {counted(fixed, 'item')}", found(spot.value))
    elif walk.steps > 0:
        _check_rest(walk, spot, rest, fixed)


def _item_keywords(walk: "Walk", spot: "Spot") -> tuple[str, str]:
    """Return the keyword for items by number, and the one for the rest: 2020-12 renamed them."""
    if "prefixItems" in walk.outline.draft.many:
        return "prefixItems", "items"
    return ("items", "additionalItems") if isinstance(spot.schema.get("items"), list) else ("", "items")


def _check_rest(walk: "Walk", spot: "Spot", rest: SchemaPlace, fixed: int) -> None:
    walk.fits(rest, spot.value[fixed])  # pays for the validator, if it has to be compiled
    fits, _ = walk.judges.of(rest)
    for number in range(fixed, len(spot.value)):
        walk.steps -= number % 128 == 127
        if walk.steps <= 0:
            return
        if not fits(spot.value[number]):
            walk.into(rest, spot.value[number], f"{spot.at}/{number}")


def check_contains(walk: "Walk", spot: "Spot") -> None:
    """Report a wrong number of matching items at the array, not at any one item."""
    sought = walk.outline.below(spot.place, "contains")
    if sought is None or not isinstance(spot.value, list):
        return
    bounds = spot.schema if not walk.outline.draft.lone_reference else {}  # both are newer than draft 7
    least, most = bounds.get("minContains", 1), bounds.get("maxContains")
    fits, _ = walk.judges.of(sought)
    walk.steps -= 1 + len(spot.value) // 32
    matches = sum(map(fits, spot.value))
    kind = walk.branches.described(sought)
    if matches < least:
        keyword = "minContains" if "minContains" in bounds else "contains"
        wants = f"at least {counted(least, 'item')} that is {kind}"
        walk.add(spot, keyword, wants, f"{matches} of {len(spot.value)}")
    elif most is not None and matches > most:
        wants = f"at most {counted(most, 'item')} that is {kind}"
        walk.add(spot, "maxContains", wants, f"{matches} of {len(spot.value)}")


def check_all_of(walk: "Walk", spot: "Spot") -> None:
    """Explain every branch that refuses the value."""
    for branch in _branches(walk, spot, "allOf"):
        walk.check(branch, spot.value, spot.at)


def check_choice(walk: "Walk", spot: "Spot") -> None:
    """Report that no branch accepts the value, or that too many do."""
    for keyword in ("anyOf", "oneOf"):
        branches = _branches(walk, spot, keyword)
        matching = [branch for branch in branches if walk.steps > 0 and walk.fits(branch, spot.value)]
        if len(matching) > 1 and keyword == "oneOf":
            wants = f"exactly one of: {walk.branches.forms(matching)}"
            walk.add(spot, keyword, wants, f"{found(spot.value)}, which fits {len(matching)} of them")
        elif branches and not matching and walk.steps > 0:
            _check_branches(walk, spot, keyword, branches)


def _check_branches(walk: "Walk", spot: "Spot", keyword: str, branches: list[SchemaPlace]) -> None:
    """Explain the branch that was meant, if that is clear; else describe the branches."""
    likely = walk.branches.likely(branches, spot.value)
    if isinstance(likely, Misfit):
        walk.add(spot, keyword, likely.expected, likely.found)
        return
    if 1 < len(likely) <= TRIALS and not walk.trial:
        counts = [walk.tried(branch, spot.value) for branch in likely]
        likely = [branch for branch, count in zip(likely, counts, strict=True) if count == min(counts)]
    if len(likely) == 1:
        walk.into(likely[0], spot.value, spot.at)
    else:
        walk.add(spot, keyword, walk.branches.forms(likely), found(spot.value))


def check_not(walk: "Walk", spot: "Spot") -> None:
    """Report that the value is valid by a schema that must refuse it."""
    refused = walk.outline.below(spot.place, "not")
    if refused is not None and walk.fits(refused, spot.value):
        nothing = refused.schema in ({}, True)
        expected = "nothing here" if nothing else f"anything but {walk.branches.described(refused)}"
        walk.add(spot, "not", expected, found(spot.value))


def check_if(walk: "Walk", spot: "Spot") -> None:
    """Explain what follows from the condition; the condition itself is never at fault."""
    condition = walk.outline.below(spot.place, "if")
    if condition is not None:
        outcome = "then" if walk.fits(condition, spot.value) else "else"
        walk.check(walk.outline.below(spot.place, outcome), spot.value, spot.at)


def check_dependent(walk: "Walk", spot: "Spot") -> None:
    """Check the schemas that apply to the whole object if it has a certain property."""
    if isinstance(spot.value, dict):
        for keyword in ("dependentSchemas", "dependencies"):
            for cause in _names_of(spot.schema, keyword):
                if cause in spot.value:
                    walk.check(walk.outline.below(spot.place, keyword, cause), spot.value, spot.at)


def check_referred(walk: "Walk", spot: "Spot") -> None:
    """Follow references. A dynamic one is resolved as if it were static; if that is wrong, nothing is reported."""
    for _, reference in walk.outline.references(spot.place):
        walk.check(walk.outline.referred(spot.place, reference), spot.value, spot.at)


def check_unevaluated(walk: "Walk", spot: "Spot") -> None:
    """Report members that no other keyword covers and that are forbidden or invalid."""
    if not isinstance(spot.value, dict | list) or walk.steps <= 0:
        return
    keyword = "unevaluatedProperties" if isinstance(spot.value, dict) else "unevaluatedItems"
    place = walk.outline.below(spot.place, keyword)
    for key, member in _uncovered(walk, spot) if place is not None else ():
        at = f"{spot.at}/{escaped(str(key))}"
        if place is None or place.schema is not False:
            walk.check(place, member, at)
        else:
            has = f"the property {name(key)}" if isinstance(key, str) else found(member)
            walk.add(spot, keyword, "nothing beyond the schema", has, at=at)
        if walk.steps <= 0:
            return


def _uncovered(walk: "Walk", spot: "Spot") -> Iterator[tuple[str | int, Any]]:
    if isinstance(spot.value, dict):
        names = covered_names(walk, spot.place, spot.value)
        return ((key, member) for key, member in spot.value.items() if key not in names)
    numbers = covered_items(walk, spot.place, spot.value)
    return ((number, item) for number, item in enumerate(spot.value) if number not in numbers)


def _branches(walk: "Walk", spot: "Spot", keyword: str) -> list[SchemaPlace]:
    branches = spot.schema.get(keyword)
    places = [walk.outline.below(spot.place, keyword, number) for number in range(len(branches or ()))]
    return [place for place in places if place is not None]


def _names(value: Any) -> list[str]:
    return [key for key in value if isinstance(key, str)] if isinstance(value, list) else []


def _names_of(schema: dict[str, Any], keyword: str) -> dict[str, Any]:
    value = schema.get(keyword)
    return value if isinstance(value, dict) else {}


def _entries(value: Any) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, dict) else []


REFERRING: Check = check_referred
APPLYING: tuple[tuple[tuple[str, ...], Check], ...] = (
    (("required", "dependentRequired", "dependencies"), check_required),
    (("properties", "patternProperties", "additionalProperties", "propertyNames"), check_members),
    (("items", "prefixItems", "additionalItems"), check_items),
    (("contains",), check_contains),
    (("$ref", "$dynamicRef", "$recursiveRef"), check_referred),
    (("allOf",), check_all_of),
    (("anyOf", "oneOf"), check_choice),
    (("not",), check_not),
    (("if",), check_if),
    (("dependentSchemas", "dependencies"), check_dependent),
)

SAID = (
    *("unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef", *DECISIVE, *SIMPLE),
    *(keyword for keywords, _ in APPLYING for keyword in keywords),
)
"""Keywords to name, in this order, if a refusal stays unexplained: first those with the least exact explanation."""
