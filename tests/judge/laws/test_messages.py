"""
Every method of every revision, by every party that may send it: what fits the official definition passes, what breaks
it is refused, and the fault is named where it is.
"""

from typing import Any

import orjson
from hypothesis import assume, event, example, given
from hypothesis import strategies as st

from assay.judge import list_filter
from assay.judge.conversation import Conversation
from assay.judge.topics.subscriptions import ACKNOWLEDGED, JUDGED
from assay.model.json_values import CAPABILITIES_KEY, LEVEL_KEY, SUBSCRIPTION_KEY
from assay.model.verdict import Party, Verdict
from assay.spec.revisions import REVISIONS, handshake
from assay.spec.schema import protocol_schema
from kit.generated_messages import (
    Break,
    Node,
    breaks,
    broken,
    fits,
    fitting,
    instances,
    integers,
    least,
    part_of,
    pointer,
    texts,
)
from kit.laws import law
from kit.parties import (
    CASES,
    CLIENT,
    META,
    REQUESTS,
    SERVER,
    Case,
    ask,
    frame,
    negotiated,
    notification,
    opened,
    request,
    result,
    said,
)
from kit.rows import rows
from kit.talk import found

ids = st.one_of(texts, integers)
"""What a request may be called."""

every_case, every_request = rows("case", CASES, ids=str), rows("case", REQUESTS, ids=str)


# ── what is said, and the state it is said in ────────────────────────────────────────────────────────────────────────


@st.composite
def params_of(draw: st.DrawFn, case: Case) -> dict[str, Any]:
    """Params that fit."""
    return _noted(case, _rooted(_declaring(case.placed(draw(fitting(case.schema, case.params()))))))


def _declaring(params: dict[str, Any]) -> dict[str, Any]:
    """*params* in which the client declares extensions with identifiers that it may use."""
    params = _with_identifiers(params)
    meta = params.get("_meta")
    if not isinstance(meta, dict) or not isinstance(meta.get(CAPABILITIES_KEY), dict):
        return params
    named = _with_identifiers({"capabilities": meta[CAPABILITIES_KEY]})["capabilities"]
    return params | {"_meta": meta | {CAPABILITIES_KEY: named}}


def _with_identifiers(value: dict[str, Any]) -> dict[str, Any]:
    """*value*, each extension in whose capabilities has an identifier: the schema allows any text, and any settings."""
    declared = value.get("capabilities")
    extensions = declared.get("extensions") if isinstance(declared, dict) else None
    if not isinstance(declared, dict) or not isinstance(extensions, dict):
        return value
    named = {
        f"com.example/{number}": each if isinstance(each, dict) else {}
        for number, each in enumerate(extensions.values())
    }
    return value | {"capabilities": declared | {"extensions": named}}


def _rooted(params: dict[str, Any]) -> dict[str, Any]:
    """*params* whose roots, where a request brings some as its input, are places in the file system."""
    given = params.get("inputResponses")
    if not isinstance(given, dict):
        return params
    return params | {"inputResponses": {name: _with_roots(each) for name, each in given.items()}}


