"""What a guard over HTTP shows to the operator: nothing that a server can forge, and no secrets of a URL."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from assay.edges.upstream_errors import shown_url
from assay.spec.revisions import LATEST
from kit.guard_process import liar
from kit.http_client import SECONDS, call, modern
from kit.scripted_http import GUARD, Peer, Received, guarding, listening, lying

CALL = call(7, "search", {"words": "sea"}, LATEST)
FORGED = "\x1b]0;gotcha\x07assay: all is well\tno?\n"


def test_the_url_of_a_server_is_shown_without_its_query(tmp_path: Path) -> None:
    with lying() as server, guarding(tmp_path, f"{server.url}?key=hunter2", "--mode", "enforce") as guard:
        shown = guard.log.so_far()
    assert f"assay: guarding {server.url.split('/')[2]} (enforce), no journal, at http://127.0.0.1:" in shown
    assert "hunter2" not in shown


@pytest.mark.parametrize(
    "url",
    [
        "http://me:hunter2@127.0.0.1:9/mcp",
        "http://me:hun/ter2@127.0.0.1:9/mcp",
        "http://me:hun?ter2@127.0.0.1/mcp",
        "me:hunter2@127.0.0.1/mcp",
        "ftp://me:hunter2@127.0.0.1/mcp?key=hunter2",
    ],
)
@pytest.mark.parametrize("listens", [True, False])
def test_a_url_that_is_no_good_is_told_without_its_password(tmp_path: Path, url: str, listens: bool) -> None:
    command = [*GUARD, "--target", url, *(["--listen", "127.0.0.1:0"] if listens else [])]
    done = subprocess.run(command, cwd=tmp_path, input=b"", capture_output=True, timeout=SECONDS, check=False)
    assert b"hun" not in done.stdout + done.stderr
    if listens or "ftp" in url:
        assert done.returncode == 2
        assert b"--target" in done.stderr


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://me:pw@books.example:8/mcp?k=1#f", "https://books.example:8/mcp"),
        ("https://books.example/@scope/mcp", "https://books.example/@scope/mcp"),
        ("/mcp?k=1", "/mcp"),
        ("https://[::1", ""),
    ],
)
def test_of_a_url_only_where_it_leads_is_shown(url: str, shown: str) -> None:
    assert shown_url(url) == shown


def test_where_a_server_redirects_to_is_told_once_and_without_secrets(tmp_path: Path) -> None:
    tokens = iter(range(100))

    def redirects(_: Received, peer: Peer) -> None:
        peer.head(307, location=f"https://me:hunter2@books.example/mcp?token=hunter2{next(tokens)}")

    with lying() as server, guarding(tmp_path, server.url, "--mode", "enforce") as guard:
        server.script = redirects
        for _ in range(3):
            guard.post(CALL, modern(CALL))
        guard.log.line("assay: the server redirects to https://books.example/mcp,")
        log = guard.log.so_far()
    assert log.count("redirects to") == 1
    assert "hunter2" not in log


def test_the_stderr_of_a_child_has_its_name_before_each_line(tmp_path: Path) -> None:
    """It cannot pass for a line of the guard, nor do anything to a terminal; its last line may have no end."""
    on = {"tools/call:search": [["log", FORGED], ["log", "half a line"], ["exit", 1]]}
    config = {"mcpServers": {"books": {"command": sys.executable, "args": liar(on=on)[1:]}}}
    (tmp_path / "mcp.json").write_text(json.dumps(config))
    with listening(tmp_path, "--config", str(tmp_path / "mcp.json"), "--mode", "enforce") as guard:
        guard.ask("POST", "/books/mcp", json.dumps(CALL).encode(), modern(CALL))
        assert guard.log.line("[books] ") == "·]0;gotcha·assay: all is well    no?"
        assert guard.log.line("[books] half") == " a line"
        assert "\x1b" not in guard.log.so_far()


def test_a_flood_on_the_stderr_of_a_child_is_shown_in_lines(tmp_path: Path) -> None:
    """A line without an end is not kept in memory until it has one."""
    on = {"tools/call:search": [*[["log", "x" * 1000]] * 100, ["log", "\nend\n"], ["good"]]}
    with listening(tmp_path, "--mode", "enforce", "--", *liar(on=on)) as guard:
        guard.post(CALL, modern(CALL))
        guard.log.line("[lying_server] end")
        lines = [line for line in guard.log.so_far().splitlines() if line.startswith("[lying_server] x")]
    assert sum(line.count("x") for line in lines) == 100_000
    assert max(map(len, lines)) < 100_000
