"""
Cut the text of members out of JSON, to the byte. No I/O.

A parser keeps one of two equal keys, and writes numbers and text its own way; a cut keeps what was recorded.
"""

import re
from typing import Any, Final

import orjson

_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}\[\],:]', re.DOTALL)
_SPACE: Final = b" \t\r\n"


def members(text: bytes) -> dict[str, bytes]:
    """Return the text of each member of the JSON object *text*, which must be valid; of repeated keys the last one."""
    found: dict[str, bytes] = {}
    name, begin, depth = "", 0, 0
    is_name = True
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if depth == 1 and is_name and mark[:1] == b'"':
            name = string_of(mark)
        elif depth == 1 and is_name and mark == b":":
            begin, is_name = token.end(), False
        elif mark in b"{[":
            depth += 1
        elif mark in b"}]":
            depth -= 1
        if not is_name and (depth == 0 or (depth == 1 and mark == b",")):
            found[name] = text[begin : token.start()].strip(_SPACE)
            is_name = True
    return found


def frame_in(text: bytes, name: str) -> bytes | None:
    """Return the message in a member of the JSON object *text*: JSON as it is there, or in a string; None without."""
    found = members(text).get(name)
    if found is None or not found.startswith(b'"'):
        return found
    try:
        return str(orjson.loads(found)).encode()
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        # A string that is not UTF-8, or has half of a surrogate pair: its text as it is written.
        return found[1:-1]


def readable_members(text: bytes) -> dict[str, Any]:
    """Return the members of an object that is not JSON as a whole: values, and the text of those that are not JSON."""
    return {name: _value(found) for name, found in members(text).items()}


def _value(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def string_of(mark: bytes) -> str:
    """Return the string that *mark* stands for; "" if it is not one."""
    try:
        found = orjson.loads(mark) if mark else ""
    except orjson.JSONDecodeError:
        return ""
    return found if isinstance(found, str) else ""
