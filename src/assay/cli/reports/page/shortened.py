"""
JSON values as text of limited length, around the places that matter. No I/O.

What is left out is marked by something that JSON does not have: ``…12`` in place of twelve elements, and ``"abc"…`` for
a string that goes on. `src/assay/web/json_text.js` reads it.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import orjson

_CUT: Final = "…"


class _Detail(NamedTuple):
    """How much is kept beside the way to a fault."""

    elements: int
    depth: int
    characters: int


_DETAILS: Final = (
    _Detail(100, 8, 4000), _Detail(40, 6, 1000), _Detail(16, 4, 300), _Detail(6, 3, 120), _Detail(2, 1, 40),
)  # fmt: skip
"""Tried in this order, until the text is short enough."""


class _Missing:
    """Stands for elements that were left out."""

    __slots__ = ("count",)

    def __init__(self, count: int) -> None:
        self.count = count


Steps = tuple[str, ...]


def shortened(value: Any, ways: Sequence[Steps], most: int) -> str:
    """Return *value* in about *most* characters; *ways* lead to the places that are kept."""
    text = ""
    for detail in _DETAILS:
        text = _written(_kept(value, ways, detail, detail.depth), detail.characters)
        if len(text) <= most:
            break
    return text


def _kept(value: Any, ways: Sequence[Steps], detail: _Detail, depth: int) -> Any:
    """Return the part of *value* to show."""
    if isinstance(value, dict):
        return _members(value, ways, detail, depth)
    return _items(value, ways, detail, depth) if isinstance(value, list) else value


def _members(value: dict[str, Any], ways: Sequence[Steps], detail: _Detail, depth: int) -> dict[str, Any]:
    wanted = {way[0] for way in ways if way}
    room = detail.elements if depth > 0 else 0
    kept: dict[str, Any] = {}
    left = 0
    for name, each in value.items():
        if name in wanted:
            kept[name] = _kept(each, [way[1:] for way in ways if way and way[0] == name], detail, detail.depth)
        elif room > 0:
            room -= 1
            kept[name] = _kept(each, (), detail, depth - 1)
        else:
            left += 1
    if left:
        # Any key that no member has: only the value is written.
        kept[next(key for key in map(str, range(len(kept) + 1)) if key not in kept)] = _Missing(left)
    return kept


def _items(value: list[Any], ways: Sequence[Steps], detail: _Detail, depth: int) -> list[Any]:
    wanted = {int(way[0]) for way in ways if way and way[0].isdecimal() and len(way[0]) < 10}
    room = detail.elements if depth > 0 else 0
    shown = sorted({*range(min(room, len(value))), *(each for each in wanted if each < len(value))})
    kept: list[Any] = []
    after = 0
    for index in shown:
        if index > after:
            kept.append(_Missing(index - after))
        below = [way[1:] for way in ways if way and way[0] == str(index)]
        kept.append(_kept(value[index], below, detail, detail.depth if index in wanted else depth - 1))
        after = index + 1
    if after < len(value):
        kept.append(_Missing(len(value) - after))
    return kept


def _written(value: Any, characters: int) -> str:
    if isinstance(value, _Missing):
        return f"{_CUT}{value.count}"
    if isinstance(value, str):
        return _string(value, characters)
    if isinstance(value, dict):
        members = (
            _written(each, characters)
            if isinstance(each, _Missing)
            else f"{_string(name, characters)}:{_written(each, characters)}"
            for name, each in value.items()
        )
        return f"{{{','.join(members)}}}"
    if isinstance(value, list):
        return f"[{','.join(_written(each, characters) for each in value)}]"
    return orjson.dumps(value).decode()


def _string(text: str, characters: int) -> str:
    shown = orjson.dumps(text[:characters]).decode()
    return shown if len(text) <= characters else shown + _CUT
