"""Describes a change: the old and the new text, shortened around their first difference. No I/O."""

from typing import Any, Final

from assay.lock.changes import Change, Weight

_BEFORE: Final = 16
"""Characters that are shown before the first difference of two texts."""

PHRASES: Final[dict[Weight, str]] = {
    "breaking": "a breaking change",
    "undecided": "a change that may be breaking",
    "hints": "other hints",
    "wording": "other wording",
    "compatible": "a compatible change",
}
"""A name for each weight of a change."""


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
