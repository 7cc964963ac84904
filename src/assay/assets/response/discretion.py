"""
Decide whether the text of a failure is safe to show: it must contain nothing of the input (specs/004: no code contents
in error responses).

A text is shown unchanged or not at all: nothing is removed from it, because the rest could still reveal the input. In
doubt the text is not shown. No I/O, no exceptions for any content of arguments.
"""

import re
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from os import PathLike, fspath
from types import BuiltinFunctionType
from typing import Any, Final

import orjson

Heard = bytes | tuple[str, ...] | None
"""The input of the caller: as JSON text, as the strings in it, or None if it is unknown."""

_RUN: Final = 4
"""
Consecutive characters that a text must not share with an argument. A PIN or a short name has four; any two sentences
share three.
"""

_LONGEST: Final = 200
"""Maximal characters of a text. A longer one was composed from other data."""

_LONGEST_WORD: Final = 40
"""Maximal characters without a space. Encoded data (base64, hexadecimal) is longer, names and most paths are not."""

_MOST_CHARACTERS: Final = 16 * 1024
"""Maximal characters of all arguments. Beyond it nearly every sentence shares a run; the search takes at most 2 ms."""

_MOST_VALUES: Final = 1000
"""Maximal values in all arguments, at about 1 µs each, when a call has failed."""

_ESCAPED: Final = re.compile(r"\\|%[0-9A-Fa-f]{2}|&#?\w+;")
"""Signs of encoded text, which cannot be compared: repr and JSON, URLs, HTML."""

_SCALARS: Final = (str, int, float, bytes, bytearray)
# No other sequence: an array of numbers can encode text.
_CONTAINERS: Final = (Mapping, list, tuple, set, frozenset, deque)

_WORDS: Final = re.compile(r"\w+")

# Dates count as doubt: there are too many ways to write one.
_PLAIN: Final = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME


def heard(arguments: Any, parameters: Collection[str] = ()) -> Heard:
    """
    Return *arguments* as they are now: a tool may remove secrets from them before it fails.

    Bytes are the JSON text of the arguments, and are parsed only after a failure. The names of *parameters* are the
    tool's own; every other key comes from the caller.
    """
    if arguments is None or isinstance(arguments, bytes):
        return arguments
    try:
        return orjson.dumps(arguments, option=_PLAIN)
    except TypeError:
        return _spoken(arguments, parameters)


def fit(text: str, said: Heard, parameters: Collection[str] = ()) -> bool:
    """Whether *text* can be shown to the sender of *said*."""
    if not 0 < len(text) <= _LONGEST or not text.isprintable() or _ESCAPED.search(text):
        return False
    if any(len(word) > _LONGEST_WORD for word in text.split()):
        return False
    strings = _read(said, parameters) if isinstance(said, bytes) else said
    return strings is not None and not _shares(text.casefold(), strings)


def _read(said: bytes, parameters: Collection[str]) -> tuple[str, ...] | None:
    if len(said) > _MOST_CHARACTERS:
        return None
    try:
        value = orjson.loads(said)
    except ValueError:
        return None
    return _spoken(value, parameters)


def _spoken(arguments: Any, parameters: Collection[str]) -> tuple[str, ...] | None:
    if isinstance(arguments, dict):
        return _strings([*arguments.values(), *(key for key in arguments if key not in parameters)])
    return _strings([arguments])


def _shares(text: str, strings: Iterable[str]) -> bool:
    """Whether part of *strings* is in *text*, which is case-folded."""
    folded = {string.casefold() for string in strings}
    # Code is often quoted on one line. The newline between strings, which no printable text has, separates them.
    flat = {" ".join(string.split()) for string in folded}
    everything = "\n".join(folded | flat)
    runs = {text[at : at + _RUN] for at in range(len(text) - _RUN + 1)}
    if any(run in everything for run in runs):
        return True
    words = set(_WORDS.findall(text))
    short = (string for string in flat if len(string) < _RUN)
    return any(string in words if string.isalnum() else len(string) > 1 and string in text for string in short)


# ── every string in a value ──────────────────────────────────────────────────────────────────────────────────────────


def _strings(values: Sequence[Any]) -> tuple[str, ...] | None:
    """Return every string in *values*, and every number as text; None if one is opaque, or there are too many."""
    found: list[str] = []
    waiting = list(values)
    seen = characters = 0
    try:
        while waiting:
            value = waiting.pop()
            forms = _forms(value)
            found += forms
            seen += 1
            characters += sum(map(len, forms))
            waiting += _inside(value, _MOST_VALUES - seen - len(waiting))
            # An object can contain itself, so values are counted here, too.
            if characters > _MOST_CHARACTERS or seen > _MOST_VALUES:
                return None
    except Exception:  # any exception of an argument's methods counts as doubt
        return None
    return tuple(found)


def _forms(value: Any) -> tuple[str, ...]:
    """Return the text forms of *value*, if it is a scalar."""
    if isinstance(value, str):
        return (str.__str__(value),)  # a subclass may have another representation
    if isinstance(value, int):
        return () if isinstance(value, bool) else (str(value), f"{value:,}")
    if isinstance(value, float):
        return (str(value), f"{value:,}", f"{value:g}", f"{value:f}")
    if isinstance(value, bytes | bytearray):
        return (value.decode(errors="replace"), value.decode("latin-1"))
    return ()


def _inside(value: Any, room: int) -> Iterable[Any]:
    """Return the content of *value*. Raises `ValueError` for more than *room*, and `TypeError` if it is unknown."""
    if value is None or isinstance(value, _SCALARS):
        return ()
    if isinstance(value, PathLike):
        return (fspath(value),)
    if isinstance(value, _CONTAINERS):
        if len(value) * 2 > room:
            raise ValueError
        return (*value, *value.values()) if isinstance(value, Mapping) else tuple(value)
    if isinstance(value, Enum):
        return (value.name, value.value)
    return _attributes(value)


def _attributes(value: Any) -> Iterable[Any]:
    kinds = type(value).__mro__[:-1]
    if callable(value) or not kinds or not all(map(_made_in_python, kinds)):
        raise TypeError
    for name in (name for kind in kinds for name in _slots(kind)):
        yield getattr(value, name, None)
    yield from getattr(value, "__dict__", {}).values()


def _made_in_python(kind: type) -> bool:
    """Whether the attributes of an instance are its whole content. Types in C have no module, or a constructor in C."""
    return "__module__" in kind.__dict__ and not isinstance(kind.__dict__.get("__new__"), BuiltinFunctionType)


def _slots(kind: type) -> Iterable[str]:
    slots = kind.__dict__.get("__slots__", ())
    for name in (slots,) if isinstance(slots, str) else slots:
        if name != "__weakref__":
            private = name.startswith("__") and not name.endswith("__")
            yield f"_{kind.__name__.lstrip('_')}{name}" if private else name
