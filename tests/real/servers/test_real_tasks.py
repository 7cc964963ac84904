"""
Tasks, which the official clients do not call for by themselves, with a real server behind the guard: it runs a call as
a task, and has the client run one. By hand, message by message; nothing is to be found wrong.
"""

import shutil
from pathlib import Path
from typing import Any

import pytest
from real_servers import NODE_MODULES, SERVERS

from kit.guard_process import INITIALIZED, Guarded, guarded, initialize, request, result

TIMES = {"createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": 60_000}
ANSWERS: dict[str, dict[str, Any]] = {
    "elicitation/create": {"action": "accept", "content": {"interpretation": "technical"}},
    "sampling/createMessage": {"task": {"taskId": "ours", "status": "working", **TIMES}},
    "tasks/get": {"taskId": "ours", "status": "completed", **TIMES},
    "tasks/result": {"role": "assistant", "content": {"type": "text", "text": "Four."}, "model": "a model"},
}
"""What the client answers when the server asks."""

RELATED = "io.modelcontextprotocol/related-task"

CAPABILITIES: dict[str, Any] = {
    "elicitation": {"form": {}},
    "sampling": {},
    "tasks": {"requests": {"sampling": {"createMessage": {}}}},
}


def ask(one: Guarded, message: Any) -> Any:
    """The result of it; what the server asks meanwhile is answered."""
    one.say(message)
    while True:
        got = one.answer()
        if got.get("method") in ANSWERS:
            task = got.get("params", {}).get("taskId")
            related = {"_meta": {RELATED: {"taskId": task}}} if got["method"] == "tasks/result" else {}
            one.say(result(got["id"], {**ANSWERS[got["method"]], **related}))
        elif "method" not in got and got["id"] == message["id"]:
            return got["result"]


def test_tasks_pass_in_both_directions_and_nothing_is_found_wrong(tmp_path: Path) -> None:
    """A call as a task that asks back while it runs, fetched when it is done; and sampling as a task of the client."""
    if shutil.which("node") is None or not NODE_MODULES.exists():
        pytest.skip("there is no npm here, or Node.js is too old, so what it installs is missing")
    command = SERVERS["everything"].command(tmp_path)
    with guarded(tmp_path, "--mode", "enforce", command=command) as one:
        ask(one, initialize(**CAPABILITIES))
        one.say(INITIALIZED)
        assert any(each["name"] == "simulate-research-query" for each in ask(one, request(1, "tools/list"))["tools"])
        research = {"name": "simulate-research-query", "arguments": {"topic": "sea", "ambiguous": True}}
        started = ask(one, request(2, "tools/call", {**research, "task": {"ttl": 60_000}}))["task"]
        known = {"taskId": started["taskId"]}
        assert ask(one, request(3, "tasks/get", known))["status"] == "working"
        sampling = {"name": "trigger-sampling-request-async", "arguments": {"prompt": "two and two?"}}
        assert "Four." in ask(one, request(4, "tools/call", sampling))["content"][0]["text"]
        assert "sea (technical)" in ask(one, request(5, "tasks/result", known))["content"][0]["text"]
        assert [each["taskId"] for each in ask(one, request(6, "tasks/list"))["tasks"]] == [started["taskId"]]
        one.close()
        log = one.log.rest()
        assert one.ended() == 0
    assert any(line.endswith(b" 0 findings, 0 blocked") for line in log), log
