"""The extension ui: the pages of tools, and what tools with a page return."""

from typing import Any

import pytest
from extended import MODES

from assay.judge.topics import apps
from assay.model.verdict import Verdict
from assay.rules.policy import Policy
from kit.rows import rows
from kit.talk import SEARCH, Talk, call, error, good, notification, request, result, rules

STRICT = Policy(strict=True)
PAGE = "ui://view/main.html"
TYPE = "text/html;profile=mcp-app"
TOOL: dict[str, Any] = {"name": "show", "inputSchema": {"type": "object"}}
SHOWN: dict[str, Any] = {**TOOL, "_meta": {"ui": {"resourceUri": PAGE}}}
TEXT = {"content": [{"type": "text", "text": "x"}]}


def tools(talk: Talk, *listed: dict[str, Any], **more: Any) -> Verdict:
    """The verdict on a list of tools."""
    good(talk.client(request("tools", "tools/list", {"cursor": "2"} if more.pop("later", False) else {})))
    verdict = talk.server(result("tools", {"tools": list(listed), **more}))
    talk.conversation.forget_settled()
    return verdict


def tool(meta: Any) -> Verdict:
    """The verdict on a tool with this `_meta`, under a strict policy."""
    return tools(Talk(policy=STRICT).opened(), {**TOOL, "_meta": meta}, SEARCH)


def resource(**members: Any) -> Verdict:
    """The verdict on a page in a list of resources, under a strict policy."""
    talk = Talk(policy=STRICT).opened()
    good(talk.client(request(1, "resources/list")))
    return talk.server(result(1, {"resources": [{"uri": PAGE, "name": "view", "mimeType": TYPE, **members}]}))


def content(policy: Policy | None = None, **members: Any) -> Verdict:
    """The verdict on the content of a page."""
    talk = Talk(policy=policy).opened()
    good(talk.client(request(1, "resources/read", {"uri": PAGE})))
    return talk.server(result(1, {"contents": [{"uri": PAGE, "text": "<html>", "mimeType": TYPE, **members}]}))


def called(talk: Talk, value: dict[str, Any], name: str = "show") -> Verdict:
    """The verdict on the result of a call."""
    good(talk.client(call(1, name, {})))
    verdict = talk.server(result(1, value))
    talk.conversation.forget_settled()
    return verdict


GOOD_META: list[dict[str, Any]] = [
    {"ui": {"resourceUri": PAGE}},
    {"ui": {"resourceUri": PAGE, "visibility": ["model", "app"]}},
    {"ui": {"visibility": ["app"]}},
    {"ui": {}},
    {"ui": {"resourceUri": PAGE, "other": 5}},
    {"ui": {"resourceUri": PAGE}, "ui/resourceUri": PAGE},
    {"com.example/ui": 5},
    {},
]


@rows(
    ("rule", "at", "meta"),
    [
        *((None, "", meta) for meta in GOOD_META),
        ("apps/meta", "/ui", {"ui": PAGE}),
        ("apps/meta", "/ui", {"ui": None}),
        ("apps/meta", "/ui/resourceUri", {"ui": {"resourceUri": 5}}),
        ("apps/meta", "/ui/visibility", {"ui": {"visibility": "app"}}),
        ("apps/meta", "/ui/visibility/0", {"ui": {"visibility": ["user"]}}),
        ("apps/resource-uri", "/ui/resourceUri", {"ui": {"resourceUri": "https://example.com"}}),
        ("apps/resource-uri", "/ui/resourceUri", {"ui": {"resourceUri": ""}}),
        ("apps/flat-key", "/ui~1resourceUri", {"ui/resourceUri": PAGE}),
        ("apps/flat-key", "/ui~1resourceUri", {"ui": {"visibility": ["app"]}, "ui/resourceUri": PAGE}),
        ("apps/flat-key", "/ui~1resourceUri", {"ui": {"resourceUri": PAGE}, "ui/resourceUri": "ui://other"}),
    ],
)
def test_wrong_metadata_is_reported_and_the_tool_stays(rule: str | None, at: str, meta: dict[str, Any]) -> None:
    verdict = tool(meta)
    expected = [] if rule is None else [(rule, f"/result/tools/0/_meta{at}")]
    assert [(each.rule, each.at) for each in verdict.violations] == expected
    assert verdict.onward is verdict.frame
    assert verdict.quarantined == ()


