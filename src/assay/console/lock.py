"""What differs from a lock, for people and for programs."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from assay.console.style import Style
from assay.lock.changes import Change, Weight
from assay.lock.locked import Difference
from assay.lock.shifts import ABSENT
from assay.lock.words import told, visible

_MARKS: Final = {"added": ("+", "green"), "removed": ("-", "red"), "changed": ("~", "yellow")}
_COLOURS: Final[dict[Weight, str]] = {
    "breaking": "red",
    "undecided": "red",
    "hints": "yellow",
    "wording": "yellow",
    "compatible": "dim",
}
_TEXT: Final = 2000
"""Characters of a text that are shown: who reviews a description wants to see it."""

_SHORT: Final = 100
_MOST: Final = 50
"""Changes of one thing that are shown."""


def lines(name: str, found: Iterable[Difference], style: Style) -> Iterator[str]:
    """The differences of one server."""
    found = list(found)
    if found:
        yield style.paint(visible(name, _SHORT), "bold")
    for each in found:
        mark, colour = _MARKS[each.what]
        breaking = " (breaking)" if each.what == "removed" else ""
        yield style.paint(f"  {mark} {each.noun} {visible(each.name, _SHORT)}: {each.what}{breaking}", colour)
        for change in each.changes[:_MOST]:
            yield from _change(change, style)
        if len(each.changes) > _MOST:
            yield f"      {len(each.changes) - _MOST:,} changes more"


def _change(change: Change, style: Style) -> Iterator[str]:
    head = style.paint(f"{change.weight:<10}", _COLOURS[change.weight])
    texts = [one for one in (change.old, change.new) if isinstance(one, str)]
    if change.weight == "wording" and texts:
        yield f"      {head}  {visible(change.at, _SHORT)}"
        for sign, colour, value in (("-", "red", change.old), ("+", "green", change.new)):
            if value is not ABSENT:
                first, *rest = style.wrapped(visible(value, _TEXT), 20)
                yield style.paint(f"                  {sign} {first.lstrip()}", colour)
                yield from (style.paint(line, colour) for line in rest)
    else:
        yield f"      {head}  {visible(change.at, _SHORT)}: {told(change, _SHORT)}"


def summary(found: Iterable[Difference], path: str) -> str:
    """How much differs."""
    counting = [each for each in found if each.counts]
    if not counting:
        return f"nothing differs from {path}"
    breaking = sum(each.breaking for each in counting)
    noun = "difference" if len(counting) == 1 else "differences"
    return f"{len(counting):,} {noun} from {path}, {breaking:,} of them breaking"


def record(name: str, found: Iterable[Difference]) -> dict[str, Any]:
    """The differences of one server, for programs."""
    return {"name": name, "differences": [_difference(each) for each in found]}


def _difference(each: Difference) -> dict[str, Any]:
    return {
        "kind": each.noun,
        "name": each.name,
        "change": each.what,
        "breaking": each.breaking,
        "counts": each.counts,
        "changes": [_record(change) for change in each.changes],
    }


def _record(change: Change) -> dict[str, Any]:
    values = {"old": change.old, "new": change.new}
    return {
        "weight": change.weight,
        "at": change.at,
        "words": change.words,
        **{key: value for key, value in values.items() if value is not ABSENT},
    }
