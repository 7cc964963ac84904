"""What is done about broken rules where an operator has said so."""

from typing import Any

import pytest

from assay.model.limits import Limits
from assay.model.verdict import Verdict
from assay.rules import RULES
from assay.rules.policy import ACTIONS, Excepted, Policy, fitting, meant
from kit.rows import rows
from kit.talk import SEARCH, Talk, answer, call, good, notification, replacement, request, result, rules

TEXT = {"content": [{"type": "text", "text": "x"}]}
ODD = {"name": "odd", "inputSchema": {"type": "object", "properties": {"a": {"type": "strnig"}}}}
PROGRESS = notification("notifications/progress", {"progressToken": "?", "progress": 1})


def ruled(actions: dict[str, str] | None = None, **more: Any) -> Talk:
    """A conversation with that policy, in which a tool is listed."""
    return Talk(policy=Policy(actions, **more)).opened().listed(SEARCH)


def done(verdict: Verdict) -> list[tuple[str, str]]:
    """Rules and what was done about them."""
    return [(each.rule, each.action) for each in verdict.violations]


def test_the_default_action_of_each_rule_fits() -> None:
    for rule, row in RULES.items():
        words = {word for word, action in ACTIONS.items() if action == row.action}
        assert words <= set(fitting(rule)), rule


@rows(
    ("rule", "words"),
    [
        ("syntax/json", ("refuse", "drop")),
        ("envelope/id", ("refuse", "drop")),
        ("envelope/null-id", ("pass", "refuse", "drop")),
        ("protocol/answered-twice", ("refuse", "drop")),
        ("protocol/id-in-use", ("refuse",)),
        ("protocol/unanswered", ("pass",)),
        ("protocol/progress", ("pass", "refuse", "drop")),
        ("protocol/result", ("pass", "refuse")),
        ("contract/input", ("pass", "refuse")),
        ("contract/pattern", ("pass", "refuse", "quarantine")),
        ("guard/failure", ("pass", "refuse", "drop")),
    ],
)
def test_not_everything_can_be_done_about_every_rule(rule: str, words: tuple[str, ...]) -> None:
    assert fitting(rule) == words


def test_the_strict_action_of_each_rule_fits_and_is_stricter_than_the_default() -> None:
    for rule, row in RULES.items():
        assert row.severest == (row.strict or row.action), rule
        if row.strict:
            assert row.action == "report", rule
            assert {word for word, action in ACTIONS.items() if action == row.strict} <= set(fitting(rule)), rule


def test_a_pattern_means_one_rule_or_a_rung_or_all() -> None:
    assert meant("contract/input") == ["contract/input"]
    assert meant("*") == list(RULES)
    assert meant("syntax/*") == [rule for rule in RULES if rule.startswith("syntax/")]
    assert meant("syntax") == meant("syntax/") == meant("nothing/*") == meant("contract/inputs") == []


@rows("first", [0, 1, 2])
def test_the_more_specific_wins_in_whatever_order_it_is_written(first: int) -> None:
    rows = [("*", "refuse"), ("protocol/*", "pass"), ("protocol/progress", "drop")]
    talk = ruled(dict(rows[first:] + rows[:first]))
    assert done(talk.server(PROGRESS)) == [("protocol/progress", "drop")]
    assert done(talk.client(call(1, "serach", {}))) == [("contract/unknown-tool", "refuse")]
    assert done(talk.client(request(2, "tools/run"))) == [("protocol/method", "report")]


@rows("word", ["refuse", "drop"])
def test_what_is_only_reported_can_be_stopped(word: str) -> None:
    talk = ruled({"protocol/progress": word, "protocol/cancel": word})
    for message in (PROGRESS, notification("notifications/cancelled", {"requestId": 77})):
        verdict = talk.server(message)
        assert not verdict.accepted
        assert (verdict.onward, verdict.back) == (None, None)
        assert [each.action for each in verdict.violations] == [word]


