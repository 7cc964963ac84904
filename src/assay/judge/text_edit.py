"""
The positions of values in JSON text, and edits that leave every other byte of it as it is. No I/O, no judging.

The text is valid JSON. The scanner of the standard library steps over values: it is written in C and returns where each
one ends. It builds no objects and no numbers, because Python refuses integers of more than 4,300 digits.

`cli.clients.parsing` has a scanner of its own: it reads files with comments, and reports where they are malformed.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

import orjson

from assay.model.large_frames import paused
from assay.schema.pointers import steps

_scan: Final = json.JSONDecoder(parse_int=len, parse_float=len, object_pairs_hook=len, strict=False).raw_decode
"""Step over the value at a position. Return the value, if it is a string, and the position where it ends."""

_SPACE: Final = re.compile(r"[ \t\r\n]*+")

_LONG: Final = 4096
"""Length in characters from which it is faster to search for the keys first."""

_ESCAPED: Final = re.compile(r"\\(?:u00[2-7]|/)")
"""An escape sequence that may stand for a character of a key that is looked for."""

Tree = Mapping[str, "str | Tree"]
"""The members to find, by key: a name for the value, or the members inside it."""

Spot = tuple[str, int, int]
"""The name of a value, and the positions where its text starts and ends."""


class Element(NamedTuple):
    """A member of an object, or an item of an array."""

    name: str
    """The key of a member, the number of an item."""
    at: int
    """The position where it starts: for a member that of its key."""
    start: int
    end: int
    """The positions where its value starts and ends."""


def elements(text: str, at: int = 0, *, until: str | None = None) -> Iterator[Element]:
    """
    Yield the elements of the object or array at the position *at*, or after white space there.

    The one with the name *until* is the last. It is not stepped over, so its end is not known.
    """
    at = _past_space(text, at)
    if text[at] not in "{[":
        return
    keyed = text[at] == "{"
    at = _past_space(text, at + 1)
    number = 0
    while text[at] not in "}]":
        begun, name = at, str(number)
        if keyed:
            name, at = _scan(text, at)
            at = _past_space(text, _past_space(text, at) + 1)
        if name == until:
            yield Element(name, begun, at, at)
            return
        end = _scan(text, at)[1]
        yield Element(name, begun, at, end)
        at = _past_space(text, end)
        at = _past_space(text, at + 1) if text[at] == "," else at
        number += 1


class Located(NamedTuple):
    """The text of a value that was looked for by its place."""

    start: int
    end: int
    """The positions where its text starts and ends; of the last object or array on the way if it is missing."""
    is_there: bool
    """Whether the value exists."""


def located(text: str, names: Sequence[str], *, last: bool = False) -> Located:
    """
    Return where the value at a place is; *names* are the steps of its JSON Pointer.

    With *last*, the last of several members with the same key. The time is linear in the length of *text*, however deep
    the place is: no value on the way is read twice.
    """
    at = _past_space(text, 0)
    for number, name in enumerate(names):
        until = None if last and number == len(names) - 1 else name
        inside = [each.start for each in elements(text, at, until=until) if each.name == name]
        if not inside:
            return Located(at, _scan(text, at)[1], is_there=False)
        at = inside[-1]
    return Located(at, _scan(text, at)[1], is_there=True)


def spots(text: str, places: Tree) -> list[Spot]:
    """Return the values at *places* in *text*, in its order; at most as many as there are places."""
    if len(text) < _LONG:
        return list(islice(_spots(text, 0, places), _leaves(places)))
    kept = places if _ESCAPED.search(text) is not None else _present(text, places)
    with paused():
        return list(islice(_spots(text, 0, kept), _leaves(kept)))


def _spots(text: str, at: int, places: Tree) -> Iterator[Spot]:
    for name, _, start, end in elements(text, at):
        place = places.get(name)
        if isinstance(place, str):
            yield place, start, end
        elif place is not None:
            yield from _spots(text, start, place)


def _present(text: str, places: Tree) -> Tree:
    """Return *places* without the keys that do not occur in *text*."""
    kept: dict[str, str | Tree] = {}
    for key, place in places.items():
        below = place if isinstance(place, str) else _present(text, place)
        if below and f'"{key}"' in text:
            kept[key] = below
    return kept


def _leaves(places: Tree) -> int:
    return sum(1 if isinstance(place, str) else _leaves(place) for place in places.values())


class Edit(NamedTuple):
    """A replacement for the text between two positions."""

    start: int
    end: int
    text: str


def edited(text: str, edits: Iterable[Edit]) -> str:
    """Return *text* with all *edits* made; no edit overlaps another."""
    parts: list[str] = []
    at = 0
    # By position only: insertions at one position keep their order.
    for start, end, new in sorted(edits, key=lambda each: each[:2]):
        parts += text[at:start], new
        at = end
    return "".join([*parts, text[at:]])


def patched(text: str, changes: Mapping[str, str | None]) -> str:
    """
    Return *text* with the value at each JSON Pointer of *changes* replaced by a text, or removed for None.

    A member that its object lacks is added as the last one. No pointer is above another, and no key is repeated. Only
    the arrays and objects above a changed place are stepped through.
    """
    tree: dict[str, Any] = {}
    for pointer, change in changes.items():
        *above, last = steps(pointer)
        here = tree
        for step in above:
            here = here.setdefault(step, {})
        here[last] = change
    return edited(text, _edits(text, 0, tree))


def _edits(text: str, at: int, tree: dict[str, Any]) -> Iterator[Edit]:
    members = list(elements(text, at))
    kept = [number for number, each in enumerate(members) if tree.get(each.name, "") is not None]
    last = kept[-1] if kept else -1
    end = members[last].end if kept else _past_space(text, at) + 1
    if last + 1 < len(members):
        # Nothing follows the last member that stays, not even a comma.
        yield Edit(end, members[-1].end, "")
    for number, each in enumerate(members[: last + 1]):
        if each.name not in tree:
            continue
        change = tree[each.name]
        if change is None:
            yield Edit(each.at, members[number + 1].at, "")
        elif isinstance(change, str):
            yield Edit(each.start, each.end, change)
        else:
            yield from _edits(text, each.start, change)
    present = {each.name for each in members}
    new = [f"{orjson.dumps(name).decode()}:{change}" for name, change in tree.items() if name not in present]
    if new:
        yield Edit(end, end, ("," if kept else "") + ",".join(new))


def _past_space(text: str, at: int) -> int:
    """Return the position after the white space at *at*."""
    match = _SPACE.match(text, at)
    return match.end() if match is not None else at
