"""
Whether a schema takes what it took before: two of them side by side, in a bounded number of steps. No I/O.

All keywords of a schema must hold at once, so a schema takes everything that it took before if each of them does. Where
that does not settle it, it counts as undecided, never as harmless.

An optional property that an open object has got counts as harmless: a caller that keeps to what was declared has never
sent it.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from assay.engine.dialects import DRAFT_2020_12, Draft, draft_of, subschemas
from assay.engine.pointers import NOWHERE, escaped, from_fragment, looked_up
from assay.engine.wording import wanted
from assay.lock.canonical import canonical_schema, text
from assay.lock.shifts import ABSENT, FATEFUL, OWN, RULES, Schema, Shift, taken_values, undecided, was_is

_STEPS: Final = 20_000
"""Pairs of schemas that are compared at most: those of real tools have hundreds."""

_DEEP: Final = 60
"""Levels, references included."""

_MOST_ALTERNATIVES: Final = 64
"""Alternatives that are compared with each other."""

_READING: Final = FATEFUL - {"$schema", "$id", "x-mcp-header"}
"""Keywords with which a change in one place may do something in another."""

_INSIDE: Final = frozenset(
    {
        "$ref", "$defs", "definitions", "properties", "patternProperties", "additionalProperties", "items",
        "prefixItems", "additionalItems", "propertyNames", "allOf", "anyOf", "oneOf",
    }
)  # fmt: skip

_SPELT: Final = frozenset(
    {
        "not", "if", "then", "else", "contains", "dependentSchemas", "dependencies", "items", "prefixItems",
        "additionalItems",
    }
)  # fmt: skip
"""Keywords that hold schemas and are, or may be, compared as they are spelt."""


def shifts(old: Any, new: Any) -> list[Shift]:
    """The differences between two schemas; none if they say the same."""
    old, new = canonical_schema(old), canonical_schema(new)
    if text(old) == text(new):
        return []
    comparison = _Comparison(old, new)
    try:
        found = [*comparison.compare("", old, new), *comparison.unused()]
    except _TooMuchError:
        return [undecided("", "too much to compare", old, new)]
    if _reads_otherwise(old) or _reads_otherwise(new):
        found = [each if each.wording else each._replace(decided=False) for each in found]
    return found or [undecided("", "something else has changed", old, new)]


class _TooMuchError(Exception):
    """Two schemas that take too many steps."""


class _Comparison:
    """Two documents, and what has been compared in them."""

    def __init__(self, old: Any, new: Any) -> None:
        self._old, self._new = old, new
        self._steps = 0
        self._depth = 0
        self._within: frozenset[str] = frozenset()
        """Places that we are in where it is not all the same which way something shifts."""
        self._met: set[tuple[str, str, frozenset[str]]] = set()
        """Targets of references that were compared there, or are being: a circle says nothing new."""
        self._used: set[str] = set()
        """Targets of references that only one of the two has."""

    def compare(self, at: str, old: Any, new: Any) -> Iterator[Shift]:
        """The differences between two schemas that stand *at* one place."""
        self._steps += 1
        self._depth += 1
        if self._steps > _STEPS or self._depth > _DEEP:
            raise _TooMuchError
        old, new = _as_object(old), _as_object(new)
        if old is None or new is None:
            if old is not new:
                yield Shift(at, "was anything, is nothing" if new is None else "was nothing", old is not None,
                            new is not None, narrows=new is None, widens=old is None)  # fmt: skip
        elif not isinstance(old, dict) or not isinstance(new, dict):
            if text(old) != text(new):
                yield undecided(at, "no schema", old, new)
        elif ("$ref" in old) != ("$ref" in new):
            yield from self._inlined(at, old, new)
        else:
            yield from self._keywords(at, old, new)
        self._depth -= 1

    def _keywords(self, at: str, old: Schema, new: Schema) -> Iterator[Shift]:
        for rule in RULES:
            yield from rule(at, old, new)
        yield from self._references(at, old, new)
        yield from self._referred(at, old, new)
        yield from self._properties(at, old, new)
        yield from self._items(at, old, new)
        if "propertyNames" in old or "propertyNames" in new:
            yield from self.compare(
                f"{at}/propertyNames", old.get("propertyNames", True), new.get("propertyNames", True)
            )
        yield from self._all_of(at, old, new)
        yield from self._any_of(at, old, new)
        yield from self._one_of(at, old, new)
        yield from _said(at, old, new)

    # ── references ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _references(self, at: str, old: Schema, new: Schema) -> Iterator[Shift]:
        if "$ref" not in old:
            return
        was, now = _target(self._old, old["$ref"]), _target(self._new, new["$ref"])
        if was is None or now is None:
            if old["$ref"] != new["$ref"] or was is not now:
                yield undecided(f"{at}/$ref", was_is(old["$ref"], new["$ref"]), old["$ref"], new["$ref"])
        elif (was[0], now[0], self._within) not in self._met:
            self._met.add((was[0], now[0], self._within))
            yield from self.compare(now[0], was[1], now[1])

    def _referred(self, at: str, old: Schema, new: Schema) -> Iterator[Shift]:
        """What is referred to from keywords that are compared as they are spelt."""
        outside, self._within = self._within, self._within | {f"{at}/*"}
        for keyword in sorted(_SPELT & old.keys() & new.keys()):
            if text(old[keyword]) == text(new[keyword]) and (keyword != "items" or not _plain_items(old)):
                for reference in sorted(set(_references(old[keyword]))):
                    found = list(self._references(f"{at}/{keyword}", {"$ref": reference}, {"$ref": reference}))
                    yield from (each if each.wording else each._replace(decided=False) for each in found)
        self._within = outside

    def _inlined(self, at: str, old: Schema, new: Schema) -> Iterator[Shift]:
        """One of the two is a reference: what it leads to is compared, if nothing stands beside it."""
        referring, root = (old, self._old) if "$ref" in old else (new, self._new)
        target = _target(root, referring["$ref"])
        beside = [keyword for keyword in referring if keyword in OWN | FATEFUL | (_INSIDE - {"$ref", "$defs"})]
        if target is None or beside:
            yield undecided(at, "what was written here is referred to, or the other way round", old, new)
        else:
            self._used.add(target[0])
            yield Shift(at, "what was written here is referred to, or the other way round", old, new)
            yield from self.compare(at, *((target[1], new) if referring is old else (old, target[1])))

    def unused(self) -> Iterator[Shift]:
        """Definitions that differ, and that nothing refers to: some reader may still see what they say."""
        for keyword in ("$defs", "definitions"):
            was, now = _member(self._old, keyword), _member(self._new, keyword)
            for name in sorted(was.keys() | now.keys()):
                place = f"/{keyword}/{escaped(name)}"
                before, after = was.get(name, ABSENT), now.get(name, ABSENT)
                met = place in self._used or any(place in (old, new) for old, new, _ in self._met)
                if not met and (before is ABSENT or after is ABSENT or text(before) != text(after)):
                    yield Shift(place, "a definition that nothing refers to", before, after)

    # ── objects and arrays ───────────────────────────────────────────────────────────────────────────────────────────

    def _properties(self, at: str, old: Schema, new: Schema) -> Iterator[Shift]:
        was, now = _member(old, "properties"), _member(new, "properties")
        others = old.get("additionalProperties", True), new.get("additionalProperties", True)
        patterns = _member(old, "patternProperties"), _member(new, "patternProperties")
        for pattern in sorted(patterns[0].keys() & patterns[1].keys()):
            place = f"{at}/patternProperties/{escaped(pattern)}"
            yield from self.compare(place, patterns[0][pattern], patterns[1][pattern])
        if patterns[0].keys() != patterns[1].keys():
            yield undecided(f"{at}/patternProperties", "other patterns", *patterns)
        for name in sorted(was.keys() | now.keys()):
            place = f"{at}/properties/{escaped(name)}"
            if name in was and name in now:
                yield from self.compare(place, was[name], now[name])
            elif patterns[0] or patterns[1]:
                yield undecided(place, "new or gone, where names can match a pattern", was.get(name), now.get(name))
            elif name in now:
                yield from self._new_property(place, others[0], now[name])
            else:
                yield from self._lost_property(place, was[name], others[1])
        if others[0] is not True or others[1] is not True:
            yield from self.compare(f"{at}/additionalProperties", *others)

    def _new_property(self, at: str, others: Any, schema: Any) -> Iterator[Shift]:
        """A property that was one of the *others* before."""
        words = f"new: {wanted(schema) or 'a value'}"
        if _as_object(others) is None:
            yield Shift(at, words, ABSENT, schema, widens=_as_object(schema) is not None)
        elif _as_object(schema) is None:
            yield Shift(at, "may not be given any more", ABSENT, schema, narrows=True)
        elif _as_object(others) == {}:
            yield Shift(at, words, ABSENT, schema, neutral=True)
        else:
            differing = [each for each in self._tried(at, others, schema) if not each.wording]
            narrows = any(each.narrows or not each.decided for each in differing)
            widens = any(each.widens or not each.decided for each in differing)
            yield Shift(at, words, ABSENT, schema, narrows=narrows, widens=widens, neutral=True)

    def _lost_property(self, at: str, schema: Any, others: Any) -> Iterator[Shift]:
        """A property that is one of the *others* from now on."""
        if _as_object(others) is None:
            yield Shift(at, "gone, and no others are allowed", schema, ABSENT, narrows=_as_object(schema) is not None)
        else:
            differing = [each for each in self._tried(at, schema, others) if not each.wording]
            narrows = any(each.narrows or not each.decided for each in differing)
            # Even if it said no more than what holds for the others: whoever reads it looks for it.
            yield Shift(at, f"gone; was {wanted(schema) or 'a value'}", schema, ABSENT, narrows=narrows, widens=True)

    def _items(self, at: str, old: Schema, new: Schema) -> Iterator[Shift]:
        keywords = ("items", "prefixItems", "additionalItems")
        was, now = ({each: one[each] for each in keywords if each in one} for one in (old, new))
        if not was and not now:
            return
        if _plain_items(was) and _plain_items(now):
            yield from self.compare(f"{at}/items", was.get("items", True), now.get("items", True))
        elif text(was) != text(now):
            yield undecided(f"{at}/items", "items that are told apart by their place", was or ABSENT, now or ABSENT)

    # ── alternatives ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _all_of(self, at: str, old: Schema, new: Schema) -> Iterator[Shift]:
        yield from self._alternatives(at, "allOf", old, new, "also asks for", "no longer asks for", both=False)

    def _any_of(self, at: str, old: Schema, new: Schema) -> Iterator[Shift]:
        if "anyOf" in new and "anyOf" not in old and self._has_one_that_takes(new, old):
            yield Shift(f"{at}/anyOf", "has alternatives now", ABSENT, new["anyOf"], widens=True)
        elif "anyOf" in old and "anyOf" not in new and self._has_one_that_takes(old, new, reverse=True):
            yield Shift(f"{at}/anyOf", "has no alternatives any more", old["anyOf"], ABSENT, narrows=True)
        else:
            yield from self._alternatives(at, "anyOf", old, new, "no longer takes", "also takes", both=True)

    def _one_of(self, at: str, old: Schema, new: Schema) -> Iterator[Shift]:
        """Alternatives of which just one must hold are those of which any must, if no two of them ever hold."""
        outside, self._within = self._within, self._within | {f"{at}/oneOf"}
        found = list(self._alternatives(at, "oneOf", old, new, "no longer takes", "also takes", both=True))
        self._within = outside
        apart = not found or (self._apart(old, self._old) and self._apart(new, self._new))
        yield from (each if apart or each.wording else each._replace(decided=False) for each in found)

    def _alternatives(
        self, at: str, keyword: str, old: Schema, new: Schema, narrower: str, wider: str, *, both: bool
    ) -> Iterator[Shift]:
        """
        Schemas of which all must hold, or, with *both*, any: one more of those that must all hold narrows, one more of
        the others widens.
        """
        was, now = old.get(keyword, ABSENT), new.get(keyword, ABSENT)
        if was is ABSENT and now is ABSENT:
            return
        place = f"{at}/{keyword}"
        if was is ABSENT or now is ABSENT:
            yield Shift(place, was_is(was, now), was, now, narrows=was is ABSENT, widens=now is ABSENT)
            return
        if not isinstance(was, list) or not isinstance(now, list):
            yield undecided(place, was_is(was, now), was, now)
            return
        pairs, gone, more = _paired(was, now)
        if len(gone) == len(more):
            pairs, gone, more = (
                [*pairs, *((one, number, now[number]) for one, number in zip(gone, more, strict=True))],
                [],
                [],
            )
        for one, number, other in pairs:
            yield from self.compare(f"{place}/{number}", one, other)
        narrowing, widening = (
            (gone, [now[number] for number in more]) if both else ([now[number] for number in more], gone)
        )
        if narrowing:
            yield Shift(place, f"{narrower} {_schemas(narrowing)}", was, now, narrows=True)
        if widening:
            yield Shift(place, f"{wider} {_schemas(widening)}", was, now, widens=True)

    def _has_one_that_takes(self, alternatives: Schema, other: Schema, *, reverse: bool = False) -> bool:
        """Whether one of the *alternatives* takes everything that *other* does; *reverse*: they were the old ones."""
        given = alternatives["anyOf"]
        rest = {keyword: value for keyword, value in alternatives.items() if keyword != "anyOf"}
        if (
            not isinstance(given, list)
            or len(given) > _MOST_ALTERNATIVES
            or not all(isinstance(one, dict) for one in given)
        ):
            return False
        for one in given:
            if rest.keys() & one.keys() & (OWN | _INSIDE | FATEFUL):
                continue
            whole = {**rest, **one}
            pair = (whole, other) if reverse else (other, whole)
            tried = self._tried("", *pair)
            if all(each.decided and not (each.widens if reverse else each.narrows) for each in tried):
                return True
        return False

    def _tried(self, at: str, old: Any, new: Any) -> list[Shift]:
        """The differences between two schemas that need not be what they are in the document."""
        met = set(self._met)
        found = list(self.compare(at, old, new))
        self._met = met
        return found

    def _apart(self, schema: Schema, root: Any) -> bool:
        """Whether nothing is ever taken by two of the alternatives of *schema*."""
        given = schema.get("oneOf")
        if not isinstance(given, list):
            return True
        if len(given) > _MOST_ALTERNATIVES:
            return False
        each = [_followed(root, one) for one in given]
        return all(_disjoint(one, other) for number, one in enumerate(each) for other in each[:number])


# ── parts of a schema ────────────────────────────────────────────────────────────────────────────────────────────────


def _as_object(schema: Any) -> Any:
    """*schema* without booleans: true asks for nothing, and None is what takes nothing."""
    return {} if schema is True else None if schema is False else schema


def _member(schema: Any, keyword: str) -> dict[str, Any]:
    value = schema.get(keyword) if isinstance(schema, dict) else None
    return value if isinstance(value, dict) else {}


def _plain_items(schema: Schema) -> bool:
    """Whether all items are asked the same."""
    return not isinstance(schema.get("items"), list) and schema.keys().isdisjoint({"prefixItems", "additionalItems"})


def _target(root: Any, reference: Any) -> tuple[str, Any] | None:
    """Where a reference within the document leads: the pointer, and what is there."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    pointer = from_fragment(reference[1:])
    if pointer is None or (pointer and not pointer.startswith("/")):
        return None
    found = looked_up(root, pointer)
    return None if found is NOWHERE else (pointer, found)


