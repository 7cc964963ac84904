"""What 2026-07-28 has in results beside their content: how long, and for whom, they may be cached, and their type."""

from typing import Any

from assay.model.verdict import Verdict
from kit.rows import rows
from kit.stateless_talk import COMPLETE, HINTS, asks, calls
from kit.talk import HITS, SEARCH, Talk, good, replacement, result, rules

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
        self.talk, self.method, self.count = Talk(**options), method, 0

    def ask(self, cursor: str | None = None) -> int:
        """Ask for a page."""
        self.count += 1
        params: dict[str, Any] = {} if cursor is None else {"cursor": cursor}
        good(self.talk.client(asks(self.count, self.method, **params)))
        return self.count

    def answer(self, ident: int, scope: str | None, then: str | None = None) -> Verdict:
        """The verdict on a page of that *scope*, followed by the one that *then* asks for."""
        more = {**({} if scope is None else {"cacheScope": scope}), **({} if then is None else {"nextCursor": then})}
        return self.talk.server(result(ident, {MEMBERS[self.method]: [], **COMPLETE, "ttlMs": 0, **more}))

    def page(self, cursor: str | None, scope: str | None, then: str | None = None) -> Verdict:
        """Both."""
        return self.answer(self.ask(cursor), scope, then)


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


Page = tuple[str | None, str | None, str | None]


@rows(
    ("before", "last", "found"),
    [
        # Pages of one scope, also of an empty cursor.
        ([(None, "public", ""), ("", "public", "3")], ("3", "public", None), []),
        # Another list may have another scope.
        ([(None, "private", "2"), ("2", "private", None), (None, "public", "2")], ("2", "public", None), []),
        # A cursor that two lists gave out shows nothing.
        ([(None, "private", "2"), (None, "public", "2")], ("2", "private", None), []),
        # Nor does one that was given out before, but for the pages after it.
        ([], ("9", "private", "10"), []),
        ([("9", "private", "10")], ("10", "public", None), CHANGED),
        # An absent scope is not another one.
        ([(None, "public", "2")], ("2", None, None), ["protocol/cache-hints"]),
    ],
)
def test_pages_belong_together_by_their_cursors(before: list[Page], last: Page, found: list[str]) -> None:
    pages = Pages(revision="2026-07-28")
    for each in before:
        good(pages.page(*each))
    assert rules(pages.page(*last)) == found


def test_two_lists_at_once_are_kept_apart_by_their_cursors() -> None:
    pages = Pages()
    first, second = pages.ask(), pages.ask()
    good(pages.answer(first, "private", "a"))
    good(pages.answer(second, "public", "b"))
    good(pages.page("b", "public"))
    assert rules(pages.page("a", "public")) == CHANGED


def test_what_is_kept_of_cursors_is_bounded() -> None:
    pages = Pages()
    for number in range(100):
        good(pages.page(None, "public", f"c{number}"))
    good(pages.page("c1", "private"))
    assert rules(pages.page("c99", "private")) == CHANGED
    good(pages.page(None, "public", "x" * 2000))
    good(pages.page("x" * 2000, "private"))


CACHEABLE: dict[str, dict[str, Any]] = {
    "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {}},
    "tools/list": {"tools": []},
    "prompts/list": {"prompts": []},
    "resources/list": {"resources": []},
    "resources/templates/list": {"resourceTemplates": []},
    "resources/read": {"contents": []},
}
PARAMS: dict[str, dict[str, Any]] = {"resources/read": {"uri": "file:///a"}}
MISSING = ["protocol/result-type-missing"]
HINTLESS = ["protocol/cache-hints"]


def answered(method: str, value: dict[str, Any], **options: Any) -> Verdict:
    """The verdict on *value* as the answer to *method*."""
    talk = Talk(**options)
    good(talk.client(asks(1, method, **PARAMS.get(method, {}))))
    return talk.server(result(1, value))


def passed(verdict: Verdict) -> list[str]:
    """The rules that are only reported of a message that is forwarded as it came."""
    assert verdict.onward is verdict.frame
    assert {each.action for each in verdict.violations} == {"report"}
    return rules(verdict)


@rows("method", CACHEABLE)
def test_each_absent_member_is_reported_and_the_result_passes(method: str) -> None:
    """basic: an absent resultType is "complete". server/utilities/caching: an absent ttlMs is 0."""
    value = CACHEABLE[method]
    assert passed(answered(method, {**value, **HINTS})) == MISSING
    assert passed(answered(method, {**value, **COMPLETE, "ttlMs": 5})) == HINTLESS
    assert passed(answered(method, {**value, **COMPLETE, "cacheScope": "public"})) == HINTLESS
    assert passed(answered(method, value)) == MISSING + HINTLESS * 2
    good(answered(method, {**value, **COMPLETE, **HINTS}))


def test_a_list_without_them_teaches_its_tools() -> None:
    talk = Talk()
    good(talk.client(asks(1, "tools/list")))
    assert passed(talk.server(result(1, {"tools": [SEARCH]}))) == MISSING + HINTLESS * 2
    verdict = talk.client(asks(2, "tools/call", name="search", arguments={"words": 5}))
    assert rules(verdict) == ["contract/input"]


def test_a_result_of_a_tool_without_a_type_is_held_to_the_output_schema() -> None:
    talk = Talk()
    good(talk.client(asks(1, "tools/list")))
    good(talk.server(result(1, {"tools": [SEARCH], **COMPLETE, **HINTS})))
    good(talk.client(calls(2)))
    assert passed(talk.server(result(2, HITS))) == MISSING
    good(talk.client(calls(3)))
    verdict = talk.server(result(3, {"content": [], "structuredContent": {"hits": "3"}}))
    assert rules(verdict) == ["contract/output", *MISSING]
    assert replacement(verdict)["result"]["isError"] is True
