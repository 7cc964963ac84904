"""
Make the error of an envelope from an exception, or from a payload that reports its own failure.

Of an exception only its type and its own text are used: never its notes, its cause, its traceback.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from assay.assets.response.discretion import Heard, fit
from assay.assets.response.envelope_schema import ERROR_CODES
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


def code_of(error: Exception) -> str:
    """Return the error code for *error*."""
    for kind in type(error).__mro__:
        if kind in _BY_EXCEPTION:
            return _BY_EXCEPTION[kind]
    return "internal_error"


def raised(error: Exception, said: Heard, parameters: Collection[str]) -> ToolError:
    """Return *error* for the sender of *said*: with its own text if that is safe, else with the meaning of its code."""
    code = code_of(error)
    if isinstance(error, UpgradeRequiredError):
        return ToolError(f"This needs the {error.required_tier} tier.", code)
    # The text of an unexpected exception is for the operator: it may contain a password or a query of ours.
    text = "" if code == "internal_error" else _text_of(error)
    return ToolError(text if fit(text, said, parameters) else ERROR_CODES[code], code)


def _text_of(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        # Without the path, which the caller may not know.
        return str(error.strerror or "")
    try:
        return str(error)
    except Exception:
        return ""


def discreet(envelope: ResponseEnvelope, said: Heard, parameters: Collection[str]) -> ResponseEnvelope:
    """Return *envelope*, which a tool made itself, with an error that is safe for the sender of *said*."""
    error = envelope.error
    if error is None or (error.error_details is None and fit(error.error, said, parameters)):
        return envelope
    text = error.error if fit(error.error, said, parameters) else ERROR_CODES[error.error_code]
    return replace(envelope, error=ToolError(text, error.error_code))


# ── payloads ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def reported(data: Any, said: Heard, parameters: Collection[str]) -> ToolError | None:
    """Return the failure that *data* itself reports, otherwise None; the details stay in *data*."""
    if not isinstance(data, dict) or (data.get("success") is not False and data.get("ok") is not False):
        return None
    texts = list(_texts(data))
    code = _reported_code(data, texts)
    # A single word is for programs (`validation_failed`): the code means the same.
    shown = (text for text in texts if " " in text and fit(text, said, parameters))
    return ToolError(next(shown, ERROR_CODES[code]), code)


def hints_in(data: Any, said: Heard, parameters: Collection[str]) -> tuple[UpgradeHint, ...]:
    """Return the upgrade hints in *data*; empty if they are not as in specs/004."""
    given = data.get("upgrade_hints")
    try:
        hints = [UpgradeHint.from_dict(hint) for hint in given] if isinstance(given, list) else []
    except (TypeError, ValueError):
        return ()
    # The feature is the tool's own word; a reason may contain other data.
    return tuple(hint if fit(hint.reason, said, parameters) else needs(hint.feature, hint.tier) for hint in hints)


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
    words = [data.get("error_code"), within.get("error_code"), within.get("code"), *texts]
    known = (_BY_REASON[word] for word in words if isinstance(word, str) and word in _BY_REASON)
    folded = "\n".join(texts).casefold()
    guessed = (code for phrase, code in _BY_PHRASE if phrase in folded)
    return next(known, None) or next(guessed, "internal_error")
