"""
Make the error of an envelope from an exception, or from a payload that reports its own failure.

An error has nothing of the input (specs/004: no code contents in error responses). Of an exception only its type and
its own text are used: never its notes, its cause, its traceback. A text is shown unchanged or not at all: nothing is
removed from it, because the rest could still reveal the input. In doubt it is not shown.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import orjson

from assay.assets.response_envelope import (
    ERROR_CODES,
    ResponseEnvelope,
    ToolError,
    UpgradeHint,
    UpgradeRequiredError,
    needs,
)

Heard = tuple[str, ...] | bytes | dict[str, Any] | None
"""
The input of the caller: the texts in it; JSON text, or an object that nothing changes, which are searched only after a
failure; or None if it is unknown.
"""

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
"""Maximal values in all arguments, at about 1 µs each."""

_MOST_BITS: Final = 10_000
"""Maximal bits of an integer. Python converts at most 4,300 digits, a little over 14,000 bits."""

_ESCAPED: Final = re.compile(r"\\|%[0-9A-Fa-f]{2}|&#?\w+;")
"""Signs of encoded text, which cannot be compared: repr and JSON, URLs, HTML."""

_WORDS: Final = re.compile(r"\w+")

_BY_EXCEPTION: Final[Mapping[type, str]] = {
    FileNotFoundError: "not_found",
    PermissionError: "forbidden",
    TimeoutError: "timeout",
    ValueError: "invalid_argument",
    TypeError: "invalid_argument",
    NotImplementedError: "not_implemented",
    MemoryError: "resource_exhausted",
    UpgradeRequiredError: "upgrade_required",
}
"""Our choice. A subclass counts as its nearest base; everything else is an `internal_error`."""

_BY_REASON: Final[Mapping[str, str]] = {
    "backend_error": "dependency_unavailable",
    "unsupported": "not_implemented",
    "validation_failed": "invalid_argument",
    **{code: code for code in ERROR_CODES},
}
"""Codes by the reason in a payload: those of specs/001, section 6, and the codes themselves."""

_BY_PHRASE: Final[tuple[tuple[str, str], ...]] = (
    ("not found", "not_found"),
    ("no such file", "not_found"),
    ("does not exist", "not_found"),
    ("permission denied", "forbidden"),
    ("forbidden", "forbidden"),
    ("timed out", "timeout"),
    ("timeout", "timeout"),
    ("too large", "too_large"),
    ("not implemented", "not_implemented"),
)
"""Codes by a phrase in a payload without a reason, as in the second example of specs/004."""

_TEXTS: Final = ("error", "message", "detail", "reason", "msg")


# ── what may be shown ────────────────────────────────────────────────────────────────────────────────────────────────


def heard(arguments: Any, parameters: Collection[str] = ()) -> Heard:
    """
    Return the texts in *arguments* as they are now: a tool may remove secrets from them before it fails.

    Bytes are the JSON text of the arguments. The names of *parameters* are the tool's own; every other key comes from
    the caller.
    """
    return arguments if arguments is None or isinstance(arguments, bytes) else _texts_in(arguments, parameters)


def is_safe(text: str, said: Heard, parameters: Collection[str] = ()) -> bool:
    """Whether *text* can be shown to the sender of *said*."""
    if not 0 < len(text) <= _LONGEST or not text.isprintable() or _ESCAPED.search(text):
        return False
    if any(len(word) > _LONGEST_WORD for word in text.split()):
        return False
    try:
        if isinstance(said, bytes):
            said = orjson.loads(said) if len(said) <= _MOST_CHARACTERS else None
    except ValueError:
        return False
    texts = said if said is None or isinstance(said, tuple) else _texts_in(said, parameters)
    return texts is not None and not _shares(text.casefold(), texts)


def _texts_in(arguments: Any, parameters: Collection[str]) -> tuple[str, ...] | None:
    """Return every text in *arguments*, and every number as text; None if something is not JSON, or too much."""
    if type(arguments) is dict:
        arguments = [*arguments.values(), *(key for key in arguments if key not in parameters)]
    texts: list[str] = []
    waiting = [arguments]
    for value in waiting:  # which grows meanwhile
        # Not a subclass: its content may be more than what it shows.
        kind = type(value)
        if kind is str:
            texts.append(value)
        elif kind is float:
            texts += (str(value), f"{value:,}", f"{value:g}", f"{value:f}")
        elif kind is int and value.bit_length() <= _MOST_BITS:
            texts += (str(value), f"{value:,}")
        elif kind in (dict, list, tuple) and 2 * len(value) + len(waiting) <= _MOST_VALUES:
            waiting += value
            waiting += value.values() if kind is dict else ()
        elif value is not None and kind is not bool:
            return None
    return tuple(texts) if sum(map(len, texts)) <= _MOST_CHARACTERS else None


def _shares(text: str, said: tuple[str, ...]) -> bool:
    """Whether part of *said* is in *text*, which is case-folded."""
    folded = {each.casefold() for each in said}
    # Code is often quoted on one line. The newline between texts, which no printable text has, separates them.
    flat = {" ".join(each.split()) for each in folded}
    everything = "\n".join(folded | flat)
    if any(text[at : at + _RUN] in everything for at in range(len(text) - _RUN + 1)):
        return True
    words = set(_WORDS.findall(text))
    short = (each for each in flat if len(each) < _RUN)
    return any(each in words if each.isalnum() else len(each) > 1 and each in text for each in short)


# ── exceptions ───────────────────────────────────────────────────────────────────────────────────────────────────────


def raised(error: Exception, said: Heard, parameters: Collection[str]) -> ToolError:
    """Return *error* for the sender of *said*: with its own text if that is safe, else with the meaning of its code."""
    code = next((_BY_EXCEPTION[kind] for kind in type(error).__mro__ if kind in _BY_EXCEPTION), "internal_error")
    if isinstance(error, UpgradeRequiredError):
        return ToolError(f"This needs the {error.required_tier} tier.", code)
    # The text of an unexpected exception is for the operator: it may contain a password or a query of ours.
    text = "" if code == "internal_error" else _text_of(error)
    return _told(text, code, said, parameters)


def _told(text: str, code: str, said: Heard, parameters: Collection[str]) -> ToolError:
    return ToolError(text if is_safe(text, said, parameters) else ERROR_CODES[code], code)


def _text_of(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        # Without the path, which the caller may not know.
        return str(error.strerror or "")
    try:
        return str(error)
    except Exception:
        return ""


# ── results ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def discreet(envelope: ResponseEnvelope, said: Heard, parameters: Collection[str]) -> ResponseEnvelope:
    """Return *envelope*, which a tool made itself, with an error that is safe for the sender of *said*."""
    error = envelope.error
    if error is None:
        return envelope
    safe = _told(error.error, error.error_code, said, parameters)
    return envelope if safe == error else replace(envelope, error=safe)


def reported(data: Any, said: Heard, parameters: Collection[str]) -> ToolError | None:
    """Return the failure that *data* itself reports, otherwise None; the details stay in *data*."""
    if not isinstance(data, dict) or (data.get("success") is not False and data.get("ok") is not False):
        return None
    texts = list(_texts(data))
    code = _reported_code(data, texts)
    # A single word is for programs (`validation_failed`): the code means the same.
    shown = (text for text in texts if " " in text and is_safe(text, said, parameters))
    return ToolError(next(shown, ERROR_CODES[code]), code)


def hints_in(data: Any, said: Heard, parameters: Collection[str]) -> tuple[UpgradeHint, ...]:
    """Return the upgrade hints in *data*; empty if they are not as in specs/004."""
    given = data.get("upgrade_hints")
    try:
        hints = [UpgradeHint.from_dict(hint) for hint in given] if isinstance(given, list) else []
    except (TypeError, ValueError):
        return ()
    # The feature is the tool's own word; a reason may contain other data.
    return tuple(hint if is_safe(hint.reason, said, parameters) else needs(hint.feature, hint.tier) for hint in hints)


def _texts(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts about the failure in *data*: in `error` itself or in the object there."""
    for name in _TEXTS:
        value = data.get(name)
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            yield from (value[inner] for inner in _TEXTS if isinstance(value.get(inner), str))


def _reported_code(data: Mapping[str, Any], texts: list[str]) -> str:
    error = data.get("error")
    within = error if isinstance(error, dict) else {}
    for word in (data.get("error_code"), within.get("error_code"), within.get("code"), *texts):
        if isinstance(word, str) and word in _BY_REASON:
            return _BY_REASON[word]
    folded = "\n".join(texts).casefold()
    return next((code for phrase, code in _BY_PHRASE if phrase in folded), "internal_error")
