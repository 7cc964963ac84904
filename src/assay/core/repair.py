"""
Repairs mistakes in the arguments of a call that have only one correction. No I/O, no judging.

JSON inside a string, a number or a boolean as text, null for an optional property: most mistakes of models are of these
kinds. Whether the arguments are valid afterwards is for the judge to decide, which judges the repaired frame like any
other. Everything else in the frame stays the same to the byte.
"""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from assay.base.large_frames import more_than
from assay.base.verdict import Repair, Verdict, Violation
from assay.engine.pointers import NOWHERE, from_fragment, looked_up, steps
from assay.ladder import syntax
from assay.ladder.patches import REMOVED, patched

ROUNDS: Final = 4
"""The most rounds of repair: a number as text may be inside an object that came as text."""

MOST_VALUES: Final = 10_000
"""The most values and keys of a call that is repaired: each round steps over every one, some 1 µs each (estimated)."""

_ARGUMENTS: Final = "/params/arguments"

_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
"""A number as people write one. With an exponent it may be something else, a name or a hash."""

_OF_VALUE: Final = frozenset({"type", "anyOf", "oneOf", "enum", "const"})
"""Keywords that mean a wrong kind of value, not one that is too long or too small."""


JudgeCall = Callable[[bytes, dict[str, Any]], Verdict]
"""Judges a frame and the message in it."""


class WantedType(NamedTuple):
    """What may be repaired, and the limits."""

    rules: Collection[str]
    schema: Any
    """The schema of the arguments, if there is one."""
    depth: int
    """The most levels of nesting in a value."""
    most: int
    """The most mistakes that are repaired at once."""


class Repaired(NamedTuple):
    """The outcome of a repair."""

    verdict: Verdict
    """The verdict on the repaired frame, which is accepted."""
    done: list[Violation]
    """The mistakes that were repaired."""
    repairs: tuple[Repair, ...]
    """The changes of the frame, in order, without values: these come from the client."""


def repaired(
    frame: bytes,
    message: dict[str, Any],
    found: Sequence[Violation],
    wanted: WantedType,
    judge: JudgeCall,
) -> Repaired | None:
    """Return the call with everything repaired that was *found* to stop it; None unless *judge* then accepts it."""
    done: list[Violation] = []
    repairs: list[Repair] = []
    for _ in range(ROUNDS):
        # Values from inside a string count, too.
        if more_than(frame, MOST_VALUES):
            return None
        wrong = [each for each in found if each.stops][: wanted.most]
        corrected = correct(frame, message, wrong, wanted)
        if corrected is None:
            return None
        frame, message, changes = corrected
        repairs += changes
        done += [replace(each, action="repair") for each in wrong]
        verdict = judge(frame, message)
        if verdict.accepted:
            return Repaired(verdict, done, tuple(repairs))
        found = verdict.violations
    return None


class RepairedFrame(NamedTuple):
    """A repaired frame, the message in it, and what has changed."""

    frame: bytes
    message: dict[str, Any]
    changes: tuple[Repair, ...]


def correct(
    frame: bytes, message: dict[str, Any], wrong: Sequence[Violation], wanted: WantedType
) -> RepairedFrame | None:
    """Return *frame* with everything that is *wrong* corrected; None unless each mistake has only one correction."""
    remedies: dict[str, str | None] = {}
    for each in wrong:
        remedy = _remedy(message, each, wanted.schema, wanted.depth) if each.rule in wanted.rules else NOWHERE
        if remedy is not REMOVED and not isinstance(remedy, str):
            return None
        remedies[each.at] = remedy
    corrected = patched(frame.decode(), remedies).encode()
    value = syntax.read(corrected, wanted.depth)
    changes = tuple(Repair("remove" if text is REMOVED else "replace", at) for at, text in remedies.items())
    return RepairedFrame(corrected, value, changes) if isinstance(value, dict) else None


def _remedy(message: dict[str, Any], wrong: Violation, schema: Any, depth: int) -> Any:
    """Return the text that replaces a value, `REMOVED` for no value, or `NOWHERE` if there is no single correction."""
    value = looked_up(message, wrong.at)
    if wrong.rule == "protocol/params":
        whole = wrong.at == _ARGUMENTS and isinstance(value, str)
        return _inside(value, depth, "{") if whole else NOWHERE
    if wrong.rule != "contract/input" or _keyword(wrong) not in _OF_VALUE:
        return NOWHERE
    if isinstance(value, str) and wrong.wrong_type:
        plain = value in ("true", "false") or _NUMBER.fullmatch(value)
        return value if plain else _inside(value, depth, "{[")
    return REMOVED if value is None and _may_be_left_out(wrong, schema) else NOWHERE


def _inside(text: str, depth: int, opening: str) -> Any:
    """Return the JSON text of an object or array on one line; `NOWHERE` if *text* is neither."""
    if text.lstrip(" \t\r\n")[:1] not in tuple(opening):
        return NOWHERE
    if isinstance(syntax.read(text.encode(errors="replace"), depth, MOST_VALUES), Violation):
        return NOWHERE
    # A line break in JSON is white space: within a string it is escaped.
    return text.replace("\r", " ").replace("\n", " ")


def _keyword(wrong: Violation) -> str:
    return (wrong.schema_at or "").rpartition("/")[2]


def _may_be_left_out(wrong: Violation, schema: Any) -> bool:
    """Return whether the schema names the property: an item, or an entry of a map, has a meaning even as null."""
    *above, name = steps(wrong.at)
    where = steps(from_fragment((wrong.schema_at or "#")[1:]) or "")
    if where[-3:-1] == ["properties", name]:
        return True
    named = schema.get("properties") if isinstance(schema, dict) else None
    return above == steps(_ARGUMENTS) and isinstance(named, dict) and name in named
