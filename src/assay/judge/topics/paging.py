"""Lists page by page: cursors, and the cacheScope that all pages share (2026-07-28)."""

from typing import TYPE_CHECKING, Any, Final

from assay.judge.list_filter import LISTS
from assay.judge.topics.table import on
from assay.model.bounded import Bounded
from assay.model.json_values import text
from assay.model.verdict import Exchange, Party
from assay.rules.report import Report
from assay.schema.tool_contracts import cursor_key

if TYPE_CHECKING:
    from assay.judge.state import State

_MOST: Final = 64
"""Cursors that no client has used yet. Clients read a list page by page, so there is one for each list."""

_LONGEST: Final = 1024
"""Characters of a cursor that is kept. Longer ones contain the state of the server, and are not judged."""


def check_length(at: str, value: str, most: int, report: Report) -> bool:
    """Report an id, a token or a cursor that is too long to be kept; return whether it is not."""
    if len(value) <= most:
        return True
    report.add("protocol/token-size", at, expected=f"at most {most:,} characters", found=f"{len(value):,} characters")
    return False


@on("request")
def take_cursor(state: "State", exchange: Exchange, params: dict[str, Any], report: Report) -> None:
    """Keep the cursor of a request."""
    cursor = params.get("cursor")
    # The detail of a call is the name of its tool.
    if isinstance(cursor, str) and exchange.method != "tools/call":
        exchange.detail = cursor_key(cursor)
        check_length("/params/cursor", cursor, state.limits.cursor_bytes, report)


class CacheScopes:
    """The scopes that the next pages must have, in one conversation."""

    __slots__ = ("given",)

    def __init__(self, _: "State") -> None:
        self.given: Bounded[tuple[str, str], str | None] = Bounded(_MOST)
        """The scopes by method and cursor; None if two lists gave the same cursor with different scopes."""

    def renew(self) -> None:
        """Forget the cursors of the server before."""
        self.given.clear()


@on("forwarded", *LISTS)
def expect_scope(state: "State", exchange: Exchange, params: dict[str, Any]) -> None:
    """Keep the scope that the page which a request asks for must have, if the page before it is known."""
    cursor = params.get("cursor")
    if not exchange.features.handshake and exchange.asker is Party.CLIENT and isinstance(cursor, str):
        exchange.scope = state.own(CacheScopes).given.pop((exchange.method, cursor), None)


@on("result", *LISTS)
def check_scope(_: "State", exchange: Exchange, result: dict[str, Any], report: Report) -> None:
    """Report a page with another scope than the first one."""
    scope = result.get("cacheScope")
    if exchange.scope is not None and isinstance(scope, str) and scope != exchange.scope:
        expected, found = f'"{exchange.scope}", as on the first page', f'"{scope[:40]}"'
        report.add("protocol/cache-scope", "/result/cacheScope", expected=expected, found=found)


@on("answered", *LISTS)
def keep_scope(state: "State", exchange: Exchange, result: dict[str, Any], _: Report) -> None:
    """Keep the scope that the page after this one must have: that of the first."""
    cursor, scope = result.get("nextCursor"), exchange.scope or text(result.get("cacheScope"))
    if exchange.features.handshake or not isinstance(cursor, str) or not scope:
        return
    if max(len(cursor), len(scope)) > _LONGEST:
        return
    given = state.own(CacheScopes).given
    key = exchange.method, cursor
    given[key] = scope if given.get(key, scope) == scope else None
