"""Answers that fit their schema and still break the protocol: codes of errors, completion values, roots, tasks."""

from typing import Any

from assay.model.errors import CanonicalError
from assay.model.verdict import Party, Verdict
from kit.rows import rows
from kit.stateless_talk import REVISION, asks, calls
from kit.talk import ALL_SERVER, SEARCH, Talk, call, error, good, notification, request, result, rules

HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
TASKS: dict[str, Any] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}


REF = {"ref": {"type": "ref/prompt", "name": "a"}, "argument": {"name": "b", "value": ""}}
SAMPLED = {"maxTokens": 1, "messages": []}
AUDIT = {"mode": "audit"}
ASKED: list[tuple[str, dict[str, Any] | None]] = [
    ("tools/list", None),
    ("resources/list", None),
    ("resources/read", {"uri": "file:///a"}),
    ("resources/subscribe", {"uri": "file:///a"}),
    ("prompts/list", None),
    ("prompts/get", {"name": "a"}),
    ("completion/complete", REF),
    ("tasks/list", None),
    ("tasks/get", {"taskId": "t"}),
    ("tasks/result", {"taskId": "t"}),
    ("tasks/cancel", {"taskId": "t"}),
]


def answered(talk: Talk, asker: Party, method: str, params: Any, code: int) -> Verdict:
    """The verdict on an error of the other party."""
    ask, answer = (talk.client, talk.server) if asker is Party.CLIENT else (talk.server, talk.client)
    ask(request(1, method, params))
    return answer(error(1, code))


@rows(("method", "params"), ASKED)
def test_a_method_of_a_declared_capability_is_not_unknown_and_may_fail_otherwise(method: str, params: Any) -> None:
    def heard(code: int, **capabilities: Any) -> Verdict:
        return answered(Talk().opened(server=capabilities), Party.CLIENT, method, params, code)

    verdict = heard(-32601, **ALL_SERVER, tasks=TASKS)
    [found] = verdict.violations
    assert (found.rule, found.at, found.found) == ("protocol/error-code", "/error/code", "-32601")
    assert method in found.expected
    assert verdict.onward is verdict.frame
    for code in (-32602, -32603, -32002, 5):
        good(heard(code, **ALL_SERVER, tasks=TASKS))
    # Where it is not declared, flag by flag, or where the declaration was not heard, it may be unknown.
    good(heard(-32601, **({"resources": {}} if "subscribe" in method else {})))
    good(answered(Talk(revision="2025-11-25"), Party.CLIENT, method, params, -32601))


@rows(
    ("options", "opening", "asker", "method", "params", "code", "wrong"),
    [
        ({}, {"server": {"tasks": {"list": {}}}}, Party.CLIENT, "tasks/cancel", {"taskId": "t"}, -32601, False),
        # The revision has no capability for it.
        ({}, {"revision": "2024-11-05"}, Party.CLIENT, "completion/complete", REF, -32601, False),
        *(({}, {"revision": each}, Party.SERVER, "roots/list", None, -32601, True) for each in HANDSHAKES),
        ({}, {"revision": "2025-06-18"}, Party.SERVER, "sampling/createMessage", SAMPLED, -32601, True),
        # From 2025-11-25 on the code may be meant for a mode.
        ({}, {}, Party.SERVER, "sampling/createMessage", SAMPLED, -32601, False),
        # JSON-RPC 2.0, 5.1: -32601 where the method does not exist; one of an extension may exist.
        (AUDIT, {}, Party.CLIENT, "tools/run", {}, -32602, True),
        (AUDIT, {}, Party.CLIENT, "tools/run", {}, -32601, False),
        (AUDIT, {"server": {"experimental": {"acme": {}}}}, Party.CLIENT, "acme/run", {}, -32602, False),
    ],
)
def test_the_code_of_an_error_fits_what_was_declared(
    options: Any, opening: Any, asker: Party, method: str, params: Any, code: int, wrong: bool
) -> None:
    verdict = answered(Talk(**options).opened(**opening), asker, method, params, code)
    assert [each for each in rules(verdict) if each == "protocol/error-code"] == ["protocol/error-code"] * wrong


def tool(support: str | None) -> dict[str, Any]:
    """A tool that says whether it runs as a task."""
    return SEARCH if support is None else {**SEARCH, "execution": {"taskSupport": support}}


@rows(
    ("support", "as_task", "fits"),
    [
        (None, True, True),
        ("forbidden", True, True),
        ("optional", True, False),
        ("required", True, False),
        (None, False, False),
        ("forbidden", False, False),
        ("optional", False, False),
        ("required", False, True),
    ],
)
def test_a_call_that_must_or_must_not_be_a_task_may_be_answered_so(
    support: str | None, as_task: bool, fits: bool
) -> None:
    """2025-11-25, basic/utilities/tasks: -32601 is the answer to a call that the tool does not support."""
    talk = Talk().opened(server={**ALL_SERVER, "tasks": TASKS}).listed(tool(support))
    params = {"name": "search", "arguments": {"words": "a"}, **({"task": {}} if as_task else {})}
    talk.client(request(1, "tools/call", params))
    assert rules(talk.server(error(1, -32601))) == ([] if fits else ["protocol/error-code"])


