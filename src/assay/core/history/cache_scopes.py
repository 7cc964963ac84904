"""
The cacheScope of the pages of one list: all of them have the same (2026-07-28). No I/O, no clock.

Pages belong together by their cursors: the page that a cursor was given with, and the page that it asks for.
"""

from typing import Any, Final

from assay.base.verdict import Exchange, Violation
from assay.core.list_filter import LISTS
from assay.rules import violation

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
