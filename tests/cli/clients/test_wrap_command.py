"""`assay wrap` and `assay unwrap`, as people use them."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from assay.cli.main import parser
from kit.client_files import CLAUDE_DESKTOP, CODEX, VS_CODE, Sample
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


@rows("sample", [VS_CODE, CODEX], ids=lambda sample: sample.name)
def test_there_and_back(tmp_path: Path, sample: Sample) -> None:
    path = tmp_path / sample.path
    path.parent.mkdir(parents=True, exist_ok=True)
    written(path, sample.before).chmod(0o640)
    done = assay("wrap", str(path), "--yes", *FIXED)
    assert done.returncode == 0, done.stderr
    assert path.read_bytes() == sample.after.encode()
    assert backup(path).read_bytes() == sample.before.encode()
    assert (path.stat().st_mode & 0o777, backup(path).stat().st_mode & 0o777) == (0o640, 0o600)
    assert "s3cr3t" not in done.stdout + done.stderr
    undone = assay("unwrap", str(path))
    assert undone.returncode == 0, undone.stderr
    assert "s3cr3t" not in undone.stdout + undone.stderr
    assert path.read_bytes() == sample.before.encode()
    assert list(path.parent.iterdir()) == [path]


def test_wrapping_and_unwrapping_twice_is_not_an_error(config: Path) -> None:
    assert assay("wrap", str(config), "--yes", *FIXED).returncode == 0
    again = assay("wrap", str(config), "--yes", *FIXED)
    assert (again.returncode, again.stdout) == (0, "")
    assert "nothing to do" in again.stderr
    assert assay("unwrap", str(config)).returncode == 0
    assert assay("unwrap", str(config)).returncode == 0


def test_the_client_is_given_the_whole_path_of_this_program(config: Path) -> None:
    assert assay("wrap", str(config), "--yes").returncode == 0
    entries = json.loads(config.read_text())["mcpServers"].values()
    assert {entry["command"] for entry in entries} == {OURS}
    assert os.access(OURS, os.X_OK)


def entry_of(path: Path, **entry: object) -> Path:
    return written(path / "mcp.json", json.dumps({"mcpServers": {"x": {"args": ["guard", "--", "server"], **entry}}}))


def lookalike(directory: Path) -> str:
    """Another program that is called assay."""
    program = directory / "assay"
    program.write_text("#!/bin/sh\nexec true\n")
    program.chmod(0o755)
    return str(program)


def test_another_program_of_that_name_is_no_guard(tmp_path: Path) -> None:
    program = lookalike(tmp_path)
    path = entry_of(tmp_path, command=program)
    before = path.read_text()
    done = assay("wrap", str(path), "--yes")
    assert (done.returncode, path.read_text()) == (0, before)
    assert f'x: left alone: its command "{program}" is not this assay' in done.stderr
    assert "already" not in done.stderr
    assert assay("wrap", str(path), "--yes", "--server", "x").returncode == 2
    assert assay("wrap", str(path), "--yes", "--program", OURS).returncode == 0
    assert json.loads(path.read_text())["mcpServers"]["x"]["command"] == OURS


@rows(
    "entry",
    [
        pytest.param({"command": "./assay"}, id="relative"),
        pytest.param({"command": "${workspaceFolder}/assay"}, id="variable"),
        pytest.param({"command": "assay", "env": {"Path": "."}}, id="other-path"),
        pytest.param({"command": "/nowhere/assay"}, id="missing"),
    ],
)
def test_a_program_that_cannot_be_found_out_is_no_guard(tmp_path: Path, entry: dict[str, object]) -> None:
    lookalike(tmp_path)
    path = entry_of(tmp_path, **entry)
    found = f"{Path(OURS).parent}:{os.environ['PATH']}"
    assert "is not this assay" in assay("wrap", str(path), "--yes", cwd=tmp_path, PATH=found).stderr


def test_this_program_is_known_by_name_by_path_and_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "assay").symlink_to(OURS)
    found = f"{Path(OURS).parent}:{os.environ['PATH']}"
    for command in ("assay", OURS, str(tmp_path / "assay")):
        path = entry_of(tmp_path, command=command)
        assert assay("wrap", str(path), "--yes", PATH=found).returncode == 0
        assert json.loads(path.read_text())["mcpServers"]["x"]["args"] == ["guard", "--name", "x", "--", "server"]
        assert "already runs behind the guard" in assay("wrap", str(path), "--yes", PATH=found).stderr


def test_a_guard_that_another_program_starts_is_left_alone(tmp_path: Path) -> None:
    path = entry_of(tmp_path, command="uvx", args=["assay", "guard", "--", "server"])
    done = assay("wrap", str(path), "--yes")
    assert done.returncode == 0
    assert "through another program, which assay cannot check" in done.stderr


def test_variables_that_the_guard_would_obey_are_shown(tmp_path: Path) -> None:
    env = {"ASSAY_GUARD_FAIL_OPEN": "1", "PYTHONPATH": "evil", "TOKEN": "hunter2"}
    path = entry_of(tmp_path, command="server", args=[], env=env)
    done = assay("wrap", str(path), "--yes", *FIXED)
    assert "x: env sets ASSAY_GUARD_FAIL_OPEN, PYTHONPATH, which the guard obeys too" in done.stderr


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
    assay("wrap", str(config), "--yes", *FIXED)
    behind = config.read_text()
    assert assay("wrap", str(config), "--dry-run").returncode == 0
    undo = assay("unwrap", str(config), "--dry-run")
    assert undo.returncode == 1
    assert '+      "command": "npx",' in undo.stdout.splitlines()
    assert config.read_text() == behind


def test_no_secret_is_printed(config: Path) -> None:
    for done in (assay("wrap", str(config), "--yes"), assay("unwrap", str(config))):
        assert done.returncode == 0
        assert "ghp_" not in done.stdout + done.stderr
        assert '"GITHUB_PERSONAL_ACCESS_TOKEN": "[redacted]"' in done.stdout


def test_colours_are_for_those_who_want_them(config: Path) -> None:
    assert "\x1b[" not in assay("wrap", str(config), "--dry-run").stdout
    coloured = assay("wrap", str(config), "--dry-run", FORCE_COLOR="1").stdout
    assert '\x1b[31m-      "command": "npx",\x1b[0m' in coloured.splitlines()
    assert "\x1b[" not in assay("wrap", str(config), "--dry-run", FORCE_COLOR="1", NO_COLOR="1").stdout


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


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Have no file of more than *size* bytes: what a full disk looks like to one process."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@rows("size, name", [(100, "mcp.json.assay-backup"), (len(CLAUDE_DESKTOP.before), "mcp.json")])
def test_a_full_disk_costs_nothing(config: Path, size: int, name: str) -> None:
    with files_of_at_most(size):
        done = assay("wrap", str(config), "--yes")
    assert done.returncode == 2
    assert f"cannot write {name}: File too large" in done.stderr
    assert list(config.parent.iterdir()) == [config]
    assert config.read_text() == CLAUDE_DESKTOP.before


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


def test_the_mode_of_those_that_are_there_changes_only_if_one_is_given(config: Path) -> None:
    assay("wrap", str(config), "--yes", "--mode", "enforce")
    behind = config.read_text()
    assert "nothing to do" in assay("wrap", str(config), "--yes").stderr
    assert assay("wrap", str(config), "--yes", "--mode", "audit").returncode == 0
    assert config.read_text() == behind.replace('"enforce"', '"audit"')
    assert assay("unwrap", str(config)).returncode == 0
    assert config.read_text() == CLAUDE_DESKTOP.before


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


def test_without_the_backup_servers_come_back_by_their_args(config: Path) -> None:
    assay("wrap", str(config), "--yes", *FIXED)
    backup(config).unlink()
    done = assay("unwrap", str(config))
    assert done.returncode == 0
    assert done.stderr.count("rebuilt from its args") == 3
    found, expected = json.loads(config.read_text()), json.loads(CLAUDE_DESKTOP.before)
    expected["mcpServers"]["weather"]["args"] = []
    assert found == expected


def test_what_is_left_alone_is_shown(tmp_path: Path) -> None:
    entries = {
        "events": {"type": "sse", "url": "http://localhost/sse"},
        "off": {"command": "a", "disabled": True},
        "tickets": {"url": "https://tickets.example/mcp", "oauth": {"clientId": "x"}},
        "on\x1b[31m": {"command": "assay", "args": ["guard", "--", "a"]},
    }
    path = written(tmp_path / "mcp.json", json.dumps({"mcpServers": entries}))
    done = assay("wrap", str(path), "--yes", *FIXED, "--mode", "audit", "--dry-run")
    assert done.returncode == 1
    assert "assay wrap: off: left alone: it is disabled; --server off puts it behind the guard anyway" in done.stderr
    assert "assay wrap: events: left alone: it has the HTTP+SSE transport" in done.stderr
    signs_in = "its client signs in to its url, which does not work through the guard"
    assert f"assay wrap: tickets: left alone: {signs_in}\n" in done.stderr
    assert "1 server would change" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    named = assay("wrap", str(path), "--yes", "--server", "tickets")
    assert named.returncode == 2
    assert named.stderr == f"assay wrap: {path}: tickets: {signs_in}\n"
    assert named.stdout == ""
    assert json.loads(path.read_text()) == {"mcpServers": entries}
    assert "tickets: left alone: it does not run" in assay("unwrap", str(path), "--server", "tickets").stderr
    assert "tickets" not in assay("unwrap", str(path), "--dry-run").stderr


def test_a_server_at_a_url_keeps_its_headers_and_they_are_not_shown(tmp_path: Path) -> None:
    """Variables stay as they are: clients put in their values in args as well."""
    headers = {"Authorization": "Bearer ${input:token}", "X-Key": "k-4711", "X-Team": "${env:TEAM}"}
    text = json.dumps({"mcpServers": {"tickets": {"url": "https://tickets.example/mcp", "headers": headers}}}, indent=1)
    path = written(tmp_path / "mcp.json", text)
    done = assay("wrap", str(path), "--yes", "--program", "assay")
    assert done.returncode == 0
    entry = json.loads(path.read_text())["mcpServers"]["tickets"]
    given = [word for name, value in headers.items() for word in ("--header", f"{name}: {value}")]
    target = ["--name", "tickets", "--target", "https://tickets.example/mcp"]
    assert entry == {"command": "assay", "args": ["guard", *target, *given]}
    assert "k-4711" not in done.stdout + done.stderr
    assert "${input:token}" in done.stdout
    assert "tickets: headers become arguments" in done.stderr
    assert assay("unwrap", str(path)).returncode == 0
    assert path.read_text() == text


@rows(
    "content, arguments, why",
    [
        (None, (), "mcp.json: No such file or directory"),
        (b"", (), "mcp.json: not valid JSON: line 1, column 1: expected a value, found the end of the file"),
        (b"\xff\xfe{\x00}\x00", (), "mcp.json: not UTF-8: byte 1"),
        (b"{}", (), "mcp.json: no servers: it has no mcpServers, servers or context_servers"),
        (b'{"servers": {}}', (), "mcp.json: no servers in it"),
        (b'{"servers": []}', (), "mcp.json: no servers: servers is not an object"),
        (b'{"servers": {"x": {"command": "a", "command": "b"}}}', (), 'the key "command" is repeated'),
        (b'{"servers": {"github": {"command": "a"}}}', ("--server", "gihtub"), "did you mean github?"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, content: bytes | None, arguments: tuple[str, ...], why: str) -> None:
    path = tmp_path / "mcp.json"
    if content is not None:
        path.write_bytes(content)
    for command in (("wrap", "--yes"), ("unwrap",)):
        done = assay(*command, str(path), *arguments)
        assert done.returncode == 2
        assert done.stdout == ""
        assert why in done.stderr
        assert done.stderr.count("\n") == 1
        assert content is None or path.read_bytes() == content
    assert not backup(path).exists()


def test_the_client_may_be_named_in_place_of_the_file(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "settings")}
    none = assay("wrap", "--client", "cursor", cwd=tmp_path, **home)
    assert none.returncode == 2
    assert "no configuration of cursor at .cursor/mcp.json or " in none.stderr
    (tmp_path / ".cursor").mkdir()
    path = written(tmp_path / ".cursor" / "mcp.json", CLAUDE_DESKTOP.before)
    assert assay("wrap", "--client", "cursor", "--yes", *FIXED, cwd=tmp_path, **home).returncode == 0
    assert path.read_text() == CLAUDE_DESKTOP.after
    assert assay("unwrap", "--client", "cursor", "--yes", cwd=tmp_path, **home).returncode == 0
    assert path.read_text() == CLAUDE_DESKTOP.before
    for arguments in ((), (str(path), "--client", "cursor")):
        done = assay("wrap", *arguments)
        assert done.returncode == 2
        assert done.stderr == "assay wrap: specify FILE, --client CLIENT or --all\n"


def test_a_program_of_another_name_is_refused(config: Path) -> None:
    done = assay("wrap", str(config), "--program", "/usr/bin/env")
    assert done.returncode == 2
    assert "expected a path that ends in assay" in done.stderr


@rows("mode", [(), ("--mode", "enforce")])
def test_the_guard_is_given_the_very_command_of_the_server(tmp_path: Path, mode: tuple[str, ...]) -> None:
    """Whatever dashes it has in it."""
    own = ["python", "-c", "pass", "--", "--mode", "audit", "--", "-x", ""]
    path = written(tmp_path / "mcp.json", json.dumps({"mcpServers": {"x": {"command": own[0], "args": own[1:]}}}))
    assert assay("wrap", str(path), "--yes", *mode).returncode == 0
    told = parser().parse_args(json.loads(path.read_text())["mcpServers"]["x"]["args"])
    assert told.command == own
    assert told.mode == (mode[1] if mode else None)
    assert told.name == "x"
