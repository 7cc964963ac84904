"""Every command with an output that is closed, full, or in another encoding; and on a terminal."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from assay.cli.main import _COMMANDS
from kit.client_files import CLAUDE_DESKTOP
from kit.command import ASSAY
from kit.forks import Run, run_all
from kit.locking import SERVER, assay_here
from kit.places import GOLDEN, ROOT

SAMPLE = str(ROOT / "examples" / "conversation.jsonl")
OFFERING = f"{sys.executable} -IS {SERVER} offer.json"
SECONDS = 60

COMMANDS: dict[str, int] = {
    "--help": 0,
    "--version": 0,
    f"check {SAMPLE}": 1,
    f"check --messages --format ndjson {SAMPLE}": 1,
    f"report -o - {SAMPLE}": 0,
    "rules": 0,
    "explain contract/input": 0,
    "schemas list": 0,
    "schemas show 2025-11-25 Tool": 0,
    f"journal show {GOLDEN}": 0,
    f"journal show --format json {GOLDEN}": 0,
    "journal list runs": 0,
    f"journal diff {GOLDEN} other.jsonl": 1,
    "replay edited.jsonl": 1,
    "validate broken.json": 2,
    "wrap --dry-run --program /usr/bin/assay client.json": 1,
    "unwrap --dry-run wrapped.json": 1,
    f"lock --check -- {OFFERING}": 1,
    f"call -- {OFFERING}": 0,
    f"call --format json -- {OFFERING}": 0,
    "demo --once": 0,
    "keys new ci": 0,
    "keys hash": 0,
    "trust --yes assay.toml": 0,
}
"""Each prints something when it is run in `place`, and ends with this status."""

WRONG = ("check nowhere.jsonl", "explain nothing", "check --no-such-option x", "chekc x")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with something for every command."""
    here = tmp_path_factory.mktemp("output")
    lines = GOLDEN.read_bytes().splitlines(keepends=True)
    entry = {"command": "npx", "args": ["-y", "server"]}
    wrapped = {"command": "/usr/bin/assay", "args": ["guard", "--", "npx", "-y", "server"]}
    named = {"dir": "c2s", "msg": {"jsonrpc": "2.0", "id": 1, "method": "werkzeuge/größe→工具"}}
    files: dict[str, bytes] = {
        "other.jsonl": b"".join(lines[:-1]),
        "edited.jsonl": b"".join(lines).replace(b'"status":"ok"', b'"status":"refused"'),
        "broken.json": b"{",
        "client.json": json.dumps({"mcpServers": {"one": entry}}).encode(),
        "wrapped.json": json.dumps({"mcpServers": {"one": wrapped}}).encode(),
        "offer.json": b'{"tools": [{"name": "find", "inputSchema": {"type": "object"}}]}',
        "assay.toml": b'[guard.policy]\n"contract/input" = "pass"\n',
        "names.jsonl": json.dumps(named).encode(),
    }
    for name, content in files.items():
        (here / name).write_bytes(content)
    (here / "runs").mkdir()
    (here / "runs" / "20260101T000000Z-00000001.jsonl").write_bytes(b"".join(lines))
    assert assay_here(here, "lock", "--", *OFFERING.split()).returncode == 0
    (here / "offer.json").write_bytes(b'{"tools": []}')
    return here


def environment(place: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(place), "HOME": str(place), "NO_COLOR": "1"}


def test_a_closed_pipe_or_a_full_disk_decides_no_more_than_it_should(place: Path) -> None:
    tried = {words.split()[0] for words in COMMANDS}
    # Those that run until they are stopped are left out: what they print is the protocol's.
    assert {each.name for each in _COMMANDS} - tried <= {"serve", "guard", "console"}
    runs = [Run(words, out=out) for words in COMMANDS for out in ("gone", "full")]
    # With `2>&1 | head` the error itself goes to the closed pipe.
    runs += [Run(words, err="gone", out=out) for words in WRONG for out in ("file", "gone")]
    runs += [Run(f"check {SAMPLE}", err="full")]
    for run, done in zip(runs, run_all(place, runs, **environment(place)), strict=True):
        assert b"Traceback" not in done.err, run
        assert b"pipe" not in done.err.lower(), run
        if run.out == "full":
            assert done.status == 2, run
            assert done.err.splitlines()[-1] == b"assay: cannot write to standard output: No space left on device", run
        else:
            assert done.status == COMMANDS.get(run.words, 2), run


def test_any_encoding_can_carry_the_text(place: Path) -> None:
    """JSON is UTF-8 in every encoding; a handler that somebody asked for by name is kept."""
    marks = {"utf-8": "✗→", "cp1252": ("x", "->"), "latin-1": ("x", "->"), "ascii": ("x", "->"), "ascii:replace": "??"}
    runs = [Run(f"check {SAMPLE}", encoding=each) for each in marks]
    for run, done in zip(runs, run_all(place, runs, **environment(place)), strict=True):
        mark, arrow = marks[run.encoding]
        lines = done.out.decode(run.encoding.partition(":")[0]).splitlines()
        assert any(line.startswith(f"    9  {mark} client  ") for line in lines), run
        assert any(line.startswith(f"         {arrow} ") for line in lines), run

    # The log of a guard is written by its descriptor, so that it never waits for its reader.
    text, ndjson, guard, plain = run_all(
        place,
        [
            Run("check names.jsonl", encoding="latin-1"),
            Run("check --messages --format ndjson names.jsonl", encoding="latin-1"),
            Run(f"guard -- {OFFERING}", encoding="ascii"),
            Run(f"guard -- {OFFERING}"),
        ],
        **environment(place),
    )
    assert "werkzeuge/größe->\\u5de5\\u5177 #1" in text.out.decode("latin-1")
    assert json.loads(ndjson.out.splitlines()[0])["method"] == "werkzeuge/größe→工具"
    assert "1 x syntax/json" in guard.err.decode("ascii")
    assert "1 × syntax/json" in plain.err.decode()


def test_streams_that_are_closed_at_the_start_do_not_change_the_exit_status(tmp_path: Path) -> None:
    ours = f"'{sys.executable}' -m assay"
    for script, status, said in (
        (f"{ours} check '{SAMPLE}' >&-", 1, b""),
        (f"{ours} check --format json '{SAMPLE}' >&- 2>&-", 1, b""),
        (f"{ours} check - <&-", 2, b"assay"),
        (f"{ours} validate - <&-", 2, b"assay"),
    ):
        done = subprocess.run(
            ["bash", "-c", f"exec {script}"], cwd=tmp_path, capture_output=True, check=False, timeout=SECONDS
        )
        assert done.returncode == status, script
        assert done.stderr.startswith(said), script
        assert b"Traceback" not in done.stderr


def test_a_reader_that_has_had_enough_ends_what_only_prints_and_nothing_else(tmp_path: Path) -> None:
    """Where a journal is followed, nothing is written to it, so no write can fail."""
    config = tmp_path / "mcp.json"
    config.write_text(CLAUDE_DESKTOP.before, encoding="utf-8")
    for words in (
        ("schemas", "show", "2025-11-25", "ServerResult", "--closure"),
        ("journal", "show", "--follow", str(GOLDEN)),
        ("wrap", str(config), "--yes", "--program", "/opt/assay/bin/assay"),
    ):
        with subprocess.Popen([*ASSAY, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            try:
                assert process.stdout is not None
                process.stdout.read(10)
                process.stdout.close()
                assert process.wait(SECONDS) == 0
            finally:
                process.kill()
    assert config.read_text(encoding="utf-8") == CLAUDE_DESKTOP.after
