"""The command line, as people use it."""

import argparse
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from assay.cli.main import main, parser
from kit import command as ours
from kit.places import ROOT
from kit.rows import rows

SAMPLE = ROOT / "examples" / "conversation.jsonl"


assay = partial(ours.assay, COLUMNS="100")


def row(party: str, message: object) -> bytes:
    return json.dumps({"dir": party, "msg": message}).encode() + b"\n"


def test_the_bundled_sample_shows_every_kind_of_finding() -> None:
    done = assay("check", str(SAMPLE))
    text = done.stdout.decode()
    assert done.returncode == 1
    assert done.stderr == b""
    for expected in (
        "contract/input",
        "contract/output",
        "syntax/json",
        "protocol/capability",
        "19 messages of MCP 2025-11-25: 8 ok, 3 reported, 5 blocked, 3 failed",
    ):
        assert expected in text
    assert "initialize #1" not in text
    assert "✓ client  initialize #1" in assay("check", "--messages", str(SAMPLE)).stdout.decode()


def test_a_good_conversation_is_clean() -> None:
    lines = SAMPLE.read_bytes().splitlines(keepends=True)
    done = assay("check", "-", said=lines[0] + b"\n" + b"".join(lines[2:8]))
    assert done.returncode == 0
    assert b"7 messages of MCP 2025-11-25: 7 ok" in done.stdout


def test_reports_alone_do_not_fail_where_only_refusals_count() -> None:
    lines = SAMPLE.read_bytes().splitlines(keepends=True)
    reported = lines[0] + b"".join(lines[2:8]) + lines[12]
    assert assay("check", "-", said=reported).returncode == 1
    assert assay("check", "--fail-on", "refuse", "-", said=reported).returncode == 0


def test_json_has_a_line_for_each_finding() -> None:
    records = [json.loads(line) for line in assay("check", "--format", "ndjson", str(SAMPLE)).stdout.splitlines()]
    assert [record["line"] for record in records] == [2, 9, 12, 13, 14, 15, 16, 17, 18]
    assert records[1]["violations"][0]["at"] == "/params/arguments/limit"
    assert records[1]["tool"] == "find_books"


def test_what_was_never_answered_is_shown_at_the_end() -> None:
    done = assay(
        "check", "--revision", "2025-06-18", "-", said=row("c2s", {"jsonrpc": "2.0", "id": 1, "method": "ping"})
    )
    assert b"never answered: ping #1" in done.stdout
    assert done.returncode == 1


@rows(
    ("content", "reason"),
    [
        (b"hello\n", b"not a recording: no line is a JSON object, or of a known log"),
        (b'{"dir":"c2s","dir":"s2c","msg":"x"}\n', b"line 1: expected every key once"),
        (b'{"dir":"c2s","base64":"?"}\n', b"line 1: expected base64"),
        (b"[]\n", b"not a recording: no line is a JSON object"),
        (b'\n{"msg":"x"}\n', b'line 2: expected "dir"'),
        (b'{"dir":"c2s"}\n', b'line 1: expected "msg"'),
    ],
)
def test_a_file_that_is_no_recording_is_named_with_its_line(content: bytes, reason: bytes) -> None:
    done = assay("check", "-", said=content)
    assert done.returncode == 2
    assert reason in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_missing_file_does_not_hide_the_others(tmp_path: Path) -> None:
    done = assay("check", str(tmp_path / "none.jsonl"), str(SAMPLE))
    assert done.returncode == 2
    assert b"No such file" in done.stderr
    assert b"19 messages" in done.stdout


@rows(
    ("options", "status"),
    [
        ((), 0),
        (("--set", "limits.frame_bytes=1000"), 1),
        (("--set", "guard.frame_bytes=1000"), 1),
        (("--set", "limits.frame_bytes=1000", "--set", "guard.frame_bytes=10000000"), 0),
        (("--set", "limits.frame_byte=1000"), 2),
    ],
)
def test_a_recording_is_judged_by_the_size_that_a_guard_lets_pass(options: tuple[str, ...], status: int) -> None:
    long = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}
    long["params"]["message"] = "x" * (2 << 20)  # type: ignore[index]  # the table above is all of it
    done = assay("check", "--fail-on", "refuse", "--revision", "2025-11-25", *options, "-", said=row("s2c", long))
    assert done.returncode == status
    assert (b"framing/size" in done.stdout) is (status == 1)


