"""Methods, notifications and results of extensions: they pass wherever an extension was, or may have been, declared."""

from typing import Any

import pytest

from assay.base.verdict import Party
from assay.core.conversation import Conversation
from assay.core.policy import Policy
from assay.spec.revisions import LATEST, REVISIONS, handshake
from talk import HITS, SEARCH, Talk, error, frame_of, good, notification, request, result, rules

TASKS: dict[str, Any] = {"io.modelcontextprotocol/tasks": {}}
TASK = {
    "resultType": "task",
    "taskId": "t1",
    "status": "working",
    "createdAt": "2026-08-01T00:00:00Z",
    "lastUpdatedAt": "2026-08-01T00:00:00Z",
    "ttlMs": None,
}
TASK_METHODS = ("tasks/get", "tasks/update", "tasks/cancel")
MODES = ("enforce", "audit")


def stateless(ident: Any, method: str, extensions: dict[str, Any] | None = None, **params: Any) -> dict[str, Any]:
    """A request of the revision without handshake, with what the client declares in it."""
    declared = {} if extensions is None else {"extensions": extensions}
    meta = {
        "io.modelcontextprotocol/protocolVersion": LATEST,
        "io.modelcontextprotocol/clientCapabilities": declared,
    }
    return request(ident, method, {**params, "_meta": meta})


def discovered(talk: Talk, extensions: dict[str, Any] | None = None) -> Talk:
    """The same, after the server has said what it declares."""
    good(talk.client(stateless("discover", "server/discover")))
    capabilities: dict[str, Any] = {"tools": {}} if extensions is None else {"tools": {}, "extensions": extensions}
    answer = {
        "resultType": "complete",
        "supportedVersions": [LATEST],
        "capabilities": capabilities,
        "serverInfo": {"name": "a", "version": "1"},
        "ttlMs": 0,
        "cacheScope": "private",
    }
    good(talk.server(result("discover", answer)))
    return talk


def listed(talk: Talk) -> Talk:
    """The same, after the server has listed a tool that promises something."""
    good(talk.client(stateless("list", "tools/list")))
    answer = {"resultType": "complete", "tools": [SEARCH], "ttlMs": 0, "cacheScope": "private"}
    good(talk.server(result("list", answer)))
    return talk


# ── methods ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("heard", [True, False])
@pytest.mark.parametrize("method", [*TASK_METHODS, "acme/search"])
def test_a_method_of_an_extension_that_the_client_declares_passes(mode: str, heard: bool, method: str) -> None:
    talk = discovered(Talk(mode=mode)) if heard else Talk(mode=mode)
    verdict = talk.client(stateless(1, method, TASKS, taskId="t1"))
    assert rules(verdict) == ["protocol/extension"]
    assert verdict.onward is verdict.frame
    good(talk.server(result(1, {"resultType": "complete", "anything": True})))


@pytest.mark.parametrize("method", [*TASK_METHODS, "acme/search"])
def test_a_method_of_an_extension_that_only_the_server_declares_passes_so_that_it_can_refuse_it(method: str) -> None:
    talk = discovered(Talk(), TASKS)
    assert talk.client(stateless(1, method, taskId="t1")).onward is not None
    missing = {"requiredCapabilities": {"extensions": TASKS}}
    good(talk.server(error(1, -32021, data=missing)))


@pytest.mark.parametrize("method", [*TASK_METHODS, "acme/search"])
def test_while_no_declaration_of_the_server_was_heard_it_passes_with_a_report(method: str) -> None:
    verdict = Talk().client(stateless(1, method))
    assert rules(verdict) == ["protocol/unheard-extension"]
    assert verdict.onward is verdict.frame
    strict = Talk(policy=Policy(strict=True)).client(stateless(1, method))
    assert (strict.onward, rules(strict)) == (None, ["protocol/unheard-extension"])


@pytest.mark.parametrize("method", [*TASK_METHODS, "acme/search"])
def test_where_neither_side_has_declared_any_it_is_refused(method: str) -> None:
    verdict = discovered(Talk()).client(stateless(1, method))
    assert (verdict.onward, rules(verdict)) == (None, ["protocol/method"])


