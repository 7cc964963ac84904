"""Values as JSON text: what may be in an envelope, and the bytes of it. No I/O, no fields of its own."""

import json
from math import isfinite
from typing import Any, Final

import orjson

# What orjson would write although it is no JSON value, and `to_dict` would hand on as it is.
_STRICT: Final = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME

_DEEPEST: Final = 254
"""Levels that orjson writes. A value that contains itself has more, too."""

_LONGEST_INTEGER: Final = 10_000
"""Bits. Python refuses to write integers of more than 4300 digits, which is a little over 14,000 bits."""


def written(field: str, value: Any) -> bytes:
    """*value* as JSON text; `TypeError` or `ValueError`, with the name of the *field*, if it is no JSON value."""
    try:
        text = orjson.dumps(value, option=_STRICT)
    except TypeError:
        _check(field, value, _DEEPEST, strict=True)
        # Good JSON that orjson does not write: integers beyond 64 bits.
        return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
    if b"null" in text:
        # orjson writes NaN and Infinity as null. Text without any null proves that there was none.
        _check(field, value, _DEEPEST, strict=False)
    return text


def check_utf8(field: str, value: str) -> None:
    """Raises `ValueError` for half a surrogate pair, which no JSON text can hold as UTF-8."""
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
