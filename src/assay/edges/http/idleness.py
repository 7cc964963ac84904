"""
Which session makes room for a new one, where there are as many as there may be. No I/O, no clock.

Many clients never end their sessions: the official TypeScript client does not on `close()`. So the session that was
idle longest is ended, and gets 404 from then on, which tells a client that is still there to begin anew. A request that
is open is never lost for that.
"""

from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Protocol, TypeVar


class Idleness(IntEnum):
    """How little would be lost with a session; the least first."""

    IDLE = 0
    """Nothing is open."""
    LISTENS = 1
    """A client listens on a stream for what the server may say."""
    ASKED = 2
    """The server waits for an answer of the client, which may have gone."""
    BUSY = 3
    """A client waits for an answer: such a session is never ended."""


class HeldSession(Protocol):
    """What takes a place: a session, or a child with its sessions."""

    @property
    def principal(self) -> str:
        """Whose it is."""


H = TypeVar("H", bound=HeldSession)


def to_end(
    every: Iterable[H], idleness: Callable[[H], Idleness], principal: str, *, own_only: bool = False
) -> H | None:
    """
    Return which of *every*, those used longest ago first, makes room for one more of *principal*; None if none may.

    It is one of the principal that holds most, and of *principal* itself where others hold as many or it is *own_only*.
    Whoever holds fewer loses none: so nobody pushes out the sessions of others by opening many, and keeping them busy.
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
    """The first of those that are idlest; None if all are busy."""
    best, least = None, Idleness.BUSY
    for each in every:
        standing = idleness(each)
        if standing < least:
            best, least = each, standing
        if least is Idleness.IDLE:
            break
    return best
