"""`assay wrap` for the clients of one machine: their files, what it writes into them, and what it refuses to write."""

import json
import shutil
import sys
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

from assay.cli.clients.config_files import CLIENTS
from assay.cli.clients.dialect import CODEX as TOML
from assay.cli.clients.dialect import dialect_of
from assay.cli.clients.parsing import ConfigError
from assay.cli.clients.plan import unwrap
from assay.cli.clients.wrapping import guarded_in
from assay.cli.main import main, parser
from kit.client_files import CODEX, KNOWN, PROGRAM, Sample, behind, home_of_clients, put
from kit.rows import rows

FIXED = ("--program", PROGRAM)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return home_of_clients(tmp_path, monkeypatch)


def contents(home: Path) -> dict[str, bytes]:
    return {sample.name: (home / sample.path).read_bytes() for sample in KNOWN}


def toml(text: str) -> str:
    """A file of Codex with one server that can be wrapped, and *text*."""
    return f'[mcp_servers.fine]\ncommand = "a"\n{text}'


# ── which files ──────────────────────────────────────────────────────────────────────────────────────────────────────


@rows("sample", KNOWN, ids=lambda sample: sample.name)
def test_every_client_is_known_by_name(home: Path, capsys: pytest.CaptureFixture[str], sample: Sample) -> None:
    assert {each.name for each in KNOWN} == set(CLIENTS)
    path = home / sample.path
    path.chmod(0o640)
    backup = path.with_name(f"{path.name}.assay-backup")
    assert main(["wrap", "--client", sample.name, "--dry-run", *FIXED]) == 1
    assert path.read_bytes() == sample.before.encode()
    assert main(["wrap", "--client", sample.name, "--yes", *FIXED]) == 0
    assert path.read_bytes() == sample.after.encode()
    assert backup.read_bytes() == sample.before.encode()
    assert [each.stat().st_mode & 0o777 for each in (path, backup)] == [0o640, 0o600]
    assert main(["unwrap", "--client", sample.name]) == 0
    assert path.read_bytes() == sample.before.encode()
    assert not backup.exists()
    shown = capsys.readouterr()
    assert "s3cr3t" not in shown.out + shown.err


