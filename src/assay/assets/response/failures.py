"""
What went wrong, as the error of an envelope: from an exception, or from a payload that reports its own failure.

Of an exception only its kind and its own text are looked at: never its notes, its cause, its traceback.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from assay.assets.response.codes import ERROR_CODES
from assay.assets.response.discretion import Heard, fit
from assay.assets.response.feature_tiers import UpgradeRequiredError, needs
from assay.assets.response.model import ResponseEnvelope, ToolError, UpgradeHint

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
"""Ours (design, Public names). A subclass is what its nearest base is; everything else is an `internal_error`."""

_BY_REASON: Final[Mapping[str, str]] = {
    "backend_error": "dependency_unavailable",
    "unsupported": "not_implemented",
    "validation_failed": "invalid_argument",
    **{code: code for code in ERROR_CODES},
}
"""What a payload calls its failure, in one word: the reasons of specs/001, section 6, and the codes themselves."""

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
"""What a payload says in a sentence, where it has no word for it: specs/004's second example has only the sentence."""

_TEXTS: Final = ("error", "message", "detail", "reason", "msg")


def code_of(error: Exception) -> str:
    """The error code for *error*."""
    for kind in type(error).__mro__:
        if kind in _BY_EXCEPTION:
            return _BY_EXCEPTION[kind]
    return "internal_error"


def raised(error: Exception, said: Heard, parameters: Collection[str]) -> ToolError:
    """*error* for a caller who sent *said*: its own text if that can be shown, else what its code means."""
    code = code_of(error)
    if isinstance(error, UpgradeRequiredError):
        return ToolError(f"This needs the {error.required_tier} tier.", code)
    # The text of an exception that nobody foresaw is for the operator: it can hold a password or a query of ours.
    text = "" if code == "internal_error" else _text_of(error)
    return ToolError(text if fit(text, said, parameters) else ERROR_CODES[code], code)


def _text_of(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        # Without the path, which may be one of the server's that the caller has never seen.
        return str(error.strerror or "")
    try:
        return str(error)
    except Exception:
        return ""


def discreet(envelope: ResponseEnvelope, said: Heard, parameters: Collection[str]) -> ResponseEnvelope:
    """*envelope*, which a tool made itself, with an error that can be shown to whoever sent *said*."""
    error = envelope.error
    if error is None or (error.error_details is None and fit(error.error, said, parameters)):
        return envelope
    text = error.error if fit(error.error, said, parameters) else ERROR_CODES[error.error_code]
    return replace(envelope, error=ToolError(text, error.error_code))


# ── payloads ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def reported(data: Any, said: Heard, parameters: Collection[str]) -> ToolError | None:
    """The failure that *data* itself reports, None if it reports none; the details stay in *data*."""
    if not isinstance(data, dict) or (data.get("success") is not False and data.get("ok") is not False):
        return None
    texts = list(_texts(data))
    code = _reported_code(data, texts)
    # One word is for programs (`validation_failed`): the code says the same.
    shown = (text for text in texts if " " in text and fit(text, said, parameters))
    return ToolError(next(shown, ERROR_CODES[code]), code)


def hints_in(data: Any, said: Heard, parameters: Collection[str]) -> tuple[UpgradeHint, ...]:
    """The upgrade hints that *data* gives along with its failure; none if they are not what specs/004 calls so."""
    given = data.get("upgrade_hints")
    try:
        hints = [UpgradeHint.from_dict(hint) for hint in given] if isinstance(given, list) else []
    except (TypeError, ValueError):
        return ()
    # The feature is the tool's own word for it; a reason can have been put together from anything.
    return tuple(hint if fit(hint.reason, said, parameters) else needs(hint.feature, hint.tier) for hint in hints)


def _texts(data: Mapping[str, Any]) -> Iterator[str]:
    """What *data* says of its failure, in `error` itself or in the object there."""
    for name in _TEXTS:
        value = data.get(name)
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            yield from (value[inner] for inner in _TEXTS if isinstance(value.get(inner), str))


def _reported_code(data: Mapping[str, Any], texts: list[str]) -> str:
    error = data.get("error")
    within = error if isinstance(error, dict) else {}
    words = [data.get("error_code"), within.get("error_code"), within.get("code"), *texts]
    known = (_BY_REASON[word] for word in words if isinstance(word, str) and word in _BY_REASON)
    folded = "\n".join(texts).casefold()
    guessed = (code for phrase, code in _BY_PHRASE if phrase in folded)
    return next(known, None) or next(guessed, "internal_error")
