"""
Compares two schemas keyword by keyword: which changes certainly widen or narrow what is accepted.

All keywords of a schema must hold at once, so a schema accepts everything that it accepted before if each keyword does.
`RULES` has the keywords that stand for themselves; here are those that hold schemas. Every change without a row of its
own is undecided, never harmless.

A new optional property of an open object counts as harmless: a caller that uses only declared properties has never
sent it.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from assay.engine.canonical import canonical_schema, text
from assay.engine.drafts import DRAFT_2020_12, draft_of, subschemas
from assay.engine.pointers import NOWHERE, escaped, from_fragment, looked_up
from assay.engine.wording import wanted
from assay.lock.shifts import ABSENT, JUDGING, OPAQUE, READING, RULES, Schema, Shift, undecided, was_is

_STEPS: Final = 20_000
"""Pairs of schemas that are compared at most: those of real tools have hundreds."""

_DEEP: Final = 60
"""Levels, references included."""


def shifts(old: Any, new: Any) -> list[Shift]:
    """Return the differences between two schemas; none if both mean the same."""
    old, new = canonical_schema(old), canonical_schema(new)
    if text(old) == text(new):
        return []
    comparison = _Comparison(old, new)
    try:
        found = [*comparison.compare("", old, new), *comparison.definitions()]
    except _TooMuchError:
        return [undecided("", "too much to compare", old, new)]
    if _reads_otherwise(old) or _reads_otherwise(new):
        found = [each if each.wording else each._replace(decided=False) for each in found]
    return found or [undecided("", "something else has changed", old, new)]


class _TooMuchError(Exception):
    """Two schemas that take too many steps to compare."""


class _Comparison:
    """Two documents, and the references that have been followed in them."""

    def __init__(self, old: Any, new: Any) -> None:
        self._old, self._new = old, new
        self._steps = 0
        self._depth = 0
        self._met: set[tuple[str, str, bool]] = set()
        """Targets of references that were compared, or are being compared: a cycle adds nothing new."""
        self._inline: set[str] = set()
        """Targets of references that were written in place before, or are now."""

    def compare(self, at: str, old: Any, new: Any, *, joint: bool = False) -> Iterator[Shift]:
        """
        Yield the differences between two schemas that stand *at* one place.

        With *joint* other schemas apply to the same value, and may have declared a property that is new here.
        """
        self._steps += 1
        self._depth += 1
        if self._steps > _STEPS or self._depth > _DEEP:
            raise _TooMuchError
        old, new = _as_object(old), _as_object(new)
        if old is None or new is None:
            if old is not new:
                words = "was anything, is nothing" if new is None else "was nothing"
                yield Shift(at, words, old is not None, new is not None, narrows=new is None, widens=old is None)
        elif not isinstance(old, dict) or not isinstance(new, dict):
            if text(old) != text(new):
                yield undecided(at, "no schema", old, new)
        elif ("$ref" in old) != ("$ref" in new):
            yield self._inlined(at, old, new)
        else:
            yield from self._keywords(at, old, new, joint or _is_joint(old) or _is_joint(new))
        self._depth -= 1

    def _keywords(self, at: str, old: Schema, new: Schema, joint: bool) -> Iterator[Shift]:
        for rule in RULES:
            yield from rule(at, old, new)
        yield from self._reference(at, old, new, joint)
        yield from self._properties(at, old, new, joint)
        yield from self._items(at, old, new)
        if "propertyNames" in old or "propertyNames" in new:
            names = old.get("propertyNames", True), new.get("propertyNames", True)
            yield from self.compare(f"{at}/propertyNames", *names)
        yield from self._alternatives(at, "allOf", old, new, joint)
        yield from self._alternatives(at, "anyOf", old, new, joint)

    # ── references ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _reference(self, at: str, old: Schema, new: Schema, joint: bool) -> Iterator[Shift]:
        if "$ref" not in old:
            return
        was, now = _referred(self._old, old["$ref"]), _referred(self._new, new["$ref"])
        if was is None or now is None:
            if old["$ref"] != new["$ref"] or was is not now:
                yield undecided(f"{at}/$ref", was_is(old["$ref"], new["$ref"]), old["$ref"], new["$ref"])
        elif (met := (was[0], now[0], joint)) not in self._met:
            self._met.add(met)
            yield from self.compare(now[0], was[1], now[1], joint=joint)

    def _inlined(self, at: str, old: Schema, new: Schema) -> Shift:
        """Return the change of a schema that is referred to now and was written in place before, or the reverse."""
        words = "what was written here is referred to, or the other way round"
        referring, other, root = (old, new, self._old) if "$ref" in old else (new, old, self._new)
        target = _referred(root, referring["$ref"])
        if target is None or _judging(referring).keys() != {"$ref"} or not _ask_the_same(target[1], other):
            return undecided(at, words, old, new)
        self._inline.add(target[0])
        return Shift(at, words, old, new)

    def definitions(self) -> Iterator[Shift]:
        """Yield the changed definitions, and other targets of references, that were not compared where used."""
        opaque = {each for root in (self._old, self._new) for each in _targets(root, [*_opaque_parts(root)])}
        for pointer in sorted(opaque):
            before, after = looked_up(self._old, pointer), looked_up(self._new, pointer)
            if not _same(before, after):
                yield undecided(pointer, "referred to where a change can narrow or widen", before, after)
        compared = opaque | self._inline | {place for was, now, _ in self._met for place in (was, now)}
        for keyword in ("$defs", "definitions"):
            was, now = _member(self._old, keyword), _member(self._new, keyword)
            for name in sorted(was.keys() | now.keys()):
                place, before, after = f"/{keyword}/{escaped(name)}", was.get(name, ABSENT), now.get(name, ABSENT)
                if place not in compared and not _same(before, after):
                    yield Shift(place, "a definition", before, after)

    # ── objects and arrays ───────────────────────────────────────────────────────────────────────────────────────────

    def _properties(self, at: str, old: Schema, new: Schema, joint: bool) -> Iterator[Shift]:
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
                yield _new_property(place, others[0], now[name], joint)
            else:
                yield _lost_property(place, was[name], others[1])
        if others[0] is not True or others[1] is not True:
            yield from self.compare(f"{at}/additionalProperties", *others)

    def _items(self, at: str, old: Schema, new: Schema) -> Iterator[Shift]:
        keywords = ("items", "prefixItems", "additionalItems")
        was, now = ({each: one[each] for each in keywords if each in one} for one in (old, new))
        if _has_plain_items(was) and _has_plain_items(now):
            if was or now:
                yield from self.compare(f"{at}/items", was.get("items", True), now.get("items", True))
        elif text(was) != text(now):
            yield undecided(f"{at}/items", "items with a schema for each place", was or ABSENT, now or ABSENT)

    # ── alternatives ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _alternatives(self, at: str, keyword: str, old: Schema, new: Schema, joint: bool) -> Iterator[Shift]:
        """Compare `allOf`, where one schema more narrows, or `anyOf`, where one more widens."""
        was, now = old.get(keyword, ABSENT), new.get(keyword, ABSENT)
        place = f"{at}/{keyword}"
        if was is ABSENT and now is ABSENT:
            return
        if keyword == "anyOf" and _is_one_of(old, new):
            yield Shift(place, "has alternatives now", ABSENT, now, widens=True)
        elif keyword == "anyOf" and _is_one_of(new, old):
            yield Shift(place, "has no alternatives any more", was, ABSENT, narrows=True)
        elif was is ABSENT or now is ABSENT:
            yield Shift(place, was_is(was, now), was, now, narrows=was is ABSENT, widens=now is ABSENT)
        elif not isinstance(was, list) or not isinstance(now, list):
            yield undecided(place, was_is(was, now), was, now)
        else:
            yield from self._paired(place, keyword, was, now, joint)

    def _paired(self, at: str, keyword: str, was: list[Any], now: list[Any], joint: bool) -> Iterator[Shift]:
        pairs, gone, more = _pairs(was, now)
        for one, number in pairs:
            yield from self.compare(f"{at}/{number}", one, now[number], joint=joint)
        all_of = keyword == "allOf"
        verb = "asks for" if all_of else "takes"
        if more:
            words = f"also {verb} {_in_words([now[number] for number in more])}"
            yield Shift(at, words, was, now, narrows=all_of, widens=not all_of)
        if gone:
            yield Shift(at, f"no longer {verb} {_in_words(gone)}", was, now, narrows=not all_of, widens=all_of)


def _new_property(at: str, others: Any, schema: Any, joint: bool) -> Shift:
    """Return the change of a property that was one of the *others* before."""
    words = f"new: {wanted(schema) or 'a value'}"
    if _as_object(others) is None:
        return Shift(at, words, ABSENT, schema, widens=_as_object(schema) is not None)
    if _as_object(schema) is None:
        return Shift(at, "may not be given any more", ABSENT, schema, narrows=True)
    if _as_object(others) == {}:
        return Shift(at, words, ABSENT, schema, narrows=joint, neutral=True)
    if text(others) == text(schema):
        return Shift(at, words, ABSENT, schema, neutral=True)
    return undecided(at, words, ABSENT, schema)


def _lost_property(at: str, schema: Any, others: Any) -> Shift:
    """Return the change of a property that is one of the *others* from now on."""
    if _as_object(others) is None:
        narrows = _as_object(schema) is not None
        return Shift(at, "gone, and no others are allowed", schema, ABSENT, narrows=narrows)
    words = f"gone; was {wanted(schema) or 'a value'}"
    if _as_object(others) == {} or text(others) == text(schema):
        # It widens even if the others must be the same: a reader looks for it.
        return Shift(at, words, schema, ABSENT, widens=True)
    return undecided(at, words, schema, ABSENT)


def _is_one_of(one: Schema, choice: Schema) -> bool:
    """Whether *choice* is nothing but alternatives, and *one* asks for the same as one of them."""
    given = choice.get("anyOf")
    if "anyOf" in one or not isinstance(given, list) or _judging(choice).keys() != {"anyOf"}:
        return False
    return any(_ask_the_same(one, each) for each in given)


def _ask_the_same(one: Any, other: Any) -> bool:
    return isinstance(one, dict) and isinstance(other, dict) and text(_judging(one)) == text(_judging(other))


def _judging(schema: Schema) -> Schema:
    """Return *schema* without what it only says, and without definitions."""
    return {keyword: value for keyword, value in schema.items() if keyword in JUDGING - {"$defs", "definitions"}}


def _pairs(was: Sequence[Any], now: Sequence[Any]) -> tuple[list[tuple[Any, int]], list[Any], list[int]]:
    """
    Return the schemas of before with their number now, those without one, and the numbers of the new ones.

    Equal schemas are paired first; the others in their order, if there are as many of before as of now.
    """
    waiting: dict[bytes, list[int]] = {}
    for number in reversed(range(len(now))):
        waiting.setdefault(text(now[number]), []).append(number)
    pairs, gone = [], []
    for one in was:
        same = waiting.get(text(one))
        if same:
            pairs.append((one, same.pop()))
        else:
            gone.append(one)
    more = sorted(number for numbers in waiting.values() for number in numbers)
    if len(gone) == len(more):
        return [*pairs, *zip(gone, more, strict=True)], [], []
    return pairs, gone, more


def _in_words(some: Sequence[Any]) -> str:
    first = wanted(some[0]) or "an alternative"
    return first if len(some) == 1 else f"{first} and {len(some) - 1} more"


# ── what is in a schema ──────────────────────────────────────────────────────────────────────────────────────────────


def _as_object(schema: Any) -> Any:
    """Return *schema* without booleans: true is `{}`, and false, which accepts nothing, is None."""
    return {} if schema is True else None if schema is False else schema


def _same(before: Any, after: Any) -> bool:
    if before is NOWHERE or after is NOWHERE:
        return before is after
    return text(before) == text(after)


def _member(schema: Any, keyword: str) -> dict[str, Any]:
    value = schema.get(keyword) if isinstance(schema, dict) else None
    return value if isinstance(value, dict) else {}


def _has_plain_items(schema: Schema) -> bool:
    """Whether all items are judged by the same schema."""
    return not isinstance(schema.get("items"), list) and schema.keys().isdisjoint({"prefixItems", "additionalItems"})


def _is_joint(schema: Schema) -> bool:
    """Whether more than one schema applies to the same value."""
    every = schema.get("allOf")
    one_each = ("properties", "$ref", "anyOf", "oneOf", "if", "not", "dependentSchemas", "dependencies")
    return sum(keyword in schema for keyword in one_each) + (len(every) if isinstance(every, list) else 0) > 1


def _schemas(document: Any) -> Iterator[Schema]:
    """Yield every schema of *document* that is an object."""
    draft = draft_of(document) or DRAFT_2020_12
    waiting = [document]
    for one in waiting:  # grows during the loop
        if isinstance(one, dict):
            yield one
            waiting += [below for _, _, below in subschemas(one, draft)]


def _reads_otherwise(document: Any) -> bool:
    """Whether a change in one place of *document* may have an effect in another."""
    return any((one is not document and "$id" in one) or not READING.isdisjoint(one) for one in _schemas(document))


def _opaque_parts(document: Any) -> Iterator[Any]:
    """Yield what stands under keywords of *document* that are compared as a whole."""
    for one in _schemas(document):
        whole = OPAQUE if _has_plain_items(one) else OPAQUE | {"items", "prefixItems", "additionalItems"}
        yield from (one[keyword] for keyword in whole & one.keys())


def _referred(root: Any, reference: Any) -> tuple[str, Any] | None:
    """Return where a reference within the document leads: the pointer, and what is there."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    pointer = from_fragment(reference[1:])
    if pointer is None or (pointer and not pointer.startswith("/")):
        return None
    found = looked_up(root, pointer)
    return None if found is NOWHERE else (pointer, found)


def _targets(root: Any, part: Any) -> set[str]:
    """Return the pointers that references in *part* of *root* lead to, directly or through others."""
    found: set[str] = set()
    waiting = [part]
    for value in waiting:  # grows during the loop
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            waiting += value.values()
            target = _referred(root, value.get("$ref"))
            if target is not None and target[0] not in found:
                found.add(target[0])
                waiting.append(target[1])
    return found
