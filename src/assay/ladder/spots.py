"""
The position of values in JSON text, and edits of the text that leave every other byte as it is. No I/O, no judging.

The text is valid JSON. The scanner of the standard library steps over values: it is written in C and returns where each
one ends. It builds no objects and no numbers, because Python refuses integers of more than 4,300 digits.

`cli.clients.parsing` has a scanner of its own: it reads files with comments, and reports where they are malformed.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from assay.base.large_frames import paused

Tree = Mapping[str, "str | Tree"]
"""The members to find, by key: a name for the value, or the members inside it."""

Spot = tuple[str, int, int]
"""The name of a value, and the positions where its text starts and ends."""

scan: Final = json.JSONDecoder(parse_int=len, parse_float=len, object_pairs_hook=len, strict=False).raw_decode
"""Step over the value at a position. Return the value, if it is a string, and the position where it ends."""

_SPACE: Final = re.compile(r"[ \t\r\n]*+")

_LONG: Final = 4096
"""Length in characters from which it is faster to search for the keys first."""

_ESCAPED: Final = re.compile(r"\\(?:u00[2-7]|/)")
"""An escape sequence that may stand for a character of a key that is looked for."""


def spots(text: str, places: Tree) -> list[Spot]:
    """Return the values at *places* in *text*, a JSON value without repeated keys, in the order of the text."""
    if len(text) >= _LONG:
        with paused():
            return _spots(text, places if _ESCAPED.search(text) is not None else _present(text, places))
    return _spots(text, places)


def _spots(text: str, places: Tree) -> list[Spot]:
    found: list[Spot] = []
    start = past_space(text, 0)
    if places and text[start : start + 1] == "{":
        _walk(text, start + 1, places, found, _leaves(places))
    return found


class Element(NamedTuple):
    """A member of an object, or an item of an array."""

    name: str
    """The key of a member, the number of an item."""
    at: int
    """The position where it starts: for a member that of its key."""
    start: int
    end: int
    """The positions where its value starts and ends."""


def elements(text: str, at: int = 0) -> Iterator[Element]:
    """Yield the elements of the object or array at the position *at*, or after white space there."""
    at = past_space(text, at)
    keyed = text[at] == "{"
    at = past_space(text, at + 1)
    number = 0
    while text[at] not in "}]":
        begun, name = at, str(number)
        if keyed:
            name, at = scan(text, at)
            at = past_space(text, past_space(text, at) + 1)
        end = scan(text, at)[1]
        yield Element(name, begun, at, end)
        at = past_space(text, end)
        at = past_space(text, at + 1) if text[at] == "," else at
        number += 1


class Located(NamedTuple):
    """The text of a value that was looked for by its place."""

    start: int
    end: int
    """The positions where its text starts and ends; of the last object or array on the way if it is missing."""
    is_there: bool
    """Whether the value exists."""


def located(text: str, tokens: Sequence[str], *, last: bool = False) -> Located:
    """
    Return where the value at a place is; *tokens* are the steps of its JSON Pointer.

    With *last*, the last of several members with the same key. The time is linear in the length of *text*, however deep
    the place is: no value on the way is read twice.
    """
    at = past_space(text, 0)
    for number, token in enumerate(tokens):
        inside = _step(text, at, token, last=last and number == len(tokens) - 1)
        if inside is None:
            return Located(at, scan(text, at)[1], is_there=False)
        at = inside
    return Located(at, scan(text, at)[1], is_there=True)


def _step(text: str, at: int, token: str, *, last: bool) -> int | None:
    """Return the position of one element of the object or array at *at*; None if it does not exist."""
    if text[at] not in "{[":
        return None
    keyed, number, found = text[at] == "{", 0, None
    at = past_space(text, at + 1)
    while text[at] not in "}]":
        name = str(number)
        if keyed:
            name, at = scan(text, at)
            at = past_space(text, past_space(text, at) + 1)
        if name == token:
            found = at
            if not last:
                return found
        at = past_space(text, scan(text, at)[1])
        at = past_space(text, at + 1) if text[at] == "," else at
        number += 1
    return found


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


def past_space(text: str, at: int) -> int:
    """Return the position after the white space at *at*."""
    match = _SPACE.match(text, at)
    return match.end() if match is not None else at


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


def _walk(text: str, at: int, places: Tree, found: list[Spot], most: int) -> int:
    """
    Add the values at *places* of the object that starts before *at* to *found*.

    Return the position where the object ends, or where *most* values were found.
    """
    at = past_space(text, at)
    while text[at] == '"':
        key, at = scan(text, at)
        at = past_space(text, past_space(text, at) + 1)
        place = places.get(key)
        if isinstance(place, Mapping) and text[at] == "{":
            end = _walk(text, at + 1, place, found, most)
        else:
            end = scan(text, at)[1]
            if isinstance(place, str):
                found.append((place, at, end))
        if len(found) == most:
            return end
        at = past_space(text, end)
        at = past_space(text, at + 1) if text[at] == "," else at
    return at + 1
