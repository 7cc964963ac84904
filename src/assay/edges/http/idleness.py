"""
Choose the session to end when the limit of sessions is reached. No I/O, no clock.

Many clients never end their sessions: the official TypeScript client does not on `close()`. So the longest idle session
is ended, and gets 404 from then on, which makes a client open a new one. A session with an open request is never ended.
"""

from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Protocol, TypeVar


class Idleness(IntEnum):
    """How busy a session is; the idlest first."""

    IDLE = 0
    """No open request or stream."""
    LISTENS = 1
    """The client listens on a stream."""
    ASKED = 2
    """The server waits for a response of the client, which may be gone."""
    BUSY = 3
    """A request is open: such a session is never ended."""


class HeldSession(Protocol):
    """An object that counts against the limit: a session, or a child with its sessions."""

    @property
    def principal(self) -> str:
        """The owner."""


H = TypeVar("H", bound=HeldSession)


def to_end(
    every: Iterable[H], idleness: Callable[[H], Idleness], principal: str, *, own_only: bool = False
) -> H | None:
    """
    Return the one of *every*, sorted by last use, to end for a new one of *principal*; None if all are busy.

    It belongs to the principal with the most sessions, or to *principal* itself if others have as many, or with
    *own_only*. So a principal cannot end the sessions of others by opening many, and keeping them busy.
    """
    held: dict[str, list[H]] = {}
    for each in every:
        held.setdefault(each.principal, []).append(each)
    own = len(held.get(principal, ()))
    losing = [each for each in held if each == principal or (not own_only and len(held[each]) >= own)]
    owners = sorted(losing, key=lambda each: (-len(held[each]), each != principal))
    found = (_idlest(held[each], idleness) for each in owners)
    return next((each for each in found if each is not None), None)


def _idlest(every: Iterable[H], idleness: Callable[[H], Idleness]) -> H | None:
    """Return the first of the idlest; None if all are busy."""
    best, least = None, Idleness.BUSY
    for each in every:
        standing = idleness(each)
        if standing < least:
            best, least = each, standing
        if least is Idleness.IDLE:
            break
    return best
