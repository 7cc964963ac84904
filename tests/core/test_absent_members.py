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
