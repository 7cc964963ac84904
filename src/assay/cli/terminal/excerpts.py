"""The part of a message around a fault, with a caret under it. The text has no secrets, and the work is bounded."""

from typing import Final, NamedTuple

import orjson

from assay.base.printable import plain
from assay.base.verdict import Verdict, Violation
from assay.cli.terminal.style import Style, columns
from assay.core.redaction import Redactor
from assay.engine.pointers import steps
from assay.ladder.spots import located

_LONGEST: Final = 256 << 10
"""Maximal bytes of a message to search. Looking for secrets in so many takes some 10 ms."""

_BEFORE: Final = 0.4
"""The part of the line before the fault, if it does not fit: most of it is the way there."""

_LARGEST_POINTER: Final = 1000
"""Maximal characters of a place to search for. A longer one is cut in reports."""


class TextFault(NamedTuple):
    """A fault in a text: the positions where the faulty part starts and ends."""

    text: str
    start: int
    end: int


def excerpt_lines(verdict: Verdict, violation: Violation, redactor: Redactor, style: Style, indent: int) -> list[str]:
    """Return a line of the message and one with the caret; nothing if the message or the place cannot be shown."""
    fault = _fault(verdict, violation, redactor)
    if fault is None or not fault.text.strip():
        return []
    return _drawn(fault, style, indent)


def _fault(verdict: Verdict, violation: Violation, redactor: Redactor) -> TextFault | None:
    frame = verdict.frame
    if verdict.kind in {"missing", "blank"} or not 0 < len(frame) <= _LONGEST or not _is_pointer(violation.at):
        return None
    if violation.rule in POSITIONS:
        return unreadable_fault(frame, violation, redactor)
    try:
        text = redactor.frame(frame.decode(), verdict.value)
        place = located(text, steps(violation.at), last=violation.rule == "syntax/duplicate-key")
    except (ValueError, IndexError, RecursionError):
        # Masks in an invalid message can make it unreadable in another way.
        return None
    # The whole of a string, a number or a word; of an object or array, which lacks something, the opening bracket.
    is_whole = place.is_there and text[place.start] not in "{["
    return TextFault(text, place.start, place.end if is_whole else place.start + 1)


def _is_pointer(at: str) -> bool:
    """Whether a place is in the message, and not in its HTTP headers."""
    return len(at) <= _LARGEST_POINTER and at[:1] in {"", "/"}


POSITIONS: Final = frozenset({"syntax/json", "syntax/utf8", "syntax/surrogate", "syntax/number", "syntax/bom",
                               "framing/carriage-return"})  # fmt: skip
"""Rules about text that is not a JSON value: the fault has a position, and no place."""

_AS_TEXT: Final = "the text "
"""How a violation begins that shows the text itself."""


def unreadable_fault(frame: bytes, violation: Violation, redactor: Redactor) -> TextFault | None:
    """Return the fault in a frame that is not JSON; None if its position is unknown, or all of the text is wrong."""
    if violation.found.startswith(_AS_TEXT):
        return None
    text = redactor.unreadable(frame.decode(errors="replace"))
    if violation.rule == "framing/carriage-return":
        at = text.find("\r")
    elif violation.rule == "syntax/utf8":
        at = text.find("\ufffd")
    elif violation.rule == "syntax/bom":
        at = 0
    else:
        at = _error_position(text)
    return None if at < 0 else TextFault(text, min(at, len(text)), at + 1)


def _error_position(text: str) -> int:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return error.pos
    return -1


def _drawn(fault: TextFault, style: Style, indent: int) -> list[str]:
    width = style.width - indent
    start, end = _window(fault, width)
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
