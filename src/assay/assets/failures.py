"""
Make the error of an envelope from an exception, or from a payload that reports its own failure.

An error has nothing of the input (specs/004: no code contents in error responses). Of an exception only its type and
its own text are used: never its notes, its cause, its traceback. A text is shown unchanged or not at all: nothing is
removed from it, because the rest could still reveal the input. In doubt it is not shown.
"""

import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, NamedTuple

import orjson

from assay.assets.response_envelope import (
    ERROR_CODES,
    ResponseEnvelope,
    ToolError,
    UpgradeHint,
    UpgradeRequiredError,
    needs,
)

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


Texts = tuple[str, ...] | None
"""Every text in the arguments of a call; None if they are unknown, and then no text is safe."""


def texts_in(arguments: Any, parameters: Collection[str]) -> Texts:
    """
    Return every text in *arguments*, and every number as text; None if something is not JSON, or too much.

    Bytes are their JSON text. The names of *parameters* are the tool's own; every other key comes from the caller.
    """
    if isinstance(arguments, bytes):
        try:
            arguments = orjson.loads(arguments) if len(arguments) <= _MOST_CHARACTERS else None
        except ValueError:
            return None
    if arguments is None:
        return None
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


class Sent(NamedTuple):
    """The input of a caller, of which an error must have nothing."""

    texts: Callable[[], Texts]

    def error(self, text: str, code: str) -> ToolError:
        """Return the error with *text* if that is safe, else with the meaning of its code."""
        return ToolError(text if self.allows(text) else ERROR_CODES[code], code)

    def allows(self, text: str) -> bool:
        """Whether *text* can be shown to the caller."""
        if not 0 < len(text) <= _LONGEST or not text.isprintable() or _ESCAPED.search(text):
            return False
        if any(len(word) > _LONGEST_WORD for word in text.split()):
            return False
        texts = self.texts()
        if texts is None:
            return False
        text = text.casefold()
        folded = {each.casefold() for each in texts}
        # Code is often quoted on one line. The newline between texts, which no printable text has, separates them.
        flat = {" ".join(each.split()) for each in folded}
        everything = "\n".join(folded | flat)
        if any(text[at : at + _RUN] in everything for at in range(len(text) - _RUN + 1)):
            return False
        words = set(_WORDS.findall(text))
        short = (each for each in flat if len(each) < _RUN)
        return not any(each in words if each.isalnum() else len(each) > 1 and each in text for each in short)


# ── failures ─────────────────────────────────────────────────────────────────────────────────────────────────────────

Failure = tuple[ToolError | None, tuple[UpgradeHint, ...]]
"""The error of a call and its hints; None and none for a good result."""


def raised(error: Exception, sent: Sent) -> Failure:
    """Return the failure for *error*: with its own text if that is safe, else with the meaning of its code."""
    if isinstance(error, UpgradeRequiredError):
        return ToolError(f"This needs the {error.required_tier} tier.", "upgrade_required"), (error.hint,)
    code = next((_BY_EXCEPTION[kind] for kind in type(error).__mro__ if kind in _BY_EXCEPTION), "internal_error")
    text = ""
    # The text of an unexpected exception is for the operator: it may contain a password or a query of ours.
    if isinstance(error, OSError) and error.filename is not None and code != "internal_error":
        # Without the path, which the caller may not know.
        text = str(error.strerror or "")
    elif code != "internal_error":
        with suppress(Exception):
            text = str(error)
    return sent.error(text, code), ()


def discreet(envelope: ResponseEnvelope, sent: Sent) -> ResponseEnvelope:
    """Return *envelope*, which a tool made itself, with an error that is safe for the caller."""
    error = envelope.error
    safe = error and sent.error(error.error, error.error_code)
    return envelope if safe == error else replace(envelope, error=safe)


def reported(data: Any, sent: Sent) -> Failure:
    """Return the failure that the result *data* itself reports; the details stay in *data*."""
    if not isinstance(data, dict) or (data.get("success") is not False and data.get("ok") is not False):
        return None, ()
    parts: list[Any] = []
    for name in _TEXTS:
        value = data.get(name)
        parts += [value.get(inner) for inner in _TEXTS] if isinstance(value, dict) else [value]
    texts = [text for text in parts if isinstance(text, str)]
    error = data.get("error")
    within = error if isinstance(error, dict) else {}
    words = (data.get("error_code"), within.get("error_code"), within.get("code"), *texts)
    code = next((_BY_REASON[word] for word in words if isinstance(word, str) and word in _BY_REASON), None)
    if code is None:
        folded = "\n".join(texts).casefold()
        code = next((code for phrase, code in _BY_PHRASE if phrase in folded), "internal_error")
    # A single word is for programs (`validation_failed`): the code means the same.
    shown = next((text for text in texts if " " in text and sent.allows(text)), ERROR_CODES[code])
    hints = data.get("upgrade_hints")
    try:
        listed = [UpgradeHint.from_dict(hint) for hint in hints] if isinstance(hints, list) else []
    except (TypeError, ValueError):
        listed = []  # they are not as in specs/004
    # The feature is the tool's own word; a reason may contain other data.
    safe = (hint if sent.allows(hint.reason) else needs(hint.feature, hint.tier) for hint in listed)
    return ToolError(shown, code), tuple(safe)
