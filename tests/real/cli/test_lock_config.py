"""All servers of a client's file in one lock, entries that are taken out of it, and headers for a server at a URL."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.cli.main import main
from assay.lock.lock_file import read
from kit.locking import ALL, FIND, LEND, Strange, answering, offer

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """`assay lock` with arguments: its status, output and messages."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")

    def lock(*arguments: str) -> tuple[int, str, str]:
        status = main(["lock", *arguments])
        return status, *capsys.readouterr()

    return lock


def client_file(directory: Path, **servers: Any) -> str:
    """A client's file that names *servers*."""
    path = directory / "mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    return str(path)


def started(directory: Path, *words: str, **members: Any) -> dict[str, Any]:
    """An entry of a client's file for our server."""
    program, *rest = offer(directory)
    return {"command": program, "args": [*rest, *words], **members}


def test_all_servers_of_a_client_are_locked_under_their_names(run: Run, tmp_path: Path) -> None:
    file = client_file(tmp_path, books=started(tmp_path), more=started(tmp_path, "--verbose"))
    status, out, log = run("--config", file)
    assert (status, log) == (0, "")
    assert [line.split(": ")[:2] for line in out.splitlines()] == [["assay.lock", "books"], ["assay.lock", "more"]]
    assert read("assay.lock").keys() == {"books", "more"}
    assert run("--check", "--config", file) == (0, "assay.lock is up to date\n", "")


def test_a_check_and_an_update_ask_the_servers_of_the_file(run: Run, tmp_path: Path) -> None:
    file = client_file(tmp_path, books=started(tmp_path))
    run("--config", file)
    offer(tmp_path, **{**ALL, "tools": [FIND]})
    status, out, _ = run("--check", "--config", file)
    assert status == 1
    assert "- tool lend_book: removed" in out
    assert run("--update", "--config", file)[0] == 0
    assert run("--check", "--config", file)[0] == 0


def test_one_server_of_a_client_can_be_chosen(run: Run, tmp_path: Path) -> None:
    file = client_file(tmp_path, books=started(tmp_path), other={"command": "no-such-command"})
    assert run("--config", file, "--name", "books")[0] == 0
    assert read("assay.lock").keys() == {"books"}
    status, _, log = run("--config", file, "--name", "files")
    assert status == 2
    assert "no server is named files; it has books, other" in log


def test_a_server_that_fails_does_not_keep_the_others_from_being_locked(run: Run, tmp_path: Path) -> None:
    asks = started(tmp_path, "${input:key}")
    file = client_file(tmp_path, asks=asks, gone={"command": "no-such-command"}, books=started(tmp_path))
    status, _, log = run("--config", file)
    assert status == 2
    assert "asks: it needs an input" in log
    assert "gone: cannot start no-such-command" in log
    assert read("assay.lock").keys() == {"books"}


def test_a_server_that_the_client_does_not_use_is_left_out(run: Run, tmp_path: Path) -> None:
    off = {"command": "no-such-command", "disabled": True}
    file = client_file(tmp_path, off=off, books=started(tmp_path))
    assert run("--config", file)[0] == 0
    assert read("assay.lock").keys() == {"books"}
    assert "off: it is disabled" in run("--config", file, "--name", "off")[2]


def test_variables_are_used_and_their_values_are_not_kept(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A secret need not look like one."""
    monkeypatch.setenv("BOOKS_PHRASE", "correct horse")
    entry = started(tmp_path, "--phrase", "${BOOKS_PHRASE}", "${env:HOME}", env={"PIN": "x${BOOKS_PHRASE}"})
    file = client_file(tmp_path, books=entry)
    assert run("--config", file)[0] == 0
    assert "correct horse" not in Path("assay.lock").read_text()
    assert read("assay.lock")["books"].command[-3:] == ("--phrase", "[redacted]", os.environ["HOME"])
    assert run("--check", "--config", file)[0] == 0
    status, _, log = run("--check", "--yes")
    assert status == 2
    assert "give --name books -- COMMAND, or --config FILE.json" in log


def test_a_server_gets_the_environment_and_folder_of_its_entry(run: Run, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    seen = tmp_path / "there" / "seen"
    (tmp_path / "there" / "offer.json").write_text(json.dumps({"tools": [LEND], "record": "seen"}))
    file = client_file(tmp_path, books=started(tmp_path, cwd=str(tmp_path / "there")))
    assert run("--config", file)[0] == 0
    assert list(read("assay.lock")["books"].listed["tools"]) == ["lend_book"]
    assert seen.exists()


@pytest.mark.parametrize(
    ("content", "reason"), [("{", "mcp.json"), ('{"mcpServers":{}}', "no servers in it")], ids=["damaged", "empty"]
)
def test_a_client_file_without_servers_is_an_error(run: Run, tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "mcp.json").write_text(content)
    status, out, log = run("--config", "mcp.json")
    assert (status, out) == (2, "")
    assert reason in log


def test_entries_are_removed(run: Run, tmp_path: Path) -> None:
    file = client_file(tmp_path, a=started(tmp_path), b=started(tmp_path), c=started(tmp_path))
    run("--config", file)
    before = read("assay.lock")["b"]
    assert run("--remove", "a", "--remove", "c") == (0, "assay.lock: removed a\nassay.lock: removed c\n", "")
    assert read("assay.lock") == {"b": before}
    status, _, log = run("--remove", "x")
    assert status == 2
    assert "no entry is named x; it has b" in log
    assert read("assay.lock").keys() == {"b"}


class Doorkeeper(Strange):
    """A server over HTTP that lets nobody in without a token."""

    def do_POST(self) -> None:  # noqa: N802 - http.server calls it by this name
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        known = self.headers.get_all("authorization") == ["Bearer hunter2"]
        itself = {"name": "far", "version": "1"}
        opening = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": itself}
        results = {"initialize": opening, "tools/list": {"tools": [FIND]}}
        unknown = {"error": {"code": -32601, "message": "Method not found"}}
        method = message.get("method")
        answer = {"result": results[method]} if method in results else unknown
        body = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), **answer}).encode()
        self.send_response(401 if not known else 200 if "id" in message else 202)
        self.send_header("content-type", "application/json" if "id" in message else "text/plain")
        self.send_header("content-length", str(len(body) if "id" in message else 0))
        self.end_headers()
        self.wfile.write(body if "id" in message else b"")


def test_a_server_with_a_token_is_locked_without_it(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAR_TOKEN", "hunter2")
    with answering(Doorkeeper) as url:
        status, _, log = run("--target", url)
        assert status == 2
        assert "HTTP 401: the server rejects this client; give a token with --header" in log
        assert run("--target", url, "--header", "Authorization: Bearer env:FAR_TOKEN")[0] == 0
        entry = {"url": url, "headers": {"Authorization": "Bearer ${FAR_TOKEN}"}}
        assert run("--config", client_file(tmp_path, away=entry))[0] == 0
    assert read("assay.lock").keys() == {"far", "away"}
    assert "hunter2" not in Path("assay.lock").read_text()


def test_settings_are_still_read_from_a_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "wrong.toml").write_text("[guard]\nframe_bytes = 0\n")
    status, out, log = run("--config", "wrong.toml", "--", *offer(tmp_path))
    assert (status, out) == (2, "")
    assert "frame_bytes" in log
