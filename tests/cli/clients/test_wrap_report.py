"""What `assay wrap` and `assay unwrap` print: for one file, for all files of a machine, and on a terminal."""

import json
import os
import sys
from pathlib import Path

import pytest

from assay.cli.main import main
from kit.client_files import KNOWN, PROGRAM, home_of_clients, put
from kit.command import Screen, streams, surroundings
from kit.rows import rows

FIXED = ("--program", PROGRAM)
CLAUDE_CODE = "Close Claude Code first: it may overwrite ~/.claude.json while it runs."
DESKTOP = "Claude Desktop  ~/.config/Claude/claude_desktop_config.json"
BACKUP = "beside each file, FILE.assay-backup has the original servers"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return home_of_clients(tmp_path, monkeypatch)


def servers(**entries: object) -> str:
    return json.dumps({"mcpServers": entries}, indent=1)


def only(home: Path, **files: str) -> None:
    """Leave no file in *home* but these, each by the name of its client."""
    for sample in KNOWN:
        (home / sample.path).unlink()
        if text := files.get(sample.name.replace("-", "_")):
            put(home / sample.path, text)


def shown(*arguments: str, typed: bytes | None = None, **environment: str) -> str:
    """Return what a terminal shows of both outputs, where somebody types that."""
    screen = Screen()
    with surroundings(None, {**os.environ, "NO_COLOR": "1", **environment}), streams(b"", screen, screen, typed=typed):
        main(arguments)
        sys.stdout.flush()
    return screen.getvalue().decode()


# ── all files ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_all_has_a_heading_and_notes_for_each_file_and_a_total(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def said(command: str, *options: str, status: int = 0) -> str:
        fixed = FIXED if command == "wrap" else ()
        assert main([command, "--all", *options, *fixed]) == status
        shown = capsys.readouterr().err
        assert (shown.count("would change"), "Close " in shown) == (len(KNOWN) + 1, False) or "--dry-run" not in options
        return shown

    total = "8 files, 23 servers would change, 9 left alone. Nothing was written.\n"
    assert said("wrap", "--dry-run", status=1).endswith(f"assay wrap: {total}")
    blocks = said("wrap", "--yes").split("\n\n")
    headings = [block.splitlines()[0] for block in blocks[:-1]]
    assert headings[:3] == [DESKTOP, "Claude Code  ~/.claude.json", "Cursor  ~/.cursor/mcp.json"]
    assert len(headings) == len(KNOWN)
    assert "\n  notion: left alone: its client may sign in" in blocks[1]
    assert [block.count("assay") for block in blocks[:-1]] == [0] * len(KNOWN)
    end = blocks[-1].splitlines()
    assert sum(BACKUP in line for line in end) == 1
    total = "8 files, 23 servers behind the guard, 9 left alone. Undo: assay unwrap --all"
    assert end[-1] == f"assay wrap: {total}"
    again = said("wrap", "--yes")
    assert again.startswith(f"{DESKTOP}\n  nothing to do: 3 servers already behind the guard\n")
    assert again.endswith(f"{total}\n")
    assert (BACKUP in again, "same name" in again) == (False, False)
    total = "8 files, 23 servers would change. Nothing was written.\n"
    assert said("unwrap", "--dry-run", status=1).endswith(f"assay unwrap: {total}")
    path = home / ".cursor/mcp.json"
    path.write_text(path.read_text().replace('"python"', '"python3"'))
    back = said("unwrap")
    assert "\n\nCursor  ~/.cursor/mcp.json\n  local: rebuilt from its args" in back
    assert back.endswith("\n\nassay unwrap: 8 files, 22 servers restored, 1 rebuilt\n")
    assert said("unwrap").endswith("assay unwrap: 8 files, no server behind the guard\n")
    one = said("wrap", "--server", "my time", "--yes")
    assert one.startswith("Codex  ~/.codex/config.toml\n")
    assert one.endswith("1 file, 1 server behind the guard. Undo: assay unwrap --all --server 'my time'\n")


def test_notes_of_one_file_come_after_its_changes(tmp_path: Path) -> None:
    two = {name: {"url": "https://a/mcp", "headers": {"K": "v"}} for name in ("one", "two")}
    path = put(tmp_path / "mcp.json", servers(a={"command": "a"}, old={"type": "sse", "url": "http://a"}, **two))
    both = shown("wrap", str(path), "--dry-run", *FIXED)
    assert both.startswith("--- ")
    assert both.index("\n+") < both.index("old: left alone: ")
    assert "assay wrap: one, two: headers become arguments, which others" in both


# ── clients that write their file while they run ─────────────────────────────────────────────────────────────────────


def test_a_client_that_overwrites_its_file_is_to_be_closed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["wrap", "--client", "claude-code", "--yes", *FIXED]) == 0
    lines = capsys.readouterr().err.splitlines()
    changed = "assay wrap: ~/.claude.json: 2 servers changed; restart Claude Code to apply this"
    assert lines.index(CLAUDE_CODE) == lines.index(changed) - 1
    assert main(["unwrap", str(home / ".claude.json")]) == 0
    assert capsys.readouterr().err.splitlines()[0] == CLAUDE_CODE
    assert main(["wrap", "--client", "claude-desktop", "--yes", *FIXED]) == 0
    assert (
        f"Close Claude Desktop first: it may overwrite {DESKTOP.rsplit(maxsplit=1)[-1]} while it runs."
        in capsys.readouterr().err.splitlines()
    )


