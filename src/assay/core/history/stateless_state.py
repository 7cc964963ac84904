"""
The state of a conversation without a handshake (2026-07-28), and its violations. No I/O, no clock.

Each request stands for itself there: its log level, its subscription, its page of a list.
"""

from collections.abc import Mapping
from typing import Any, Final

from assay.base.verdict import Exchange, Party, Violation
from assay.core.history import log_levels
from assay.core.history.reuse import object_of
from assay.core.history.subscriptions import JUDGED, LISTEN, Subscriptions, check_end
from assay.core.list_filter import LISTS
from assay.core.party_state import Side
from assay.rules import violation
from assay.spec.revisions import handshake

# Cursors that no client has used yet. Clients read a list page by page, so there is one for each list.
_MOST: Final = 64

# The length of a cursor that is kept, in characters. Longer ones contain the state of the server, and are not judged.
_LONGEST: Final = 1024


class CacheScopes:
    """The scopes that the next pages must have, in one conversation."""

    __slots__ = ("_given",)

    def __init__(self) -> None:
        self._given: dict[tuple[str, str], str | None] = {}
        """The scopes by method and cursor; None if two lists gave the same cursor with different scopes."""

    def asked(self, exchange: Exchange, cursor: Any) -> None:
        """Remember the scope that the page which *exchange* asks for must have, if the page before it is known."""
        if isinstance(cursor, str):
            exchange.scope = self._given.pop((exchange.method, cursor), None)

    def check(self, exchange: Exchange, result: dict[str, Any]) -> list[Violation]:
        """Return the violation of a page with another scope than the first one."""
        scope = result.get("cacheScope")
        if exchange.scope is None or not isinstance(scope, str) or scope == exchange.scope:
            return []
        wrong = violation(
            "protocol/cache-scope",
            "/result/cacheScope",
            expected=f'"{exchange.scope}", as on the first page',
            found=f'"{scope[:40]}"',
            revision=exchange.revision,
        )
        return [wrong]

    def answered(self, exchange: Exchange, result: dict[str, Any]) -> None:
        """Note that a page was forwarded: the next one must have the scope of the first."""
        cursor, scope = result.get("nextCursor"), exchange.scope or result.get("cacheScope")
        if exchange.method not in LISTS or not isinstance(cursor, str) or not isinstance(scope, str):
            return
        if len(cursor) > _LONGEST or len(scope) > _LONGEST:
            return
        key = exchange.method, cursor
        self._given[key] = scope if self._given.get(key, scope) == scope else None
        if len(self._given) > _MOST:
            del self._given[next(iter(self._given))]


class StatelessState:
    """The state of one conversation without a handshake."""

    __slots__ = ("_client", "_scopes", "_subscriptions", "_whole")

    def __init__(self, client: Side, *, whole: bool) -> None:
        """*whole* means that the conversation is known from its beginning."""
        self._client = client
        self._whole = whole
        self._scopes = CacheScopes()
        self._subscriptions = Subscriptions(whole=whole)

    def asked(self, exchange: Exchange, message: Mapping[str, Any]) -> None:
        """Note that a request was forwarded."""
        if handshake(exchange.revision) or exchange.asker is not Party.CLIENT:
            return
        params = object_of(message.get("params"))
        log_levels.asked(exchange, object_of(params.get("_meta")))
        self._scopes.asked(exchange, params.get("cursor"))
        if exchange.method == LISTEN:
            self._subscriptions.opened(exchange, params)

    def renew(self) -> None:
        """Forget the cursors of the server before."""
        self._scopes = CacheScopes()

    def check_note(self, party: Party, method: str, params: Mapping[str, Any], revision: str) -> list[Violation]:
        """Return the violations of a notification of *party*."""
        if party is Party.CLIENT or handshake(revision):
            return []
        if method == "notifications/message":
            return list(log_levels.check(self._client, params, revision, whole=self._whole))
        return list(self._subscriptions.check(self._client, method, params, revision)) if method in JUDGED else []

    def declared_by(self, params: Mapping[str, Any]) -> frozenset[str] | None:
        """Return the capabilities of the request to listen that a notification belongs to; None if it is not known."""
        return self._subscriptions.declared_by(params)

    def noted(self, method: str, params: Mapping[str, Any]) -> None:
        """Note that a notification was forwarded."""
        self._subscriptions.noted(method, params)

    def check_result(self, exchange: Exchange, result: dict[str, Any]) -> list[Violation]:
        """Return the violations of a result."""
        if handshake(exchange.revision):
            return []
        return check_end(exchange, result) if exchange.method == LISTEN else self._scopes.check(exchange, result)

    def answered(self, exchange: Exchange, result: dict[str, Any]) -> None:
        """Note that a result was forwarded."""
        if not handshake(exchange.revision):
            self._scopes.answered(exchange, result)
