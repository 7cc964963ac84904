"""Tools as a server lists them, and calls and results held to what they promise."""

from typing import Any, Literal

import orjson
import pytest

from assay.judge.conversation import Conversation, Facts
from assay.model.limits import Limits
from assay.model.verdict import Party
from assay.rules.policy import Policy
from assay.spec.revisions import REVISIONS
from kit.rows import rows
from kit.talk import (
    SEARCH,
    Talk,
    answer,
    call,
    error,
    good,
    notification,
    replacement,
    request,
    result,
    rules,
)

_REVISION = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
TEXT = {"content": [{"type": "text", "text": "x"}]}


# ── tools and their contracts ────────────────────────────────────────────────────────────────────────────────────────


def test_arguments_are_held_to_the_tools_schema() -> None:
    talk = Talk().opened().listed(SEARCH)
    good(talk.client(call(1, "search", {"words": "a", "limit": 3})))
    verdict = talk.client(call(2, "search", {"words": "a", "limit": "3"}))
    [wrong] = verdict.violations
    assert (wrong.rule, wrong.at) == ("contract/input", "/params/arguments/limit")
    assert wrong.schema_at == "#/properties/limit/type"
    assert "not as text" in wrong.hint
    assert verdict.onward is None


@rows(
    ("answered", "at"),
    [
        pytest.param({"structuredContent": {"hits": "3"}}, "/result/structuredContent/hits", id="wrong-type"),
        pytest.param({"structuredContent": {}}, "/result/structuredContent", id="property-missing"),
        pytest.param({}, "/result", id="no-structured-content"),
    ],
)
def test_a_result_that_breaks_the_contract_fails_the_call(answered: dict[str, Any], at: str) -> None:
    talk = Talk().opened().listed(SEARCH)
    good(talk.client(call(1, "search", {"words": "a"})))
    verdict = talk.server(result(1, {**TEXT, **answered}))
    assert [(each.rule, each.at) for each in verdict.violations] == [("contract/output", at)]
    failed = replacement(verdict)
    assert failed["id"] == 1
    first, line = failed["result"]["content"][0]["text"].splitlines()
    assert first == "The result of search broke its contract and was withheld."
    assert line.startswith(f"{at}: expected ")
    assert "[contract/output]" in line


@rows("revision", REVISIONS)
@rows(
    "answered",
    [pytest.param({"content": [{"type": "text"}]}, id="schema"), pytest.param({"content": "none"}, id="shape")],
)
def test_what_takes_the_place_of_a_bad_result_is_a_good_answer(revision: str, answered: dict[str, Any]) -> None:
    """A failed result where the revision has them for what a model can see, an error before."""
    stateless = revision >= "2026-07-28"
    meta = {"_meta": {_REVISION: revision, _CAPABILITIES: {}}} if stateless else {}
    complete = {"resultType": "complete"} if stateless else {}
    talk, other = Talk(revision=revision), Talk(revision=revision)
    good(talk.client(request(0, "tools/list", meta)))
    cached = {"ttlMs": 0, "cacheScope": "private"} if stateless else {}
    good(talk.server(result(0, {"tools": [SEARCH], **complete, **cached})))
    for each in (talk, other):
        good(each.client(request(1, "tools/call", {"name": "search", "arguments": {"words": "a"}, **meta})))
    verdict = talk.server(result(1, {**answered, **complete}))
    assert not verdict.accepted
    failed = replacement(verdict)
    good(other.server(failed))
    if revision >= "2025-11-25":
        assert failed["result"]["isError"] is True
        assert failed["result"].get("resultType") == ("complete" if revision >= "2026-07-28" else None)
    else:
        assert failed["error"]["code"] == -31010
        assert failed["error"]["data"]["violations"][0]["rule"] == verdict.violations[0].rule


def test_an_open_call_keeps_the_contract_it_started_with() -> None:
    talk = Talk().opened().listed(SEARCH)
    good(talk.client(call(1, "search", {"words": "a"})))
    talk.listed({"name": "search", "inputSchema": {"type": "object"}})
    assert rules(talk.server(result(1, TEXT))) == ["contract/output"]
    good(talk.client(call(2, "search", {})))
    good(talk.server(result(2, TEXT)))


