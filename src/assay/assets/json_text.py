"""Python values as JSON text, and what JSON cannot write. No I/O."""

import json
from math import isfinite
from typing import Any, Final

import orjson

from assay.model.limits import DEEPEST

# Types that orjson serializes although they are not JSON values.
_STRICT: Final = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME


def written(name: str, value: Any) -> bytes:
    """Return *value* as JSON text. Raises `ValueError`, which has the *name* and not the value, if it is not JSON."""
    try:
        text = orjson.dumps(value, option=_STRICT)
    except TypeError:
        why = why_not_json(value)
        if why is None:
            # Integers beyond 64 bits, which orjson does not write.
            return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
    else:
        # orjson writes NaN and infinities as null. Text without null proves that there was none.
        if b"null" not in text or not _has_odd_number(value):
            return text
        why = "NaN or an infinity"
    raise ValueError(f"{name} must be JSON, found {why}")


def why_not_json(value: Any, levels: int = DEEPEST) -> str | None:
    """Return what JSON cannot write in *value*; None for a JSON value with at most so many *levels*."""
    if isinstance(value, str):
        return None if is_text(value) else "half of a surrogate pair"
    if isinstance(value, float):
        return None if isfinite(value) else "NaN or an infinity"
    if value is None or isinstance(value, int):
        return None if not value or _has_digits(value) else "an integer with too many digits"
    if not isinstance(value, dict | list | tuple):
        return f"a Python {type(value).__name__}"
    if not levels:
        return "too many levels or a cycle"
    for key in value if isinstance(value, dict) else ():
        if not isinstance(key, str):
            return "a key that is not a string"
        if not is_text(key):
            return "half of a surrogate pair"
    inside = value.values() if isinstance(value, dict) else value
    return next((why for each in inside if (why := why_not_json(each, levels - 1))), None)


def is_text(value: str) -> bool:
    """Whether UTF-8 can write *value*: it has no half of a surrogate pair."""
    try:
        return value.isascii() or bool(value.encode())
    except UnicodeEncodeError:
        return False


def _has_digits(value: int) -> bool:
    """Whether Python writes *value*: at most 4,300 digits."""
    try:
        return value.bit_length() <= 64 or bool(str(value))
    except ValueError:
        return False


def _has_odd_number(value: Any) -> bool:
    if isinstance(value, float):
        return not isfinite(value)
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return any(map(_has_odd_number, inside))
