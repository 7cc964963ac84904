"""Members of a result of 2026-07-28 that a client reads a default for where they are absent."""

from typing import Any

from assay.base.verdict import Verdict
from kit.rows import rows
from kit.stateless_talk import COMPLETE, HINTS, asks, calls
from kit.talk import HITS, SEARCH, Talk, good, replacement, result, rules

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


@rows("ttl", [-1, -86_400_000, -1.0])
def test_a_negative_time_to_live_is_reported_where_it_stands(ttl: float) -> None:
    """server/utilities/caching: if ttlMs is negative, clients ignore it and treat it as 0."""
    verdict = answered("tools/list", {"tools": [], **COMPLETE, "cacheScope": "public", "ttlMs": ttl})
    assert passed(verdict) == HINTLESS
    [wrong] = verdict.violations
    assert (wrong.at, wrong.found) == ("/result/ttlMs", f"{ttl:.0f}")


@rows(
    ("member", "value"),
    [
        ("ttlMs", "0"), ("ttlMs", -0.5), ("ttlMs", True), ("ttlMs", None),
        ("cacheScope", None), ("cacheScope", "shared"), ("resultType", None), ("resultType", 1),
    ],
)  # fmt: skip
def test_a_member_that_is_there_and_wrong_is_refused(member: str, value: Any) -> None:
    """The specification has no default for these."""
    verdict = answered("tools/list", {"tools": [], **COMPLETE, **HINTS, member: value})
    assert not verdict.accepted
    assert rules(verdict) == ["protocol/result"]
    assert verdict.violations[0].at == f"/result/{member}"


def test_the_rest_of_such_a_result_is_judged_as_before() -> None:
    verdict = answered("tools/list", {"tools": "none"})
    assert sorted(rules(verdict)) == sorted(MISSING + HINTLESS * 2 + ["protocol/result"])
    assert [each.at for each in verdict.violations if each.rule == "protocol/result"] == ["/result/tools"]
    assert replacement(verdict)["error"]["code"] == -31010


def test_a_list_without_them_teaches_its_tools() -> None:
    talk = Talk()
    good(talk.client(asks(1, "tools/list")))
    assert passed(talk.server(result(1, {"tools": [SEARCH]}))) == MISSING + HINTLESS * 2
    verdict = talk.client(asks(2, "tools/call", name="search", arguments={"words": 5}))
    assert rules(verdict) == ["contract/input"]


@rows("bad", [{"name": "bare"}, {"inputSchema": {"type": "object"}}])
def test_a_bad_entry_of_such_a_list_is_set_aside_alone(bad: dict[str, Any]) -> None:
    verdict = answered("tools/list", {"tools": [SEARCH, bad]})
    assert verdict.accepted
    assert [each["name"] for each in replacement(verdict)["result"]["tools"]] == ["search"]
    assert {each.rule: each.action for each in verdict.violations} == {
        "protocol/result-type-missing": "report",
        "protocol/cache-hints": "report",
        "protocol/result": "quarantine",
    }
    assert "resultType" not in replacement(verdict)["result"]


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