def test_progress_that_was_stopped_counts_for_nothing() -> None:
    talk = ruled({"protocol/progress": "refuse"})
    params = {"name": "search", "arguments": {"words": "a"}, "_meta": {"progressToken": "t"}}
    good(talk.client(request(1, "tools/call", params)))
    steps = [5, 3, 4, 6]
    heard = [talk.server(notification("notifications/progress", {"progressToken": "t", "progress": n})) for n in steps]
    assert [each.accepted for each in heard] == [True, False, False, True]


def test_a_cancellation_that_was_stopped_cancels_nothing() -> None:
    talk = Talk(policy=Policy({"protocol/cancel": "refuse"}))
    opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    good(talk.client(request(1, "initialize", opening)))
    assert talk.client(notification("notifications/cancelled", {"requestId": 1})).onward is None
    server = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "a", "version": "1"}}
    good(talk.server(result(1, server)))


def test_what_is_refused_can_pass_and_is_still_reported() -> None:
    talk = ruled({"contract/*": "pass"})
    verdict = talk.client(call(1, "search", {"words": 5}))
    assert verdict.accepted
    assert verdict.onward is verdict.frame
    assert done(verdict) == [("contract/input", "report")]
    verdict = talk.server(result(1, TEXT))
    assert verdict.onward is verdict.frame
    assert done(verdict) == [("contract/output", "report")]


def test_an_answer_that_passes_although_it_breaks_the_schema_is_still_held_to_the_contract() -> None:
    talk = ruled({"protocol/result": "pass"})
    good(talk.client(call(1, "search", {"words": "a"})))
    verdict = talk.server(result(1, {"content": [{"type": "text"}], "structuredContent": {"hits": "3"}}))
    assert done(verdict) == [("contract/output", "refuse"), ("protocol/result", "report")]
    assert replacement(verdict)["result"]["isError"] is True


@rows("params", [{}, {"name": 5}, {"name": ["search"], "arguments": 5}, {"name": {}, "task": 1}])
def test_params_that_pass_although_they_are_wrong_are_answered_like_any_other(params: dict[str, Any]) -> None:
    talk = ruled({"protocol/params": "pass"})
    verdict = talk.client(request(1, "tools/call", params))
    assert verdict.onward is verdict.frame
    assert set(rules(verdict)) - {"protocol/capability"} == {"protocol/params"}
    good(talk.server(result(1, TEXT)))
    assert talk.conversation.open_requests(verdict.party) == ()


def test_what_is_dropped_gets_no_answer_unless_somebody_waits_for_one() -> None:
    talk = ruled({"syntax/*": "drop", "envelope/*": "drop", "protocol/method": "drop"})
    for silent in (b"not JSON", b"42", b"[]", notification("notifications/none")):
        verdict = talk.client(silent)
        assert {each.action for each in verdict.violations} == {"drop"}
        assert (verdict.onward, verdict.back) == (None, None)
    for asked in (request(1, "tools/run"), {"id": 2, "method": "ping"}):
        verdict = talk.client(asked)
        assert {each.action for each in verdict.violations} == {"drop"}
        assert verdict.onward is None
        assert answer(verdict)["id"] == asked["id"]
    good(talk.client(request(3, "ping")))
    assert replacement(talk.server({"id": 3, "result": {}}))["error"]["code"] == -31010


def listing(actions: dict[str, str], **more: Any) -> tuple[Talk, Verdict]:
    """A list with a tool whose schema cannot be used, and what is concluded of it."""
    talk = Talk(policy=Policy(actions, **more)).opened()
    good(talk.client(request("list", "tools/list")))
    return talk, talk.server(result("list", {"tools": [SEARCH, ODD]}))


def test_a_tool_that_would_be_set_aside_can_fail_the_whole_list() -> None:
    talk, verdict = listing({"contract/schema": "refuse"})
    assert replacement(verdict)["error"]["code"] == -31010
    assert rules(talk.client(call(1, "odd", {}))) == ["contract/set-aside"]
    good(talk.client(call(2, "search", {"words": "a"})))


