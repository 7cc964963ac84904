"""How long each request of the client has waited. No I/O; the time is handed in."""

from collections.abc import Iterator
from math import inf
from typing import Final

from assay.model.json_values import Id, params_of
from assay.model.verdict import Exchange, Party, Verdict

ENDLESS: Final = "subscriptions/listen"
"""The one request without a deadline: its answer comes when the client ends the subscription."""

DISCOVER: Final = "server/discover"
"""The request that asks a server for its revisions; a server of an older revision may ignore it."""

DISCOVER_SECONDS: Final = 10.0
"""Seconds for its answer: it needs no work, and a client without one goes on with `initialize`."""

_CLIENT: Final = Party.CLIENT


def limit_of(method: str, timeout: float) -> float:
    """Return how many seconds a server has for the answer to *method*, where it has *timeout* for others."""
    return min(timeout, DISCOVER_SECONDS) if method == DISCOVER else timeout


class Deadlines:
    """The open requests of one client, ordered by their last sign of life."""

    __slots__ = ("_discovering", "_tokens", "since", "timeout")

    def __init__(self, timeout: float) -> None:
        """*timeout* is how many seconds a server has for an answer, counted anew with each progress; 0 for no limit."""
        self.timeout = timeout
        self.since: dict[Id, float] = {}
        """When each request last showed a sign of life, the oldest first. The session writes it for tool calls."""
        self._discovering: dict[Id, float] = {}
        """The same for requests with the shorter limit. Within each table all have one limit, so the oldest is due."""
        self._tokens: dict[Id, Id] = {}
        """The requests among them that have a progress token, by the token."""

    def _tables(self) -> tuple[tuple[dict[Id, float], float], ...]:
        """Return the two tables, each with the limit of its requests."""
        return (self.since, self.timeout), (self._discovering, limit_of(DISCOVER, self.timeout))

    @property
    def due(self) -> float:
        """When the next request is overdue; infinity if none ever is."""
        due = next(iter(self.since.values())) + self.timeout if self.since else inf
        if not self._discovering:
            return due
        return min(due, next(iter(self._discovering.values())) + limit_of(DISCOVER, self.timeout))

    def due_of(self, ident: Id) -> float:
        """When that request is overdue; infinity if it never is."""
        return next((since[ident] + limit for since, limit in self._tables() if ident in since), inf)

    def overdue(self, now: float) -> Iterator[tuple[Id, float]]:
        """Yield and forget the requests that have waited too long, each with its limit in seconds."""
        for every, limit in self._tables():
            while every:
                ident, since = next(iter(every.items()))
                if since + limit > now:
                    break
                del every[ident]
                yield ident, limit

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
            if exchange.method == DISCOVER:
                self._discovering[exchange.id] = now
            elif exchange.method != ENDLESS:
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
        for since, _ in self._tables():
            if ident is not None and since.pop(ident, None) is not None:
                since[ident] = now

    def forget(self, exchange: Exchange) -> None:
        """Forget a request that is answered or given up."""
        self.since.pop(exchange.id, None)
        self._discovering.pop(exchange.id, None)
        if exchange.token is not None:
            self._tokens.pop(exchange.token, None)

    def clear(self) -> None:
        """Forget every request."""
        self.since.clear()
        self._discovering.clear()
        self._tokens.clear()

    def shift(self, seconds: float) -> None:
        """Give every request *seconds* more."""
        for since, _ in self._tables():
            for ident in since:
                since[ident] += seconds