CSP = {
    "connectDomains": ["https://api.example.com", "wss://*.example.com"],
    "resourceDomains": ["https://cdn.example.com:8443"],
    "frameDomains": [],
    "baseUriDomains": ["https://example.com"],
}
GOOD_UI: list[dict[str, Any]] = [
    {},
    {"csp": CSP, "permissions": {"camera": {}, "clipboardWrite": {}}, "domain": "a.example", "prefersBorder": True},
    {"csp": {}},
    {"other": 5},
]
BAD_UI: list[tuple[str, Any]] = [
    ("apps/meta", 5),
    ("apps/meta", {"csp": []}),
    ("apps/meta", {"csp": {"connectDomains": "https://example.com"}}),
    ("apps/meta", {"permissions": {"camera": True}}),
    ("apps/meta", {"prefersBorder": "yes"}),
    ("apps/meta", {"domain": 5}),
    ("apps/csp", {"csp": {"connectDomains": ["https://a.example https://b.example"]}}),
    ("apps/csp", {"csp": {"resourceDomains": ["https://a.example; script-src *"]}}),
    ("apps/csp", {"csp": {"frameDomains": ["https://a.example,https://b.example"]}}),
    ("apps/csp", {"csp": {"baseUriDomains": ["'unsafe-eval'"]}}),
    ("apps/csp", {"csp": {"connectDomains": ['"https://a.example"']}}),
    ("apps/csp", {"csp": {"connectDomains": ["https://a.example\n"]}}),
]


@rows("ui", GOOD_UI)
def test_the_metadata_of_a_page_as_the_extension_has_it(ui: dict[str, Any]) -> None:
    good(resource(_meta={"ui": ui}))
    good(content(STRICT, _meta={"ui": ui}))


@rows(("rule", "ui"), BAD_UI)
def test_wrong_metadata_of_a_page_is_reported(rule: str, ui: Any) -> None:
    for verdict in (resource(_meta={"ui": ui}), content(STRICT, _meta={"ui": ui})):
        assert rules(verdict) == [rule]
        assert verdict.onward is verdict.frame


@rows("kind", ["text/html", "text/html; profile=mcp-app", "TEXT/HTML;profile=mcp-app", None])
def test_a_page_has_its_own_type(kind: str | None) -> None:
    """In a list it should have it, so that is never refused."""
    members: dict[str, Any] = {} if kind is None else {"mimeType": kind}
    talk = Talk(policy=STRICT).opened()
    good(talk.client(request(1, "resources/list")))
    verdict = talk.server(result(1, {"resources": [{"uri": PAGE, "name": "view", **members}]}))
    assert rules(verdict) == ["apps/listed-mime-type"]
    assert verdict.onward is verdict.frame
    good(talk.client(request(2, "resources/read", {"uri": PAGE})))
    verdict = talk.server(result(2, {"contents": [{"uri": PAGE, "text": "<html>", **members}]}))
    assert rules(verdict) == ["apps/mime-type"]
    assert verdict.onward is not verdict.frame


def test_a_page_that_a_tool_names_exists() -> None:
    for code in (-32002, -32602):
        talk = Talk().opened()
        good(tools(talk, SHOWN))
        good(talk.client(request(1, "resources/read", {"uri": PAGE})))
        verdict = talk.server(error(1, code))
        assert rules(verdict) == ["apps/not-found"]
        assert verdict.onward is verdict.frame


def test_other_errors_and_other_resources_are_no_missing_pages() -> None:
    talk = Talk().opened()
    good(tools(talk, SHOWN))
    for ident, uri, code in ((1, PAGE, -32603), (2, "ui://other", -32602), (3, PAGE, 5)):
        good(talk.client(request(ident, "resources/read", {"uri": uri})))
        good(talk.server(error(ident, code)))