def test_a_tool_that_is_no_longer_listed_is_forgotten() -> None:
    [wrong] = Talk().opened().listed(SEARCH).listed().client(call(1, "search", {})).violations
    assert (wrong.rule, wrong.expected) == ("contract/unknown-tool", "a listed tool, but the list is empty")


def test_an_unknown_tool_is_only_reported_while_the_list_is_known_to_be_whole() -> None:
    talk = Talk().opened().listed(SEARCH)
    verdict = talk.client(call(1, "serach", {}))
    assert rules(verdict) == ["contract/unknown-tool"]
    assert "search" in verdict.violations[0].expected
    assert verdict.onward is verdict.frame
    good(talk.server(notification("notifications/tools/list_changed")))
    good(talk.client(call(2, "serach", {})))


def test_an_unknown_tool_is_answered_with_invalid_params() -> None:
    talk = Talk().opened().listed(SEARCH)
    talk.client(call(1, "nope", {}))
    assert rules(talk.server(error(1, -32601))) == ["protocol/error-code"]
    talk.client(call(2, "nope", {}))
    good(talk.server(error(2, -32602)))


USELESS = [
    ({"type": "object", "properties": {"a": {"type": "strnig"}}}, "contract/schema"),
    ({"type": "object", "allOf": [{"$ref": "#"}]}, "contract/schema-cycle"),
]
UNJUDGED = [
    ({"type": "object", "properties": {"a": {"$ref": "https://example.com/a.json"}}}, "contract/remote-ref"),
    ({"type": "object", "$schema": "https://example.com/mine"}, "contract/unknown-dialect"),
    ({"type": "object", "properties": {"a": {"pattern": "[^]"}}}, "contract/pattern"),
    ({"type": "object", "description": "x" * 300_000}, "contract/schema-size"),
    ({"type": "object", "oneOf": [{"items": {"$ref": "#"}, "contains": {"$ref": "#"}}]}, "contract/schema-cost"),
]


@rows(
    ("schema", "rule", "policy"),
    [*((*each, None) for each in USELESS), *((*each, Policy(strict=True)) for each in UNJUDGED)],
)
def test_a_schema_that_cannot_be_used_is_named_and_its_tool_not_handed_on(
    schema: dict[str, Any], rule: str, policy: Policy | None
) -> None:
    talk = Talk(policy=policy).opened()
    good(talk.client(request("list", "tools/list")))
    verdict = talk.server(result("list", {"tools": [SEARCH, {"name": "odd", "inputSchema": schema}]}))
    assert rules(verdict) == [rule]
    assert verdict.violations[0].at.startswith("/result/tools/1/inputSchema")
    assert verdict.onward is not None
    listed = [each["name"] for each in orjson.loads(verdict.onward)["result"]["tools"]]
    # The others are handed on without it, and no one is to call it.
    assert listed == ["search"]
    assert rules(talk.client(call(1, "odd", {"a": 1}))) == ["contract/set-aside"]
    assert rules(talk.client(call(2, "search", {}))) == ["contract/input"]


@rows("mode", ["enforce", "audit"])
@rows(("schema", "rule"), UNJUDGED)
def test_a_schema_that_we_cannot_judge_by_is_reported_once_and_its_tool_lives(
    schema: dict[str, Any], rule: str, mode: Literal["enforce", "audit"]
) -> None:
    talk = Talk(mode=mode).opened()
    good(talk.client(request("list", "tools/list")))
    odd = {"name": "odd", "inputSchema": schema, "outputSchema": schema}
    verdict = talk.server(result("list", {"tools": [SEARCH, odd]}))
    assert [(each.rule, each.action) for each in verdict.violations] == [(rule, "report")] * 2
    assert [each.at.split("/")[4] for each in verdict.violations] == ["inputSchema", "outputSchema"]
    assert verdict.onward is verdict.frame
    for ident in (1, 2):
        good(talk.client(call(ident, "odd", {"a": "b"})))
        good(talk.server(result(ident, {"content": [], "structuredContent": {"a": "b"}})))