def test_an_unknown_revision_is_refused_with_those_there_are() -> None:
    done = assay("check", "--revision", "2025-01-01", str(SAMPLE))
    assert done.returncode == 2
    assert b"2025-03-26" in done.stderr


def test_every_rule_can_be_listed_and_explained() -> None:
    from assay.rules import RULES

    listed = assay("rules").stdout.decode()
    assert all(rule in listed for rule in RULES)
    assert len(json.loads(assay("rules", "--format", "json").stdout)) == len(RULES)
    explained = assay("explain", "syntax/duplicate-key").stdout.decode()
    assert "RFC 8259" in explained
    assert "-32700" in explained


def test_a_rule_that_is_not_there_gets_a_suggestion() -> None:
    done = assay("explain", "contract/inptu")
    assert done.returncode == 2
    assert b"did you mean contract/input" in done.stderr
    assert b"did you mean syntax/depth" in assay("explain", "depth").stderr


def test_no_command_shows_the_help_by_what_people_want() -> None:
    assert assay().returncode == 2
    shown = assay("--help").stdout.decode()
    before, _, after = shown.partition("what do you want to do?\n")
    assert before.index("    guard ") < before.index("    serve ")
    tasks = after.partition("\n\n")[0].splitlines()
    assert len(tasks) <= 8
    assert [line.split("assay ")[1] for line in tasks[:3]] == ["demo", "wrap --all", "guard -- COMMAND"]
    assert assay("--version").stdout.startswith(b"assay 0.")


def test_a_frame_that_is_no_utf8_can_be_recorded() -> None:
    done = assay("check", "-", said=b'{"dir":"c2s","base64":"/w=="}\n')
    assert b"syntax/utf8" in done.stdout


def test_what_a_peer_has_said_cannot_command_the_terminal() -> None:
    """Neither in a title nor in what was found: escapes, C1 controls and marks that turn the writing around."""
    hostile = "\x1b]0;owned\x07\x9b2J\u202e\x7f"
    said = {"jsonrpc": "2.0", "id": hostile, "method": f"tools/{hostile}", "params": {hostile: hostile}}
    recording = row("c2s", said) + row("s2c", {"jsonrpc": "2.0", "id": hostile, "result": hostile, hostile: 1})
    shown = assay("check", "--messages", "-", said=recording).stdout.decode()
    assert "owned" in shown
    assert all(each.isprintable() for each in shown.replace("\n", ""))


def test_the_name_of_a_file_cannot_command_the_terminal(tmp_path: Path) -> None:
    named = tmp_path / "\x1b]0;owned\x07.jsonl"
    named.write_bytes(row("s2c", "a banner"))
    done = assay("check", str(named), f"{named}.not")
    assert b"owned" in done.stdout
    assert b"owned" in done.stderr
    assert b"\x1b" not in done.stdout + done.stderr


def test_what_was_found_before_a_bad_line_is_shown() -> None:
    done = assay("check", "-", said=row("s2c", "a banner") + b"oops\n")
    assert done.returncode == 2
    assert b"a banner" in done.stdout
    assert b"line 2" in done.stderr


def options_with_value(of: argparse.ArgumentParser, *words: str) -> Iterator[tuple[str, ...]]:
    """Yield each option that takes a value, after the command that it belongs to."""
    for action in of._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                yield from options_with_value(command, *words, name)
        elif action.option_strings and action.nargs != 0:
            yield *words, action.option_strings[-1]


def test_two_hyphens_are_no_value_of_any_option(capsys: pytest.CaptureFixture[str]) -> None:
    every = list(options_with_value(parser()))
    assert ("guard", "--name") in every
    for *command, option in every:
        with pytest.raises(SystemExit) as left:
            main([*command, f"{option}=--"])
        assert left.value.code == 2
        assert f"{option}: expected a value, found --" in capsys.readouterr().err