def _followed(root: Any, schema: Any) -> Any:
    for _ in range(_DEEP):
        target = _target(root, schema["$ref"]) if isinstance(schema, dict) and "$ref" in schema else None
        if target is None:
            break
        schema = target[1]
    return schema


def _paired(was: Sequence[Any], now: Sequence[Any]) -> tuple[list[tuple[Any, int, Any]], list[Any], list[int]]:
    """Those that are spelt alike, with their number now; those of before without one; the numbers of the new ones."""
    waiting: dict[bytes, list[int]] = {}
    for number in reversed(range(len(now))):
        waiting.setdefault(text(now[number]), []).append(number)
    pairs, gone = [], []
    for one in was:
        same = waiting.get(text(one))
        if same:
            number = same.pop()
            pairs.append((one, number, now[number]))
        else:
            gone.append(one)
    return pairs, gone, sorted(number for numbers in waiting.values() for number in numbers)


def _schemas(some: Sequence[Any]) -> str:
    first = wanted(some[0]) or "an alternative"
    return first if len(some) == 1 else f"{first} and {len(some) - 1} more"


def _disjoint(one: Any, other: Any) -> bool:
    """Whether surely nothing is taken by both."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return one is False or other is False
    values = taken_values(one), taken_values(other)
    if values[0] is not None and values[1] is not None:
        return not values[0].keys() & values[1].keys()
    types = [_named_types(each) for each in (one, other)]
    if types[0] and types[1] and not types[0] & types[1]:
        return True
    # Two shapes that tell themselves apart by a constant. What is no object must be out of the question.
    if types != [{"object"}, {"object"}]:
        return False
    shared = set(_strings(one.get("required"))) & set(_strings(other.get("required")))
    properties = _member(one, "properties"), _member(other, "properties")
    return any(
        _disjoint(properties[0][name], properties[1][name])
        for name in shared
        if name in properties[0] and name in properties[1]
    )


def _named_types(schema: Schema) -> set[str]:
    given = schema.get("type")
    named = {given} if isinstance(given, str) else set(_strings(given))
    return named | {"integer"} if "number" in named else named


def _strings(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _said(at: str, old: Schema, new: Schema) -> Iterator[Shift]:
    """What asks for nothing: titles, descriptions, defaults, keywords that nobody knows. And what nobody can tell."""
    for keyword in sorted((old.keys() | new.keys()) - OWN - _INSIDE):
        was, now = old.get(keyword, ABSENT), new.get(keyword, ABSENT)
        if was is not ABSENT and now is not ABSENT and text(was) == text(now):
            continue
        place = f"{at}/{escaped(keyword)}"
        if keyword in FATEFUL:
            yield undecided(place, was_is(was, now), was, now)
        else:
            yield Shift(place, was_is(was, now), was, now)


def _walk(schema: Any, found: Callable[[Schema], bool]) -> bool:
    """Whether *found* says so of any schema in the document."""
    draft: Draft = draft_of(schema) or DRAFT_2020_12
    waiting = [schema]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            if found(one):
                return True
            waiting += [below for _, _, below in subschemas(one, draft)]
    return False


def _reads_otherwise(document: Any) -> bool:
    """Whether a change in one place of *document* may do something in another."""
    nested = _walk(document, lambda one: one is not document and "$id" in one)
    return nested or _walk(document, lambda one: not _READING.isdisjoint(one))


def _references(value: Any) -> Iterator[str]:
    """Every reference in *value*."""
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for one in value.values():
            yield from _references(one)
    elif isinstance(value, list):
        for one in value:
            yield from _references(one)
