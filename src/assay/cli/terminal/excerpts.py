"""The part of a message around a fault, with a caret under it. The text has no secrets, and the work is bounded."""

from typing import Final, NamedTuple

import orjson

from assay.cli.terminal.style import Style, columns
from assay.judge.text_edit import located
from assay.model.printable import plain
from assay.records.record import Finding, Record
from assay.schema.pointers import steps

_LONGEST: Final = 256 << 10
"""Maximal characters of a message to search."""

_BEFORE: Final = 0.4
"""The part of the line before the fault, if it does not fit: most of it is the way there."""

_LARGEST_POINTER: Final = 1000
"""Characters of a place that is too long to search for: records have at most so many, and a longer one is cut."""

POSITIONS: Final = frozenset({"syntax/json", "syntax/utf8", "syntax/surrogate", "syntax/number", "syntax/bom",
                              "framing/carriage-return"})  # fmt: skip
"""Rules about text that is not a JSON value: the fault has a position, and no place."""

_AS_TEXT: Final = "the text "
"""How a finding begins that shows the text itself."""


class TextFault(NamedTuple):
    """A fault in a text: the positions where the faulty part starts and ends."""

    text: str
    start: int
    end: int


def excerpt_lines(record: Record, finding: Finding, style: Style, indent: int) -> list[str]:
    """Return a line of the message and one with the caret; nothing if the message or the place cannot be shown."""
    frame, metadata = record.frame, record.metadata
    if frame is None or metadata.kind in {"missing", "blank"} or metadata.lacks:
        # What is recorded of a message that lacks something is not what was judged.
        return []
    fault = _fault(metadata.frame or frame.decode(errors="replace"), finding)
    return [] if fault is None or not fault.text.strip() else _drawn(fault, style, indent)


def _fault(text: str, finding: Finding) -> TextFault | None:
    is_pointer = len(finding.at) < _LARGEST_POINTER and finding.at[:1] in {"", "/"}
    if not 0 < len(text) <= _LONGEST or not is_pointer:
        # The place of other findings is in the HTTP headers.
        return None
    if finding.rule in POSITIONS:
        return unreadable_fault(text, finding)
    try:
        place = located(text, steps(finding.at), last=finding.rule == "syntax/duplicate-key")
    except (ValueError, IndexError, RecursionError):
        # Masks in an invalid message can make it unreadable in another way.
        return None
    # The whole of a string, a number or a word; of an object or array, which lacks something, the opening bracket.
    is_whole = place.is_there and text[place.start] not in "{["
    return TextFault(text, place.start, place.end if is_whole else place.start + 1)


def unreadable_fault(text: str, finding: Finding) -> TextFault | None:
    """Return the fault in *text* that is not JSON; None if its position is unknown, or all of the text is wrong."""
    if finding.found.startswith(_AS_TEXT):
        return None
    at = -1
    if finding.rule == "framing/carriage-return":
        at = text.find("\r")
    elif finding.rule == "syntax/utf8":
        at = text.find("\ufffd")
    elif finding.rule == "syntax/bom":
        at = 0
    else:
        try:
            orjson.loads(text)
        except orjson.JSONDecodeError as error:
            at = error.pos
    return None if at < 0 else TextFault(text, min(at, len(text)), at + 1)


def _drawn(fault: TextFault, style: Style, indent: int) -> list[str]:
    start, end = _window(fault, style.width - indent)
    shown = [plain(each) for each in (fault.text[start : fault.start], fault.text[fault.start : end])]
    before, after = (style.carried(each) for each in shown)
    head = style.carried("…") if start else ""
    tail = style.carried("…") if end < len(fault.text) else ""
    marked = style.carried(plain(fault.text[fault.start : min(fault.end, end)]))
    caret = " " * columns(head + before) + style.paint("^" * max(1, columns(marked)), "red")
    margin = " " * indent
    return [f"{margin}{head}{before}{after}{tail}", f"{margin}{caret}"]


def _window(fault: TextFault, width: int) -> tuple[int, int]:
    """Return the positions between which the text is shown."""
    # Two ellipses of up to three columns each.
    room = max(10, width - 6)
    start = max(0, fault.start - int(room * _BEFORE))
    if len(fault.text) - start < room:
        start = max(0, len(fault.text) - room)
    end = min(len(fault.text), start + room)
    # Wide characters take two columns; each step removes at least one.
    while end > fault.start + 1 and columns(plain(fault.text[start:end])) > room:
        if start < fault.start and columns(plain(fault.text[start : fault.start])) > room * _BEFORE:
            start += 1
        else:
            end -= 1
    return start, end