def test_a_page_is_forgotten_with_its_tools() -> None:
    for forget in (
        lambda talk: good(talk.server(notification("notifications/tools/list_changed"))),
        lambda talk: good(tools(talk, TOOL)),
        lambda talk: talk.conversation.renew(),
    ):
        talk = Talk().opened()
        good(tools(talk, SHOWN))
        forget(talk)
        good(talk.client(request(1, "resources/read", {"uri": PAGE})))
        good(talk.server(error(1, -32602)))
    # It may also be asked for before the change.
    talk = Talk().opened()
    good(tools(talk, SHOWN))
    good(talk.client(request(1, "resources/read", {"uri": PAGE})))
    good(talk.server(notification("notifications/tools/list_changed")))
    good(talk.server(error(1, -32602)))


def test_the_pages_of_later_pages_of_the_list_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apps, "_MOST", 3)
    talk = Talk().opened()
    good(tools(talk, SHOWN, nextCursor="2"))
    others = [{**TOOL, "name": f"t{n}", "_meta": {"ui": {"resourceUri": f"ui://{n}"}}} for n in range(9)]
    good(tools(talk, *others, later=True))
    known = talk.conversation.tools.topics[apps.AppPages].known
    assert PAGE in known
    assert len(known) == 3


EMPTY: list[dict[str, Any]] = [
    {"content": []},
    {"content": [], "structuredContent": {"a": 1}},
    {"content": [{"type": "text", "text": " \n"}]},
    {"content": [{"type": "text", "text": ""}, {"type": "text", "text": ""}]},
]
MEANINGFUL: list[dict[str, Any]] = [
    TEXT,
    {"content": [{"type": "text", "text": ""}, {"type": "text", "text": "x"}]},
    {"content": [{"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}]},
    {"content": [], "isError": True},
]


@rows("mode", MODES)
@rows("value", EMPTY)
def test_a_tool_with_a_page_returns_content_as_well(value: dict[str, Any], mode: str) -> None:
    for meta in ({"ui": {"resourceUri": PAGE}}, {"ui": {"resourceUri": PAGE, "visibility": ["model"]}}):
        talk = Talk(mode=mode, policy=STRICT).opened()
        good(tools(talk, {**TOOL, "_meta": meta}))
        for _ in range(3):
            verdict = called(talk, value)
            assert rules(verdict) == ["apps/content"]
            assert verdict.onward is verdict.frame


@rows("value", MEANINGFUL)
def test_content_that_a_model_can_read(value: dict[str, Any]) -> None:
    talk = Talk().opened()
    good(tools(talk, SHOWN))
    for _ in range(3):
        good(called(talk, value))


@rows("meta", [{}, {"ui": {"visibility": ["app"]}}, {"ui": {"resourceUri": PAGE, "visibility": ["app"]}}])
def test_a_tool_without_a_page_or_without_a_model_may_return_nothing(meta: dict[str, Any]) -> None:
    talk = Talk().opened()
    good(tools(talk, {**TOOL, "_meta": meta}))
    for _ in range(3):
        good(called(talk, {"content": []}))


@rows("value", [None, 5, "x", [], [5], [None], [{}], {"ui": []}, {"ui": {"csp": 5}}])
def test_metadata_of_any_shape_is_no_failure(value: Any) -> None:
    """Under audit everything is forwarded, and judged as far as that is possible."""
    talk = Talk(mode="audit").opened()
    for ident, (method, params, member) in enumerate(
        (
            ("tools/list", {}, "tools"),
            ("resources/list", {}, "resources"),
            ("resources/read", {"uri": PAGE}, "contents"),
        )
    ):
        for number, entries in enumerate((value, [{"uri": PAGE, "name": "x", "_meta": value}])):
            good(talk.client(request(10 * ident + number + 1, method, params)))
            verdict = talk.server(result(10 * ident + number + 1, {member: entries}))
            assert "guard/failure" not in rules(verdict)
