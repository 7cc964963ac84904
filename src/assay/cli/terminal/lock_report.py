"""Report the differences from a lock, as text or JSON."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

from assay.cli.terminal.style import Style
from assay.lock.change import ABSENT, WEIGHTS, Change, Weight, describe, visible
from assay.lock.locked import Difference

_MARKS: Final = {"added": ("+", "green"), "removed": ("-", "red"), "changed": ("~", "yellow")}
_COLOURS: Final[dict[Weight, str]] = {
    "breaking": "red",
    "undecided": "red",
    "hints": "yellow",
    "wording": "yellow",
    "compatible": "dim",
}
_NAMES: Final[dict[Weight, str]] = {"undecided": "undecided (counts as breaking)"}
"""Names of weights in the summary, if the plain name is not clear enough."""

_TEXT: Final = 2000
"""Maximal characters of a text to show: a reviewer has to see the whole description."""

_SHORT: Final = 100
_MOST: Final = 50
"""Maximal changes of one tool, template or prompt to show."""


def lines(name: str, found: Iterable[Difference], style: Style) -> Iterator[str]:
    """Yield the lines about the differences of one server."""
    found = list(found)
    if found:
        yield style.paint(visible(name, _SHORT), "bold")
    for each in found:
        yield from _block(each, style) if each.counts else _notes(each, style)


def _block(each: Difference, style: Style) -> Iterator[str]:
    mark, colour = _MARKS[each.what]
    weight = f" ({each.weight})" if each.weight else ""
    yield style.paint(f"  {mark} {each.noun} {visible(each.name, _SHORT)}: {each.what}{weight}", colour)
    for change in each.changes[:_MOST]:
        yield from _change(change, style)
    if len(each.changes) > _MOST:
        yield f"      and {len(each.changes) - _MOST:,} more changes"


def _notes(each: Difference, style: Style) -> Iterator[str]:
    """Yield a note for each change that is reported but does not count as a difference."""
    for change in each.changes:
        what = f"{each.noun} {visible(each.name, _SHORT)}: {visible(change.at, _SHORT)}: {describe(change, _SHORT)}"
        yield style.paint(f"  note: {what}", "dim")


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
        yield f"      {head}  {visible(change.at, _SHORT)}: {describe(change, _SHORT)}"


def summary(found: Iterable[Difference], path: str) -> str:
    """Return the number of differences by weight, the worst first. Each counts once, by its worst change."""
    found = list(found)
    counting = [each for each in found if each.counts]
    if not counting:
        return f"nothing else differs from {path}" if found else f"{path} is up to date"
    counts = Counter(each.weight for each in counting)
    parts = [f"{counts[weight]:,} {_NAMES.get(weight, weight)}" for weight in WEIGHTS if counts[weight]]
    parts += [f"{counts[None]:,} added"] if counts[None] else []
    noun = "difference" if len(counting) == 1 else "differences"
    return f"{len(counting):,} {noun} from {path}: {', '.join(parts)}"


def record(name: str, found: Iterable[Difference]) -> dict[str, Any]:
    """Return the differences of one server as JSON values."""
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
