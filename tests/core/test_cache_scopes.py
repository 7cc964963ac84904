"""The cacheScope of the pages of one list (server/utilities/caching, Interaction with Pagination)."""

from typing import Any

import pytest

from assay.core.policy import Policy
from assay.spec.revisions import REVISIONS, handshake
from kit.rows import rows
from kit.stateless_talk import COMPLETE, asks
from kit.talk import Talk, good, replacement, request, result, rules

MEMBERS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
CHANGED = ["protocol/cache-scope"]


class Pages:
    """Lists that are asked for page by page."""

    def __init__(self, method: str = "tools/list", **options: Any) -> None:
        self.talk = Talk(**options)
        self.method = method
        self.count = 0

    def ask(self, cursor: str | None = None) -> int:
        """Ask for a page."""
        self.count += 1
        params: dict[str, Any] = {} if cursor is None else {"cursor": cursor}
        good(self.talk.client(asks(self.count, self.method, **params)))
        return self.count

    def answer(self, ident: int, scope: Any, then: str | None = None) -> Any:
        """The verdict on a page of that *scope*, followed by the one that *then* asks for."""
        more = {} if then is None else {"nextCursor": then}
        return self.talk.server(result(ident, {MEMBERS[self.method]: [], **COMPLETE, "ttlMs": 0, **scope, **more}))

    def page(self, cursor: str | None, scope: str, then: str | None = None) -> Any:
        """Both."""
        return self.answer(self.ask(cursor), {"cacheScope": scope}, then)


@rows("method", MEMBERS)
def test_a_scope_that_changes_is_reported_on_each_page_that_differs_from_the_first(method: str) -> None:
    """Servers MUST apply the same cacheScope to all response pages for a given list request."""
    pages = Pages(method)
    good(pages.page(None, "private", "2"))
    verdict = pages.page("2", "public", "3")
    assert rules(verdict) == CHANGED
    assert verdict.onward is verdict.frame
    assert (verdict.violations[0].at, verdict.violations[0].found) == ("/result/cacheScope", '"public"')
    good(pages.page("3", "private", "4"))
    assert rules(pages.page("4", "public")) == CHANGED


@pytest.mark.parametrize("scope", ["private", "public"])
def test_pages_of_one_scope_pass(scope: str) -> None:
    pages = Pages()
    good(pages.page(None, scope, ""))
    good(pages.page("", scope, "3"))
    good(pages.page("3", scope))


def test_another_list_may_have_another_scope() -> None:
    pages = Pages()
    good(pages.page(None, "private", "2"))
    good(pages.page("2", "private"))
    good(pages.page(None, "public", "2"))
    good(pages.page("2", "public"))
    pages.method = "prompts/list"
    good(pages.page(None, "private", "2"))
    good(pages.page("2", "private"))


def test_two_lists_at_once_are_told_apart_by_their_cursors() -> None:
    pages = Pages()
    first, second = pages.ask(), pages.ask()
    good(pages.answer(first, {"cacheScope": "private"}, "a"))
    good(pages.answer(second, {"cacheScope": "public"}, "b"))
    good(pages.page("b", "public"))
    assert rules(pages.page("a", "public")) == CHANGED


def test_a_cursor_that_two_lists_gave_out_tells_nothing() -> None:
    pages = Pages()
    good(pages.page(None, "private", "2"))
    good(pages.page(None, "public", "2"))
    good(pages.page("2", "private"))


def test_a_page_whose_predecessor_was_not_heard_is_not_judged() -> None:
    pages = Pages(revision="2026-07-28")
    good(pages.page("9", "private", "10"))
    assert rules(pages.page("10", "public")) == CHANGED


def test_an_absent_scope_is_not_another_one() -> None:
    pages = Pages()
    good(pages.page(None, "public", "2"))
    assert rules(pages.answer(pages.ask("2"), {})) == ["protocol/cache-hints"]


def test_a_strict_policy_refuses_the_page() -> None:
    pages = Pages(policy=Policy(strict=True))
    good(pages.page(None, "public", "2"))
    assert replacement(pages.page("2", "private"))["error"]["code"] == -31010


def test_what_is_kept_of_cursors_is_bounded() -> None:
    pages = Pages()
    for number in range(100):
        good(pages.page(None, "public", f"c{number}"))
    good(pages.page("c1", "private"))
    assert rules(pages.page("c99", "private")) == CHANGED
    good(pages.page(None, "public", "x" * 2000))
    good(pages.page("x" * 2000, "private"))


@rows("revision", [each for each in REVISIONS if handshake(each)])
def test_older_revisions_have_no_scopes(revision: str) -> None:
    talk = Talk().opened(revision)
    for ident, (cursor, scope) in enumerate([({}, "private"), ({"cursor": "2"}, "public")]):
        good(talk.client(request(ident, "tools/list", cursor)))
        good(talk.server(result(ident, {"tools": [], "nextCursor": "2", "cacheScope": scope})))
