"""Every command with an output that is closed, full, or in another encoding."""

import argparse
import json
import os
import pty
import re
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from assay.base.printable import MARKS
from assay.cli import main
from assay.cli.main import _COMMANDS
from kit.places import ROOT

SAMPLE = str(ROOT / "examples" / "conversation.jsonl")
JOURNAL = ROOT / "tests" / "journal" / "golden.jsonl"
SERVER = f"{sys.executable} -IS {ROOT / 'tests' / 'lock' / 'offering_server.py'} offer.json"
SECONDS = 60

COMMANDS: dict[str, tuple[str, int]] = {
    "help": ("--help", 0),
    "version": ("--version", 0),
    "help of a command": ("guard --help", 0),
    "check": (f"check {SAMPLE}", 1),
    "check as JSON": (f"check --messages --format ndjson {SAMPLE}", 1),
    "report": (f"report -o - {SAMPLE}", 0),
    "rules": ("rules", 0),
    "rules as JSON": ("rules --format json", 0),
    "explain": ("explain contract/input", 0),
    "schemas list": ("schemas list", 0),
    "schemas show": ("schemas show 2025-11-25 Tool", 0),
    "schemas diff": ("schemas diff 2025-06-18 2025-11-25 --format markdown", 0),
    "journal show": (f"journal show {JOURNAL}", 0),
    "journal show as JSON": (f"journal show --format json {JOURNAL}", 0),
    "journal list": ("journal list runs", 0),
    "journal diff": (f"journal diff {JOURNAL} other.jsonl", 1),
    "replay": ("replay edited.jsonl", 1),
    "validate": ("validate broken.json", 2),
    "wrap": ("wrap --dry-run --program /usr/bin/assay client.json", 1),
    "unwrap": ("unwrap --dry-run wrapped.json", 1),
    "lock": (f"lock --check -- {SERVER}", 1),
    "call": (f"call -- {SERVER}", 0),
    "call as JSON": (f"call --format json -- {SERVER}", 0),
    "demo": ("demo --once", 0),
    "keys new": ("keys new ci", 0),
    "keys hash": ("keys hash", 0),
    "trust": ("trust --yes assay.toml", 0),
}
"""Each prints something when it is run in `place`, and ends with this status."""

EACH = pytest.mark.parametrize(("command", "status"), COMMANDS.values(), ids=COMMANDS)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with something for every command."""
    here = tmp_path_factory.mktemp("output")
    lines = JOURNAL.read_bytes().splitlines(keepends=True)
    entry = {"command": "npx", "args": ["-y", "server"]}
    wrapped = {"command": "/usr/bin/assay", "args": ["guard", "--", "npx", "-y", "server"]}
    files: dict[str, bytes] = {
        "other.jsonl": b"".join(lines[:-1]),
        "edited.jsonl": b"".join(lines).replace(b'"status":"ok"', b'"status":"refused"'),
        "broken.json": b"{",
        "client.json": json.dumps({"mcpServers": {"one": entry}}).encode(),
        "wrapped.json": json.dumps({"mcpServers": {"one": wrapped}}).encode(),
        "offer.json": b'{"tools": [{"name": "find", "inputSchema": {"type": "object"}}]}',
        "assay.toml": b'[guard.policy]\n"contract/input" = "pass"\n',
    }
    for name, content in files.items():
        (here / name).write_bytes(content)
    (here / "runs").mkdir()
    (here / "runs" / "20260101T000000Z-00000001.jsonl").write_bytes(b"".join(lines))
    assert run(here, f"lock -- {SERVER}").returncode == 0
    (here / "offer.json").write_bytes(b'{"tools": []}')
    return here


def run(
    place: Path, command: str, stdout: int = subprocess.PIPE, stderr: int = subprocess.PIPE, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    """Run one command as a process, in *place*."""
    return subprocess.run(
        [sys.executable, "-m", "assay", *command.split()],
        cwd=place,
        input=b"k" * 40,
        stdout=stdout,
        stderr=stderr,
        check=False,
        timeout=SECONDS,
        env={**os.environ, "XDG_CONFIG_HOME": str(place), "HOME": str(place), "NO_COLOR": "1", **environment},
    )


def test_every_command_is_tried() -> None:
    """But for those that run until they are stopped; what they print is the protocol's."""
    tried = {command.split()[0] for command, _ in COMMANDS.values()}
    assert {each.name for each in _COMMANDS} - tried <= {"serve", "guard", "console"}