TEXT: dict[str, Any] = {"content": []}


def with_task(support: str = "optional") -> Talk:
    """A call that runs as a task."""
    talk = Talk().opened(server={**ALL_SERVER, "tasks": TASKS})
    talk.listed({"name": "slow", "inputSchema": {"type": "object"}, "execution": {"taskSupport": support}})
    good(talk.client(request(1, "tools/call", {"name": "slow", "arguments": {}, "task": {}})))
    return talk


CANCELLED = notification("notifications/cancelled", {"requestId": 1})


def test_a_notification_that_crossed_an_error_cancels_no_task() -> None:
    talk = with_task()
    good(talk.server(error(1, -32603)))
    good(talk.client(CANCELLED))


def test_a_server_may_run_a_tool_at_once_that_forbids_tasks() -> None:
    talk = Talk().opened(server={**ALL_SERVER, "tasks": TASKS}).listed(SEARCH)
    params = {"name": "search", "arguments": {"words": "a"}, "task": {}}
    assert rules(talk.client(request(1, "tools/call", params))) == ["contract/task-support"]
    good(talk.server(result(1, {"content": [], "structuredContent": {"hits": 1}})))
    assert rules(talk.client(request(2, "tools/call", params))) == ["contract/task-support"]
    assert rules(talk.server(result(2, TEXT))) == ["contract/output"]


def test_where_the_server_runs_no_tasks_a_tool_that_requires_one_is_called_without() -> None:
    """basic/utilities/tasks: without the capability clients must not use tasks, whatever taskSupport says."""
    good(Talk().opened().listed(tool("required")).client(call(1, "search", {"words": "a"})))
    good(Talk(revision="2025-11-25").listed(tool("required")).client(call(1, "search", {"words": "a"})))


LINK = {"mode": "url", "message": "?", "url": "https://example.com", "elicitationId": "1"}
USES = [{"name": "a", "inputSchema": {"type": "object"}}]


@rows("revision", ["2024-11-05", "2025-03-26", "2025-06-18"])
def test_before_tasks_a_member_of_that_name_says_nothing(revision: str) -> None:
    good(Talk().opened(revision).client(request(1, "tools/call", {"name": "a", "task": {}})))


def test_what_was_declared_where_no_one_listened_is_unknown() -> None:
    talk = Talk(revision="2025-11-25")
    good(talk.server(request("s", "sampling/createMessage", {**SAMPLED, "tools": USES, "task": {}})))
    good(talk.server(request("t", "elicitation/create", LINK)))
    good(talk.client(request(1, "tools/call", {"name": "a", "task": {}})))


DATA = {-32021: {"requiredCapabilities": {}}, -32022: {"supported": [REVISION], "requested": "2030-01-01"}}


def failed(code: int) -> dict[str, Any]:
    """An error of *code*, with the data that the specification wants with it."""
    message = error(1, code)
    return message if code not in DATA else {**message, "error": {**message["error"], "data": DATA[code]}}


@rows("name", [each for each in CanonicalError.codes() if each != "RESOURCE_NOT_FOUND"])
def test_a_guard_does_not_blame_the_codes_of_another_guard(name: str) -> None:
    """The code for a resource that is not there is sent in older revisions only."""
    talk = Talk()
    good(talk.client(calls(1)))
    good(talk.server(failed(int(CanonicalError.to_jsonrpc_error(name)["code"]))))


def test_a_server_of_an_older_revision_may_answer_discover_with_any_code() -> None:
    talk = Talk()
    good(talk.client(asks(1, "server/discover")))
    good(talk.server(error(1, -32002, "not initialized")))


def test_a_call_that_the_server_may_not_cancel_is_still_to_be_answered() -> None:
    """2026-07-28, basic/patterns/cancellation: under audit the cancellation is forwarded, and changes nothing here."""
    talk = Talk(**AUDIT)
    talk.client(calls(1))
    cancelled = talk.server(notification("notifications/cancelled", {"requestId": 1}))
    assert rules(cancelled) == ["protocol/cancel-other"]
    assert [each.id for each in talk.conversation.open_requests(Party.CLIENT)] == [1]


@rows("method", ["", "*"])
def test_an_error_is_reported_once_whatever_the_method_is_called(method: str) -> None:
    talk = Talk(**AUDIT)
    talk.client(asks(1, method))
    assert rules(talk.server(error(1, -32042))) == ["protocol/error-code"]
