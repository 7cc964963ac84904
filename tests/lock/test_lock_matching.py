"""Which entry of a lock a server is held to, and which commands start the same server."""

from pathlib import Path
from typing import Any

import pytest

from assay.judge.server_commands import same_server
from assay.lock.lock_file import FILE, LockError, write
from assay.lock.locked import Locked
from assay.lock.matching import chosen, notices
from kit.locking import FIND, assay_here
from kit.rows import rows

TOOLS = {"tools": {"find_books": (FIND,)}}
OTHER = {"tools": {"burn_book": ({"name": "burn_book", "inputSchema": {"type": "object"}},)}}


def locked(*command: str, **members: Any) -> Locked:
    """A server that was locked with *command*."""
    return Locked(**{"command": command, "revision": "2025-11-25", "listed": TOOLS, **members})


# ── commands ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@rows(
    ("one", "other"),
    [
        ("mcp-server-filesystem /home/jane", "mcp-server-filesystem /tmp /srv"),
        ("npx -y @scope/server-files@1.2 /a", "/usr/bin/npx @scope/server-files /b"),
        ("uvx mcp-server-time", "uvx mcp-server-time==2026.1 --local-timezone UTC"),
        ("python -m weather", "/home/jane/.venv/bin/python3.12 -u -m weather --verbose"),
        ("node dist/index.js", "node /home/jane/weather/dist/index.js --verbose"),
        ("docker run -i --rm mcp/github", "docker run -i -v /a:/b mcp/github:latest"),
        ("npx mcp-remote https://a.example/mcp --port 1", "npx -y mcp-remote https://a.example/mcp --port 2"),
        ("assay serve --schemas a", "/venv/bin/assay serve"),
        ("java -cp a:b com.x.Main", "/usr/bin/java -Xmx1g -cp c com.x.Main x"),
        ("node --api-key [redacted] a.js", "node a.js /tmp"),
        ("npx --unheard-of server-a /tmp", "npx --unheard-of server-a /srv"),
        ("docker run -i --rm -e TOKEN mcp/github stdio", "docker run -it mcp/github:2 http"),
    ],
)
def test_commands_with_other_arguments_start_the_same_server(one: str, other: str) -> None:
    assert same_server(one.split(), other.split())
    assert same_server(other.split(), one.split())


@rows(
    ("one", "other"),
    [
        ("mcp-server-filesystem /tmp", "mcp-server-git /tmp"),
        ("npx @scope/server-files", "npx @evil/server-files"),
        ("npx server-files", "uvx server-files"),
        ("python -m weather", "python weather.py"),
        ("python /home/jane/a/server.py", "python /home/jane/b/server.py"),
        ("python -c print(1)", "python -c print(2)"),
        ("npx mcp-remote https://a.example/mcp", "npx mcp-remote https://b.example/mcp"),
        ("sh -c a", "sh -c b"),
        ("npm start", "npm --prefix /b start"),
        ("uv run --directory /a server.py", "uv run --directory /b server.py"),
        ("assay serve", "assay demo"),
        ("npx", "npx"),
        ("docker run --memory 512m imgA", "docker run --memory 512m imgB"),
        ("docker run -e TOKEN -u jane imgA stdio", "docker run -e TOKEN -u jane imgB stdio"),
        ("java -cp a:b com.x.Main", "java -cp a:b com.y.Main"),
        ("node --max-old-space-size 512 a.js", "node --max-old-space-size 512 b.js"),
        ("npx --unheard-of server-a /tmp", "npx --unheard-of server-b /tmp"),
        ("npx [redacted] /tmp", "npx [redacted] /tmp"),
    ],
)
def test_these_commands_may_start_different_servers(one: str, other: str) -> None:
    assert not same_server(one.split(), other.split())
    assert not same_server(other.split(), one.split())


# ── entries ──────────────────────────────────────────────────────────────────────────────────────────────────────────

ONE = {"a": locked("run", "a")}
TWO = {**ONE, "b": locked(url="http://127.0.0.1:1/mcp")}
FILES = {"fs": locked("files", "/home/jane"), "git": locked("git-server", "/home/jane")}
UV = {"w": locked("uv", "run", "--directory", "/a", "s.py")}
SECRET = {"s": locked("serve", "--token", "[redacted]", "--port", "1")}