def test_an_exception_for_a_tool_holds_for_its_entry_in_a_list_too() -> None:
    for tool, passes in (("odd", True), ("search", False)):
        _, verdict = listing({}, exceptions=[Excepted("contract/*", tool, "pass", "known")])
        assert (verdict.onward is verdict.frame) is passes
        assert [(each.action, each.reason) for each in verdict.violations] == [
            ("report", "known") if passes else ("quarantine", None)
        ]


@rows(("tool", "passes"), [pytest.param("search", True), pytest.param(None, True), pytest.param("other", False)])
def test_an_exception_is_for_one_tool_or_for_all_and_gives_its_reason(tool: str | None, passes: bool) -> None:
    talk = ruled(exceptions=[Excepted("contract/output", tool, "pass", "bug 123")])
    good(talk.client(call(1, "search", {"words": "a"})))
    verdict = talk.server(result(1, TEXT))
    assert (verdict.onward is verdict.frame) is passes
    [wrong] = verdict.violations
    assert (wrong.action, wrong.reason) == (("report", "bug 123") if passes else ("refuse", None))


def test_an_exception_wins_over_the_table_and_one_for_the_tool_over_one_for_all() -> None:
    chosen = [Excepted("contract/input", "search", "refuse", "no"), Excepted("contract/input", None, "pass", "yes")]
    talk = ruled({"contract/*": "pass"}, exceptions=chosen).listed(SEARCH, {**SEARCH, "name": "other"})
    reasons = [talk.client(call(ident, name, {})).violations[0].reason for ident, name in ((1, "search"), (2, "other"))]
    assert reasons == ["no", "yes"]


def unmatched(policy: Policy) -> tuple[Talk, Verdict]:
    """A list with a tool of which a pattern cannot be judged by, and what is concluded of it."""
    talk = Talk(policy=policy).opened()
    good(talk.client(request("list", "tools/list")))
    odd = {"name": "odd", "inputSchema": {"type": "object", "properties": {"a": {"pattern": "[^]"}}}}
    return talk, talk.server(result("list", {"tools": [SEARCH, odd]}))


def test_what_cannot_be_judged_stops_under_a_strict_policy_unless_it_is_to_fail_open() -> None:
    for policy in (Policy(), Policy(fail_open=True), Policy(strict=True, fail_open=True)):
        talk, verdict = unmatched(policy)
        assert done(verdict) == [("contract/pattern", "report")]
        good(talk.client(call(1, "odd", {"a": "c"})))
    for policy in (Policy(strict=True), Policy({"contract/pattern": "quarantine"}, fail_open=True)):
        talk, verdict = unmatched(policy)
        assert done(verdict) == [("contract/pattern", "quarantine")]
        assert rules(talk.client(call(1, "odd", {"a": "c"}))) == ["contract/set-aside"]


BROKEN = {"name": "bad", "inputSchema": {"type": "strnig"}}


def stopped() -> Verdict:
    """A call of a quarantined tool of a server that did not declare tools: the second is only reported."""
    talk = Talk().opened(server={})
    talk.client({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    talk.server(result(1, {"tools": [SEARCH, BROKEN]}))
    return talk.client(call(3, "bad", {}))


def test_the_rule_that_stops_is_the_first_of_a_verdict_and_of_its_answer() -> None:
    verdict = stopped()
    assert rules(verdict) == ["contract/set-aside", "protocol/capability"]
    noted = answer(verdict)["error"]["data"]["violations"]
    assert [each["rule"] for each in noted] == ["contract/set-aside", "protocol/capability"]


def test_a_limit_on_the_violations_never_hides_the_rule_that_stops() -> None:
    talk = Talk(limits=Limits(violations=1)).opened(server={})
    talk.client({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    talk.server(result(1, {"tools": [SEARCH]}))
    verdict = talk.client(call(2, "search", {"words": 5}))
    assert (rules(verdict), verdict.more, verdict.accepted) == (["contract/input"], 1, False)
