"""
Rows of a recording that only have a message: most of a large recording. No I/O.

Such a row is a head, such as ``{"dir":"c2s","conversation":7,``, the time of the message if the guard wrote it, such as
``"time":1763379999123456,``, then ``"msg":``, the message as one JSON string, and a closing brace. Rows of one
conversation share a few heads, so a head is parsed once, and then only the string. Whatever looks different is read by
`assay.records.transcript`; tests/recording/test_plain_rows.py compares the two.
"""

import re
from typing import Any, Final

import orjson

from assay.base.verdict import Violation
from assay.ladder import syntax
from assay.records.transcript import ROW_DEPTH

MESSAGE: Final = b'"msg":'
"""What separates the head of a row from its message. It cannot be inside a string, where quotes have a backslash."""

CLOSING: Final = b'"}\n'
"""The end of a row that has a message as its last member."""

TIME: Final = b'"time":'
"""What is before the time of a message."""

DIGITS: Final = 16
"""Digits of a time, in microseconds since 1970: until the year 2286."""

_STAMP: Final = len(TIME) + DIGITS + 1
"""Bytes of a time between the head of a row and its message."""

GUARDED_HEAD: Final = re.compile(rb'\{"dir":"(?P<side>c2s|s2c)","conversation":(?P<conversation>0|[1-9][0-9]{0,14}),')
"""The head of a row that a guard wrote; members and spelling are known without parsing it."""

_UNKNOWN: Final = 0
"""The conversation number of rows without one."""

_MEMBERS: Final = frozenset({"dir", "party", "conversation", "http"})
"""Members of a head that say nothing about the message itself."""


def untimed(head: bytes) -> tuple[bytes, bytes]:
    """Return the head of a row without the time at its end, and the digits of that time; none without one."""
    if head[-_STAMP : -DIGITS - 1] != TIME or not head.endswith(b","):
        return head, b""
    digits = head[-DIGITS - 1 : -1]
    return (head[:-_STAMP], digits) if digits.isdigit() and not digits.startswith(b"0") else (head, b"")


def head_of(line: bytes) -> bytes:
    """Return the head of a row, without a time; all of a row without a message."""
    return untimed(line.partition(MESSAGE)[0])[0]


def conversation_of(members: dict[str, Any]) -> int:
    """Return the number of the conversation that a row belongs to."""
    number = members.get("conversation")
    return number if type(number) is int else _UNKNOWN


def as_object(head: bytes) -> bytes:
    """Return the head of a row as a JSON object. A head without a comma at its end stays as it is: it is not one."""
    text = head.rstrip(b" \t")
    return text[:-1] + b"}" if text.endswith(b",") else head


def head_members(head: bytes) -> dict[str, Any] | None:
    """Return the members in the head of a row that only has a message; None if the row may have more than that."""
    members = syntax.read(as_object(head), ROW_DEPTH)
    if isinstance(members, Violation) or not isinstance(members, dict) or not members.keys() <= _MEMBERS:
        return None
    return members


def claimed(line: bytes) -> int | None:
    """
    Return the conversation that a row seems to belong to, by its head alone; None if that cannot be seen.

    The row may prove to belong to another one when it is read as a whole: a member behind the message wins.
    """
    head, found, _ = line.partition(MESSAGE)
    try:
        members = orjson.loads(as_object(head) if found else head)
    except orjson.JSONDecodeError:
        return None
    return conversation_of(members) if isinstance(members, dict) else None
