"""
Edits of JSON text by JSON Pointers, which leave every other byte as it is. No I/O, no judging.

The text is valid JSON without repeated keys. Only the arrays and objects above an edited place are stepped through.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from assay.engine.pointers import NOWHERE, steps
from assay.ladder.spots import Edit, edited, elements, past_space

REMOVED: Final = None
"""Stands for the text of a value that is removed with its key."""


class Added(str):
    """The text of a value that is added to its object as the last member."""

    __slots__ = ()


def patched(text: str, changes: Mapping[str, str | None]) -> str:
    """
    Return *text* with the value at each pointer of *changes* replaced by a text, `REMOVED` or `Added`.

    No pointer is above another. A value is added only to an object that lacks the member.
    """
    tree: dict[str, Any] = {}
    for pointer, change in changes.items():
        *above, last = steps(pointer)
        here = tree
        for step in above:
            here = here.setdefault(step, {})
        here[last] = change
    return edited(text, _edits(text, past_space(text, 0), tree))


def _edits(text: str, at: int, tree: dict[str, Any]) -> Iterator[Edit]:
    members = list(elements(text, at))
    kept = [number for number, each in enumerate(members) if tree.get(each.name, "") is not REMOVED]
    last = kept[-1] if kept else -1
    end = members[last].end if kept else at + 1
    if last + 1 < len(members):
        # Nothing follows the last member that stays, not even a comma.
        yield Edit(end, members[-1].end, "")
    for number, each in enumerate(members[: last + 1]):
        below = tree.get(each.name, NOWHERE)
        if below is REMOVED:
            yield Edit(each.at, members[number + 1].at, "")
        elif isinstance(below, str):
            yield Edit(each.start, each.end, below)
        elif isinstance(below, dict):
            yield from _edits(text, each.start, below)
    new = [f"{orjson.dumps(name).decode()}:{value}" for name, value in tree.items() if isinstance(value, Added)]
    if new:
        yield Edit(end, end, ("," if kept else "") + ",".join(new))