def test_all_finds_every_file_and_unwrap_undoes_it(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = put(Path(".mcp.json"), '{"mcpServers": {"mine": {"command": "a"}}}')
    before = contents(home)
    assert main(["wrap", "--client", "claude-code", "--dry-run", *FIXED]) == 1
    skipped = "assay wrap: ~/.claude.json: skipped, because .mcp.json is used; give it as FILE, or use --all\n"
    assert skipped in capsys.readouterr().err
    assert main(["wrap", "--all", "--yes", *FIXED]) == 0
    assert contents(home) == {sample.name: sample.after.encode() for sample in KNOWN}
    shown = capsys.readouterr()
    assert shown.out.count("\n+++ ") == len(KNOWN) + 1
    assert "s3cr3t" not in shown.out + shown.err
    assert "Claude Code  .mcp.json\n  1 server changed; restart Claude Code to apply this\n" in shown.err
    assert "  6 servers changed; restart Codex to apply this\n" in shown.err
    assert main(["unwrap", "--all"]) == 0
    assert contents(home) == before
    assert mine.read_text() == '{"mcpServers": {"mine": {"command": "a"}}}'
    assert not list(home.rglob("*.assay-backup"))


def test_all_reports_each_file_and_goes_on(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = {"mcpServers": {"old": {"type": "sse", "url": "http://a"}}}
    (home / ".cursor/mcp.json").write_text(json.dumps({"projects": {"/shop": old}}))
    (home / ".claude.json").write_text('{"numStartups": 1}')
    (home / ".gemini/settings.json").write_text("{")
    (home / ".codex/config.toml").write_text("x =")
    assert main(["wrap", "--all", "--dry-run", *FIXED]) == 2
    lines = capsys.readouterr().err.splitlines()
    below = dict(pairwise(lines))
    assert below["Claude Code  ~/.claude.json"] == "  no servers: it has no mcpServers, servers or context_servers"
    assert below["Gemini CLI  ~/.gemini/settings.json"].startswith("  not valid JSON: line 1")
    assert below["Codex  ~/.codex/config.toml"].startswith("  not valid TOML: ")
    assert "  2 servers would change" in lines[lines.index("Zed  ~/.config/zed/settings.json") :]
    assert below["Cursor  ~/.cursor/mcp.json"].startswith("  old (project /shop): left alone: it has the HTTP+SSE")
    assert lines[-1].endswith("6 left alone, 2 files failed. Nothing was written.")


def test_files_without_servers_are_no_mistake_in_all(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for sample in KNOWN:
        (home / sample.path).write_text("# nothing" if sample is CODEX else "{}")
    assert main(["wrap", "--all", *FIXED]) == 0
    assert main(["unwrap", "--all"]) == 0
    assert main(["wrap", "--client", "codex", *FIXED]) == 2
    shutil.rmtree(home)
    capsys.readouterr()
    assert main(["wrap", "--all", "--yes", *FIXED]) == 2
    assert capsys.readouterr().err.startswith("assay wrap: no configuration of claude-desktop, claude-code, ")


def test_all_with_a_server_changes_the_files_that_have_it(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["wrap", "--all", "--server", "db", "--yes", *FIXED]) == 0
    changed = {name for name, content in contents(home).items() if PROGRAM.encode() in content}
    assert changed == {"claude-code"}
    capsys.readouterr()
    assert main(["wrap", "--all", "--server", "playwrite", "--yes", *FIXED]) == 2
    assert capsys.readouterr().err == "assay wrap: no server is called playwrite; did you mean playwright?\n"


def test_a_token_from_the_environment_comes_back_without_a_backup() -> None:
    """Codex passes the variable on to the guard, which puts it into the header."""
    text = '[mcp_servers.x]\nurl = "https://a/mcp"\nbearer_token_env_var = "TOKEN"\nhttp_headers = { K = "v" }\n'
    wrapped = behind(text, dialect=TOML).after
    entry = tomllib.loads(wrapped)["mcp_servers"]["x"]
    assert entry["env_vars"] == ["TOKEN"]
    assert entry["args"][-4:] == ["--header", "K: v", "--header", "Authorization: Bearer env:TOKEN"]
    assert tomllib.loads(unwrap(wrapped, None, dialect=TOML).after) == tomllib.loads(text)


# ── what is written ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_guard_is_given_a_mode_a_journal_and_a_lock(home: Path) -> None:
    Path("my.lock").touch()
    assert main(["wrap", "--client", "zed", "--yes", *FIXED, "--journal", "${workspaceFolder}/runs"]) == 0
    assert '"--journal", "${workspaceFolder}/runs"' in (home / ".config/zed/settings.json").read_text()
    options = ("--mode", "enforce", "--journal", "runs", "--lock", "my.lock")
    assert main(["wrap", "--client", "windsurf", "--server", "git", "--yes", *FIXED, *options]) == 0
    path = home / ".codeium/windsurf/mcp_config.json"
    here = str(Path.cwd())
    given = ["--mode", "enforce", "--journal", f"{here}/runs", "--lock", f"{here}/my.lock"]
    args = json.loads(path.read_text())["mcpServers"]["git"]["args"]
    assert args == ["guard", "--name", "git", *given, "--", "uvx", "mcp-server-git"]
    assert main(["wrap", "--client", "windsurf", "--yes", *FIXED, "--journal", "off", "--lock", "off"]) == 0
    args = json.loads(path.read_text())["mcpServers"]["git"]["args"]
    assert args[3:9] == ["--mode", "enforce", "--journal", "off", "--lock", "off"]
    assert main(["unwrap", "--client", "windsurf"]) == 0
    assert path.read_text() == next(sample for sample in KNOWN if sample.name == "windsurf").before


@rows("sample", KNOWN, ids=lambda sample: sample.name)
def test_payloads_are_recorded_until_the_servers_are_taken_out(
    home: Path, capsys: pytest.CaptureFixture[str], sample: Sample
) -> None:
    """Wrapped twice, then with another option: the setting stays, and the file comes back to the byte."""
    path, client = home / sample.path, ("--client", sample.name)
    assert main(["wrap", *client, "--yes", "--payloads", *FIXED]) == 0
    recorded = "assay wrap: messages are recorded, without the secrets that are recognized: assay console, "
    assert recorded in capsys.readouterr().err
    wrapped = path.read_bytes()
    dialect = dialect_of(str(path))
    count = len([each for each in dialect.servers(wrapped.decode()) if guarded_in(each)])
    assert wrapped.count(b'"--set", "journal.payloads=true"') == count > 0
    assert main(["wrap", *client, "--yes", "--payloads", *FIXED]) == 0
    assert path.read_bytes() == wrapped
    assert main(["wrap", *client, "--yes", *FIXED, "--mode", "enforce"]) == 0
    assert path.read_bytes().count(b'"--mode", "enforce", "--set", "journal.payloads=true"') == count
    assert "messages are recorded" not in capsys.readouterr().err
    assert main(["unwrap", *client]) == 0
    assert path.read_bytes() == sample.before.encode()


def test_payloads_in_another_journal_are_shown_by_its_directory(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["wrap", "--client", "cursor", "--yes", "--payloads", "--journal", str(home / "runs"), *FIXED]) == 0
    shown = f"that are recognized: assay journal show --payloads --server NAME {home}/runs\n"
    assert shown in capsys.readouterr().err
    args = json.loads((home / ".cursor/mcp.json").read_text())["mcpServers"]["local"]["args"]
    given = parser().parse_args(args)
    assert (given.set, given.journal) == (["journal.payloads=true"], str(home / "runs"))
    assert main(["wrap", "--client", "cursor", "--yes", "--payloads", "--journal", "off", *FIXED]) == 2
    assert "--payloads records messages in the journal, which --journal off turns off" in capsys.readouterr().err


def test_it_ends_with_where_the_findings_are(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Once for all files, and only if something was written that has a journal."""

    def lines(*options: str) -> list[str]:
        main(["wrap", "--client", "cursor", *FIXED, *options])
        return capsys.readouterr().err.splitlines()

    assert "to see" not in lines("--dry-run")[-1]
    shown = "assay wrap: to see what the guard finds: assay journal list{0}, assay journal show --server NAME{0}"
    assert lines("--yes")[-1] == shown.format("")
    assert "to see" not in lines("--yes")[-1]
    assert lines("--yes", "--journal", str(home / "my runs"))[-1] == shown.format(f" '{home}/my runs'")
    assert "to see" not in lines("--yes", "--journal", "off")[-1]


# ── throw-away programs ──────────────────────────────────────────────────────────────────────────────────────────────

UV, PIPX = ("uv's cache", "uv tool install"), ("the cache of pipx run", "pipx install")


@rows(
    "place, cache",
    [
        (".cache/uv/archive-v0/h3a45_mLIB4JJFjR/bin/assay", UV),
        ("uv/environments-v2/x-123/bin/assay", UV),
        (".cache/uv/builds-v0/.tmpAbC/bin/assay", UV),
        (".local/pipx/.cache/0123/bin/assay", PIPX),
        (".cache/pipx/0123/bin/assay", PIPX),
        ("Library/Caches/pipx/0123/bin/assay", PIPX),
        (".local/share/uv/tools/mcp-assay/bin/assay", None),
        (".local/pipx/venvs/mcp-assay/bin/assay", None),
        ("project/.venv/bin/assay", None),
        ("archive-v0-notes/bin/assay", None),
        (".cache/venv/bin/assay", None),
    ],
)
def test_a_path_in_a_cache_is_not_written(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    place: str,
    cache: tuple[str, str] | None,
) -> None:
    """Also through a link, and if it is named: once the cache is emptied, no server of the client starts."""
    program = put(home / place, "#!/bin/sh\n")
    program.chmod(0o755)
    (home / "assay").unlink(missing_ok=True)
    (home / "assay").symlink_to(program)
    before = contents(home)
    for argv, options in ((str(program), ()), (str(home / "assay"), ()), ("pytest", ("--program", str(program)))):
        monkeypatch.setattr(sys, "argv", [argv])
        capsys.readouterr()
        status = main(["wrap", "--client", "cursor", "--yes", *options])
        shown = capsys.readouterr()
        if cache is None:
            assert (status, PROGRAM.encode() in contents(home)["cursor"]) == (0, False)
            assert json.dumps(argv if not options else str(program)).encode() in contents(home)["cursor"]
        else:
            assert (status, shown.out, shown.err.count("\n")) == (2, "", 1)
            said = f"is in {cache[0]}, which may be emptied at any time; install assay first ({cache[1]} …)"
            assert said in shown.err
            assert "or give --program assay" in shown.err
            assert contents(home) == before
        main(["unwrap", "--client", "cursor"])
    assert main(["wrap", "--client", "cursor", "--yes", "--program", "assay"]) == 0
    assert main(["unwrap", "--client", "cursor"]) == 0


# ── the TOML of Codex ────────────────────────────────────────────────────────────────────────────────────────────────


@rows(
    ("text", "why"),
    [
        ('[mcp_servers.x]\ncommand = "b"\n[other]\n[mcp_servers.x.env]\nA = "b"\n', "not next to each other"),
        ('[mcp_servers]\nx.command = "b"\n', "not written as a table"),
        ('[[mcp_servers.x]]\ncommand = "b"\n', "not written as a table"),
        ('[mcp_servers]\nx = "b"\n', "not written as a table"),
        ('[mcp_servers.x]\nurl = "http://a/mcp"\nhttp_headers.A = "b"\n', "http_headers are written in a way"),
        (
            '[mcp_servers.x.http_headers]\nA = "b"\n[mcp_servers.x]\nurl = "http://a/mcp"\n',
            "http_headers are written in a way",
        ),
        ('[mcp_servers.x]\nurl = "http://a/mcp"\nbearer_token_env_var = "-"\n', "signs in"),
        ('[mcp_servers.x]\nurl = "http://a/mcp"\nbearer_token = "T"\n', "signs in"),
        (
            '[mcp_servers.x]\nurl = "http://a/"\nbearer_token_env_var = "T"\nhttp_headers = { authorization = "b" }\n',
            "signs in",
        ),
        ('[mcp_servers.x]\nurl = "http://a/mcp"\nenv_http_headers = { A = "T" }\n', "signs in"),
        ('[mcp_servers.x]\ncommand = "b"\nargs = "c"\n', "its args"),
        ("[mcp_servers.x.env]\n", "neither a command nor a url"),
    ],
)
def test_what_cannot_be_edited_is_left_alone(text: str, why: str) -> None:
    whole = toml(text)
    plan = behind(whole, dialect=TOML)
    assert [(left.server.name, why in left.note) for left in plan.left] == [("x", True)]
    assert [change.server.name for change in plan.changes] == ["fine"]
    before, after = tomllib.loads(whole), tomllib.loads(plan.after)
    assert before["mcp_servers"].pop("fine")
    assert after["mcp_servers"].pop("fine")
    assert before == after
    assert unwrap(plan.after, whole, dialect=TOML).after == whole
    with pytest.raises(ConfigError, match=r"^x: "):
        behind(whole, ["x"], dialect=TOML)


@rows(
    ("entry", "wrapped"),
    [
        ('[mcp_servers.x]\ncommand = "a" # c', '[mcp_servers.x]\ncommand = "P"\nargs = [N, "--", "a"] # c'),
        ("[mcp_servers.x]\ncommand='''a'''\nargs=[]", "[mcp_servers.x]\ncommand=\"P\"\nargs=[N, \"--\", '''a''']"),
        (
            '[mcp_servers.x]\ncommand = "a"\nargs = ["""\nb\n""", "c"]',
            '[mcp_servers.x]\ncommand = "P"\nargs = [N, "--", "a", """\nb\n""", "c"]',
        ),
        (
            '[ mcp_servers . "x" ]\n\tcommand = "a"\r\n\tenv.A = "b"',
            '[ mcp_servers . "x" ]\n\tcommand = "P"\n\targs = [N, "--", "a"]\r\n\tenv.A = "b"',
        ),
        (
            '[mcp_servers.x.env]\nA = "b"\n[mcp_servers.x]\ncommand = "a"\n[mcp_servers.x.t]\n',
            '[mcp_servers.x.env]\nA = "b"\n[mcp_servers.x]\ncommand = "P"\nargs = [N, "--", "a"]\n[mcp_servers.x.t]\n',
        ),
        (
            '[mcp_servers]\r\nx = { command = "a", args = [ "b" ], env = { KEY = "k" } }\r\n',
            '[mcp_servers]\r\nx = { command = "P", args = [ N, "--", "a", "b" ], env = { KEY = "k" } }\r\n',
        ),
        (
            'mcp_servers.x = { url = "http://[::1]/mcp", http_headers = { A = "b" } }',
            'mcp_servers.x = { command = "P", args = [N, "--target", "http://[::1]/mcp", "--header", "A: b"] }',
        ),
        (
            '[mcp_servers.x]\nurl = "http://[::1]"\n\n[mcp_servers.x.http_headers]\nA = ""\n[mcp_servers.x.y]',
            '[mcp_servers.x]\ncommand = "P"\nargs = [N, "--target", "http://[::1]", "--header", "A: "]\n[mcp_servers.x.y]',  # noqa: E501
        ),
    ],
)
def test_tables_of_every_shape_go_behind_the_guard_and_come_back(entry: str, wrapped: str) -> None:
    expected = wrapped.replace('"P"', f'"{PROGRAM}"').replace("N, ", '"guard", "--name", "x", ')
    plan = behind(entry, dialect=TOML)
    assert plan.after == expected
    assert unwrap(expected, entry, dialect=TOML).after == entry
    rebuilt = tomllib.loads(unwrap(expected, None, dialect=TOML).after)["mcp_servers"]["x"]
    assert rebuilt == {**({"args": []} if "command" in rebuilt else {}), **tomllib.loads(entry)["mcp_servers"]["x"]}