@pytest.mark.parametrize("method", ["ping", "initialize", "logging/setLevel", "resources/subscribe"])
def test_a_method_that_the_revision_has_dropped_is_no_extension(method: str) -> None:
    verdict = Talk().client(stateless(1, method, TASKS))
    assert "protocol/method" in rules(verdict)
    assert verdict.onward is None


def test_a_server_without_handshake_has_no_requests() -> None:
    talk = Talk()
    good(talk.client(stateless(1, "tools/list")))
    verdict = talk.server(request(1, "acme/ask", {}))
    assert (verdict.onward, rules(verdict)) == (None, ["protocol/method"])


# ── notifications ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("method", ["notifications/tasks", "notifications/acme"])
def test_a_notification_of_an_extension_that_a_request_has_declared_passes(method: str) -> None:
    talk = discovered(Talk())
    good(talk.client(stateless(1, "subscriptions/listen", TASKS, notifications={})))
    verdict = talk.server(notification(method, {"taskId": "t1"}))
    assert rules(verdict) == ["protocol/extension"]
    assert verdict.onward is verdict.frame


def test_a_notification_passes_with_a_report_while_no_declaration_was_heard() -> None:
    verdict = Talk(revision=LATEST).server(notification("notifications/tasks", {}))
    assert rules(verdict) == ["protocol/unheard-extension"]
    assert verdict.onward is verdict.frame


# ── what was declared elsewhere ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_conversation_that_missed_the_handshake_lets_vendor_methods_pass(revision: str) -> None:
    ask = request(1, "acme/search", {}) if handshake(revision) else stateless(1, "acme/search")
    for party, message in ((Party.CLIENT, ask), (Party.SERVER, notification("acme/told", {}))):
        verdict = Conversation(revision=revision).hear(party, frame_of(message))
        assert rules(verdict) == ["protocol/unheard-extension"]
        assert verdict.onward is verdict.frame


def test_what_the_server_declared_is_known_to_every_conversation_about_its_tools() -> None:
    first = discovered(Talk(revision=LATEST))
    tools = first.conversation.tools
    # One begins before the server has declared anything, the other after it.
    second = Talk(revision=LATEST, tools=tools)
    assert rules(second.client(stateless(1, "acme/search"))) == ["protocol/method"]
    discovered(first, TASKS)
    assert rules(second.client(stateless(2, "acme/search"))) == ["protocol/extension"]
    assert rules(second.client(stateless(3, "resources/list"))) == ["protocol/capability"]
    assert rules(Talk(revision=LATEST, tools=tools).client(stateless(1, "tasks/get"))) == ["protocol/extension"]


def test_the_next_run_of_a_server_may_declare_something_else() -> None:
    tools = discovered(Talk(revision=LATEST)).conversation.tools.handed_down()
    verdict = Talk(revision=LATEST, tools=tools).client(stateless(1, "acme/search"))
    assert rules(verdict) == ["protocol/unheard-extension"]


# ── results ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mode", MODES)
def test_a_result_of_another_type_is_not_held_to_the_output_schema(mode: str) -> None:
    talk = listed(Talk(mode=mode))
    good(talk.client(stateless(1, "tools/call", TASKS, name="search", arguments={"words": "sea"})))
    verdict = talk.server(result(1, TASK))
    assert rules(verdict) == ["protocol/extension"]
    assert verdict.onward is verdict.frame


def test_a_result_of_another_type_is_refused_where_the_call_declared_nothing() -> None:
    talk = listed(discovered(Talk()))
    good(talk.client(stateless(1, "tools/call", name="search", arguments={"words": "sea"})))
    verdict = talk.server(result(1, TASK))
    assert rules(verdict) == ["protocol/result-type"]
    assert verdict.onward is not verdict.frame


def test_a_complete_result_is_still_held_to_the_output_schema() -> None:
    talk = listed(Talk())
    good(talk.client(stateless(1, "tools/call", TASKS, name="search", arguments={"words": "sea"})))
    assert rules(talk.server(result(1, {"resultType": "complete", "content": []}))) == ["contract/output"]
    good(talk.client(stateless(2, "tools/call", TASKS, name="search", arguments={"words": "sea"})))
    good(talk.server(result(2, {"resultType": "complete", **HITS})))