@EACH
def test_a_closed_pipe_does_not_change_the_exit_status(place: Path, command: str, status: int) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = run(place, command, writer)
    finally:
        os.close(writer)
    assert done.returncode == status
    assert b"pipe" not in done.stderr.lower()
    assert b"Traceback" not in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@EACH
def test_a_full_disk_is_one_line_and_status_2(place: Path, command: str, status: int) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        done = run(place, command, full)
    finally:
        os.close(full)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == b"assay: cannot write to standard output: No space left on device"
    assert b"Traceback" not in done.stderr


@EACH
def test_any_encoding_can_carry_the_text(place: Path, command: str, status: int) -> None:
    done = run(place, command, PYTHONIOENCODING="ascii")
    assert done.returncode == status
    assert b"Traceback" not in done.stderr
    assert done.stdout
    if "json" not in command:
        done.stdout.decode("ascii")
    done.stderr.decode("ascii")


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize("command", ["check nowhere.jsonl", "explain nothing", "check --no-such-option x", "chekc x"])
def test_a_closed_stderr_does_not_change_the_exit_status(place: Path, command: str, stream: str) -> None:
    """With ``2>&1 | head`` the error itself goes to the closed pipe."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = run(place, command, writer if stream == "stdout" else subprocess.PIPE, writer)
    finally:
        os.close(writer)
    assert done.returncode == 2


@pytest.mark.parametrize("redirected", [">&-", ">&- 2>&-", "2>/dev/full"])
def test_streams_that_are_closed_do_not_change_the_exit_status(redirected: str) -> None:
    for options in ("", "--format json"):
        script = f"exec '{sys.executable}' -m assay check {options} '{SAMPLE}' {redirected}"
        done = subprocess.run(["bash", "-c", script], capture_output=True, check=False, timeout=SECONDS)
        assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.parametrize(
    ("encoding", "mark", "arrow"),
    [
        ("utf-8", "✗", "→"),
        ("cp1252", "x", "->"),
        ("latin-1", "x", "->"),
        ("ascii", "x", "->"),
        ("ascii:replace", "?", "?"),
    ],
)
def test_marks_are_ascii_where_the_encoding_lacks_them(place: Path, encoding: str, mark: str, arrow: str) -> None:
    """A handler that somebody asked for by name is kept."""
    done = run(place, f"check {SAMPLE}", PYTHONIOENCODING=encoding)
    lines = done.stdout.decode(encoding.partition(":")[0]).splitlines()
    assert any(each.startswith(f"    9  {mark} client  ") for each in lines)
    assert any(each.startswith(f"         {arrow} ") for each in lines)


def test_names_that_an_encoding_lacks_are_escaped(place: Path) -> None:
    said = {"jsonrpc": "2.0", "id": 1, "method": "werkzeuge/größe→工具"}
    (place / "names.jsonl").write_text(json.dumps({"dir": "c2s", "msg": said}), encoding="utf-8")
    done = run(place, "check names.jsonl", PYTHONIOENCODING="latin-1")
    assert "werkzeuge/größe->\\u5de5\\u5177 #1" in done.stdout.decode("latin-1")


def test_the_log_of_a_guard_is_in_the_encoding_of_stderr(place: Path) -> None:
    """It is written by its descriptor, so that it never waits for its reader."""
    done = run(place, f"guard -- {SERVER}", PYTHONIOENCODING="ascii")
    assert "1 x syntax/json" in done.stderr.decode("ascii")
    assert "1 × syntax/json" in run(place, f"guard -- {SERVER}", PYTHONIOENCODING="utf-8").stderr.decode()


def test_json_is_utf8_in_every_encoding(place: Path) -> None:
    said = {"jsonrpc": "2.0", "id": 1, "method": "größe→工具"}
    (place / "names.jsonl").write_text(json.dumps({"dir": "c2s", "msg": said}), encoding="utf-8")
    done = run(place, "check --messages --format ndjson names.jsonl", PYTHONIOENCODING="latin-1")
    assert json.loads(done.stdout.splitlines()[0])["method"] == "größe→工具"


def test_every_character_of_our_own_has_a_mark() -> None:
    """Beyond ASCII: in text, not in comments, docstrings and what peers write."""
    ours = set()
    for path in (ROOT / "src" / "assay").rglob("*.py"):
        for line in path.read_text(encoding="utf-8").splitlines():
            if not line.lstrip().startswith(("#", '"""')) and '"' in line:
                ours |= {each for each in line.partition("  #")[0] if not each.isascii()}
    assert ours - set(MARKS) <= {"─", "µ", "ſ", "⁷", "°"}


