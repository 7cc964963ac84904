"""Limits on what is in progress at once, and which idle session makes room for a new one. No I/O, no clock."""

from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Final, NamedTuple, Protocol, TypeVar

from assay.edges.http.replies import HttpReply, Pairs, Send, error_body, refuse


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


_TRY_AGAIN: Final = 1
"""The default of `Retry-After`, in seconds."""


class Full(NamedTuple):
    """A limit that is reached."""

    status: int
    """
    503 if the whole server is busy. 429 if this principal has used its share: others are still served, and a load
    balancer does not treat the server as overloaded.
    """
    why: str

    def reply(self, headers: Pairs = ()) -> HttpReply:
        """Return the whole response for a client that is to try again."""
        extra = [(b"retry-after", b"%d" % _TRY_AGAIN), *headers]
        return HttpReply(self.status, error_body("OVERLOADED", self.why), extra)

    async def refuse(self, send: Send, headers: Pairs = (), *, seconds: int = _TRY_AGAIN) -> None:
        """Send the error, with the time to retry."""
        await refuse(send, "OVERLOADED", self.why, [(b"retry-after", b"%d" % seconds), *headers], status=self.status)


class Quota:
    """The limit for one kind of object, such as requests."""

    __slots__ = ("_by_principal", "_by_server", "_each", "_per_server", "_total", "_what", "held")

    def __init__(self, what: str, total: int, *, each: int | None = None, per_server: int | None = None) -> None:
        """
        *total* is the limit; one principal may have *each*, one server *per_server*.

        None means the total: for a single principal or a single server.
        """
        self._what = what
        self._total, self._each, self._per_server = total, each, per_server
        self._by_principal: dict[str, int] = {}
        self._by_server: dict[str, int] = {}
        self.held = 0
        """The number in use."""

    def full(self, principal: str, server: str = "") -> Full | None:
        """Return the reached limit for one more of *principal* at *server*; None if there is room."""
        if self.held >= self._total:
            return Full(503, f"too many {self._what} at once")
        if self._each is not None and self.has_share(principal):
            return Full(429, f"you have too many {self._what} at once")
        if self._per_server is not None and self._by_server.get(server, 0) >= self._per_server:
            return Full(503, f"too many {self._what} at once for this server")
        return None

    def has_share(self, principal: str) -> bool:
        """Whether *principal* has used its share."""
        return self._each is not None and self._by_principal.get(principal, 0) >= self._each

    def take(self, principal: str, server: str = "") -> None:
        """Count one more, after `full` returned None."""
        self.held += 1
        if self._each is not None:
            self._by_principal[principal] = self._by_principal.get(principal, 0) + 1
        if self._per_server is not None:
            self._by_server[server] = self._by_server.get(server, 0) + 1

    def give_back(self, principal: str, server: str = "") -> None:
        """Count one less, for the same names."""
        self.held -= 1
        if self._each is not None:
            _less(self._by_principal, principal)
        if self._per_server is not None:
            _less(self._by_server, server)


def _less(counts: dict[str, int], name: str) -> None:
    """Count one less, and drop zero counts: there may be any number of principals over time."""
    if counts[name] == 1:
        del counts[name]
    else:
        counts[name] -= 1
