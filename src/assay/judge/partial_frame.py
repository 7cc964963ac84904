"""
Find the id and method at the start and end of a message that cannot be parsed: too long, or not JSON. No I/O.

Only members of the message itself count: its content may have ids, too.
"""

import re
from typing import Final, NamedTuple

from assay.judge import syntax

LOOKED_AT: Final = 4096
"""Bytes to search at either end. Servers write the id first or last, next to the version."""

_SPACE: Final = rb"[ \t\r\n]*+"
_MEMBER: Final = (
    _SPACE + rb'"(jsonrpc|method|id)"' + _SPACE + rb":" + _SPACE + rb'("(?:[^"\\]|\\.)*+"|-?[0-9]++(?![.eE]))' + _SPACE
)
_BEGINNING: Final = re.compile(rb"(?:\xef\xbb\xbf)?" + _SPACE + rb"\{")
"""The start of a message, possibly after a byte order mark, which does not belong there."""
_LEADING: Final = re.compile(_MEMBER + rb",")
_OUTCOME: Final = re.compile(_SPACE + rb'"(?:result|error)"' + _SPACE + rb":")
_TRAILING: Final = re.compile(rb"(?:," + _MEMBER + rb"){1,3}+\}" + _SPACE + rb"\Z")
_ONE: Final = re.compile(_MEMBER)


class Outline(NamedTuple):
    """The known members of a message."""

    id: str | int | None = None
    token: bytes | None = None
    """The id as written."""
    asks: bool = False
    """Whether it has a method."""
    answers: bool = False
    """Whether it has a result or an error, and no method."""
    method: str | None = None
    """The method, if it is a string that can be read."""

    @property
    def settles(self) -> bool:
        """Whether the message is recognized as a request or a response."""
        return self.id is not None and (self.asks or self.answers)


def outline(head: bytes, tail: bytes) -> Outline:
    """Return the members in *head* and *tail*, the start and end of a message; either may be all of it, or empty."""
    head = head[:LOOKED_AT]
    begun = _BEGINNING.match(head)
    if begun is None:
        return Outline()
    members: dict[bytes, bytes] = {}
    at = begun.end()
    while (found := _LEADING.match(head, at)) is not None:
        members[found[1]] = found[2]
        at = found.end()
    ended = _TRAILING.search(tail[-LOOKED_AT:])
    if ended is not None:
        members |= dict(_ONE.findall(ended[0]))
    token = members.get(b"id")
    ident = syntax.read(token) if token is not None else None
    known = isinstance(ident, str | int)
    asks = b"method" in members
    answers = not asks and _OUTCOME.match(head, at) is not None
    method = syntax.read(members[b"method"]) if asks else None
    return Outline(
        ident if isinstance(ident, str | int) else None,
        token if known else None,
        asks,
        answers,
        method if isinstance(method, str) else None,
    )
