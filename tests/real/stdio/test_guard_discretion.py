"""What a guard shows to people on stderr: nothing that a peer can forge, and no secrets."""

import json
from pathlib import Path

from assay.base.verdict import Party
from assay.core.conversation import Conversation
from assay.guard.summary import GuardSummary
from kit.guard_process import call, enforcing, guarded, notification, request, tool

SECRET = {"password": "hunter2"}
FORGED = "\x1b]0;gotcha\x07\x1b[2Kassay: all is well\r"


def test_what_a_server_prints_in_place_of_a_message_is_shown_as_such(tmp_path: Path) -> None:
    """It cannot pass for a line of the guard, nor does it do anything to a terminal, nor is it endless."""
    start = [["raw", f"{FORGED}\n"], ["raw", f"{'x' * 100_000}\n"], ["raw", "password=hunter2 token: abc\n"]]
    with enforcing(tmp_path, "--quiet", start=start) as one:
        one.open()
        one.close()
        assert one.ended() == 0
        log = one.log.rest()
    assert b"assay: the server sent: " in log[0]
    assert all(line.startswith(b"assay: the server sent: ") for line in log)
    assert max(map(len, log)) < 1100
    text = b"\n".join(log)
    assert not {b"\x1b", b"\x07", b"\r"} & {bytes([each]) for each in text}
    assert b"hunter2" not in text
    assert b"abc" not in text


def test_a_line_that_a_server_prints_again_and_again_is_counted(tmp_path: Path) -> None:
    with enforcing(tmp_path, start=[["often", 5000, "still here\n"], ["raw", "gone\n"]]) as one:
        one.open()
        one.close()
        assert one.ended() == 0
        log = [line.decode() for line in one.log.rest()]
    shown = [line for line in log if line.startswith("assay: the server sent: ")]
    assert shown == ["assay: the server sent: still here", "assay: the server sent: gone"]
    again = [line.partition(" × again: ") for line in log if "again: the server sent" in line]
    assert {each[2] for each in again} == {"the server sent: still here"}
    assert sum(int(each[0].removeprefix("assay: ").replace(",", "")) for each in again) == 4999
    assert "assay: 5,001 lines of the server's output went to stderr" in log


def test_findings_are_shown_without_secrets(tmp_path: Path) -> None:
    """By the name that a value stands under, by its looks, and by what the settings say."""
    listed = tool("login")
    listed["inputSchema"] = {
        "type": "object",
        "properties": {name: {"type": "integer"} for name in ("password", "words", "customer")},
    }
    known = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
    with guarded(tmp_path, "--set", 'journal.redact=["^customer"]', tools=[listed]) as one:
        one.open()
        one.say(call(1, "login", **SECRET), call(2, "login", words=known))
        one.say(call(3, "login", customer="Ahab"), request(4, f"tools/{known}"))
        one.close()
        one.out.all()
        assert one.ended() == 0
        log = b"\n".join(one.log.rest()).decode()
    assert log.count("[contract/input]") == 3
    assert "/params/arguments/password: expected an integer, found [redacted]" in log
    for secret in ("hunter2", "ghp_0123", "Ahab"):
        assert secret not in log


BARE = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "a", "version": "1"}}
NOTE = notification("notifications/message", {"level": "info", "data": 1})


def test_what_is_wrong_with_every_message_is_told_once_and_counted(tmp_path: Path) -> None:
    """A server that logs and never said so does it in each of its messages. The journal has every one."""
    notes = json.dumps(NOTE) + "\n"
    on = {"initialize": [["result", BARE]], "tools/call": [["often", 40, notes], ["good"], ["often", 2, notes]]}
    with enforcing(tmp_path, "--journal", "records", on=on) as one:
        one.open()
        one.say(call(1, words=5), call(2, words=6), call(3))
        one.close()
        received = one.out.all()
        assert one.ended() == 0
        log = [line.decode() for line in one.log.rest()]
    assert received.count(b"notifications/message") == 42
    assert sum("[protocol/capability]" in line for line in log) == 1
    assert sum("[contract/input]" in line for line in log) == 1
    again = "reported once per conversation, 41 more like it"
    assert f"assay:     42 × protocol/capability in notifications/message: {again}" in log
    assert "assay:      2 × contract/input in search: reported once per conversation, 1 more like it" in log
    (journal,) = [each for each in (tmp_path / "records").iterdir() if not each.is_symlink()]
    assert journal.read_text(encoding="utf-8").count('"protocol/capability"') == 42


def test_a_finding_is_shown_once_for_each_conversation() -> None:
    lines: list[str] = []
    watch = GuardSummary(lines.append, lines.append, enforcing=True)
    judged = Conversation(revision="2026-07-28").hear(Party.SERVER, json.dumps({**NOTE, "jsonrpc": "3"}).encode())
    for each in (watch.another(), watch.another(), watch.another(), watch):
        each.heard(judged, 0.0)
        each.heard(judged, 0.0)
    counts = list(watch.summary())
    assert len(lines) == 2
    assert lines[1].startswith("assay: 3 × again: ")
    count = "assay:      8 × envelope/jsonrpc in notifications/message: reported once per conversation, 4 more like it"
    assert count in counts