ODD = {"name": "odd", "inputSchema": {"type": "object", "properties": {"a": {"type": "strnig"}}}}
EVEN = {"name": "odd", "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}


@rows("revision", ["2024-11-05", "2025-11-25"])
def test_a_tool_that_was_set_aside_cannot_be_called_until_it_is_listed_as_it_should_be(revision: str) -> None:
    talk = Talk().opened(revision).listed(SEARCH, ODD)
    for ident in (1, 2):
        verdict = talk.client(call(ident, "odd", {"a": "b"}))
        assert [(each.rule, each.at, each.action) for each in verdict.violations] == [
            ("contract/set-aside", "/params/name", "refuse")
        ]
        assert verdict.onward is None
        assert answer(verdict)["error"]["code"] == -32602
    talk.listed(SEARCH)
    assert rules(talk.client(call(3, "odd", {"a": "b"}))) == ["contract/set-aside"]
    talk.listed(SEARCH, EVEN)
    good(talk.client(call(4, "odd", {"a": "b"})))
    talk.listed(ODD, SEARCH)
    assert rules(talk.client(call(5, "odd", {"a": "b"}))) == ["contract/set-aside"]


def test_a_tool_of_two_on_one_page_stays_callable() -> None:
    talk = Talk().opened().listed(SEARCH, SEARCH)
    good(talk.client(call(1, "search", {"words": "a"})))


def test_more_tools_than_are_remembered_set_aside_leave_none_that_can_be_called_unjudged() -> None:
    odd = [{**ODD, "name": f"odd-{number}"} for number in range(3)]
    talk = Talk(limits=Limits(tools=2)).opened()
    for tool in (*odd, EVEN):
        talk.listed(tool)
    for number in range(3):
        assert rules(talk.client(call(number + 1, f"odd-{number}", {}))) == ["contract/set-aside"]
    good(talk.client(call(9, "odd", {"a": "b"})))


@rows(
    "patterns",
    [
        {"type": "object", "properties": {str(number): {"pattern": "a"} for number in range(64)}},
        {"type": "object", "patternProperties": {str(number): True for number in range(64)}},
    ],
)
def test_a_schema_that_proves_useless_at_the_first_call_sets_its_tool_aside(patterns: dict[str, Any]) -> None:
    """What is too much to compile with the list is compiled for the first call."""
    odd = {"name": "odd", "inputSchema": {"type": "object", "properties": {"a": {"type": "strnig", "pattern": "a"}}}}
    talk = Talk().opened().listed({"name": "first", "inputSchema": patterns}, odd)
    verdict = talk.client(call(1, "odd", {"a": "b"}))
    assert [(each.rule, each.action) for each in verdict.violations] == [
        ("contract/set-aside", "refuse"),
        ("contract/schema", "quarantine"),
    ]
    assert answer(verdict)["error"]["code"] == -32602
    assert rules(talk.client(call(2, "odd", {"a": "b"}))) == ["contract/set-aside"]


def test_a_tool_of_which_much_cannot_be_judged_hides_no_other() -> None:
    """After 500 things to tell, the rest of a list was not learned: no call of those tools was judged."""
    remote = {str(number): {"$ref": f"https://a.example/{number}"} for number in range(600)}
    first = {"name": "first", "inputSchema": {"type": "object", "properties": remote}}
    second = {"name": "second", "inputSchema": {"type": "object", "required": ["a"]}}
    talk = Talk().opened().listed(first, second)
    assert rules(talk.client(call(1, "second", {}))) == ["contract/input"]
    good(talk.client(call(2, "first", {})))


# ── what is judged in part ───────────────────────────────────────────────────────────────────────────────────────────

SLOW = r"(?=a)a*a*a*a*b"
"""No one can tell in bounded time whether a long row of `a` matches it."""


def slow(**more: Any) -> Talk:
    schema = {"type": "object", "properties": {"text": {"pattern": SLOW}, "limit": {"type": "integer"}}}
    return Talk(**more).opened().listed({"name": "slow", "inputSchema": schema, "outputSchema": schema})


@rows("mode", ["enforce", "audit"])
def test_a_text_that_a_pattern_cannot_decide_passes_with_a_report_and_the_rest_is_judged(
    mode: Literal["enforce", "audit"],
) -> None:
    talk = slow(mode=mode)
    good(talk.client(call(1, "slow", {"text": "aab"})))
    good(talk.server(result(1, {"content": [], "structuredContent": {"text": "ab"}})))
    assert rules(talk.client(call(2, "slow", {"text": "a"}))) == ["contract/input"]
    verdict = talk.client(call(3, "slow", {"text": "a" * 5_000, "limit": 5}))
    assert [(each.rule, each.action) for each in verdict.violations] == [("contract/unjudged", "report")]
    assert SLOW in verdict.violations[0].expected
    assert verdict.onward is verdict.frame
    verdict = talk.server(result(3, {"content": [], "structuredContent": {"text": "a" * 5_000}}))
    assert rules(verdict) == ["contract/unjudged"]
    assert verdict.onward is verdict.frame
    verdict = talk.client(call(4, "slow", {"text": "a" * 5_000, "limit": "five"}))
    assert [(each.rule, each.at) for each in verdict.violations] == [
        ("contract/input", "/params/arguments/limit"),
        ("contract/unjudged", "/params/arguments"),
    ]


def test_under_a_strict_policy_a_text_that_a_pattern_cannot_decide_is_refused_each_time() -> None:
    talk = slow(policy=Policy(strict=True))
    for ident in (1, 2):
        verdict = talk.client(call(ident, "slow", {"text": "a" * 5_000}))
        assert [(each.rule, each.action) for each in verdict.violations] == [("contract/unjudged", "refuse")]
    good(talk.client(call(3, "slow", {"text": "ab"})))


HEADED = {"type": "object", "properties": {"limit": {"type": "number", "x-mcp-header": "Limit"}}}


@rows(
    ("facts", "policy", "action"),
    [
        pytest.param(Facts("http"), None, "quarantine", id="http"),
        pytest.param(Facts(), None, "report", id="stdio"),
        pytest.param(Facts(), Policy(strict=True), "quarantine", id="strict"),
        pytest.param(Facts("http"), Policy({"contract/header": "pass"}), "report", id="passed"),
    ],
)
def test_a_header_on_a_number_takes_its_tool_away_only_over_http(
    facts: Facts, policy: Policy | None, action: str
) -> None:
    """2026-07-28, server/tools: clients over HTTP leave such a tool out; over other transports nothing is asked."""
    conversation = Conversation(revision="2026-07-28", policy=policy)
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    good(conversation.hear(Party.CLIENT, orjson.dumps(request(1, "tools/list", {"_meta": meta})), facts))
    tools = [SEARCH, {"name": "headed", "inputSchema": HEADED}]
    listed = {"tools": tools, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    verdict = conversation.hear(Party.SERVER, orjson.dumps(result(1, listed)))
    assert [(each.rule, each.action) for each in verdict.violations] == [("contract/header", action)]
    assert verdict.onward is not None
    handed_on = [tool["name"] for tool in orjson.loads(verdict.onward)["result"]["tools"]]
    assert handed_on == (["search"] if action == "quarantine" else ["search", "headed"])


@rows(
    ("schema", "draft", "good_value", "bad_value"),
    [
        ({"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}, "draft-07", ["a", 1], ["a", "b"]),
        ({"type": "number", "minimum": 1, "exclusiveMinimum": True}, "draft-04", 2, 1),
    ],
)
def test_a_schema_of_an_older_draft_that_does_not_say_so_is_judged_by_that_draft(
    schema: dict[str, Any], draft: str, good_value: Any, bad_value: Any
) -> None:
    """Without `$schema` it counts as 2020-12, of which it is none; clients that read it by draft 7 can use it."""
    talk = Talk().opened()
    good(talk.client(request(1, "tools/list")))
    tool = {"name": "old", "inputSchema": {"type": "object", "properties": {"a": schema}}}
    verdict = talk.server(result(1, {"tools": [tool]}))
    assert [(each.rule, each.action) for each in verdict.violations] == [("contract/unknown-dialect", "report")]
    assert draft in verdict.violations[0].found
    assert verdict.onward is verdict.frame
    good(talk.client(call(2, "old", {"a": good_value})))
    assert rules(talk.client(call(3, "old", {"a": bad_value}))) == ["contract/input"]
