"""Results that ask the client for input (basic/patterns/mrtr)."""

from typing import Any

import pytest

from assay.base.verdict import Verdict
from kit.rows import rows
from kit.stateless_talk import CAPABILITIES_KEY, COMPLETE, HINTS, asks, calls
from kit.talk import SEARCH, Talk, good, replacement, result, rules

FORM: dict[str, Any] = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
URL: dict[str, Any] = {"mode": "url", "message": "?", "url": "https://a.example/", "elicitationId": "e"}
SAMPLE: dict[str, Any] = {"messages": [], "maxTokens": 1}
TOOL: dict[str, Any] = {"name": "a", "inputSchema": {"type": "object"}}
ASKS_NOTHING = {"resultType": "input_required"}
METHODS: dict[str, dict[str, Any]] = {
    "tools/call": {"name": "search"},
    "prompts/get": {"name": "a"},
    "resources/read": {"uri": "file:///a"},
}


def asked_back(declared: dict[str, Any], method: str, params: dict[str, Any]) -> Verdict:
    """The verdict on a result that asks for one thing, of a client that *declared* this."""
    talk = Talk()
    good(talk.client(calls(1, {CAPABILITIES_KEY: declared})))
    wanted = {"k": {"method": method, "params": params}}
    return talk.server(result(1, {"resultType": "input_required", "inputRequests": wanted}))


@pytest.mark.parametrize("method", METHODS)
def test_a_result_that_asks_for_nothing_is_refused(method: str) -> None:
    """Servers MUST include at least one of inputRequests or requestState in every InputRequiredResult response."""
    talk = Talk()
    good(talk.client(asks(1, method, **METHODS[method])))
    verdict = talk.server(result(1, ASKS_NOTHING))
    assert rules(verdict) == ["protocol/input-required"]
    assert replacement(verdict)["id"] == 1


@pytest.mark.parametrize(
    "more", [{"requestState": ""}, {"requestState": "s", "inputRequests": {}}, {"inputRequests": {}}]
)
def test_one_of_the_two_is_enough(more: dict[str, Any]) -> None:
    talk = Talk()
    good(talk.client(calls(1)))
    good(talk.server(result(1, {**ASKS_NOTHING, **more})))


def test_a_method_that_cannot_ask_back_is_blamed_for_that_alone() -> None:
    talk = Talk()
    good(talk.client(asks(1, "completion/complete", ref={"type": "ref/prompt", "name": "a"}, argument=_argument())))
    assert rules(talk.server(result(1, ASKS_NOTHING))) == ["protocol/result-type"]


@rows(
    ("declared", "method", "params"),
    [
        pytest.param({"elicitation": {}}, "elicitation/create", FORM, id="no modes mean forms"),
        pytest.param({"elicitation": {}}, "elicitation/create", {**FORM, "mode": "form"}, id="form named"),
        pytest.param({"elicitation": {"form": {}}}, "elicitation/create", FORM, id="form declared"),
        pytest.param({"elicitation": {"url": {}}}, "elicitation/create", URL, id="url declared"),
        pytest.param({"elicitation": {"form": {}, "url": {}}}, "elicitation/create", URL, id="both declared"),
        pytest.param({"elicitation": {"x": {}}}, "elicitation/create", FORM, id="a mode of an extension"),
        pytest.param({"sampling": {}}, "sampling/createMessage", SAMPLE, id="sampling"),
        pytest.param({"sampling": {"tools": {}}}, "sampling/createMessage", {**SAMPLE, "tools": [TOOL]}, id="tools"),
        pytest.param(
            {"sampling": {"tools": {}}},
            "sampling/createMessage",
            {**SAMPLE, "toolChoice": {"mode": "auto"}},
            id="choice of tools",
        ),
        pytest.param({"roots": {}}, "roots/list", {}, id="roots"),
    ],
)
def test_what_the_client_declared_may_be_asked(declared: dict[str, Any], method: str, params: dict[str, Any]) -> None:
    good(asked_back(declared, method, params))


@rows(
    ("declared", "method", "params", "at", "path"),
    [
        ({"sampling": {}}, "elicitation/create", FORM, "", "elicitation"),
        ({"elicitation": {}}, "elicitation/create", URL, "/params/mode", "elicitation.url"),
        ({"elicitation": {"form": {}}}, "elicitation/create", URL, "/params/mode", "elicitation.url"),
        ({"elicitation": {"url": {}}}, "elicitation/create", FORM, "/params", "elicitation.form"),
        (
            {"elicitation": {"url": {}}},
            "elicitation/create",
            {**FORM, "mode": "form"},
            "/params/mode",
            "elicitation.form",
        ),
        ({"sampling": {}}, "sampling/createMessage", {**SAMPLE, "tools": [TOOL]}, "/params/tools", "sampling.tools"),
        (
            {"sampling": {"context": {}}},
            "sampling/createMessage",
            {**SAMPLE, "toolChoice": {}},
            "/params/toolChoice",
            "sampling.tools",
        ),
        ({"elicitation": {}}, "roots/list", {}, "", "roots"),
    ],
)
def test_what_the_client_did_not_declare_is_reported_where_it_is_asked(
    declared: dict[str, Any], method: str, params: dict[str, Any], at: str, path: str
) -> None:
    """Servers MUST NOT send an inputRequests that the client has not declared support for in its capabilities."""
    verdict = asked_back(declared, method, params)
    assert verdict.onward is verdict.frame
    [wrong] = verdict.violations
    assert (wrong.rule, wrong.at) == ("protocol/capability", f"/result/inputRequests/k{at}")
    assert wrong.expected == f"the client's capability {path}"


def test_a_call_of_a_listed_tool_is_held_to_its_own_declaration() -> None:
    """The quick way through for calls keeps what they declare, too."""
    talk = Talk()
    good(talk.client(asks(1, "tools/list")))
    good(talk.server(result(1, {"tools": [SEARCH], **COMPLETE, **HINTS})))
    good(talk.client(calls(2, {CAPABILITIES_KEY: {"elicitation": {"url": {}}}})))
    wanted = {"k": {"method": "elicitation/create", "params": FORM}}
    verdict = talk.server(result(2, {"resultType": "input_required", "inputRequests": wanted}))
    assert rules(verdict) == ["protocol/capability"]


def _argument() -> dict[str, str]:
    return {"name": "a", "value": "b"}
