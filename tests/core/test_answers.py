"""Answers that fit their schema and still break the protocol: codes of errors, completion values, roots, tasks."""

from typing import Any

import pytest

from assay.base.verdict import Party, Verdict
from assay.core.policy import Policy
from kit.rows import rows
from kit.talk import ALL_SERVER, SEARCH, Talk, call, error, found, good, notification, request, result, rules

HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
TASKS: dict[str, Any] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
RELATED = "io.modelcontextprotocol/related-task"

# ── codes of errors ──────────────────────────────────────────────────────────────────────────────────────────────────

REF = {"ref": {"type": "ref/prompt", "name": "a"}, "argument": {"name": "b", "value": ""}}
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
every_method = pytest.mark.parametrize(("method", "params"), ASKED, ids=[method for method, _ in ASKED])


def answered(talk: Talk, asker: Party, method: str, params: Any, code: int) -> Verdict:
    """The verdict on an error of the other party."""
    ask, answer = (talk.client, talk.server) if asker is Party.CLIENT else (talk.server, talk.client)
    ask(request(1, method, params))
    return answer(error(1, code))


@every_method
def test_a_method_of_a_declared_capability_is_not_unknown(method: str, params: Any) -> None:
    talk = Talk().opened(server={**ALL_SERVER, "tasks": TASKS})
    verdict = answered(talk, Party.CLIENT, method, params, -32601)
    [found] = verdict.violations
    assert (found.rule, found.at, found.found) == ("protocol/error-code", "/error/code", "-32601")
    assert method in found.expected
    assert verdict.onward is verdict.frame


@rows(
    ("method", "params"),
    [
        ("resources/templates/list", None),
        ("resources/unsubscribe", {"uri": "file:///a"}),
        ("logging/setLevel", {"level": "info"}),
    ],
)
@rows("revision", HANDSHAKES)
def test_a_method_that_no_clause_asks_for_may_be_unknown(method: str, params: Any, revision: str) -> None:
    good(answered(Talk().opened(revision), Party.CLIENT, method, params, -32601))


@every_method
@pytest.mark.parametrize("code", [-32602, -32603, -32002, 5])
def test_any_other_error_may_be_the_answer(method: str, params: Any, code: int) -> None:
    talk = Talk().opened(server={**ALL_SERVER, "tasks": TASKS})
    good(answered(talk, Party.CLIENT, method, params, code))


@every_method
def test_a_method_of_a_capability_that_is_not_declared_may_be_unknown(method: str, params: Any) -> None:
    good(
        answered(
            Talk().opened(server={"resources": {}} if "subscribe" in method else {}),
            Party.CLIENT,
            method,
            params,
            -32601,
        )
    )


@every_method
def test_where_nobody_listened_to_the_handshake_nothing_is_known(method: str, params: Any) -> None:
    good(answered(Talk(revision="2025-11-25"), Party.CLIENT, method, params, -32601))


def test_flags_of_a_capability_count_one_by_one() -> None:
    talk = Talk().opened(server={"tasks": {"list": {}}})
    good(answered(talk, Party.CLIENT, "tasks/cancel", {"taskId": "t"}, -32601))


def test_completion_needs_no_answer_where_the_revision_has_no_capability_for_it() -> None:
    good(answered(Talk().opened("2024-11-05"), Party.CLIENT, "completion/complete", REF, -32601))


@rows("revision", HANDSHAKES)
def test_a_client_that_declares_roots_has_roots(revision: str) -> None:
    assert rules(answered(Talk().opened(revision), Party.SERVER, "roots/list", None, -32601)) == ["protocol/error-code"]


SAMPLED = {"maxTokens": 1, "messages": []}


def test_a_client_that_declares_sampling_has_sampling() -> None:
    talk = Talk().opened("2025-06-18")
    assert rules(answered(talk, Party.SERVER, "sampling/createMessage", SAMPLED, -32601)) == ["protocol/error-code"]


def test_from_2025_11_25_on_the_code_may_be_meant_for_a_mode() -> None:
    good(answered(Talk().opened(), Party.SERVER, "sampling/createMessage", SAMPLED, -32601))


def test_an_unknown_method_is_not_answered_with_invalid_params() -> None:
    """JSON-RPC 2.0, 5.1: -32601 where the method does not exist."""
    talk = Talk(mode="audit").opened()
    verdict = answered(talk, Party.CLIENT, "tools/run", {}, -32602)
    [found] = verdict.violations
    assert (found.rule, found.found) == ("protocol/error-code", "-32602")
    good(answered(Talk(mode="audit").opened(), Party.CLIENT, "tools/run", {}, -32601))


