"""A call in a new process: after a confirmation the console starts a server over STDIO again, and no other program."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest
from console_scene import library, program
from test_console_state import fed, record

from assay.base.mask import MASK
from assay.console.console_state import ConsoleSource, ConsoleState, StartCommand, start_of
from assay.records.live.feed_items import FeedItem
from assay.records.live.live_feed import LiveFeed
from kit.consoles import RunningConsole, StdioGuard, console, stdio_guard

SECRET = "ghp_" + "a1B2" * 9


@contextmanager
def watched(state: Path, folder: Path, *options: str) -> Iterator[tuple[RunningConsole, StdioGuard, dict[str, Any]]]:
    """A console, and a guard over STDIO; yields the server as a page gets it."""
    with console(state) as running, stdio_guard(state, folder, *options) as guard:
        guard.open()
        [server] = running.wait_for("api/state", lambda found: found["servers"])["servers"]
        yield running, guard, server


def test_a_call_starts_the_program_after_a_confirmation(state: Path, tmp_path: Path) -> None:
    with watched(state, tmp_path, "--mode", "enforce", "--set", "journal.payloads=true") as (running, guard, server):
        command = f"{sys.executable} {tmp_path / 'lib_server.py'}"
        assert server["start"] == {"command": command, "directory": str(tmp_path)}
        assert (server["callable"], server["address"]) == (False, "")
        wish = {"server": server["id"], "tool": "look", "arguments": {"count": 3}}
        # Asked even for a tool that only reads: a program is started.
        asked = running.post("api/call", wish)
        error = asked.json()["error"]
        assert (asked.status_code, error["code"]) == (409, "confirm")
        assert (error["command"], error["directory"]) == (command, str(tmp_path))
        assert len(running.get("api/state")["servers"]) == 1
        answer = running.post("api/call", {**wish, "confirmed": True}).json()
        assert [each["accepted"] for each in answer["verdicts"]] == [True, True]
        assert json.loads(answer["response"]["result"]["content"][0]["text"]) == {"count": 3}
        wrong = running.post("api/call", {**wish, "arguments": {"count": "x"}, "confirmed": True}).json()
        assert wrong["verdicts"][0]["violations"][0]["rule"] == "contract/input"
        assert wrong["response"]["result"]["isError"]
        # Each call has a guard of its own, which has ended; the client's server was not disturbed.
        found = running.wait_for(
            "api/state", lambda found: sum(each["state"] == "ended" for each in found["servers"]) == 2
        )
        assert [each["name"] for each in found["servers"]] == ["lib", "lib (call)", "lib (call)"]
        assert all(each["start"] is None for each in found["servers"][1:])
        assert {each["mode"] for each in found["servers"]} == {"enforce"}
        assert guard.call("look", count=4)["result"]


def test_the_page_cannot_name_a_command(state: Path, tmp_path: Path) -> None:
    with watched(state, tmp_path) as (running, _, server):
        other = tmp_path / "other"
        wish = {"server": server["id"], "tool": "look", "arguments": {"count": 1}, "confirmed": True}
        named = {"command": f"touch {other}", "start": {"words": ["touch", str(other)], "directory": "/"}}
        answer = running.post("api/call", {**wish, "start": named["start"]})
        assert answer.json()["verdicts"][1]["accepted"]
        assert running.post("api/call", {**wish, **named}).status_code == 409
        assert not other.exists()


def test_only_the_command_that_was_shown_is_confirmed(state: Path, tmp_path: Path) -> None:
    with watched(state, tmp_path) as (running, _, server):
        wish = {"server": server["id"], "tool": "look", "arguments": {"count": 1}, "confirmed": True}
        assert running.post("api/call", {**wish, **server["start"]}).json()["verdicts"][1]["accepted"]
        for change in ({"command": "python other.py"}, {"directory": "/"}, {"command": None}):
            answer = running.post("api/call", {**wish, **server["start"], **change})
            error = answer.json()["error"]
            assert (answer.status_code, error["code"]) == (409, "confirm")
            assert {name: error[name] for name in server["start"]} == server["start"]
            assert "another program" in error["message"]


def test_a_program_that_does_not_start_is_an_error_with_its_last_line(state: Path, tmp_path: Path) -> None:
    with watched(state, tmp_path) as (running, _, server):
        (tmp_path / "lib_server.py").write_text("raise SystemExit('no database')")
        wish = {"server": server["id"], "tool": "look", "confirmed": True}
        answer = running.post("api/call", wish)
        assert (answer.status_code, answer.json()["error"]["code"]) == (502, "failed")
        assert "no database" in answer.json()["error"]["message"]


def test_a_module_in_the_directory_of_the_server_is_not_run(state: Path, tmp_path: Path) -> None:
    with watched(state, tmp_path) as (running, _, server):
        for name in ("assay", "orjson"):
            (tmp_path / f"{name}.py").write_text("open('was_run', 'w')")
        # The program itself is allowed to find them: it is started as its client starts it.
        (tmp_path / "lib_server.py").write_text("raise SystemExit('no database')")
        answer = running.post("api/call", {"server": server["id"], "tool": "look", "confirmed": True})
        assert "no database" in answer.json()["error"]["message"]
        assert not (tmp_path / "was_run").exists()


def test_a_directory_that_is_gone_is_said(state: Path, tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    with watched(state, folder) as (running, _, server):
        rmtree(folder)
        answer = running.post("api/call", {"server": server["id"], "tool": "look", "confirmed": True})
        assert (answer.status_code, answer.json()["error"]["code"]) == (502, "failed")
        assert f"the directory {folder} of the server is not there" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"start": {"words": ["python", "s.py"], "directory": "/srv"}}, StartCommand(("python", "s.py"), "/srv")),
        ({}, None),
        ({"start": None}, None),
        ({"start": {"words": [], "directory": "/"}}, None),
        ({"start": {"words": ["a", 1], "directory": "/"}}, None),
        ({"start": {"words": "rm", "directory": "/"}}, None),
        ({"start": {"words": ["a"]}}, None),
    ],
)
def test_only_a_whole_command_of_a_feed_counts(row: dict[str, Any], expected: StartCommand | None) -> None:
    assert start_of(row) == expected


def hello(**members: Any) -> FeedItem:
    row = {"name": "lib", "route": "", "command": "python s.py", **members}
    return FeedItem("hello", {"transport": "stdio", "mode": "audit", "servers": [row]})


START = {"words": ["python", "s.py"], "directory": "/srv"}


def test_a_command_is_known_only_while_its_guard_runs() -> None:
    state, guard = ConsoleState(), ConsoleSource("guard", "guard")
    state.take(guard, hello(start=START), 0.0)
    assert state.servers(0.0)[0]["start"] == {"command": "python s.py", "directory": "/srv"}
    assert state.servers(0.0, can_start=False)[0]["start"] is None
    state.take(guard, FeedItem("bye", {}), 1.0)
    assert state.servers(0.0)[0]["start"] is None


def test_a_journal_never_names_a_command() -> None:
    state = fed(ConsoleState(), iter([record(1)]))
    state.take(ConsoleSource("run", "journal"), hello(start=START), 0.0)
    assert {each["start"] is None for each in state.servers(0.0)} == {True}


def test_a_masked_command_is_not_started(state: Path, tmp_path: Path) -> None:
    command = [*program(tmp_path), "--token", SECRET]
    with console(state) as running, library(state, "lib", command) as guard:
        guard.open()
        [server] = running.wait_for("api/state", lambda found: found["servers"])["servers"]
        assert server["start"] is None
        assert MASK in server["label"]
        wish = {"server": server["id"], "tool": "search", "arguments": {"query": "sea"}, "confirmed": True}
        answer = running.post("api/call", wish)
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "unreachable")


@pytest.mark.parametrize(
    ("transport", "command", "is_offered"),
    [
        ("stdio", ["python", "s.py"], True),
        ("stdio", ["python", "s.py", "--token", SECRET], False),
        ("stdio", ["python", "s" * 5000], False),
        ("stdio", [], False),
        ("http", ["python", "s.py"], False),
        ("stdio", ["python", "s\udcff.py"], False),
    ],
)
def test_a_feed_offers_only_commands_without_secrets(transport: str, command: list[str], is_offered: bool) -> None:
    row = LiveFeed("guard", transport).add("lib", "", command=command).row()
    assert row.get("start") == ({"words": command, "directory": str(Path.cwd())} if is_offered else None)
    assert SECRET not in str(row)


def test_a_guard_whose_command_is_not_utf8_is_shown(state: Path, tmp_path: Path) -> None:
    command = [*program(tmp_path), "s\udcff.txt"]
    with console(state) as running, library(state, "lib", command) as guard:
        guard.open()
        [server] = running.wait_for("api/state", lambda found: found["servers"])["servers"]
        assert (server["name"], server["source"], server["start"]) == ("lib", "guard", None)


def test_a_pattern_of_the_settings_hides_a_word_of_a_command() -> None:
    feed = LiveFeed("guard", "stdio", redact=["acme-[0-9]+"])
    row = feed.add("lib", "", command=["python", "s.py", "acme-77"]).row()
    assert (row["command"], "start" in row) == (f"python s.py '{MASK}'", False)
    assert "acme-77" not in str(feed.add("far", "", url="http://127.0.0.1/acme-77/mcp").row())
