"""
The second rung: from a frame to a JSON value and back. No JSON-RPC, no I/O.

Every accepted frame has exactly one reading: text that other parsers read differently (a repeated key, half of a
surrogate pair, a number that overflows) is refused here, because the frame is forwarded unchanged.
"""

import json
import re
from typing import Any

import jiter
import orjson

from assay.model.large_frames import at_most, more_than, paused
from assay.model.limits import DEFAULT
from assay.model.verdict import Violation
from assay.rules import violation
from assay.schema.budget import LARGE
from assay.schema.pointers import escaped

_loads = orjson.loads
_dumps = orjson.dumps

# From this length on jiter reads long text faster than orjson (measured: 0.57 of the time at 50 KB, with the search for
# repeated keys in the same pass); below it, or in frames with many keys, it is slower.
_LONG = 4096

# A long frame with so few values is mostly text.
_FEW = 64

# A large frame with more marks of JSON than that may have many values, and would be read twice.
_FEW_MARKS = 200_000

# The most bytes of a frame that Python searches for a repeated key: some 60 ms for the worst, at 2.7 µs an object.
_SEARCHED = 64 << 10

_BOM = b"\xef\xbb\xbf"


def read(frame: bytes, depth: int = DEFAULT.depth, values: int = DEFAULT.values) -> Any | Violation:
    """
    Return the JSON value in *frame*, or the violation.

    A repeated key is refused although RFC 8259 only discourages it: an accepted frame is forwarded unchanged, and the
    next parser might keep the other value. *values* is the most values and keys; 0 if they were counted already.
    """
    size = len(frame)
    if size >= _LONG or size > values:
        if (size > LARGE or size > values) and values:
            return _read_large(frame, depth, values)
        if size >= _LONG and _looks_like_text(frame):
            value = _read_text(frame, depth)
            if value is not _UNPROVED:
                return value
    try:
        value = _loads(frame)
        # orjson silently keeps the last of repeated keys. If the value, written again, is the frame to the byte, no key
        # was lost: this is so for nearly all traffic, and costs a third of reading it. A frame nested past the limit is
        # longer than twice the limit, and has more opening brackets than it: few frames need a closer look.
        flat = size <= 2 * depth or _opening_brackets(frame) <= depth
        again = _dumps(value) if flat else _dumps_within(value, depth)
    except orjson.JSONDecodeError as error:
        return _why_not(frame, error, depth)
    except _TooDeepError:
        return _too_deep(depth)
    if again == frame or _has_every_key(frame, again):
        return value
    return _repeated_key(frame)


def _read_large(frame: bytes, depth: int, values: int) -> Any | Violation:
    """Return the same for a large frame, whose values are counted before they are read."""
    if more_than(frame, values):
        return violation("syntax/values", expected=f"at most {values:,} values and keys", found="more")
    with paused():
        return read(frame, depth, 0)


_LONG_INTEGER = re.compile(rb"[0-9]{19}")


def read_exactly(frame: bytes, value: Any) -> Any:
    """
    Return the value in *frame*, which was read as *value*, with every integer to the last digit.

    `read` returns doubles for integers beyond 64 bits, as most peers do. Code that stores or compares values needs
    this.
    """
    # A value that is written as it came lost nothing; without such an integer it lost no digit.
    if _dumps(value) == frame or _LONG_INTEGER.search(frame) is None:
        return value

    try:
        return json.loads(frame)
    except ValueError:
        # Python reads no integer of more than 4,300 digits.
        return value


def write(value: Any) -> bytes:
    """Return the compact frame for *value*, on one line; integers to the last digit, however long."""
    try:
        return _dumps(value)
    except orjson.JSONEncodeError:
        return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()


_UNPROVED: Any = object()


def _looks_like_text(frame: bytes) -> bool:
    """Return whether three samples of *frame* have no key. A guess that decides the cost only, never the verdict."""
    middle = len(frame) // 2
    return (
        frame.find(b'":', middle, middle + 128) < 0
        and frame.find(b'":', 1024, 1152) < 0
        and frame.find(b'":', -1152, -1024) < 0
        and (len(frame) <= LARGE or at_most(frame) <= _FEW_MARKS)
    )


def _read_text(frame: bytes, depth: int) -> Any:
    """
    Return the value of a frame that is mostly text, or `_UNPROVED` if the thorough way must decide.

    jiter refuses repeated keys itself. It agrees with orjson on everything but numbers out of range, so only values
    without such numbers count (a test compares the two).
    """
    try:
        value = jiter.from_json(frame, catch_duplicate_keys=True, allow_inf_nan=False)
    except ValueError:
        return _UNPROVED
    seen = 0
    level = [value]
    while level:
        below: list[Any] = []
        nested = False
        for item in level:
            kind = type(item)
            if kind is dict:
                below += item.values()
                nested = True
            elif kind is list:
                below += item
                nested = True
            elif kind is float or (kind is int and not -(2**63) <= item < 2**63):
                return _UNPROVED
        depth -= nested
        seen += len(below)
        if seen > _FEW or depth < 0:
            return _UNPROVED
        level = below
    return value


class _TooDeepError(Exception):
    pass