def test_a_method_of_an_extension_may_have_invalid_params() -> None:
    talk = Talk(mode="audit").opened(server={**ALL_SERVER, "experimental": {"acme": {}}})
    good(answered(talk, Party.CLIENT, "acme/run", {}, -32602))
    good(answered(Talk(mode="audit", revision="2025-11-25"), Party.CLIENT, "acme/run", {}, -32602))


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


# ── completion and roots ─────────────────────────────────────────────────────────────────────────────────────────────


@rows("revision", HANDSHAKES)
def test_more_than_a_hundred_completion_values_are_reported(revision: str) -> None:
    for count, expected in ((100, []), (101, ["protocol/completion-values"])):
        talk = Talk().opened(revision)
        good(talk.client(request(1, "completion/complete", REF)))
        verdict = talk.server(result(1, {"completion": {"values": ["x"] * count}}))
        assert rules(verdict) == expected
        assert verdict.onward is verdict.frame


def roots(*uris: str) -> dict[str, Any]:
    return {"roots": [{"uri": uri} for uri in uris]}


@rows("revision", HANDSHAKES)
def test_a_root_that_is_no_file_is_reported(revision: str) -> None:
    talk = Talk().opened(revision)
    good(talk.server(request(1, "roots/list")))
    verdict = talk.client(result(1, roots("file:///home/a", "https://example.com/b", "file://host/c", "ftp://d")))
    assert [(each.rule, each.at) for each in verdict.violations] == [
        ("protocol/root", "/result/roots/1/uri"),
        ("protocol/root", "/result/roots/3/uri"),
    ]
    assert verdict.onward is verdict.frame


def test_many_such_roots_are_not_all_listed() -> None:
    talk = Talk().opened()
    good(talk.server(request(1, "roots/list")))
    assert len(talk.client(result(1, roots(*["x:y"] * 500))).violations) == 20


def test_a_strict_policy_refuses_them() -> None:
    talk = Talk(policy=Policy(strict=True)).opened()
    good(talk.server(request(1, "roots/list")))
    assert not talk.client(result(1, roots("x:y"))).accepted


# ── tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────────

TASK = {"taskId": "t", "status": "working", "createdAt": "now", "lastUpdatedAt": "now", "ttl": None}
TEXT: dict[str, Any] = {"content": []}


def with_task(support: str = "optional") -> Talk:
    """A call that runs as a task."""
    talk = Talk().opened(server={**ALL_SERVER, "tasks": TASKS})
    talk.listed({"name": "slow", "inputSchema": {"type": "object"}, "execution": {"taskSupport": support}})
    good(talk.client(request(1, "tools/call", {"name": "slow", "arguments": {}, "task": {}})))
    return talk


@rows(
    ("meta", "expected"),
    [
        (None, ["protocol/related-task"]),
        ({}, ["protocol/related-task"]),
        ({RELATED: {}}, ["protocol/related-task"]),
        ({RELATED: {"taskId": "another"}}, ["protocol/related-task"]),
        ({RELATED: {"taskId": "t"}}, []),
    ],
)
def test_the_payload_of_a_task_names_its_task(meta: Any, expected: list[str]) -> None:
    """2025-11-25, basic/utilities/tasks: the result of tasks/result MUST have it, as it does not contain the task."""
    talk = with_task()
    good(talk.server(result(1, {"task": TASK})))
    good(talk.client(request(2, "tasks/result", {"taskId": "t"})))
    verdict = talk.server(result(2, TEXT if meta is None else {**TEXT, "_meta": meta}))
    assert rules(verdict) == expected
    assert verdict.onward is verdict.frame


def test_a_task_that_failed_has_an_error_and_no_meta() -> None:
    talk = with_task()
    good(talk.server(result(1, {"task": TASK})))
    good(talk.client(request(2, "tasks/result", {"taskId": "t"})))
    good(talk.server(error(2, -32603)))


CANCELLED = notification("notifications/cancelled", {"requestId": 1})


@pytest.mark.parametrize("started", [False, True])
def test_a_task_is_not_cancelled_by_a_notification(started: bool) -> None:
    """2025-11-25, basic/utilities/cancellation: "the tasks/cancel request MUST be used instead"."""
    talk = with_task()
    if started:
        good(talk.server(result(1, {"task": TASK})))
    [found] = talk.client(CANCELLED).violations
    assert found.rule == "protocol/cancel"
    assert "tasks/cancel" in found.hint


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


def test_a_tool_that_must_run_as_a_task_is_not_started_without_one() -> None:
    talk = Talk().opened(server={**ALL_SERVER, "tasks": TASKS}).listed(tool("required"))
    verdict = talk.client(call(1, "search", {"words": "a"}))
    assert rules(verdict) == ["contract/task-support"]
    assert verdict.onward is verdict.frame


