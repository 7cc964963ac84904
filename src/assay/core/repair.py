"""
Slips in the arguments of a call that have one remedy only, and the frame without them. No I/O, no judging.

JSON inside a string, a number or a boolean as text, null for a property that may be left out: most of what models get
wrong. Whether the arguments are right afterwards is for the judge to say, who hears the mended frame like any other.
Everything that is not mended stays as it was spelt, to the byte.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from assay.base.value_count import more_than
from assay.base.verdict import Verdict, Violation
from assay.engine.pointers import NOWHERE, from_fragment, looked_up, steps
from assay.ladder import syntax
from assay.ladder.spots import Edit, edited, elements, past_space

ROUNDS: Final = 4
"""How often what was mended is looked at again: there may be a number as text in an object that came as text."""

MOST_VALUES: Final = 10_000
"""Values and keys of a call that is mended: in each round every one of them is stepped over: some 1 µs (estimated)."""

_ARGUMENTS: Final = "/params/arguments"

_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
"""A number as people write one. With an exponent it may be something else, a name or a hash."""

_OF_VALUE: Final = frozenset({"type", "anyOf", "oneOf", "enum", "const"})
"""Keywords that a value breaks by being another value altogether, and not by being too long or too small."""

_REMOVED: Final = None


class WantedType(NamedTuple):
    """What is to be mended, and within which bounds."""

    rules: Collection[str]
    schema: Any
    """What the arguments are judged by, if anything is."""
    depth: int
    """How deep a value may be nested."""
    most: int
    """How many slips are mended at once."""


class Repaired(NamedTuple):
    """What comes of a call without its slips."""

    verdict: Verdict
    """On the mended frame; it is accepted."""
    done: list[Violation]
    """The slips."""


def repaired(
    frame: bytes,
    message: dict[str, Any],
    found: Sequence[Violation],
    wanted: WantedType,
    judge: Callable[[bytes, dict[str, Any]], Verdict],
) -> Repaired | None:
    """A call of which all was mended that was *found* to stop it, if *judge* then accepts it."""
    done: list[Violation] = []
    for _ in range(ROUNDS):
        # What came out of a text counts, too.
        if more_than(frame, MOST_VALUES):
            return None
        wrong = [each for each in found if each.stops][: wanted.most]
        mended = mend(frame, message, wrong, wanted)
        if mended is None:
            return None
        frame, message = mended
        done += [replace(each, action="repair") for each in wrong]
        verdict = judge(frame, message)
        if verdict.accepted:
            return Repaired(verdict, done)
        found = verdict.violations
    return None


class Mended(NamedTuple):
    """A frame without its slips, and the message in it."""

    frame: bytes
    message: dict[str, Any]


def mend(frame: bytes, message: dict[str, Any], wrong: Sequence[Violation], wanted: WantedType) -> Mended | None:
    """*frame* with all that is *wrong* mended; None unless each of these is a slip with one remedy."""
    remedies: dict[str, str | None] = {}
    for each in wrong:
        remedy = _remedy(message, each, wanted.schema, wanted.depth) if each.rule in wanted.rules else NOWHERE
        if remedy is not _REMOVED and not isinstance(remedy, str):
            return None
        remedies[each.at] = remedy
    mended = _edited(frame.decode(), remedies).encode()
    value = syntax.read(mended, wanted.depth)
    return Mended(mended, value) if isinstance(value, dict) else None


def _remedy(message: dict[str, Any], wrong: Violation, schema: Any, depth: int) -> Any:
    """What goes in the place of a value: text, `_REMOVED` for nothing, or `NOWHERE` if there is no telling."""
    value = looked_up(message, wrong.at)
    if wrong.rule == "protocol/params":
        whole = wrong.at == _ARGUMENTS and isinstance(value, str)
        return _inside(value, depth, "{") if whole else NOWHERE
    if wrong.rule != "contract/input" or _keyword(wrong) not in _OF_VALUE:
        return NOWHERE
    if isinstance(value, str) and wrong.wrong_type:
        plain = value in ("true", "false") or _NUMBER.fullmatch(value)
        return value if plain else _inside(value, depth, "{[")
    return _REMOVED if value is None and _may_be_left_out(wrong, schema) else NOWHERE


def _inside(text: str, depth: int, opening: str) -> Any:
    """The JSON text of an object or array, on one line; `NOWHERE` if there is none in *text*."""
    if text.lstrip(" \t\r\n")[:1] not in tuple(opening):
        return NOWHERE
    if isinstance(syntax.read(text.encode(errors="replace"), depth, MOST_VALUES), Violation):
        return NOWHERE
    # A line break in JSON is white space: within a string it is escaped.
    return text.replace("\r", " ").replace("\n", " ")


def _keyword(wrong: Violation) -> str:
    return (wrong.schema_at or "").rpartition("/")[2]


def _may_be_left_out(wrong: Violation, schema: Any) -> bool:
    """Whether it is a property that the schema names: an item, or an entry of a map, means something by being there."""
    *above, name = steps(wrong.at)
    where = steps(from_fragment((wrong.schema_at or "#")[1:]) or "")
    if where[-3:-1] == ["properties", name]:
        return True
    named = schema.get("properties") if isinstance(schema, dict) else None
    return above == steps(_ARGUMENTS) and isinstance(named, dict) and name in named


# ── the frame ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _edited(text: str, remedies: dict[str, str | None]) -> str:
    """*text* with each value that a pointer names replaced, or its member removed."""
    tree: dict[str, Any] = {}
    for pointer, remedy in remedies.items():
        *above, last = steps(pointer)
        here = tree
        for step in above:
            here = here.setdefault(step, {})
        here[last] = remedy
    return edited(text, _edits(text, past_space(text, 0), tree))


def _edits(text: str, at: int, tree: dict[str, Any]) -> Iterator[Edit]:
    members = list(elements(text, at))
    kept = [number for number, each in enumerate(members) if tree.get(each.name, "") is not _REMOVED]
    last = kept[-1] if kept else -1
    if last + 1 < len(members):
        # Nothing follows the last one that stays, not even a comma.
        yield Edit(members[last].end if kept else at + 1, members[-1].end, "")
    for number, each in enumerate(members[: last + 1]):
        below = tree.get(each.name, NOWHERE)
        if below is _REMOVED:
            yield Edit(each.at, members[number + 1].at, "")
        elif isinstance(below, str):
            yield Edit(each.start, each.end, below)
        elif isinstance(below, dict):
            yield from _edits(text, each.start, below)