def _with_roots(value: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(value.get("roots"), list):
        return value
    return value | {"roots": [{**each, "uri": "file:///home"} for each in value["roots"] if isinstance(each, dict)]}


def _noted(case: Case, params: dict[str, Any]) -> dict[str, Any]:
    """*params* with the id of the subscription that a change is sent on, and that nothing else may name."""
    if handshake(case.revision) or case.sender is CLIENT or case.method.kind == "request":
        return params
    meta = {key: value for key, value in params.get("_meta", {}).items() if key != SUBSCRIPTION_KEY}
    if case.method.name in JUDGED:
        return params | {"_meta": meta | {SUBSCRIPTION_KEY: "subscription"}}
    return params | ({"_meta": meta} if "_meta" in params else {})


def subscribed(conversation: Conversation, case: Case, params: dict[str, Any]) -> None:
    """The client listens to all that *params*, those of a notification, tell of."""
    agreed = params.get("notifications", {})
    wanted = dict.fromkeys(("toolsListChanged", "promptsListChanged", "resourcesListChanged"), True) | {
        "resourceSubscriptions": [*agreed.get("resourceSubscriptions", ()), params.get("uri", "")]
    }
    listen = {"_meta": META, "notifications": wanted}
    said(conversation, CLIENT, request("subscription", "subscriptions/listen", listen))
    if case.method.name != ACKNOWLEDGED:
        noted = {"_meta": {SUBSCRIPTION_KEY: "subscription"}, "notifications": {}}
        said(conversation, SERVER, notification(ACKNOWLEDGED, noted))


@st.composite
def results_of(draw: st.DrawFn, case: Case) -> dict[str, Any]:
    """A result that fits, and is the last word on the request."""
    value: dict[str, Any] = draw(fitting(case.schema, _result_node(case)))
    return _final(case, value)


def _final(case: Case, value: dict[str, Any]) -> dict[str, Any]:
    if case.method.name == "initialize":
        return _with_identifiers(value) | {"protocolVersion": case.revision}
    if case.method.name == "roots/list":
        return _with_roots(value)
    if case.method.name == "server/discover":
        # Without a handshake, tasks are an extension.
        value = value | {
            "capabilities": {name: each for name, each in value["capabilities"].items() if name != "tasks"}
        }
        value = _with_identifiers(value)
    return value if handshake(case.revision) else value | {"resultType": "complete"}


def ended(case: Case, value: Any, ident: str | int) -> Any:
    """*value*, which names the subscription that it ends, if it is the end of one: by the id of the request."""
    meta = value.get("_meta") if case.method.name == "subscriptions/listen" and isinstance(value, dict) else None
    known = meta.get(SUBSCRIPTION_KEY) if isinstance(meta, dict) else None
    if meta is None or type(known) not in (str, int, float) or (isinstance(known, float) and not known.is_integer()):
        return value
    return value | {"_meta": meta | {SUBSCRIPTION_KEY: ident}}


def _result_node(case: Case) -> Node:
    assert case.method.result is not None
    return part_of(case.schema, case.method.result)


def _result_fits(case: Case, value: Any) -> bool:
    assert case.method.result is not None
    return case.schema.validator(case.method.result).is_valid(value)


def scene(case: Case, params: dict[str, Any] | None) -> Conversation:
    """A conversation in which *case* may be said with *params*."""
    match case.method.name:
        case "initialize" | "server/discover":
            return Conversation()
        case "notifications/initialized":
            return negotiated(case.revision)
    conversation = opened(case.revision)
    match case.method.name, params:
        case "notifications/cancelled", {"requestId": ident}:
            if handshake(case.revision) or case.sender is CLIENT:
                said(conversation, case.sender, ask(case.revision, ident))
            else:
                # Without requests of its own, a server ends subscriptions of the client (2026-07-28).
                listen = {"_meta": META, "notifications": {}}
                said(conversation, CLIENT, request(ident, "subscriptions/listen", listen))
        case "notifications/message", _ if not handshake(case.revision):
            meta = META | {LEVEL_KEY: "debug"}
            said(conversation, CLIENT, request("logging", "tools/list", {"_meta": meta}))
        case name, {"_meta": {"io.modelcontextprotocol/subscriptionId": _}} if name in JUDGED:
            subscribed(conversation, case, params or {})
        case "notifications/progress", {"progressToken": token}:
            said(conversation, case.sender.other, ask(case.revision, "progressing", token))
    return conversation


def asked(case: Case, ident: str | int) -> Conversation:
    """A conversation in which *case* has been asked, and waits for its answer."""
    conversation = scene(case, None)
    said(conversation, case.sender, request(ident, case.method.name, case.plain()))
    return conversation


# ── what fits passes ─────────────────────────────────────────────────────────────────────────────────────────────────


def assert_passed(verdict: Verdict, said: bytes) -> None:
    """Nothing is to be said of it but what is not remembered, and it goes on as the very object that came in."""
    assert [each for each in found(verdict) if each.rule != "contract/unjudged"] == []
    assert verdict.accepted
    assert verdict.onward is said
    assert verdict.back is None


@every_case
@law(8)
@given(data=st.data())
def test_a_request_or_notification_that_fits_its_definition_passes(case: Case, data: st.DataObject) -> None:
    """
    Official schema; design.md: an accepted frame travels on as the very bytes that came in.

    What a notification refers to, a request or a progress token, is open when it comes.
    """
    asks, name = case.method.kind == "request", case.method.name
    # A change is sent on a subscription, so it needs the id of one (2026-07-28).
    needed = case.needs_params or (name in JUDGED and not handshake(case.revision))
    params = data.draw(params_of(case)) if needed or data.draw(st.booleans()) else None
    ident = data.draw(ids)
    message = request(ident, name, params) if asks else notification(name, params)
    spoken = frame(message, ascii_only=data.draw(st.booleans()), spaced=data.draw(st.booleans()))
    conversation = scene(case, params)
    before = conversation.open_requests(case.sender)
    verdict = conversation.hear(case.sender, spoken)
    assert_passed(verdict, spoken)
    assert (verdict.kind, verdict.method, verdict.revision) == (case.method.kind, name, case.revision)
    if asks:
        assert [each.id for each in conversation.open_requests(case.sender)] == [*(each.id for each in before), ident]
        assert conversation.open_requests(case.sender.other) == ()


RELATED = "io.modelcontextprotocol/related-task"


def payload(case: Case, value: Any) -> Any:
    """*value*; of a task whose request is not known, a result that a task can have."""
    if case.method.name != "tasks/result":
        return value
    known: dict[str, Any] = {"content": []} if case.sender is Party.CLIENT else {"action": "cancel"}
    asked_for = (case.plain() or {})["taskId"]
    return known | {"_meta": value.get("_meta", {}) | {RELATED: {"taskId": asked_for}}}


@every_request
@law(8)
@given(data=st.data())
def test_a_result_that_fits_its_definition_passes(case: Case, data: st.DataObject) -> None:
    """Official schema. A tool's own schemas are chance here: one that does not compile is set aside, and no more."""
    value, ident = payload(case, data.draw(results_of(case))), data.draw(ids)
    spoken = frame(result(ident, ended(case, value, ident)), ascii_only=data.draw(st.booleans()))
    conversation = asked(case, ident)
    verdict = conversation.hear(case.sender.other, spoken)
    if case.method.name == "tools/list":
        assert all(each.rule.startswith("contract/") or each.rule == ODD_NAME for each in verdict.violations)
        assert verdict.accepted
        unusable = {each.at.split("/")[3] for each in verdict.violations if each.action == "quarantine"}
        rest = [tool for number, tool in enumerate(value["tools"]) if str(number) not in unusable]
        assert verdict.onward is not None
        assert verdict.onward is spoken or orjson.loads(verdict.onward)["result"] == {**value, "tools": rest}
        assert (verdict.onward is spoken) == (not unusable)
    else:
        assert_passed(verdict, spoken)
    assert (verdict.kind, verdict.method, verdict.revision) == ("result", case.method.name, case.revision)
    assert conversation.open_requests(case.sender) == ()


# ── what does not is refused, and the place is named ─────────────────────────────────────────────────────────────────


def assert_named(verdict: Verdict, fault: Break, prefix: str) -> None:
    """
    One of the violations is where the fault is.

    Outside of unions nothing else is said. In a union no one can know which branch was meant: the place is above the
    fault or below it, and not above the union's value.
    """
    places = {each.at for each in verdict.violations if each.rule.startswith("protocol/") and each.rule != ODD_NAME}
    at = prefix + fault.at
    if fault.union is None:
        assert places == {at}
        return
    related = {place for place in places if _within(place, at) or _within(at, place)}
    assert related, (places, at)
    assert all(_within(place, prefix + fault.union) for place in places)
    event(f"exact: {at in places}")


def _within(place: str, other: str) -> bool:
    """Whether *place* is *other* or in it."""
    return place == other or place.startswith(other + "/")


@st.composite
def broken_params(draw: st.DrawFn, case: Case) -> tuple[dict[str, Any], Break]:
    """Params that fit, and the same with one fault."""
    params = draw(params_of(case))
    fault = draw(broken(case.schema, case.params(), params, case.takes))
    assume(fault.what != "nothing")
    return params, fault


@st.composite
def broken_results(draw: st.DrawFn, case: Case) -> Break:
    """A result with one fault."""
    fault = draw(
        broken(case.schema, _result_node(case), draw(results_of(case)), lambda value: _result_fits(case, value))
    )
    assume(fault.what != "nothing")
    return fault


def assert_refused_params(case: Case, params: dict[str, Any], fault: Break, ident: str | int) -> None:
    """Params with a fault are refused, and a request gets its answer."""
    asks = case.method.kind == "request"
    name = case.method.name
    spoken = frame(request(ident, name, fault.value) if asks else notification(name, fault.value))
    conversation = scene(case, params)
    before = conversation.open_requests(case.sender)
    verdict = conversation.hear(case.sender, spoken)
    assert not verdict.accepted
    assert verdict.onward is None
    assert {each.rule for each in verdict.violations} == {"protocol/params"}
    assert conversation.open_requests(case.sender) == before
    if asks:
        answer = _read(verdict.back)
        assert (answer["id"], answer["error"]["code"]) == (ident, -32602)
        assert [each["at"] for each in answer["error"]["data"]["violations"]] == [
            each.at for each in verdict.violations
        ]
    else:
        assert verdict.back is None
    assert_named(verdict, fault, "/params")


def assert_shown(case: Case, answer: dict[str, Any], verdict: Verdict) -> None:
    """Whoever asked is shown what is wrong: a model where it called a tool, and the revision lets it see that."""
    if case.method.name == "tools/call" and case.revision >= "2025-11-25":
        assert answer["result"]["isError"] is True
        text = answer["result"]["content"][0]["text"]
        assert all(f"\n{each.at}: expected" in text and f"[{each.rule}]" in text for each in verdict.violations)
        return
    assert answer["error"]["code"] == -31010
    assert [each["at"] for each in answer["error"]["data"]["violations"]] == [each.at for each in verdict.violations]


ODD_NAME = "protocol/tool-name"
"""What is reported of nearly every generated name of a tool, beside the fault."""

WITH_DEFAULT = {"protocol/result-type-missing", "protocol/cache-hints"}
"""What is wrong with a result that a client can read all the same, because the specification says how."""


def assert_refused_result(case: Case, fault: Break, ident: str | int) -> None:
    """A result with a fault fails the request that it answers."""
    conversation = asked(case, ident)
    verdict = conversation.hear(case.sender.other, frame(result(ident, ended(case, fault.value, ident))))
    # A generated tool may have a schema that is only reported, such as one of an unknown dialect.
    beside = {each.rule for each in verdict.violations if each.rule.startswith("contract/") and each.action == "report"}
    beside.add(ODD_NAME)
    # A tool of the same name is quarantined, whatever else is wrong.
    assume("contract/duplicate-tool" not in {each.rule for each in verdict.violations})
    if {each.rule for each in verdict.violations} - beside <= WITH_DEFAULT:
        assert verdict.onward is verdict.frame
        assert_named(verdict, fault, "/result")
        return
    if verdict.accepted:
        assert_set_aside(case, verdict, fault, ident)
        return
    assert {each.rule for each in verdict.violations} - {ODD_NAME} == {"protocol/result"}
    assert verdict.back is None
    answer = _read(verdict.onward)
    assert answer["id"] == ident
    assert_shown(case, answer, verdict)
    assert conversation.open_requests(case.sender) == ()
    assert_named(verdict, fault, "/result")


def assert_set_aside(case: Case, verdict: Verdict, fault: Break, ident: str | int) -> None:
    """A fault in one entry of a list is a matter of that entry: the others go on, and are good."""
    member = list_filter.LISTS[case.method.name]
    named = [each for each in verdict.violations if each.rule == "protocol/result"]
    assert named
    assert all(each.action == "quarantine" and each.at.startswith(f"/result/{member}/") for each in named)
    assert verdict.onward is not None
    assert len(_read(verdict.onward)["result"][member]) < len(fault.value[member])
    again = asked(case, ident).hear(case.sender.other, verdict.onward)
    assert all(each.rule.startswith("contract/") or each.rule == ODD_NAME for each in again.violations)
    assert_named(verdict, fault, "/result")


def _read(spoken: bytes | None) -> dict[str, Any]:
    import json

    assert spoken is not None
    value: dict[str, Any] = json.loads(spoken)
    assert value["jsonrpc"] == "2.0"
    return value


@every_case
@law(8)
@given(data=st.data())
def test_params_with_a_fault_are_refused_where_it_is(case: Case, data: st.DataObject) -> None:
    """Official schema; design.md: a request that is refused is answered, with the pointer in `error.data`."""
    params, fault = data.draw(broken_params(case))
    assert_refused_params(case, params, fault, data.draw(ids))


@every_request
@law(8)
@given(data=st.data())
def test_a_result_with_a_fault_is_refused_where_it_is(case: Case, data: st.DataObject) -> None:
    """Official schema; design.md: a broken answer fails the open request, it is not answered back to the server."""
    assert_refused_result(case, data.draw(broken_results(case)), data.draw(ids))


@rows("case", [case for case in CASES if case.needs_params], ids=str)
def test_params_that_are_left_out_are_missed(case: Case) -> None:
    """Official schema: `params` is required there. The message lacks them, so the pointer is that of the message."""
    asks = case.method.kind == "request"
    spoken = frame(request(1, case.method.name) if asks else notification(case.method.name))
    verdict = scene(case, None).hear(case.sender, spoken)
    assert [(each.rule, each.at) for each in verdict.violations] == [("protocol/params", "")]
    assert verdict.onward is None
    assert (_read(verdict.back)["error"]["code"] == -32602) if asks else (verdict.back is None)


# ── answers that are not the last word ───────────────────────────────────────────────────────────────────────────────

MAY_ASK_BACK = [
    case
    for case in REQUESTS
    if case.revision == "2026-07-28" and case.method.name in {"tools/call", "prompts/get", "resources/read"}
]


def _asked_with_everything(case: Case) -> Conversation:
    conversation = opened(case.revision)
    params = (case.plain() or {}) | {"_meta": META}
    said(conversation, case.sender, request(1, case.method.name, params))
    return conversation


@rows("case", MAY_ASK_BACK, ids=str)
@law(25)
@given(data=st.data())
def test_a_request_may_be_answered_by_asking_back(case: Case, data: st.DataObject) -> None:
    """MCP 2026-07-28, basic: InputRequiredResult, for these three methods, by what the client has declared."""
    node = part_of(case.schema, "InputRequiredResult")
    value = {"requestState": ""} | data.draw(fitting(case.schema, node)) | {"resultType": "input_required"}
    spoken = frame(result(1, value))
    assert_passed(_asked_with_everything(case).hear(SERVER, spoken), spoken)

    is_valid = case.schema.validator("InputRequiredResult").is_valid
    fault = data.draw(broken(case.schema, node, value, is_valid))
    # Without a resultType it asks for nothing: it is a result of the usual kind, and an incomplete one.
    if fault.what in {"nothing", "no resultType"} or fault.at == "/resultType":
        return
    verdict = _asked_with_everything(case).hear(SERVER, frame(result(1, fault.value)))
    assert_shown(case, _read(verdict.onward), verdict)
    assert_named(verdict, fault, "/result")


@law(25)
@example(key="a/b~c", method="roots/list")
@example(key="k" * 200, method="roots/list")
@given(key=texts, method=st.sampled_from(["elicitation/create", "sampling/createMessage", "roots/list"]))
def test_input_that_the_client_cannot_give_is_reported_where_it_is_asked_for(key: str, method: str) -> None:
    """MCP 2026-07-28, basic: a server asks only for what `clientCapabilities` has. The key is a step of the pointer."""
    schema = protocol_schema("2026-07-28")
    definition = {"elicitation/create": "ElicitRequest", "sampling/createMessage": "CreateMessageRequest"}
    asked_for = least(schema, part_of(schema, definition.get(method, "ListRootsRequest")))
    conversation = opened("2026-07-28")
    params = {"name": "any", "_meta": META | {CAPABILITIES_KEY: {}}}
    said(conversation, CLIENT, request(1, "tools/call", params))
    value = {"resultType": "input_required", "inputRequests": {key: asked_for}}
    verdict = conversation.hear(SERVER, frame(result(1, value)))
    at = pointer(("result", "inputRequests", key))
    assert [(each.rule, each.at) for each in verdict.violations] == [("protocol/capability", at)]


# What may be run as a task, who asks for it, and what comes of it in the end.
TASKS = [
    case
    for case in REQUESTS
    if case.revision == "2025-11-25"
    and case.method.name in {"tools/call", "sampling/createMessage", "elicitation/create"}
]


@rows("case", TASKS, ids=str)
@law(25)
@given(data=st.data())
def test_a_task_is_started_and_its_payload_is_the_result_of_the_request(case: Case, data: st.DataObject) -> None:
    """MCP 2025-11-25, basic/utilities/tasks: CreateTaskResult now, the result of the request from tasks/result."""
    conversation = opened(case.revision)
    params = (case.plain() or {}) | {"task": data.draw(fitting(case.schema, part_of(case.schema, "TaskMetadata")))}
    said(conversation, case.sender, request(1, case.method.name, params))
    started = data.draw(fitting(case.schema, part_of(case.schema, "CreateTaskResult")))
    spoken = frame(result(1, started))
    assert_passed(conversation.hear(case.sender.other, spoken), spoken)

    fault = data.draw(broken_results(case))
    task = {"taskId": started["task"]["taskId"]}
    said(conversation, case.sender, request(2, "tasks/result", task))
    verdict = conversation.hear(case.sender.other, frame(result(2, fault.value)))
    assert _read(verdict.onward)["error"]["code"] == -31010
    assert_named(verdict, fault, "/result")

    said(conversation, case.sender, request(3, "tasks/result", task))
    value = data.draw(results_of(case))
    spoken = frame(result(3, value | {"_meta": value.get("_meta", {}) | {RELATED: task}}))
    assert_passed(conversation.hear(case.sender.other, spoken), spoken)


@rows("case", TASKS, ids=str)
def test_whoever_does_not_run_tasks_answers_as_if_none_was_asked_for(case: Case) -> None:
    """
    MCP 2025-11-25, basic/utilities/tasks: "Receivers that do not declare the task capability for a request type MUST
    process requests of that type normally, ignoring any task-augmentation metadata if present."
    """
    conversation = opened(case.revision, without="tasks")
    asked_for = request(1, case.method.name, (case.plain() or {}) | {"task": {}})
    verdict = conversation.hear(case.sender, frame(asked_for))
    assert [(each.rule, each.at) for each in found(verdict)] == [("protocol/capability", "/params/task")]
    spoken = frame(result(1, least(case.schema, _result_node(case))))
    assert_passed(conversation.hear(case.sender.other, spoken), spoken)


def test_a_member_called_task_means_nothing_where_tasks_cannot_be_asked_for() -> None:
    """Official schema, 2025-11-25: only three requests have TaskAugmentedRequestParams; further members are allowed."""
    refused = []
    for case in REQUESTS:
        if case.revision == "2025-11-25" and case not in TASKS:
            conversation = scene(case, None)
            said(conversation, case.sender, request(1, case.method.name, (case.plain() or {}) | {"task": {}}))
            spoken = frame(result(1, payload(case, _final(case, least(case.schema, _result_node(case))))))
            wrong = found(conversation.hear(case.sender.other, spoken))
            if any(each.rule != "contract/unjudged" for each in wrong):
                refused.append(str(case))
    assert refused == []


# ── the generator itself ─────────────────────────────────────────────────────────────────────────────────────────────


@rows("revision", REVISIONS)
@law(120)
@given(data=st.data())
def test_what_is_generated_fits_and_what_is_broken_does_not(revision: str, data: st.DataObject) -> None:
    """Two judges, the engine and forty lines of ours, agree on both. Without this the laws above would prove little."""
    schema = protocol_schema(revision)
    definition = data.draw(st.sampled_from(schema.definitions))
    value = data.draw(instances(schema, definition))
    assert schema.validator(definition, formats=True).is_valid(value)
    assert fits(schema, part_of(schema, definition), value)
    fault = data.draw(breaks(schema, definition, value))
    if fault.what != "nothing":
        assert not schema.validator(definition).is_valid(fault.value)
        assert not fits(schema, part_of(schema, definition), fault.value)
        event(fault.what)
