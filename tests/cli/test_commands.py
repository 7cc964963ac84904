"""The command line, as people use it."""

import argparse
import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from assay.cli.main import main, parser
from kit import command as ours
from kit.places import ROOT

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


def test_what_was_never_answered_is_told_at_the_end() -> None:
    done = assay(
        "check", "--revision", "2025-06-18", "-", said=row("c2s", {"jsonrpc": "2.0", "id": 1, "method": "ping"})
    )
    assert b"never answered: ping #1" in done.stdout
    assert done.returncode == 1


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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


def test_tables_fit_the_terminal() -> None:
    for width in (60, 100):
        lines = assay("rules", COLUMNS=str(width)).stdout.decode().splitlines()
        assert max(len(line) for line in lines) <= width


def test_colours_are_for_terminals_and_respect_no_color() -> None:
    assert b"\x1b[" not in assay("rules").stdout
    assert b"\x1b[" in assay("rules", FORCE_COLOR="1").stdout
    assert b"\x1b[" not in assay("rules", FORCE_COLOR="1", NO_COLOR="1").stdout
    assert b"\x1b[" in on_a_terminal("rules", TERM="xterm")
    assert b"\x1b[" not in on_a_terminal("rules", TERM="xterm", NO_COLOR="1")
    assert b"\x1b[" not in on_a_terminal("rules", TERM="dumb")


def on_a_terminal(*arguments: str, **environment: str) -> bytes:
    """What a command shows on a real (pseudo) terminal."""
    ours, theirs = pty.openpty()
    clean = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "FORCE_COLOR"}}
    with subprocess.Popen(
        [sys.executable, "-m", "assay", *arguments], stdout=theirs, env={**clean, **environment}
    ) as process:
        os.close(theirs)
        shown = b""
        try:
            while chunk := os.read(ours, 65536):
                shown += chunk
        except OSError:
            pass  # Linux says EIO, not end of file, when the other side has closed.
        os.close(ours)
        process.wait(timeout=60)
    return shown


def test_a_reader_that_has_had_enough_is_no_error() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "assay", "schemas", "show", "2025-11-25", "ServerResult", "--closure"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 0


def test_the_help_fits_a_terminal_of_80_columns() -> None:
    assert max(map(len, assay("--help", COLUMNS="80").stdout.decode().splitlines())) <= 80


def test_no_command_shows_the_help_by_what_people_want() -> None:
    assert assay().returncode == 2
    shown = assay("--help").stdout.decode()
    before, _, after = shown.partition("what do you want to do?\n")
    assert before.index("    guard ") < before.index("    serve ")
    tasks = after.partition("\n\n")[0].splitlines()
    assert len(tasks) <= 8
    assert [line.split("assay ")[1] for line in tasks[:3]] == ["demo", "wrap --all", "guard -- COMMAND"]
    assert assay("--version").stdout.startswith(b"assay 0.")


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        (["gaurd"], b"unknown command 'gaurd'; did you mean guard?\n"),
        (
            ["guard", "--moed", "enforce", "--", "true"],
            b"assay guard: error: unknown option --moed; did you mean --mode?",
        ),
        (["guard", "npx", "-y", "x"], b"unknown option -y; what belongs to the server's command goes after --:"),
        (["lock", "uvx", "--from", "x", "y"], b"after --: assay lock -- uvx"),
        (
            ["journal", "show", "--folow"],
            b"assay journal show: error: unknown option --folow; did you mean --follow",
        ),
        (["serve", "--htpp=x"], b"unknown option --htpp; did you mean --http"),
        (["explain", "a", "b"], b"assay explain: error: unrecognized arguments: b"),
    ],
)
def test_a_slip_on_the_command_line_is_told_with_what_was_likely_meant(given: list[str], remedy: bytes) -> None:
    done = assay(*given)
    assert (done.returncode, done.stdout) == (2, b"")
    assert remedy in done.stderr


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


@pytest.mark.parametrize("command", ["assay check - <&-", "assay rules > /dev/full"])
def test_what_cannot_be_read_or_written_is_said_without_a_traceback(command: str) -> None:
    script = command.replace("assay", f"'{sys.executable}' -m assay")
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=False, timeout=60)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
    assert done.stderr.startswith(b"assay")


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
