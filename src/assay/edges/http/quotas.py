"""Limits on what is in progress at once, and which idle session makes room for a new one. No I/O, no clock."""

from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol, TypeVar

from assay.edges.http.replies import HttpReply, Pairs, Send, error_body, reply


class HeldSession(Protocol):
    """A session that counts against a limit."""

    @property
    def principal(self) -> str:
        """The owner."""


H = TypeVar("H", bound=HeldSession)


def to_end(idle: Iterable[H], principal: str, *, own_only: bool) -> H | None:
    """
    Return the session to end for a new one of *principal*; None if none may end.

    *idle* has the least recently used session first. The principal loses its own sessions before those of others, and
    with *own_only*, at its own limit, no others: so it never takes more places than its share.
    """
    first = None
    for each in idle:
        if each.principal == principal:
            return each
        if first is None:
            first = each
    return None if own_only else first


_TRY_AGAIN: Final = 1
"""`Retry-After`, in seconds."""


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

    async def refuse(self, send: Send, headers: Pairs = ()) -> None:
        """Send the error, with the time to retry."""
        await reply(send, *self.reply(headers))


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
