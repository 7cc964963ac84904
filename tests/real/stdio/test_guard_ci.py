"""`assay guard` in a CI job: the recording that it writes, and the exit status for what it found."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from assay.cli.main import main
from kit.guard_process import Guarded, call, frame_of, guarded, initialize, request


def recorded(place: Path) -> list[dict[str, Any]]:
    """The messages of the recording."""
    rows = [json.loads(line) for line in (place / "session.jsonl").read_bytes().splitlines()]
    return [row for row in rows if "dir" in row and "event" not in row]


def checked(place: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, list[dict[str, Any]]]:
    """The status of `assay check`, and what it finds."""
    status = main(["check", "--format", "ndjson", *options, str(place / "session.jsonl")])
    return status, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def finish(guard: Guarded) -> tuple[int, str]:
    """The exit status after the client has left, and what was said on stderr."""
    guard.close()
    log = guard.log.all().decode()
    return guard.ended(), log


# ── recordings ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mode", ["audit", "enforce"])
def test_a_recording_has_what_was_said_and_check_finds_what_the_guard_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: str
) -> None:
    script: dict[str, Any] = {
        "on": {"tools/call:search": [["raw", "warming up \u00ff\n"], ["result", {"content": [], "x": "\u00e9"}]]}
    }
    with guarded(tmp_path, "--mode", mode, "--record", "session.jsonl", "--name", "library", **script) as guard:
        guard.open()
        guard.say(call(1), call(2, limit="five"), request(3, "tools/nothing"))
        status, log = finish(guard)
    assert status == 0
    rows = recorded(tmp_path)
    assert rows[0]["msg"] == frame_of(initialize()).decode()
    assert any("base64" in row for row in rows)
    status, found = checked(tmp_path, capsys)
    assert status == 1
    assert {each["server"] for each in found} == {"library"}
    rules = [violation["rule"] for each in found for violation in each["violations"]]
    assert {"syntax/utf8", "contract/output", "contract/input", "protocol/method"} <= set(rules)
    assert f"{len(rules)} findings" in log


def test_a_guard_that_is_killed_leaves_a_recording_that_can_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with guarded(tmp_path, "--record", "session.jsonl") as guard:
        guard.open()
        assert guard.ask(call(1))["id"] == 1
        os.kill(guard.process.pid, signal.SIGKILL)
        guard.ended()
    assert [json.loads(row["msg"]).get("id") for row in recorded(tmp_path)][-2:] == [1, 1]
    assert main(["check", str(tmp_path / "session.jsonl")]) == 2
    assert "the recording has no end: later messages are missing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("notes.txt", "exists and is not a recording; remove it, or give another file"),
        ("nowhere/session.jsonl", "No such file or directory"),
        ("-", "standard output belongs to the protocol; give a file"),
    ],
)
def test_a_recording_that_cannot_be_written_stops_the_guard_before_the_server_starts(
    tmp_path: Path, file: str, why: str
) -> None:
    (tmp_path / "notes.txt").write_text("notes\n")
    with guarded(tmp_path, "--record", file, start=[["raw", "here"]]) as guard:
        assert guard.ended() == 2
        log, out = guard.log.all().decode(), guard.out.all()
    assert log == f"assay: --record {file}: {why}\n"
    assert out == b""


# ── exit statuses ────────────────────────────────────────────────────────────────────────────────────────────────────

BAD_LIST = [{"name": "search", "inputSchema": {"type": "object"}}, {"name": "bad", "inputSchema": {"type": 7}}]
PROGRESS = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "x", "progress": 1}}
REPORTED = {"on": {"tools/call:search": [["say", PROGRESS], ["good"]]}}
MASKED = {"content": [{"type": "text", "text": "password=swordfish"}], "isError": "yes"}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, int]]] = {
    "good": ({}, call(1), {"report": 0, "refuse": 0, "never": 0}),
    "reported": (REPORTED, call(1), {"report": 4, "refuse": 0, "never": 0}),
    "refused": ({}, call(1, limit="five"), {"report": 4, "refuse": 4, "never": 0}),
    "masked": ({"on": {"tools/call:search": [["result", MASKED]]}}, call(1), {"report": 4, "refuse": 4, "never": 0}),
    "quarantined": ({"tools": BAD_LIST}, call(1), {"report": 4, "refuse": 4, "never": 0}),
}


@pytest.mark.parametrize("level", ["report", "refuse", "never"])
@pytest.mark.parametrize("case", CASES)
def test_a_guard_fails_on_what_was_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str, level: str
) -> None:
    """Under audit, where nothing is stopped, what would be refused counts."""
    script, message, statuses = CASES[case]
    with guarded(tmp_path, "--fail-on", level, "--quiet", "--record", "session.jsonl", **script) as guard:
        guard.open()
        guard.say(message)
        status, log = finish(guard)
    assert status == statuses[level]
    assert ("assay: --fail-on" in log) is (status == 4)
    assert checked(tmp_path, capsys, "--fail-on", level)[0] == bool(status)


def test_under_enforce_the_same_counts(tmp_path: Path) -> None:
    with guarded(tmp_path, "--fail-on", "refuse", "--mode", "enforce") as guard:
        guard.open()
        assert guard.ask(call(1, words=["sea"]))["result"]["isError"] is True
        status, log = finish(guard)
    assert status == 4
    assert log.endswith("assay: --fail-on refuse: 1 message refused or quarantined\n")


def test_a_server_that_crashed_has_precedence(tmp_path: Path) -> None:
    with guarded(tmp_path, "--fail-on", "report", on={"tools/call:search": [["raw", "oh no\n"], ["exit", 1]]}) as guard:
        guard.open()
        guard.say(call(1))
        assert guard.ended() == 3


def test_without_a_message_nothing_was_judged(tmp_path: Path) -> None:
    with guarded(tmp_path, "--fail-on", "refuse") as guard:
        status, log = finish(guard)
    assert status == 2
    assert "assay: nothing was judged: no message came through the guard" in log


def test_a_signal_ends_the_guard_with_what_was_found(tmp_path: Path) -> None:
    with guarded(tmp_path, "--fail-on", "report") as guard:
        guard.open()
        guard.ask(call(1, limit="five"))
        guard.process.terminate()
        assert guard.ended() == 4
