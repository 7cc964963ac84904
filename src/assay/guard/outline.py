"""
What the ends of a message show of it where the whole cannot be read: too long, or no JSON after all. No I/O.

Only what stands among the members of the message itself counts: there may be ids in anything that it carries.
"""

import re
from typing import Final, NamedTuple

from assay.core.party_state import Id
from assay.ladder import syntax

LOOKED_AT: Final = 4096
"""Bytes at either end that are looked at. Servers write the id first or last, next to the version."""

_SPACE: Final = rb"[ \t\r\n]*+"
_MEMBER: Final = (
    _SPACE + rb'"(jsonrpc|method|id)"' + _SPACE + rb":" + _SPACE + rb'("(?:[^"\\]|\\.)*+"|-?[0-9]++(?![.eE]))' + _SPACE
)
_BEGINNING: Final = re.compile(rb"(?:\xef\xbb\xbf)?" + _SPACE + rb"\{")
"""A byte order mark does not belong there; but what is behind it shows itself all the same."""
_LEADING: Final = re.compile(_MEMBER + rb",")
_OUTCOME: Final = re.compile(_SPACE + rb'"(?:result|error)"' + _SPACE + rb":")
_TRAILING: Final = re.compile(rb"(?:," + _MEMBER + rb"){1,3}+\}" + _SPACE + rb"\Z")
_ONE: Final = re.compile(_MEMBER)


class Outline(NamedTuple):
    """What is known of a message."""

    id: Id | None = None
    token: bytes | None = None
    """The id as it is spelt."""
    asks: bool = False
    """Whether it has a method."""
    answers: bool = False
    """Whether it has a result or an error, and no method."""
    method: str | None = None
    """The method, if it is a string that can be read."""

    @property
    def settles(self) -> bool:
        """Whether it is known what to do about it."""
        return self.id is not None and (self.asks or self.answers)


def outline(head: bytes, tail: bytes) -> Outline:
    """What *head*, the beginning of a message, and *tail*, its end, show; either may be all of it, or nothing."""
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