@rows(
    ("lock", "wish", "reached", "name"),
    [
        pytest.param(ONE, "auto", {"command": ("run", "a")}, "a", id="the-same-command"),
        pytest.param(ONE, "auto", {"command": ("walk", "a")}, None, id="another-program"),
        pytest.param(TWO, "auto", {"url": "http://127.0.0.1:1/mcp"}, "b", id="the-same-url"),
        pytest.param(TWO, "auto", {"url": "http://127.0.0.1:1/other"}, None, id="another-url"),
        pytest.param(ONE, "off", {"command": ("run", "a")}, None, id="off"),
        pytest.param(ONE, FILE, {"command": ("walk", "b")}, "a", id="a-file-of-one-server-that-was-asked-for"),
        pytest.param(TWO, FILE, {"command": ("run", "a")}, "a", id="one-of-two-that-was-asked-for"),
        pytest.param(FILES, "auto", {"command": ("files", "/srv")}, "fs", id="other-arguments"),
        pytest.param(FILES, "auto", {"command": ("/bin/files", "/home/jane")}, "fs", id="an-absolute-path"),
        pytest.param(FILES, FILE, {"command": ("/bin/files", "/srv")}, "fs", id="both-in-a-file-that-was-asked-for"),
        pytest.param(FILES, "auto", {"command": ("x",), "name": "git"}, "git", id="by-name-whatever-the-command"),
        pytest.param(FILES, "auto", {"url": "http://h/", "name": "git"}, "git", id="by-name-at-a-url"),
        pytest.param(FILES, "auto", {"command": ("files", "/home/jane"), "name": "git"}, "git", id="a-name-wins"),
        pytest.param(FILES, "auto", {"command": ("files", "/srv"), "name": "mine"}, "fs", id="an-unknown-name"),
        pytest.param(FILES, "auto", {"command": ("x",), "name": "mine"}, None, id="neither-name-nor-command"),
        (SECRET, "auto", {"command": ("serve", "--token", "hunter2", "--port", "1")}, "s"),
        pytest.param(SECRET, "auto", {"command": ("serve", "--token", "x", "--port", "2")}, "s", id="a-secret-loosely"),
        ({"x": locked("files", "/a"), "y": locked("files", "/b")}, "auto", {"command": ("files", "/c")}, "x"),
        pytest.param(TWO, "auto", {"url": "HTTP://127.0.0.1:1/mcp/?x=1"}, "b", id="the-same-url-in-other-words"),
        (UV, "auto", {"command": ("uv", "run", "--directory", "/b", "s.py")}, None),
        (UV, FILE, {"command": ("uv", "run", "--directory", "/b", "s.py"), "enforcing": True}, "w"),
        (UV, "auto", {"command": ("npx", "other"), "enforcing": True}, None),
        pytest.param({**ONE, "c": ONE["a"]}, "auto", {"command": ("run", "a")}, "a", id="two-that-are-the-same"),
    ],
)
def test_a_lock_is_that_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lock: Any, wish: str, reached: Any, name: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    write(FILE, lock)
    found = chosen(wish, **reached)
    assert (None if found is None else found.name) == name


@rows(
    ("lock", "wish", "reached", "reason"),
    [
        (TWO, FILE, {"command": ("walk",)},
         r"assay\.lock: no entry for this server; add one with assay lock -- COMMAND, or choose .* --name \(a, b\)"),
        (ONE, FILE, {"command": ("walk",), "name": "mine"}, "no entry for mine; .* --name .a."),
        ({**ONE, "c": locked("run", "a", listed=OTHER)}, "auto", {"command": ("run", "a")},
         "a and c are both entries for this server; choose one with --name"),
        (UV, "auto", {"command": ("uv", "run", "--directory", "/b", "s.py"), "enforcing": True},
         r"assay\.lock: w may be the entry for this server, but the commands differ; choose it with --name NAME"),
        ({"x": locked("python", "/a/files.py")}, "auto", {"command": ("python", "/b/files.py"), "enforcing": True},
         "x may be the entry for this server"),
    ],
)  # fmt: skip
def test_a_lock_that_was_asked_for_and_is_not_there_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lock: Any, wish: str, reached: Any, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(FILE, lock)
    with pytest.raises(LockError, match=reason):
        chosen(wish, **reached)


def test_the_operator_hears_which_entry_applies_unless_it_is_the_obvious_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(FILE, {**FILES, **SECRET})

    def lines(name: str | None, *command: str) -> list[str]:
        return list(notices(chosen("auto", name=name, command=command), name=name, command=command, url=""))

    assert lines(None, "files", "/home/jane") == []
    assert lines("fs", "files", "/srv") == []
    assert lines(None, "files", "/srv") == [
        "lock entry fs applies; it was locked with other arguments: files /home/jane"
    ]
    assert lines("fs", "x") == ["lock entry fs applies by its name; it was locked for files /home/jane"]
    assert lines("s", "x") == ["lock entry s applies by its name; it was locked for serve --token [redacted] --port 1"]
    [line] = lines(None, "x")
    assert line.startswith("assay.lock has no entry for this command; the lock is not applied; add one with assay lock")
    assert line.endswith(" -- COMMAND, or choose an entry with --name (fs, git, s)")


# ── the guard ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_lock_that_cannot_be_used_stops_the_guard(tmp_path: Path) -> None:
    (tmp_path / "bad.lock").write_text("{")
    (tmp_path / "new.lock").write_text('{"format": 99}')
    (tmp_path / "link.lock").symlink_to(tmp_path / "gone")
    write(tmp_path / "two.lock", {"x": locked("files", "/a"), "y": locked("files", "/b", listed=OTHER)})
    for options, reason in (
        (["--lock", "nowhere.lock"], "nowhere.lock: no such file; create one with assay lock"),
        (["--set", "guard.lock=nowhere.lock"], "nowhere.lock: no such file"),
        (["--lock", "bad.lock"], "bad.lock: not a lock"),
        (["--lock", "new.lock"], "new.lock: made by a newer Assay"),
        (["--lock", "two.lock"], "x and y are both entries for this server; choose one with --name NAME"),
    ):
        done = assay_here(tmp_path, "guard", *options, "--", "files", "/c")
        assert (done.returncode, done.stdout) == (2, "")
        assert reason in done.stderr
    for name, reason in (("link.lock", "it is a link to a file that does not exist"), ("bad.lock", "not a lock")):
        (tmp_path / name).rename(tmp_path / "assay.lock")
        done = assay_here(tmp_path, "guard", "--", "cat")
        assert (done.returncode, done.stdout) == (2, "")
        assert f"assay.lock: {reason}" in done.stderr
        assert "--lock off" in done.stderr
