"""Serialize the values of an envelope, and check that they are JSON. No I/O."""

import json
from math import isfinite
from typing import Any, Final

import orjson

# Types that orjson serializes although they are not JSON values, and that `to_dict` would return unchanged.
_STRICT: Final = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME

_DEEPEST: Final = 254
"""Maximal levels of orjson. A value that contains itself has more, too."""

_LONGEST_INTEGER: Final = 10_000
"""Maximal bits of an integer. Python refuses to convert more than 4300 digits, a little over 14,000 bits."""


def written(field: str, value: Any) -> bytes:
    """Return *value* as JSON text. Raises `TypeError` or `ValueError`, which name the *field*, if it is not JSON."""
    try:
        text = orjson.dumps(value, option=_STRICT)
    except TypeError:
        _check(field, value, _DEEPEST, strict=True)
        # Valid JSON that orjson does not serialize: integers beyond 64 bits.
        return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
    if b"null" in text:
        # orjson writes NaN and Infinity as null. Text without null proves that there was no NaN.
        _check(field, value, _DEEPEST, strict=False)
    return text


def check_utf8(field: str, value: str) -> None:
    """Raise `ValueError` for half a surrogate pair, which UTF-8 cannot encode."""
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError(f"{field} must be text that UTF-8 can write") from None


def _check(field: str, value: Any, levels: int, *, strict: bool) -> None:
    if isinstance(value, dict | list | tuple):
        if not levels:
            raise ValueError(f"{field} must be JSON, at most {_DEEPEST} levels deep")
        for inner in value.values() if isinstance(value, dict) else value:
            _check(field, inner, levels - 1, strict=strict)
        for key in value if strict and isinstance(value, dict) else ():
            _check_key(field, key)
    elif isinstance(value, float):
        if not isfinite(value):
            raise ValueError(f"{field} must be JSON, which has no NaN and no Infinity")
    elif strict:
        _check_scalar(field, value)


def _check_key(field: str, key: Any) -> None:
    if not isinstance(key, str):
        raise TypeError(f"{field} must be JSON, whose keys are strings: one is of type {type(key).__name__}")
    check_utf8(field, key)


def _check_scalar(field: str, value: Any) -> None:
    if isinstance(value, str):
        check_utf8(field, value)
    elif isinstance(value, int):
        if value.bit_length() > _LONGEST_INTEGER:
            raise ValueError(f"{field} must be JSON with integers of at most {_LONGEST_INTEGER:,} bits")
    elif value is not None:
        raise TypeError(f"{field} must be JSON: there is a value of type {type(value).__name__} in it")
