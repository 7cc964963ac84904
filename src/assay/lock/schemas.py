"""
Whether a schema takes what it took before: two of them side by side, in a bounded number of steps. No I/O.

All keywords of a schema must hold at once, so a schema takes everything that it took before if each of them does. Where
that does not settle it, it counts as undecided, never as harmless.

An optional property that an open object has got counts as harmless: a caller that keeps to what was declared has never
sent it.
"""

from collections.abc import Iterator
from typing import Any, Final

from assay.engine.pointers import escaped
from assay.engine.wording import wanted
from assay.lock import parts
from assay.lock.canonical import canonical_schema, text
from assay.lock.shifts import ABSENT, FATEFUL, OWN, RULES, Schema, Shift, undecided, was_is

_STEPS: Final = 20_000
"""Pairs of schemas that are compared at most: those of real tools have hundreds."""

_DEEP: Final = 60
"""Levels, references included."""

_MOST_ALTERNATIVES: Final = 64
"""Alternatives that are compared with each other."""

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
    if parts.reads_otherwise(old) or parts.reads_otherwise(new):
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
        self._joint = False
        """Whether other schemas speak of the same value, and so may have declared a property that is new here."""
        self._met: set[tuple[str, str, frozenset[str], bool]] = set()
        """Targets of references that were compared there, or are being: a circle says nothing new."""
        self._used: set[str] = set()
        """Targets of references that only one of the two has."""

    def compare(self, at: str, old: Any, new: Any) -> Iterator[Shift]:
        """The differences between two schemas that stand *at* one place."""
        self._steps += 1
        self._depth += 1
        if self._steps > _STEPS or self._depth > _DEEP:
            raise _TooMuchError
        old, new = parts.as_object(old), parts.as_object(new)
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
        outside = self._joint
        self._joint = outside or parts.is_joint(old) or parts.is_joint(new)
        yield from self._references(at, old, new)
        yield from self._referred(at, old, new)
        yield from self._properties(at, old, new)
        yield from self._items(at, old, new)
        if "propertyNames" in old or "propertyNames" in new:
            names = old.get("propertyNames", True), new.get("propertyNames", True)
            yield from self._below(f"{at}/propertyNames", *names)
        yield from self._all_of(at, old, new)
        yield from self._any_of(at, old, new)
        yield from self._one_of(at, old, new)
        self._joint = outside
        yield from parts.check_said(at, old, new)

    def _below(self, at: str, old: Any, new: Any) -> Iterator[Shift]:
        """The differences between two schemas of something inside the value."""
        outside, self._joint = self._joint, False
        yield from self.compare(at, old, new)
        self._joint = outside

    # ── references ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _references(self, at: str, old: Schema, new: Schema) -> Iterator[Shift]:
        if "$ref" not in old:
            return
        was, now = parts.referred(self._old, old["$ref"]), parts.referred(self._new, new["$ref"])
        if was is None or now is None:
            if old["$ref"] != new["$ref"] or was is not now:
                yield undecided(f"{at}/$ref", was_is(old["$ref"], new["$ref"]), old["$ref"], new["$ref"])
        elif (met := (was[0], now[0], self._within, self._joint)) not in self._met:
            self._met.add(met)
            yield from self.compare(now[0], was[1], now[1])

    def _referred(self, at: str, old: Schema, new: Schema) -> Iterator[Shift]:
        """What is referred to from keywords that are compared as they are spelt."""
        outside, self._within = self._within, self._within | {f"{at}/*"}
        for keyword in sorted(_SPELT & old.keys() & new.keys()):
            if text(old[keyword]) == text(new[keyword]) and (keyword != "items" or not parts.has_plain_items(old)):
                for reference in sorted(set(parts.references(old[keyword]))):
                    found = list(self._references(f"{at}/{keyword}", {"$ref": reference}, {"$ref": reference}))
                    yield from (each if each.wording else each._replace(decided=False) for each in found)
        self._within = outside

    def _inlined(self, at: str, old: Schema, new: Schema) -> Iterator[Shift]:
        """One of the two is a reference: what it leads to is compared, if nothing stands beside it."""
        referring, root = (old, self._old) if "$ref" in old else (new, self._new)
        target = parts.referred(root, referring["$ref"])
        beside = [keyword for keyword in referring if keyword in OWN | FATEFUL | (parts.INSIDE - {"$ref", "$defs"})]
        if target is None or beside:
            yield undecided(at, "what was written here is referred to, or the other way round", old, new)
        else:
            self._used.add(target[0])
            yield Shift(at, "what was written here is referred to, or the other way round", old, new)
            yield from self.compare(at, *((target[1], new) if referring is old else (old, target[1])))

    def unused(self) -> Iterator[Shift]:
        """Definitions that differ, and that nothing refers to: some reader may still see what they say."""
        met = self._used | {place for old, new, *_ in self._met for place in (old, new)}
        for keyword in ("$defs", "definitions"):
            was, now = parts.member(self._old, keyword), parts.member(self._new, keyword)
            for name in sorted(was.keys() | now.keys()):
                place = f"/{keyword}/{escaped(name)}"
                before, after = was.get(name, ABSENT), now.get(name, ABSENT)
                if place not in met and (before is ABSENT or after is ABSENT or text(before) != text(after)):
                    yield Shift(place, "a definition that nothing refers to", before, after)

    # ── objects and arrays ───────────────────────────────────────────────────────────────────────────────────────────

    def _properties(self, at: str, old: Schema, new: Schema) -> Iterator[Shift]:
        was, now = parts.member(old, "properties"), parts.member(new, "properties")
        others = old.get("additionalProperties", True), new.get("additionalProperties", True)
        patterns = parts.member(old, "patternProperties"), parts.member(new, "patternProperties")
        for pattern in sorted(patterns[0].keys() & patterns[1].keys()):
            place = f"{at}/patternProperties/{escaped(pattern)}"
            yield from self._below(place, patterns[0][pattern], patterns[1][pattern])
        if patterns[0].keys() != patterns[1].keys():
            yield undecided(f"{at}/patternProperties", "other patterns", *patterns)
        for name in sorted(was.keys() | now.keys()):
            place = f"{at}/properties/{escaped(name)}"
            if name in was and name in now:
                yield from self._below(place, was[name], now[name])
            elif patterns[0] or patterns[1]:
                yield undecided(place, "new or gone, where names can match a pattern", was.get(name), now.get(name))
            elif name in now:
                yield from self._new_property(place, others[0], now[name])
            else:
                yield from self._lost_property(place, was[name], others[1])
        if others[0] is not True or others[1] is not True:
            yield from self._below(f"{at}/additionalProperties", *others)

    def _new_property(self, at: str, others: Any, schema: Any) -> Iterator[Shift]:
        """A property that was one of the *others* before."""
        words = f"new: {wanted(schema) or 'a value'}"
        if parts.as_object(others) is None:
            yield Shift(at, words, ABSENT, schema, widens=parts.as_object(schema) is not None)
        elif parts.as_object(schema) is None:
            yield Shift(at, "may not be given any more", ABSENT, schema, narrows=True)
        elif parts.as_object(others) == {}:
            yield Shift(at, words, ABSENT, schema, narrows=self._joint, neutral=True)
        else:
            differing = self._tried_below(at, others, schema)
            narrows = any(each.narrows or not each.decided for each in differing)
            widens = any(each.widens or not each.decided for each in differing)
            yield Shift(at, words, ABSENT, schema, narrows=narrows, widens=widens, neutral=True)

    def _lost_property(self, at: str, schema: Any, others: Any) -> Iterator[Shift]:
        """A property that is one of the *others* from now on."""
        if parts.as_object(others) is None:
            narrows = parts.as_object(schema) is not None
            yield Shift(at, "gone, and no others are allowed", schema, ABSENT, narrows=narrows)
        else:
            differing = self._tried_below(at, schema, others)
            narrows = any(each.narrows or not each.decided for each in differing)
            # Even if it said no more than what holds for the others: whoever reads it looks for it.
            yield Shift(at, f"gone; was {wanted(schema) or 'a value'}", schema, ABSENT, narrows=narrows, widens=True)

    def _items(self, at: str, old: Schema, new: Schema) -> Iterator[Shift]:
        keywords = ("items", "prefixItems", "additionalItems")
        was, now = ({each: one[each] for each in keywords if each in one} for one in (old, new))
        if not was and not now:
            return
        if parts.has_plain_items(was) and parts.has_plain_items(now):
            yield from self._below(f"{at}/items", was.get("items", True), now.get("items", True))
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
        pairs, gone, more = parts.paired(was, now)
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
            yield Shift(place, f"{narrower} {parts.in_words(narrowing)}", was, now, narrows=True)
        if widening:
            yield Shift(place, f"{wider} {parts.in_words(widening)}", was, now, widens=True)

    def _has_one_that_takes(self, alternatives: Schema, other: Schema, *, reverse: bool = False) -> bool:
        """Whether one of the *alternatives* takes everything that *other* does; *reverse*: they were the old ones."""
        given = alternatives["anyOf"]
        rest = alternatives.keys() & (OWN | parts.INSIDE | FATEFUL) - {"anyOf", "$defs", "definitions"}
        if rest or not isinstance(given, list) or len(given) > _MOST_ALTERNATIVES:
            return False
        for one in given:
            tried = self._tried("", *((one, other) if reverse else (other, one)))
            if all(each.decided and not (each.widens if reverse else each.narrows) for each in tried):
                return True
        return False

    def _tried(self, at: str, old: Any, new: Any) -> list[Shift]:
        """The differences between two schemas that need not be what they are in the document."""
        met = set(self._met)
        found = list(self.compare(at, old, new))
        self._met = met
        return found

    def _tried_below(self, at: str, old: Any, new: Any) -> list[Shift]:
        """The same of something inside the value, without what is only said."""
        outside, self._joint = self._joint, False
        found = [each for each in self._tried(at, old, new) if not each.wording]
        self._joint = outside
        return found

    def _apart(self, schema: Schema, root: Any) -> bool:
        """Whether nothing is ever taken by two of the alternatives of *schema*."""
        given = schema.get("oneOf")
        if not isinstance(given, list):
            return True
        if len(given) > _MOST_ALTERNATIVES:
            return False
        each = [parts.followed(root, one) for one in given]
        return all(parts.disjoint(one, other) for number, one in enumerate(each) for other in each[:number])
