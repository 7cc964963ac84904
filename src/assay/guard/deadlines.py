"""How long each request of the client has waited. No I/O; the time is handed in."""

from collections.abc import Iterator
from math import inf
from typing import Final

from assay.base.message import params_of
from assay.base.verdict import Exchange, Party, Verdict
from assay.core.party_state import Id

ENDLESS: Final = "subscriptions/listen"
"""The one request without a deadline: its answer comes when the client ends the subscription."""

_CLIENT: Final = Party.CLIENT


class Deadlines:
    """The open requests of one client, ordered by their last sign of life."""

    __slots__ = ("_tokens", "since", "timeout")

    def __init__(self, timeout: float) -> None:
        """*timeout* is how many seconds a server has for an answer, counted anew with each progress; 0 for no limit."""
        self.timeout = timeout
        self.since: dict[Id, float] = {}
        """When each request last showed a sign of life, the oldest first. The session writes it for tool calls."""
        self._tokens: dict[Id, Id] = {}
        """The requests among them that have a progress token, by the token."""

    @property
    def due(self) -> float:
        """When the next request is overdue; infinity if none ever is."""
        return next(iter(self.since.values())) + self.timeout if self.since else inf

    def due_of(self, ident: Id) -> float:
        """When that request is overdue; infinity if it never is."""
        since = self.since.get(ident)
        return inf if since is None else since + self.timeout

    def overdue(self, now: float) -> Iterator[Id]:
        """Yield and forget the requests that have waited too long."""
        while self.since:
            ident, since = next(iter(self.since.items()))
            if since + self.timeout > now:
                return
            del self.since[ident]
            yield ident

    def note(self, verdict: Verdict, now: float) -> None:
        """Remember when a request was made, and when there was progress."""
        exchange = verdict.exchange
        if exchange is None:
            if verdict.kind == "notification":
                self._note_progress(verdict, now)
            for part in verdict.parts:
                self.note(part, now)
        elif exchange.asker is not _CLIENT:
            return
        elif exchange.state != "open":
            self.forget(exchange)
        elif verdict.kind == "request" and (verdict.findings is None or verdict.accepted):
            if exchange.method != ENDLESS:
                self.since[exchange.id] = now
            if exchange.token is not None:
                self._tokens[exchange.token] = exchange.id

    def request_of(self, token: object) -> Id | None:
        """Return the id of the open request with that progress token."""
        return self._tokens.get(token) if isinstance(token, str | int) else None

    def _note_progress(self, verdict: Verdict, now: float) -> None:
        if verdict.party is _CLIENT or verdict.method != "notifications/progress" or not verdict.accepted:
            return
        # A notification with findings may have passed all the same, so its members can have any type.
        ident = self.request_of(params_of(verdict.value).get("progressToken"))
        if ident is not None and self.since.pop(ident, None) is not None:
            self.since[ident] = now

    def forget(self, exchange: Exchange) -> None:
        """Forget a request that is answered or given up."""
        self.since.pop(exchange.id, None)
        if exchange.token is not None:
            self._tokens.pop(exchange.token, None)

    def clear(self) -> None:
        """Forget every request."""
        self.since.clear()
        self._tokens.clear()

    def shift(self, seconds: float) -> None:
        """Give every request *seconds* more."""
        for ident in self.since:
            self.since[ident] += seconds
