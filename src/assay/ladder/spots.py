"""
Where in a message something stands, and how it is spelt there. No I/O, no judging.

Values are stepped over by the scanner of the standard library, which is written in C and knows where each ends. It
keeps no object and no number: Python makes no integer of more than 4,300 digits.
"""

import json
import re
from collections.abc import Mapping
from typing import Final

from assay.base.collector import paused

Tree = Mapping[str, "str | Tree"]
"""The members that are looked for, by key: a name for what is found, or the members inside."""

Spot = tuple[str, int, int]
"""What was found: its name, and from where to where its text goes."""

scan: Final = json.JSONDecoder(parse_int=len, parse_float=len, object_pairs_hook=len, strict=False).raw_decode
"""Steps over the value that begins somewhere in a text: what it is, if it is a string, and where it ends."""

_SPACE: Final = re.compile(r"[ \t\r\n]*+")

_LONG: Final = 4096
"""Characters from which on it pays to look for the keys first."""

_ESCAPED: Final = re.compile(r"\\(?:u00[2-7]|/)")
"""An escape that a key of ours could be spelt with."""


def spots(text: str, places: Tree) -> list[Spot]:
    """What stands at *places* in *text*, a JSON value without repeated keys, in its order."""
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


def items(text: str) -> list[tuple[int, int]]:
    """From where to where each entry of an array goes."""
    found: list[tuple[int, int]] = []
    with paused():
        at = past_space(text, past_space(text, 0) + 1)
        while text[at] != "]":
            end = scan(text, at)[1]
            found.append((at, end))
            at = past_space(text, end)
            at = past_space(text, at + 1) if text[at] == "," else at
    return found


def past_space(text: str, at: int) -> int:
    """Where the white space ends that begins *at*."""
    match = _SPACE.match(text, at)
    return match.end() if match is not None else at


def _present(text: str, places: Tree) -> Tree:
    """*places* without those whose key is nowhere in *text*."""
    kept: dict[str, str | Tree] = {}
    for key, place in places.items():
        below = place if isinstance(place, str) else _present(text, place)
        if below and f'"{key}"' in text:
            kept[key] = below
    return kept


def _leaves(places: Tree) -> int:
    return sum(1 if isinstance(place, str) else _leaves(place) for place in places.values())


def _walk(text: str, at: int, places: Tree, found: list[Spot], most: int) -> int:
    """Notes what stands at *places* of the object that begins before *at*; where it ends, or *most* were found."""
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
