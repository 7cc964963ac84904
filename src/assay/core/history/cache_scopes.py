"""
The cacheScope of the pages of one list: all of them have the same (2026-07-28). No I/O, no clock.

Pages belong together by their cursors: the page that a cursor was given with, and the page that it asks for.
"""

from typing import Any, Final

from assay.base.verdict import Exchange, Violation
from assay.core.list_filter import LISTS
from assay.rules import violation

# Cursors that no client has come back with. Clients go through a list page by page, so there is one for each list.
_MOST: Final = 64

# Characters of a cursor that is kept. Longer ones, with the whole state of the server in them, are not judged.
_LONGEST: Final = 1024


class CacheScopes:
    """The scopes that pages to come are held to, in one conversation."""

    __slots__ = ("_given",)

    def __init__(self) -> None:
        self._given: dict[tuple[str, str], str | None] = {}
        """By method and cursor; None if two lists gave out the same cursor with different scopes."""

    def asked(self, exchange: Exchange, cursor: Any) -> None:
        """Remember which scope the page is to have that *exchange* asks for, if the page before it is known."""
        if isinstance(cursor, str):
            exchange.scope = self._given.pop((exchange.method, cursor), None)

    def check(self, exchange: Exchange, result: dict[str, Any]) -> list[Violation]:
        """Return a violation if this page has another scope than the first one."""
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
        """A page has passed: the next one has the scope of the first."""
        cursor, scope = result.get("nextCursor"), exchange.scope or result.get("cacheScope")
        if exchange.method not in LISTS or not isinstance(cursor, str) or not isinstance(scope, str):
            return
        if len(cursor) > _LONGEST or len(scope) > _LONGEST:
            return
        key = exchange.method, cursor
        self._given[key] = scope if self._given.get(key, scope) == scope else None
        if len(self._given) > _MOST:
            del self._given[next(iter(self._given))]
