"""What a server may ask of a client, by requests of its own and in results that ask for input (basic/patterns/mrtr)."""

from typing import Any

from assay.model.verdict import Verdict
from kit.rows import rows
from kit.stateless_talk import CAPABILITIES_KEY, asks, calls
from kit.talk import Talk, client, good, played, replacement, request, result, server

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


@rows("method", METHODS)
def test_a_result_that_asks_for_nothing_is_refused(method: str) -> None:
    """Servers MUST include at least one of inputRequests or requestState in every InputRequiredResult response."""
    asked = client(asks(1, method, **METHODS[method]))
    assert replacement(played(Talk(), asked, server(result(1, ASKS_NOTHING), "protocol/input-required")))["id"] == 1
    enough: list[dict[str, Any]] = [{"requestState": ""}, {"inputRequests": {}}]
    for more in enough:
        played(Talk(), asked, server(result(1, {**ASKS_NOTHING, **more})))


ELICIT, MODEL = "elicitation/create", "sampling/createMessage"


@rows(
    ("declared", "method", "params", "wrong"),
    [
        # Without modes, forms are meant.
        ({"elicitation": {}}, ELICIT, FORM, None),
        ({"elicitation": {}}, ELICIT, {**FORM, "mode": "form"}, None),
        ({"elicitation": {"form": {}}}, ELICIT, FORM, None),
        ({"elicitation": {"url": {}}}, ELICIT, URL, None),
        ({"elicitation": {"form": {}, "url": {}}}, ELICIT, URL, None),
        ({"elicitation": {"x": {}}}, ELICIT, FORM, None),
        ({"sampling": {}}, MODEL, SAMPLE, None),
        ({"sampling": {"tools": {}}}, MODEL, {**SAMPLE, "tools": [TOOL], "toolChoice": {"mode": "auto"}}, None),
        ({"roots": {}}, "roots/list", {}, None),
        ({"sampling": {}}, ELICIT, FORM, ("", "elicitation")),
        ({"elicitation": {}}, ELICIT, URL, ("/params/mode", "elicitation.url")),
        ({"elicitation": {"form": {}}}, ELICIT, URL, ("/params/mode", "elicitation.url")),
        ({"elicitation": {"url": {}}}, ELICIT, FORM, ("/params", "elicitation.form")),
        ({"elicitation": {"url": {}}}, ELICIT, {**FORM, "mode": "form"}, ("/params/mode", "elicitation.form")),
        ({"sampling": {}}, MODEL, {**SAMPLE, "tools": [TOOL]}, ("/params/tools", "sampling.tools")),
        ({"sampling": {"context": {}}}, MODEL, {**SAMPLE, "toolChoice": {}}, ("/params/toolChoice", "sampling.tools")),
        ({"elicitation": {}}, "roots/list", {}, ("", "roots")),
    ],
)
def test_a_server_asks_for_what_the_client_declared(
    declared: dict[str, Any], method: str, params: dict[str, Any], wrong: tuple[str, str] | None
) -> None:
    """Servers MUST NOT send an inputRequests that the client has not declared support for in its capabilities."""
    direct = Talk().opened(client=declared).server(request("s", method, params))
    for verdict, prefix in ((direct, ""), (asked_back(declared, method, params), "/result/inputRequests/k")):
        assert verdict.onward is verdict.frame
        expected = []
        if wrong is not None:
            at, path = wrong
            place = prefix + at if prefix else at or "/method"
            expected = [("protocol/capability", place, f"the client's capability {path}")]
        assert [(each.rule, each.at, each.expected) for each in verdict.violations] == expected
