"""One change of a definition: its weight, its place, and its description for a reviewer. No I/O."""

from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

from assay.engine.pointers import NOWHERE
from assay.engine.wording import shown

ABSENT: Final = NOWHERE
"""Stands for a missing value, since null is a value."""

Weight = Literal["breaking", "undecided", "hints", "wording", "compatible"]

WEIGHTS: Final[tuple[Weight, ...]] = ("breaking", "undecided", "hints", "wording", "compatible")
"""The weights of a change, the worst first. An undecided one counts as breaking."""

PHRASES: Final[dict[Weight, str]] = {
    "breaking": "a breaking change",
    "undecided": "a change that may be breaking",
    "hints": "other hints",
    "wording": "other wording",
    "compatible": "a compatible change",
}
"""A name for each weight of a change."""

_BEFORE: Final = 16
"""Characters that are shown before the first difference of two texts."""


class Change(NamedTuple):
    """One difference between the reviewed definition and the present one."""

    weight: Weight
    at: str
    """JSON Pointer into the definition; into the old one if what was there is gone."""
    words: str
    old: Any
    new: Any
    """The old and the new value; `ABSENT` for a missing one."""

    @property
    def breaking(self) -> bool:
        """Whether it counts as breaking."""
        return self.weight in {"breaking", "undecided"}


def was_is(old: Any, new: Any, show: Callable[[Any], str] = shown) -> str:
    """Describe both values in a few words."""
    if old is ABSENT:
        return f"new: {show(new)}"
    return f"gone; was {show(old)}" if new is ABSENT else f"was {show(old)}, is {show(new)}"


def describe(change: Change, most: int) -> str:
    """Describe *change*, with at most *most* characters of each text."""
    if isinstance(change.old, str) and isinstance(change.new, str):
        old, new = excerpts(change.old, change.new, most)
        return f'was "{old}", is "{new}"'
    if change.weight == "wording" and isinstance(change.new, str):
        return f'new: "{visible(change.new, most)}"'
    return change.words


def excerpts(old: str, new: str, most: int) -> tuple[str, str]:
    """Return two texts, each cut to *most* characters around their first difference."""
    if max(len(old), len(new)) <= most:
        return visible(old, most), visible(new, most)
    alike = next((number for number, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), None)
    parting = min(len(old), len(new)) if alike is None else alike
    start = max(0, parting - _BEFORE)
    head = "…" if start else ""
    return head + visible(old[start:], most), head + visible(new[start:], most)


def visible(text: Any, most: int) -> str:
    """Return *text* on one line, shortened, with invisible characters escaped."""
    cut = str(text)[:most]
    if not cut.isprintable():
        cut = "".join(each if each.isprintable() else _spelt(each) for each in cut)
    return cut + ("…" if len(str(text)) > most else "")


def _spelt(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\u{{{code:x}}}"