def test_following_ends_with_the_reader() -> None:
    """Nothing is written to the journal, so no write can fail."""
    command = [sys.executable, "-m", "assay", "journal", "show", "--follow", str(JOURNAL)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as following:
        assert following.stdout is not None
        assert following.stdout.readline().startswith(b"time")
        following.stdout.close()
        try:
            assert following.wait(SECONDS) == 0
        finally:
            following.kill()


# ── a terminal of 80 columns ─────────────────────────────────────────────────────────────────────────────────────────


def on_terminal(command: str, columns: int = 80) -> list[str]:
    """Run one command on a terminal; its lines without colours."""
    leader, follower = pty.openpty()
    termios.tcsetwinsize(follower, (24, columns))
    environment = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "FORCE_COLOR"}}
    words = [sys.executable, "-m", "assay", *command.split()]
    with subprocess.Popen(words, stdin=follower, stdout=follower, stderr=follower, env=environment) as running:
        os.close(follower)
        parts: list[bytes] = []
        # A terminal whose last writer is gone raises EIO on Linux, and ends like a file elsewhere.
        with suppress(OSError):
            while part := os.read(leader, 1 << 16):
                parts.append(part)
        os.close(leader)
        running.wait(SECONDS)
    return re.sub(r"\x1b\[[0-9;]*m", "", b"".join(parts).decode()).splitlines()


@pytest.mark.parametrize(
    "command",
    ["--help", f"check {SAMPLE}", "rules", "explain contract/schema", "schemas diff 2025-06-18 2025-11-25"],
)
def test_lines_fit_a_terminal_of_80_columns(command: str) -> None:
    lines = on_terminal(command)
    assert lines
    assert [line for line in lines if len(line) > 80] == []


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A parser and those of its commands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from parsers(each)


def test_the_help_of_every_command_fits_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for samples of JSON, which is one line as it is printed."""
    monkeypatch.setenv("COLUMNS", "80")
    for each in parsers(main.parser()):
        lines = each.format_help().splitlines()
        assert [line for line in lines if len(line) > 80 and not line.startswith("  {")] == [], each.prog


def test_a_comparison_of_revisions_has_whole_lines_in_a_file(place: Path) -> None:
    text = run(place, "schemas diff 2025-06-18 2025-11-25", COLUMNS="80").stdout.decode()
    assert "createdAt, lastUpdatedAt, ttl, pollInterval?}" in text


def test_a_hint_hangs_below_its_arrow() -> None:
    lines = on_terminal(f"check {SAMPLE}")
    arrow = next(number for number, line in enumerate(lines) if "→ Write messages" in line)
    assert lines[arrow + 1].startswith("           stderr")
