"""
Repairs mistakes in the arguments of a call that have only one correction. No I/O, no judging.

JSON inside a string, a number or a boolean as text, null for an optional property: most mistakes of models are of these
kinds. Whether the arguments are valid afterwards is for the judge to decide, which judges the repaired frame like any
other. Everything else in the frame stays the same to the byte.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from assay.judge import syntax
from assay.judge.text_edit import patched
from assay.model.large_frames import more_than
from assay.model.limits import Limits
from assay.model.verdict import Repair, Verdict, Violation
from assay.schema.pointers import NOWHERE, Nowhere, from_fragment, looked_up, steps

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

_Remedy = str | None | Nowhere
"""The text that replaces a value, None for no value, or `NOWHERE` if there is no single correction."""


class Repaired(NamedTuple):
    """A frame after repair, and the message in it."""

    frame: bytes
    message: dict[str, Any]
    done: list[Violation]
    """The violations that were repaired, with the action `repair`."""
    repairs: tuple[Repair, ...]
    """The changes of the frame, in order; those of a call are without values, which come from the client."""


def rewritten(frame: bytes, changes: Mapping[str, str | None], limits: Limits) -> tuple[bytes, dict[str, Any]] | None:
    """Return *frame* with the *changes* made, as for `patched`, and the message in it; None if it cannot be read."""
    spelt = patched(frame.decode(), changes).encode()
    value = syntax.read(spelt, limits.depth, limits.values) if len(spelt) <= limits.frame_bytes else None
    return (spelt, value) if isinstance(value, dict) else None


def repaired(
    frame: bytes,
    message: dict[str, Any],
    found: Sequence[Violation],
    rules: Collection[str],
    schema: Any,
    limits: Limits,
    judge: JudgeCall,
) -> tuple[Verdict, Repaired] | None:
    """
    Return the call with everything repaired that was *found* to stop it, and the verdict; None unless *judge* then
    accepts it.

    Only violations of *rules* are repaired. *schema* is that of the arguments, if there is one.
    """
    done: list[Violation] = []
    repairs: list[Repair] = []
    for _ in range(ROUNDS):
        # Values from inside a string count, too.
        if more_than(frame, MOST_VALUES):
            return None
        changes: dict[str, str | None] = {}
        for each in [each for each in found if each.stops][: limits.violations]:
            remedy = _remedy(message, each, schema, limits) if each.rule in rules else NOWHERE
            if isinstance(remedy, Nowhere):
                return None
            changes[each.at] = remedy
            done.append(replace(each, action="repair"))
        corrected = rewritten(frame, changes, limits)
        if corrected is None:
            return None
        frame, message = corrected
        repairs += [Repair("remove" if text is None else "replace", at) for at, text in changes.items()]
        verdict = judge(frame, message)
        if verdict.accepted:
            return verdict, Repaired(frame, message, done, tuple(repairs))
        found = verdict.violations
    return None


def _remedy(message: dict[str, Any], wrong: Violation, schema: Any, limits: Limits) -> _Remedy:
    value = looked_up(message, wrong.at)
    if wrong.rule == "protocol/params":
        whole = wrong.at == _ARGUMENTS and isinstance(value, str)
        return _inside(value, limits, "{") if whole else NOWHERE
    if wrong.rule != "contract/input" or _keyword(wrong) not in _OF_VALUE:
        return NOWHERE
    if isinstance(value, str) and wrong.wrong_type:
        plain = value in ("true", "false") or _NUMBER.fullmatch(value)
        return value if plain else _inside(value, limits, "{[")
    return None if value is None and _may_be_left_out(wrong, schema) else NOWHERE


def _inside(text: str, limits: Limits, opening: str) -> _Remedy:
    """Return the JSON text of an object or array on one line; `NOWHERE` if *text* is neither."""
    if text.lstrip(" \t\r\n")[:1] not in tuple(opening):
        return NOWHERE
    if isinstance(syntax.read(text.encode(errors="replace"), limits.depth, MOST_VALUES), Violation):
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
