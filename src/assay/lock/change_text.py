"""How a change is told: what was there, what is there, cut short around where they part. No I/O."""

from typing import Any, Final

from assay.lock.changes import Change, Weight

_BEFORE: Final = 16
"""Characters that are shown before the place where two texts part."""

PHRASES: Final[dict[Weight, str]] = {
    "breaking": "a breaking change",
    "undecided": "a change that may be breaking",
    "hints": "other hints",
    "wording": "other wording",
    "compatible": "a compatible change",
}
"""What a change is, in a few words."""


def describe(change: Change, most: int) -> str:
    """What has changed, in words; of two texts at most so many characters each."""
    if isinstance(change.old, str) and isinstance(change.new, str):
        old, new = excerpts(change.old, change.new, most)
        return f'was "{old}", is "{new}"'
    if change.weight == "wording" and isinstance(change.new, str):
        return f'new: "{visible(change.new, most)}"'
    return change.words


def excerpts(old: str, new: str, most: int) -> tuple[str, str]:
    """Two texts, each cut to *most* characters so that the place where they part is seen."""
    if max(len(old), len(new)) <= most:
        return visible(old, most), visible(new, most)
    alike = next((number for number, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), None)
    parting = min(len(old), len(new)) if alike is None else alike
    start = max(0, parting - _BEFORE)
    head = "…" if start else ""
    return head + visible(old[start:], most), head + visible(new[start:], most)


def visible(text: Any, most: int) -> str:
    """*text* on one line, cut short, with what cannot be seen spelt out."""
    cut = str(text)[:most]
    if not cut.isprintable():
        cut = "".join(each if each.isprintable() else _spelt(each) for each in cut)
    return cut + ("…" if len(str(text)) > most else "")


def _spelt(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\u{{{code:x}}}"
