"""How much is in hand at once: in total, for each principal, and for each server of a host. No I/O, no clock."""

from typing import Final, NamedTuple

from assay.edges.http.replies import HttpReply, Pairs, Send, error_body, refuse

_TRY_AGAIN: Final = 1
"""Seconds after which a client may try again, where nothing else is said."""


class Full(NamedTuple):
    """Why there is no place for one more."""

    status: int
    """
    503 if the whole server is busy, whoever asks. 429 if this principal has its share: then others are still served,
    and a balancer has no reason to take us for overloaded.
    """
    why: str

    def reply(self, headers: Pairs = ()) -> HttpReply:
        """Return the whole response for a client that is to try again."""
        told = [(b"retry-after", b"%d" % _TRY_AGAIN), *headers]
        return HttpReply(self.status, error_body("OVERLOADED", self.why), told)

    async def refuse(self, send: Send, headers: Pairs = (), *, seconds: int = _TRY_AGAIN) -> None:
        """Tell the client so, and when to try again."""
        await refuse(send, "OVERLOADED", self.why, [(b"retry-after", b"%d" % seconds), *headers], status=self.status)


class Quota:
    """The places for one kind of thing, such as requests."""

    __slots__ = ("_by_principal", "_by_server", "_each", "_per_server", "_total", "_what", "held")

    def __init__(self, what: str, total: int, *, each: int | None = None, per_server: int | None = None) -> None:
        """
        There are *total* places; one principal may have *each* of them, one server *per_server*.

        None for as many as there are: nobody shares with others where all clients count as one principal, or where
        there is one server.
        """
        self._what = what
        self._total, self._each, self._per_server = total, each, per_server
        self._by_principal: dict[str, int] = {}
        self._by_server: dict[str, int] = {}
        self.held = 0
        """Places that are taken."""

    def full(self, principal: str, server: str = "") -> Full | None:
        """Return why *principal* gets no place for one more at *server*; None if it does."""
        if self.held >= self._total:
            return Full(503, f"too many {self._what} at once")
        if self._each is not None and self.has_share(principal):
            return Full(429, f"you have too many {self._what} at once")
        if self._per_server is not None and self._by_server.get(server, 0) >= self._per_server:
            return Full(503, f"too many {self._what} at once for this server")
        return None

    def has_share(self, principal: str) -> bool:
        """Whether *principal* has as many places as one may have."""
        return self._each is not None and self._by_principal.get(principal, 0) >= self._each

    def take(self, principal: str, server: str = "") -> None:
        """Take a place, which `full` has said there is."""
        self.held += 1
        if self._each is not None:
            self._by_principal[principal] = self._by_principal.get(principal, 0) + 1
        if self._per_server is not None:
            self._by_server[server] = self._by_server.get(server, 0) + 1

    def give_back(self, principal: str, server: str = "") -> None:
        """Give back a place that was taken with the same names."""
        self.held -= 1
        if self._each is not None:
            _less(self._by_principal, principal)
        if self._per_server is not None:
            _less(self._by_server, server)


def _less(counts: dict[str, int], name: str) -> None:
    """Count one less, and forget whoever has none: there may be any number of principals over time."""
    if counts[name] == 1:
        del counts[name]
    else:
        counts[name] -= 1