def test_other_files_need_no_closed_client(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(Path(".mcp.json"), servers(a={"command": "a"}))
    for client in ("claude-code", "cursor", "codex"):
        assert main(["wrap", "--client", client, "--yes", *FIXED]) == 0
        assert main(["unwrap", "--client", client]) == 0
    assert main(["wrap", str(home / ".claude.json"), "--dry-run", *FIXED]) == 1
    assert main(["wrap", str(home / ".claude.json"), *FIXED]) == 2
    assert "Close " not in capsys.readouterr().err


# ── names ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_servers_of_one_name_are_reported_once(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The remedy holds: the name that a person gives stays, and the file comes back to the byte."""
    time = servers(time={"command": "uvx", "args": ["mcp-server-time"]}, other={"command": "a"})
    only(home, claude_desktop=time, claude_code=time.replace("other", "third"))
    note = (
        "assay wrap: several servers have the same name: time (Claude Desktop, Claude Code); their runs are mixed in "
        "the journal, unless you change --name in the args of one"
    )
    for option in ("--dry-run", "--yes"):
        main(["wrap", "--all", *FIXED, option])
        assert capsys.readouterr().err.splitlines().count(note) == 1
    path = home / ".claude.json"
    path.write_text(path.read_text().replace('"--name", "time"', '"--name", "time-claude-code"'))
    assert main(["wrap", "--all", "--yes", "--mode", "enforce", *FIXED]) == 0
    assert "same name" not in capsys.readouterr().err
    args = json.loads(path.read_text())["mcpServers"]["time"]["args"]
    assert args[:6] == ["guard", "--name", "time-claude-code", "--mode", "enforce", "--"]
    assert main(["unwrap", "--all"]) == 0
    assert path.read_text() == time.replace("other", "third")
    put(path, next(sample for sample in KNOWN if sample.name == "claude-code").before)
    for options, is_said in ((["--yes"], True), (["--yes", "--journal", "off"], False)):
        capsys.readouterr()
        assert main(["wrap", "--client", "claude-code", *options, *FIXED]) == 0
        assert ("same name: db (2 in Claude Code); their runs" in capsys.readouterr().err) is is_said


# ── the journal ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_state_directory_of_this_shell_alone_is_reported(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def is_reported(*options: str) -> bool:
        main(["wrap", "--client", "cursor", "--yes", *FIXED, *options])
        shown = capsys.readouterr().err
        main(["unwrap", "--client", "cursor"])
        capsys.readouterr()
        return "if runs are missing: assay journal list ~/.local/state/assay/servers\n" in shown

    assert not is_reported()
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    assert is_reported()
    assert not is_reported("--journal", str(home / "runs"))
    assert not is_reported("--journal", "off")
    monkeypatch.setenv("XDG_STATE_HOME", str(home / ".local" / "state"))
    assert not is_reported()


# ── slips ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_nothing_was_wrapped_if_all_servers_are_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = put(tmp_path / "e3.json", servers(x={"comand": "npx"}))
    assert main(["wrap", str(path), "--yes", *FIXED]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "assay wrap: x: left alone: it has neither a command nor a url; did you mean command by comand?",
        f"assay wrap: {path}: nothing was wrapped",
    ]


@rows(
    ("given", "meant"),
    [
        ("claude-desktop", "; did you mean --client claude-desktop?"),
        ("claude-dekstop", "; did you mean --client claude-desktop?"),
        ("Claude Desktop", "; did you mean --client claude-desktop?"),
        ("claude", "; did you mean --client claude-desktop or --client claude-code?"),
        ("VSCode", "; did you mean --client vscode?"),
        ("mcp.json", ""),
        ("here/cursor", ""),
    ],
)
@pytest.mark.usefixtures("home")
def test_the_name_of_a_client_in_place_of_a_file(capsys: pytest.CaptureFixture[str], given: str, meant: str) -> None:
    put(Path("cursor"), "{")
    for command in (["wrap", *FIXED], ["unwrap"]):
        assert main([*command, "cursor"]) == 2
        assert "did you mean" not in capsys.readouterr().err, "a file may be called like a client"
        assert main([*command, given]) == 2
        assert capsys.readouterr().err == f"assay {command[0]}: {given}: No such file or directory{meant}\n"


# ── a terminal ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_on_a_terminal_notes_fit_and_headings_replace_those_of_the_changes(home: Path) -> None:
    code = servers(a={"command": "a"}, notion={"url": "https://mcp.notion.com/mcp"})
    only(home, claude_code=code, cursor=servers(b={"command": "b"}))
    text = shown("wrap", "--all", *FIXED, typed=b"n\nn\n", HOME=str(home), COLUMNS="80")
    assert text.startswith("Claude Code  ~/.claude.json\n@@ ")
    assert f"\n  {CLAUDE_CODE}\nWrite this to ~/.claude.json? [y/N]   nothing was written\n\nCursor  " in text
    assert "\n\n  notion: left alone: its client may sign in to its url (OAuth), which does not\n      work" in text
    assert text.endswith("\nassay wrap: 2 files, 0 servers behind the guard, 1 left alone, 2 not changed\n")


def test_a_server_that_was_to_change_is_behind_the_guard_after_a_no(home: Path) -> None:
    only(home, cursor=servers(a={"command": "a"}))
    assert main(["wrap", "--all", "--yes", *FIXED]) == 0
    text = shown("wrap", "--all", "--mode", "enforce", *FIXED, typed=b"n\n", HOME=str(home), COLUMNS="120")
    assert text.endswith("1 file, 1 server behind the guard, 1 not changed. Undo: assay unwrap --all\n")
