"""
Servers on the official SDKs that ask for input inside their results, and the official clients, which send the request
again with the input: behind the guard they get the same as alone, and nothing is found wrong.
"""

import sys
from pathlib import Path
from typing import Any

import pytest
from suite import CannotRun, served
from transparency import SERVERS

from kit.journals import records
from kit.official_clients import ANSWERS, reported, skip_without

TOOLS = ("elicitation", "sampling", "list_roots", "request_state", "multiple_inputs", "multi_round", "capabilities")
"""Each asks in another way: for one thing or several, once or twice, with a state or without."""

FORM = {"name": "Ada", "ok": True, "color": "blue", "context": "the sea", "username": "ada", "email": "ada@example.com"}
"""Fits every form of theirs."""

PLAN: dict[str, Any] = {
    "handshake": False,
    "answers": {**ANSWERS, "elicitation": {"form": {"action": "accept", "content": FORM}}},
    "steps": [
        *(["misuse", f"test_input_required_result_{name}", {}] for name in TOOLS),
        ["call", "test_elicitation", {"message": "Who?"}],
        ["get", "test_input_required_result_prompt", {}],
        # The tools are known to ask by now.
        *(["misuse", f"test_input_required_result_{name}", {}] for name in TOOLS),
    ],
}
"""`misuse` calls without a progress token, which takes the quick way through the guard."""


def report(client: str, server: dict[str, Any], place: Path) -> Any:
    """What *client* gets of *server*."""
    skip_without(client)
    got = reported(client, {**PLAN, "server": server}, place / "log.txt")
    assert got["revision"] == "2026-07-28"
    return got


def findings(journal: Path) -> list[Any]:
    """What the guard found wrong with either party."""
    found = records(journal)
    assert any(each["method"] == "tools/call" for each in found)
    return [record["error"] for record in found if record["error"] is not None]


def command(server: str) -> list[str]:
    """The command of *server*; the test is skipped where it is not installed."""
    try:
        return SERVERS[server]()
    except CannotRun as why:
        pytest.skip(str(why))


def test_an_official_client_gives_the_input_that_an_official_server_asks_for(tmp_path: Path) -> None:
    behind = command("python")
    strict = ("--mode", "enforce", "--set", "guard.strict=true", "--journal", str(tmp_path / "journal"))
    guarded = [sys.executable, "-m", "assay", "guard", *strict, "--", *behind]
    alone = report("typescript", {"command": behind[0], "args": behind[1:]}, tmp_path)
    assert report("typescript", {"command": guarded[0], "args": guarded[1:]}, tmp_path)["steps"] == alone["steps"]
    assert all("result" in each for each in alone["steps"]), alone["steps"]
    assert {"sampling", "elicitation", "roots"} <= set(alone["heard"])
    assert findings(tmp_path / "journal") == []


def test_so_does_it_over_http(tmp_path: Path) -> None:
    strict = ("--mode", "enforce", "--set", "guard.strict=true", "--journal", str(tmp_path / "journal"))
    guard = [sys.executable, "-m", "assay", "guard", *strict, "--listen", "127.0.0.1:0"]
    with served([*guard, "--", *command("typescript")]) as url:
        got = report("python", {"url": url}, tmp_path)
    assert all("result" in each for each in got["steps"]), got["steps"]
    assert findings(tmp_path / "journal") == []
