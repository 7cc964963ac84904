"""`assay wrap` and `assay unwrap`, as people use them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from assay.cli.main import parser
from kit.client_files import CLAUDE_DESKTOP, VS_CODE
from kit.command import assay_text, variables_but
from kit.rows import rows

OURS = str(Path(sys.executable).with_name("assay"))
FIXED = ("--program", "/opt/assay/bin/assay")

Done = subprocess.CompletedProcess[str]


def assay(*arguments: str, **options: Any) -> Done:
    return assay_text(*arguments, env=variables_but("NO_COLOR", "FORCE_COLOR"), **options)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return written(tmp_path / "mcp.json", CLAUDE_DESKTOP.before)


def written(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def backup(path: Path) -> Path:
    return path.with_name(path.name + ".assay-backup")


def test_the_client_is_given_the_whole_path_of_this_program(config: Path) -> None:
    assert assay("wrap", str(config), "--yes").returncode == 0
    entries = json.loads(config.read_text())["mcpServers"].values()
    assert {entry["command"] for entry in entries} == {OURS}
    assert os.access(OURS, os.X_OK)


def entry_of(path: Path, **entry: object) -> Path:
    return written(path / "mcp.json", json.dumps({"mcpServers": {"x": {"args": ["guard", "--", "server"], **entry}}}))


FOUND = f"{Path(OURS).parent}:{os.environ['PATH']}"
NOT_OURS = "is not this assay"


@rows(
    "entry, why",
    [
        ({"command": "HERE/assay"}, NOT_OURS),
        ({"command": "./assay"}, NOT_OURS),
        ({"command": "${workspaceFolder}/assay"}, NOT_OURS),
        ({"command": "assay", "env": {"Path": "."}}, NOT_OURS),
        ({"command": "/nowhere/assay"}, NOT_OURS),
        (
            {"command": "uvx", "args": ["assay", "guard", "--", "a"]},
            "through another program, which assay cannot check",
        ),
    ],
)
def test_a_program_that_may_be_another_is_no_guard(tmp_path: Path, entry: dict[str, Any], why: str) -> None:
    program = written(tmp_path / "assay", "#!/bin/sh\nexec true\n")
    program.chmod(0o755)
    path = entry_of(tmp_path, **{**entry, "command": entry["command"].replace("HERE", str(tmp_path))})
    before = path.read_text()
    done = assay("wrap", str(path), "--yes", cwd=tmp_path, PATH=FOUND)
    assert (done.returncode, path.read_text()) == (0, before)
    assert "x: left alone: " in done.stderr
    assert why in done.stderr
    if "HERE" in entry["command"]:
        assert assay("wrap", str(path), "--yes", "--server", "x").returncode == 2
        assert assay("wrap", str(path), "--yes", "--program", OURS).returncode == 0
        assert json.loads(path.read_text())["mcpServers"]["x"]["command"] == OURS


def test_this_program_is_known_by_name_by_path_and_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "assay").symlink_to(OURS)
    for command in ("assay", OURS, str(tmp_path / "assay")):
        path = entry_of(tmp_path, command=command)
        assert assay("wrap", str(path), "--yes", PATH=FOUND).returncode == 0
        assert json.loads(path.read_text())["mcpServers"]["x"]["args"] == ["guard", "--name", "x", "--", "server"]
        assert "already runs behind the guard" in assay("wrap", str(path), "--yes", PATH=FOUND).stderr


def test_without_a_terminal_it_has_to_be_allowed(config: Path) -> None:
    done = assay("wrap", str(config))
    assert done.returncode == 2
    assert "--yes" in done.stderr
    assert done.stdout.startswith("--- ")
    assert config.read_text() == CLAUDE_DESKTOP.before
    assert not backup(config).exists()


def test_a_dry_run_shows_and_writes_nothing(config: Path) -> None:
    done = assay("wrap", str(config), "--dry-run", "--yes", *FIXED)
    assert done.returncode == 1
    assert '+      "command": "/opt/assay/bin/assay",' in done.stdout.splitlines()
    assert "3 servers would change" in done.stderr
    assert list(config.parent.iterdir()) == [config]
    coloured = assay("wrap", str(config), "--dry-run", FORCE_COLOR="1").stdout
    assert '\x1b[31m-      "command": "npx",\x1b[0m' in coloured.splitlines()
    assay("wrap", str(config), "--yes", *FIXED)
    behind = config.read_text()
    assert assay("wrap", str(config), "--dry-run").returncode == 0
    undo = assay("unwrap", str(config), "--dry-run")
    assert undo.returncode == 1
    assert '+      "command": "npx",' in undo.stdout.splitlines()
    assert config.read_text() == behind


@rows("typed, status", [(b"n\n", 1), (b"\n", 1), (b"what?\n", 1), (b"\x04", 1), (b"Yes\n", 0)])
def test_on_a_terminal_it_asks(config: Path, typed: bytes, status: int) -> None:
    done = assay("wrap", str(config), typed=typed)
    assert done.returncode == status
    assert done.stdout.startswith("--- ")
    assert done.stderr.endswith("[y/N] ") or "[y/N] " in done.stderr
    assert (config.read_text() != CLAUDE_DESKTOP.before) is (status == 0)
    assert backup(config).exists() is (status == 0)


def test_a_link_leads_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    real = written(tmp_path / "dotfiles" / "mcp.json", CLAUDE_DESKTOP.before)
    link = tmp_path / "mcp.json"
    link.symlink_to(real)
    assert assay("wrap", str(link), "--yes", *FIXED).returncode == 0
    assert link.is_symlink()
    assert real.read_text() == CLAUDE_DESKTOP.after
    assert backup(real).exists()
    assert assay("unwrap", str(link)).returncode == 0
    assert real.read_text() == CLAUDE_DESKTOP.before


def test_servers_one_by_one(config: Path) -> None:
    """The backup always has all of them as they were."""
    assert assay("wrap", str(config), "--yes", "--server", "weather", *FIXED).returncode == 0
    assert assay("wrap", str(config), "--yes", "--server", "github", "--mode", "enforce", *FIXED).returncode == 0
    assert backup(config).read_text() == CLAUDE_DESKTOP.before
    assert assay("unwrap", str(config), "--server", "weather").returncode == 0
    assert backup(config).exists()
    servers = json.loads(config.read_text())["mcpServers"]
    assert servers["weather"] == {"command": "C:\\Users\\jane\\weather.exe"}
    assert servers["github"]["args"][:6] == ["guard", "--name", "github", "--mode", "enforce", "--"]
    assert assay("unwrap", str(config), "--server", "github", "--server", "weather").returncode == 0
    assert config.read_text() == CLAUDE_DESKTOP.before
    assert not backup(config).exists()


def test_what_was_edited_in_between_stays(tmp_path: Path) -> None:
    path = written(tmp_path / "mcp.json", VS_CODE.before)
    assay("wrap", str(path), "--yes", *FIXED)
    written(path, path.read_bytes().decode().replace('"pw:*"', '"*"').replace("/* over HTTP */", "// web"))
    done = assay("unwrap", str(path))
    assert done.returncode == 0
    assert path.read_bytes().decode() == VS_CODE.before.replace('"pw:*"', '"*"').replace("/* over HTTP */", "// web")
    assert "playwright: rebuilt from its args" in done.stderr
    assert "github: " not in done.stderr
    assert backup(path).exists()
    assert "is kept: it has the originals of the servers that were edited since; delete it when" in done.stderr
    again = assay("unwrap", str(path))
    assert f"{backup(path)} is still there; delete it if you do not need it: it may hold secrets" in again.stderr


def test_what_is_left_alone_is_shown(tmp_path: Path) -> None:
    entries = {
        "events": {"type": "sse", "url": "http://localhost/sse"},
        "off": {"command": "a", "disabled": True},
        "tickets": {"url": "https://tickets.example/mcp", "oauth": {"clientId": "x"}},
        "sets": {"command": "a", "env": {"ASSAY_GUARD_FAIL_OPEN": "1", "PYTHONPATH": "evil", "TOKEN": "hunter2"}},
        "on\x1b[31m": {"command": "assay", "args": ["guard", "--", "a"]},
    }
    path = written(tmp_path / "mcp.json", json.dumps({"mcpServers": entries}))
    done = assay("wrap", str(path), "--yes", *FIXED, "--mode", "audit", "--dry-run")
    assert done.returncode == 1
    assert "assay wrap: off: left alone: it is disabled; --server off puts it behind the guard anyway" in done.stderr
    assert "assay wrap: events: left alone: it has the HTTP+SSE transport" in done.stderr
    signs_in = "its client signs in to its url, which does not work through the guard"
    assert f"assay wrap: tickets: left alone: {signs_in}\n" in done.stderr
    assert "sets: env sets ASSAY_GUARD_FAIL_OPEN, PYTHONPATH, which the guard obeys too" in done.stderr
    assert "2 servers would change" in done.stderr
    assert "hunter2" not in done.stdout + done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    named = assay("wrap", str(path), "--yes", "--server", "tickets")
    assert named.returncode == 2
    assert named.stderr == f"assay wrap: {path}: tickets: {signs_in}\n"
    assert named.stdout == ""
    assert json.loads(path.read_text()) == {"mcpServers": entries}
    assert "tickets: left alone: it does not run" in assay("unwrap", str(path), "--server", "tickets").stderr
    assert "tickets" not in assay("unwrap", str(path), "--dry-run").stderr


TWICE = b'{"servers": {"x": {"command": "a", "command": "b"}}}'
TWELVE = json.dumps({"servers": {f"s{number}": {} for number in range(12)}}).encode()


@rows(
    "name, content, server, why",
    [
        ("mcp.json", b"", (), "not valid JSON: line 1, column 1: expected a value, found the end of the file"),
        ("mcp.json", b"[]", (), "not a client's configuration: expected an object"),
        ("mcp.json", b"\xff\xfe{\x00}\x00", (), "not UTF-8: byte 1"),
        ("mcp.json", b"{}", (), "no servers: it has no mcpServers, servers or context_servers"),
        ("mcp.json", b'{"servers": {}}', (), "no servers in it"),
        ("mcp.json", b'{"servers": []}', (), "no servers: servers is not an object"),
        ("mcp.json", TWICE, (), 'not valid JSON: line 1, column 36: the key "command" is repeated'),
        ("mcp.json", b'{"servers": {"github": {}}}', "gihtub", "no server is called gihtub; did you mean github?\n"),
        ("mcp.json", b'{"servers": {"a": {}, "b": {}}}', "zzz", "no server is called zzz; there are a, b\n"),
        ("mcp.json", TWELVE, "zzz", "no server is called zzz; there are s0, s1, s2, s3, s4, s5, s6, s7, s8, s9 …\n"),
        ("config.toml", b"", (), "no servers: it has no [mcp_servers.NAME]"),
        ("config.toml", b"[mcp_servers]\n", (), "no servers in it"),
        ("config.toml", b"mcp_servers = 1\n", (), "no servers: mcp_servers is not a table"),
        ("config.toml", b"[mcp_servers.x\n", (), "not valid TOML: "),
        ("config.toml", b"x = 1\nx = 2\n", (), "not valid TOML: Cannot overwrite a value"),
        ("config.toml", b"x = [" + b"[" * 100_000, (), "not valid TOML: nested too deeply"),
        ("config.toml", b'[mcp_servers.git]\ncommand = "a"\n', "gti", "no server is called gti; did you mean git?\n"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, name: str, content: bytes, server: str, why: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    for command in (("wrap", "--yes", *FIXED), ("unwrap",)):
        done = assay(*command, str(path), *(("--server", server) if server else ()))
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"assay {command[0]}: {path}: {why}".removesuffix("\n"))
        assert done.stderr.endswith(why) or not why.endswith("\n")
        assert done.stderr.count("\n") == 1
        assert path.read_bytes() == content
    path.unlink()
    assert list(tmp_path.iterdir()) == []


@rows(
    "arguments, why",
    [
        ((), "specify one of FILE, --client CLIENT and --all\n"),
        (("mcp.json", "--client", "cursor"), "specify one of FILE, --client CLIENT and --all\n"),
        (("none.json",), "none.json: No such file or directory\n"),
        (("--client", "cursor"), "no configuration of cursor at .cursor/mcp.json or "),
        (("mcp.json", "--program", "/usr/bin/env"), "expected a path that ends in assay"),
        (
            ("mcp.json", "--yes", "--lock", "no.lock"),
            "--lock no.lock: No such file or directory; assay lock writes one",
        ),
    ],
)
def test_a_slip_in_an_option_changes_nothing(config: Path, arguments: tuple[str, ...], why: str) -> None:
    done = assay("wrap", *arguments, cwd=config.parent, HOME=str(config.parent))
    assert (done.returncode, done.stdout) == (2, "")
    assert why in done.stderr
    assert config.read_text() == CLAUDE_DESKTOP.before


def test_the_guard_is_given_the_very_command_of_the_server(tmp_path: Path) -> None:
    """Whatever dashes it has in it."""
    own = ["python", "-c", "pass", "--", "--mode", "audit", "--", "-x", ""]
    path = entry_of(tmp_path, command=own[0], args=own[1:])
    assert assay("wrap", str(path), "--yes", "--mode", "enforce").returncode == 0
    given = parser().parse_args(json.loads(path.read_text())["mcpServers"]["x"]["args"])
    assert (given.command, given.mode, given.name) == (own, "enforce", "x")
