"""Official extensions that a party declares in a revision which is unknown here: SEP-3392, not judged."""

from typing import Any

from extended import MODES, TASKS, discover, discovered, listed, stateless

from assay.judge.conversation import Facts
from assay.model.verdict import Party
from assay.spec.revisions import LATEST
from kit.rows import rows
from kit.talk import ALL_SERVER, SEARCH, Talk, error, frame_of, good, notification, request, result, rules

TASKS_ID = "io.modelcontextprotocol/tasks"
SKILLS_ID = "io.modelcontextprotocol/skills"
UI_ID = "io.modelcontextprotocol/ui"
NEWER: dict[str, Any] = {TASKS_ID: {"revision": "2"}}
COMPLETE: dict[str, Any] = {"resultType": "complete"}
ODD_HANDLE: dict[str, Any] = {"resultType": "task", "handle": 5, "status": "on its way"}
SEARCHES: dict[str, Any] = {"name": "search", "arguments": {"words": "sea"}}


def newer(mode: str = "enforce", **options: Any) -> Talk:
    """A conversation with a server that has tasks of a newer revision."""
    talk = Talk(mode=mode, **options)
    assert rules(discover(talk, NEWER)) == ["extension/revision"]
    return listed(talk)


@rows("mode", MODES)
@rows("revision", ["2", "2026-12-01", "", 5, None])
def test_an_unknown_revision_is_reported_once_and_forwarded(mode: str, revision: Any) -> None:
    talk = discovered(Talk(mode=mode))
    extensions = {TASKS_ID: {"revision": revision, "anything": True}}
    verdict = talk.client(stateless(1, "tools/list", extensions))
    [found] = verdict.violations
    assert (found.rule, found.action) == ("extension/revision", "report")
    assert found.at.endswith("/extensions/io.modelcontextprotocol~1tasks/revision")
    assert verdict.onward is verdict.frame
    good(talk.client(stateless(2, "tools/list", extensions)))


@rows("mode", MODES)
def test_methods_and_results_of_that_extension_are_not_judged(mode: str) -> None:
    talk = newer(mode)
    assert rules(talk.client(stateless(1, "tools/call", NEWER, **SEARCHES))) == ["extension/revision"]
    good(talk.server(result(1, ODD_HANDLE)))
    good(talk.client(stateless(2, "tasks/get", NEWER, handle=5)))
    good(talk.server(result(2, {**COMPLETE, "handle": 5, "status": "done"})))
    good(talk.client(stateless(3, "tasks/update", NEWER)))
    good(talk.server(error(3, -32601)))
    good(talk.client(stateless(4, "tasks/cancel", NEWER, taskId=["a"])))
    good(talk.server(error(4, -32602)))
    good(talk.server(notification("notifications/tasks", {"handle": 5})))


def test_it_counts_for_both_parties_whichever_declares_it() -> None:
    by_server = newer()
    good(by_server.client(stateless(1, "tools/call", TASKS, **SEARCHES)))
    good(by_server.server(result(1, ODD_HANDLE)))
    by_client = listed(discovered(Talk(), TASKS))
    by_client.client(stateless(1, "tools/call", NEWER, **SEARCHES))
    good(by_client.server(result(1, ODD_HANDLE)))


def test_a_new_method_of_that_extension_is_forwarded_and_reported() -> None:
    talk = newer()
    for ident, method in enumerate(("tasks/watch", "tasks/list", "notifications/tasks/more")):
        message = stateless(ident, method, TASKS)
        if method.startswith("notifications/"):
            del message["id"]
        verdict = talk.client(message)
        assert (rules(verdict), verdict.onward is verdict.frame) == (["protocol/extension"], True)


def test_everything_else_is_judged_as_ever() -> None:
    talk = newer()
    verdict = talk.client(stateless(1, "tools/call", TASKS, name="search", arguments={"words": 5}))
    assert rules(verdict) == ["contract/input"]
    good(talk.client(stateless(2, "tools/call", TASKS, **SEARCHES)))
    answer = {**COMPLETE, "content": [], "structuredContent": {"hits": "1"}}
    assert rules(talk.server(result(2, answer))) == ["contract/output"]
    assert rules(talk.client(stateless(3, "ui/open", TASKS))) == ["protocol/method"]


def test_a_declaration_of_one_client_does_not_count_for_the_next() -> None:
    talk = listed(discovered(Talk(), TASKS))
    talk.client(stateless(1, "tasks/get", NEWER, handle=5))
    good(talk.server(result(1, COMPLETE)))
    talk.conversation.forget_settled()
    assert rules(talk.client(stateless(1, "tasks/get", TASKS, handle=5))) == ["protocol/params"]


def test_a_header_of_that_extension_is_not_judged_over_http() -> None:
    talk = newer()
    headers = {b"mcp-protocol-version": LATEST.encode(), b"mcp-method": b"tasks/get"}
    frame = frame_of(stateless(1, "tasks/get", TASKS, taskId="t1"))
    assert not talk.conversation.hear(Party.CLIENT, frame, Facts("http", LATEST, headers)).violations
    judged = listed(discovered(Talk(), TASKS))
    verdict = judged.conversation.hear(Party.CLIENT, frame, Facts("http", LATEST, headers))
    assert rules(verdict) == ["protocol/header-missing"]


def opened(client: dict[str, Any], server: dict[str, Any], **options: Any) -> Talk:
    """A conversation after a handshake in which *client* and *server* declare extensions."""
    talk = Talk(**options)
    information = {"name": "a", "version": "1"}
    shaken = {"protocolVersion": "2025-11-25"}
    asked = {**shaken, "capabilities": {"extensions": client}, "clientInfo": information}
    declared = {key: each for key, each in ALL_SERVER.items() if key != "resources"}
    answered = {**shaken, "capabilities": {**declared, "extensions": server}, "serverInfo": information}
    found = [*rules(talk.client(request("init", "initialize", asked))), *rules(talk.server(result("init", answered)))]
    assert found == ["extension/revision"]
    good(talk.client(notification("notifications/initialized")))
    return talk


def test_skills_of_a_newer_revision_are_not_judged() -> None:
    """Nor that they need resources."""
    talk = opened({}, {SKILLS_ID: {"revision": "2"}})
    good(talk.client(request(1, "skills/list", {"cursor": 5})))
    good(talk.server(result(1, {"skills": [{"name": 5}]})))
    good(talk.client(request(2, "skills/get", {})))
    good(talk.server(result(2, {"anything": True})))
    good(talk.client(request(3, "resources/directory/read")))
    good(talk.server(error(3, -32601)))


@rows("declares", [({UI_ID: {"revision": "2"}}, {}), ({}, {UI_ID: {"revision": "2"}})])
def test_apps_of_a_newer_revision_are_not_judged(declares: tuple[dict[str, Any], dict[str, Any]]) -> None:
    talk = opened(*declares)
    page = {**SEARCH, "_meta": {"ui": {"resourceUri": 5, "csp": "x"}}}
    good(talk.client(request(1, "tools/list")))
    good(talk.server(result(1, {"tools": [page, {**SEARCH, "name": "b", "_meta": {"ui": {"resourceUri": "ui://b"}}}]})))
    good(talk.client(request(2, "tools/call", {"name": "b", "arguments": {"words": "a"}})))
    good(talk.server(result(2, {"content": [], "structuredContent": {"hits": 1}})))