def _opening_brackets(frame: bytes) -> int:
    """
    Return the number of such bytes in *frame*, those in strings included.

    They are counted by removing them, which runs at the speed of memchr: `bytes.count` looks at every byte, and takes
    four times as long.
    """
    return 2 * len(frame) - len(frame.replace(b"{", b"")) - len(frame.replace(b"[", b""))


# orjson writes at most this many levels, and fails for one more.
_DEEPEST_DUMP = 254


def _dumps_within(value: Any, depth: int) -> bytes:
    """Return *value* written again, if it is nested at most *depth* deep: wrapped so that orjson's limit applies."""
    if depth > _DEEPEST_DUMP:
        raise ValueError(f"a nesting limit is at most {_DEEPEST_DUMP}")
    wrapping = _DEEPEST_DUMP - depth
    for _ in range(wrapping):
        value = [value]
    try:
        again = _dumps(value)
    except orjson.JSONEncodeError:
        raise _TooDeepError from None
    return again[wrapping : len(again) - wrapping]


def _has_every_key(frame: bytes, again: bytes) -> bool:
    """
    Return whether the value, written *again*, has as many keys as *frame*, so that none was repeated.

    A dropped member takes its colon along, and no other colon can replace it: both have the same number, written or as
    the escape `\u003a`, exactly if nothing was dropped. For frames with white space or other spellings.
    """
    colons = frame.count(b":")
    if b"\\u003" in frame:
        # A backslash that is escaped itself does not start an escape.
        plain = frame.replace(b"\\\\", b"")
        colons += plain.count(b"\\u003a") + plain.count(b"\\u003A")
    return colons == again.count(b":")


class _Repeated(dict[str, Any]):
    """An object with a repeated key."""

    __slots__ = ("key",)

    key: str


def _repeated_key(frame: bytes) -> Violation:
    """Return the violation of a repeated key, with the key if the frame is small enough to search for it."""
    at, shown = "", "a key"
    if len(frame) <= _SEARCHED:
        # The numbers are not needed, and Python makes no integer of more than 4,300 digits.
        path = _find_repeated(json.loads(frame, object_pairs_hook=_object_of_pairs, parse_int=len, parse_float=len))
        if path:
            at, shown = "".join(f"/{escaped(step)}" for step in path), f"the key {_excerpt(path[-1])}"
    return violation("syntax/duplicate-key", at, expected="each key once", found=f"{shown} more than once")


def _object_of_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) == len(pairs):
        return plain
    marked = _Repeated(plain)
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            marked.key = key
            break
        seen.add(key)
    return marked


def _find_repeated(value: Any) -> list[str]:
    """Return the way to the first repeated key, in document order; [] without one. Frames are not nested deeply."""
    if isinstance(value, _Repeated):
        return [value.key]
    for step, child in value.items() if isinstance(value, dict) else enumerate(value):
        below = _find_repeated(child) if isinstance(child, dict | list) else []
        if below:
            return [str(step), *below]
    return []


def _why_not(frame: bytes, error: orjson.JSONDecodeError, depth: int) -> Violation:
    """Return the violation of an unreadable *frame*."""
    if frame.startswith(_BOM):
        return violation("syntax/bom", expected="JSON", found="a byte order mark")
    try:
        text = frame.decode()
    except UnicodeDecodeError as wrong:
        byte = f"the byte 0x{frame[wrong.start]:02x} at position {wrong.start}"
        start = frame[:1000].decode(errors="replace")
        shown = f" of {_excerpt(start)}" if _is_text(start, wrong.start) else ""
        return violation("syntax/utf8", expected="UTF-8", found=byte + shown)
    reason = error.msg.lower()
    if "surrogate" in reason:
        return violation(
            "syntax/surrogate", expected="a surrogate pair", found=f"an unpaired surrogate at character {error.pos}"
        )
    if "depth" in reason:
        return _too_deep(depth)
    if "infinity" in reason or text.startswith(("NaN", "Infinity", "-Infinity"), error.pos - text.startswith("-")):
        infinite = "a number that is too large" if "infinity" in reason else "NaN or Infinity"
        return violation("syntax/number", expected="a finite number", found=f"{infinite} at character {error.pos}")
    return violation("syntax/json", expected="one JSON value", found=_what_is_there(text, error))


def _what_is_there(text: str, error: orjson.JSONDecodeError) -> str:
    """Return the text where JSON should continue; for text that is not JSON, such as a log line, its start."""
    if _is_text(text, error.pos):
        return f"the text {_excerpt(text)}"
    # Older versions of the parser add the line and the column.
    reason = error.msg.partition(": line ")[0]
    return f"{reason} at character {error.pos}"


def _is_text(text: str, wrong: int) -> bool:
    """Return whether *text*, which is *wrong* at a position, is no JSON: log lines may start with a bracket."""
    return text.lstrip()[:1] not in ("{", "[") or '"' not in text[:wrong]


def _too_deep(depth: int) -> Violation:
    return violation("syntax/depth", expected=f"at most {depth} levels of nesting", found="more")


def _excerpt(text: str, most: int = 80) -> str:
    """Return *text* as JSON, shortened, without control characters: enough of a log line to find it."""
    shown = text if len(text) <= most else text[: most - 1] + "…"
    plain = shown if shown.isprintable() else "".join(each if each.isprintable() else "·" for each in shown)
    return _dumps(plain).decode()