@pytest.mark.parametrize("support", [None, "forbidden", "optional"])
def test_any_other_tool_may_be_called_without_a_task(support: str | None) -> None:
    talk = Talk().opened(server={**ALL_SERVER, "tasks": TASKS}).listed(tool(support))
    good(talk.client(call(1, "search", {"words": "a"})))


@pytest.mark.parametrize("support", ["optional", "required"])
def test_a_call_that_the_tool_runs_as_a_task_is_good(support: str) -> None:
    good(with_task(support).server(result(1, {"task": TASK})))


def test_where_the_server_runs_no_tasks_a_tool_that_requires_one_is_called_without() -> None:
    """basic/utilities/tasks: without the capability clients must not use tasks, whatever taskSupport says."""
    good(Talk().opened().listed(tool("required")).client(call(1, "search", {"words": "a"})))
    good(Talk(revision="2025-11-25").listed(tool("required")).client(call(1, "search", {"words": "a"})))


# ── parts of a request that are declared one by one ──────────────────────────────────────────────────────────────────

FORM: dict[str, Any] = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
LINK = {"mode": "url", "message": "?", "url": "https://example.com", "elicitationId": "1"}
USES = [{"name": "a", "inputSchema": {"type": "object"}}]


@rows(
    ("declared", "method", "params", "wrong"),
    [
        ({"elicitation": {}}, "elicitation/create", FORM, []),
        ({"elicitation": {}}, "elicitation/create", {**FORM, "mode": "form"}, []),
        ({"elicitation": {}}, "elicitation/create", LINK, ["/params/mode"]),
        ({"elicitation": {"form": {}}}, "elicitation/create", LINK, ["/params/mode"]),
        ({"elicitation": {"url": {}}}, "elicitation/create", LINK, []),
        ({"elicitation": {"url": {}}}, "elicitation/create", FORM, ["/params"]),
        ({"elicitation": {"url": {}}}, "elicitation/create", {**FORM, "mode": "form"}, ["/params/mode"]),
        ({"elicitation": {"form": {}, "url": {}}}, "elicitation/create", FORM, []),
        ({}, "elicitation/create", LINK, ["/method"]),
        ({"sampling": {}}, "sampling/createMessage", SAMPLED, []),
        ({"sampling": {}}, "sampling/createMessage", {**SAMPLED, "tools": USES}, ["/params/tools"]),
        ({"sampling": {}}, "sampling/createMessage", {**SAMPLED, "toolChoice": {}}, ["/params/toolChoice"]),
        ({"sampling": {"tools": {}}}, "sampling/createMessage", {**SAMPLED, "tools": USES, "toolChoice": {}}, []),
        ({"sampling": {}}, "sampling/createMessage", {**SAMPLED, "task": {}}, ["/params/task"]),
        ({"elicitation": {}, "tasks": {}}, "elicitation/create", {**FORM, "task": {}}, ["/params/task"]),
        (
            {"elicitation": {}, "tasks": {"requests": {"elicitation": {"create": {}}}}},
            "elicitation/create",
            {**FORM, "task": {}},
            [],
        ),
    ],
)
def test_what_the_server_asks_was_declared_by_the_client(
    declared: dict[str, Any], method: str, params: dict[str, Any], wrong: list[str]
) -> None:
    verdict = Talk().opened(client=declared).server(request("s", method, params))
    assert [(each.rule, each.at) for each in verdict.violations] == [("protocol/capability", at) for at in wrong]
    assert verdict.onward is verdict.frame


def test_a_call_runs_as_a_task_only_where_the_server_runs_tasks() -> None:
    params = {"name": "search", "arguments": {"words": "a"}, "task": {}}
    for server in (ALL_SERVER, {**ALL_SERVER, "tasks": {"list": {}}}):
        [wrong] = found(Talk().opened(server=server).client(request(1, "tools/call", params)))
        assert (wrong.rule, wrong.at) == ("protocol/capability", "/params/task")


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18"])
def test_before_tasks_a_member_of_that_name_says_nothing(revision: str) -> None:
    good(Talk().opened(revision).client(request(1, "tools/call", {"name": "a", "task": {}})))


def test_what_was_declared_where_nobody_listened_is_unknown() -> None:
    talk = Talk(revision="2025-11-25")
    good(talk.server(request("s", "sampling/createMessage", {**SAMPLED, "tools": USES, "task": {}})))
    good(talk.server(request("t", "elicitation/create", LINK)))
    good(talk.client(request(1, "tools/call", {"name": "a", "task": {}})))
