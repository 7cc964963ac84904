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


def test_a_missing_file_does_not_hide_the_others(tmp_path: Path) -> None:
    done = assay("check", str(tmp_path / "none.jsonl"), str(SAMPLE))
    assert done.returncode == 2
    assert b"No such file" in done.stderr
    assert b"19 messages" in done.stdout
    unknown = assay("check", "--revision", "2025-01-01", str(SAMPLE))
    assert (unknown.returncode, b"2025-03-26" in unknown.stderr) == (2, True)


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


def test_every_rule_can_be_listed_and_explained() -> None:
    from assay.rules import RULES

    listed = assay("rules").stdout.decode()
    assert all(rule in listed for rule in RULES)
    assert len(json.loads(assay("rules", "--format", "json").stdout)) == len(RULES)
    assert assay("explain", "contract/*").stdout == assay("rules", "--rung", "contract").stdout
    explained = assay("explain", "syntax/duplicate-key").stdout.decode()
    assert "RFC 8259" in explained
    assert "-32700" in explained


def test_no_command_shows_the_help_by_what_people_want() -> None:
    assert assay().returncode == 2
    shown = assay("--help").stdout.decode()
    before, _, after = shown.partition("what do you want to do?\n")
    assert before.index("    guard ") < before.index("    serve ")
    tasks = after.partition("\n\n")[0].splitlines()
    assert len(tasks) <= 8
    assert [line.split("assay ")[1] for line in tasks[:3]] == ["demo", "wrap --all", "guard -- COMMAND"]
    assert assay("--version").stdout.startswith(b"assay 0.")


def test_what_a_peer_has_said_cannot_command_the_terminal() -> None:
    """Neither in a title nor in what was found: escapes, C1 controls and marks that turn the writing around."""
    hostile = "\x1b]0;owned\x07\x9b2J\u202e\x7f"
    said = {"jsonrpc": "2.0", "id": hostile, "method": f"tools/{hostile}", "params": {hostile: hostile}}
    recording = row("c2s", said) + row("s2c", {"jsonrpc": "2.0", "id": hostile, "result": hostile, hostile: 1})
    shown = assay("check", "--messages", "-", said=recording).stdout.decode()
    assert "owned" in shown
    assert all(each.isprintable() for each in shown.replace("\n", ""))


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
