"""`assay guard --target` as people start it: what it takes, what it tells, and what it never does."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from stdio_to_url import GUARD, enforcing, modern, remotely
from url_server import SECONDS, elsewhere

from kit import journals

PROXIES = {"ASSAY_UPSTREAM_PROXIES": "true", "NO_PROXY": "", "no_proxy": ""}

TOKEN = "tok-4711-secret"  # noqa: S105 - the test is that nobody tells it


def guard(directory: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*GUARD, *options],
        cwd=directory,
        env={**os.environ, **variables},
        input="",
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        pytest.param((), "assay guard: give a COMMAND, --target URL or --config FILE.json\n", id="neither"),
        pytest.param(
            ("--target", "http://a", "--", "b"), "assay guard: give only one of a COMMAND and --target URL\n", id="both"
        ),
        pytest.param(("--target", "nowhere"), "it begins with neither http:// nor https://", id="no-scheme"),
        pytest.param(("--target", "http://"), "it names no host", id="no-host"),
        pytest.param(("--target", "http://[::1"), "it is no URL", id="no-url"),
        pytest.param(("--target", "http://a:b"), "it is no URL", id="no-port"),
        pytest.param(("--target", "http://a", "--header", "x"), "--header: expected 'Name: value'", id="no-header"),
        pytest.param(("--target", "http://a", "--header", "X: env:NO_SUCH"), "NO_SUCH is not set", id="no-variable"),
    ],
)
def test_what_cannot_be_run_is_said_and_is_status_2(tmp_path: Path, options: tuple[str, ...], words: str) -> None:
    """docs/guard-remote.md."""
    done = guard(tmp_path, *options)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_password_in_a_url_is_not_told(tmp_path: Path) -> None:
    """Ours."""
    done = guard(tmp_path, "--target", f"http://me:{TOKEN}@books.example:x/mcp?key={TOKEN}")
    assert done.returncode == 2
    assert TOKEN not in done.stderr


@pytest.mark.parametrize(
    ("url", "warned"),
    [
        ("http://192.0.2.1:9/mcp", True),
        ("http://books.example/mcp", True),
        ("HTTP://books.example/mcp", True),
        ("https://books.example/mcp", False),
        ("http://127.0.0.1:9/mcp", False),
        ("http://[::1]:9/mcp", False),
        ("http://localhost:9/mcp", False),
    ],
)
def test_a_connection_that_others_can_read_is_warned_of(tmp_path: Path, url: str, warned: bool) -> None:
    """Ours."""
    done = guard(tmp_path, "--target", url, "--quiet")
    assert done.returncode == 0
    assert ("has no encryption" in done.stderr) is warned


def test_a_proxy_of_the_environment_is_used_for_other_machines(tmp_path: Path) -> None:
    """As HTTP clients do."""
    with (
        elsewhere() as proxy,
        remotely(
            tmp_path, "http://books.invalid/mcp", **PROXIES, HTTP_PROXY=proxy.url, http_proxy=proxy.url
        ) as guarded,
    ):
        assert guarded.ask(modern(1, "tools/list"))["result"]["tools"]
        assert proxy.heard("tools/list")[0].headers["host"] == "books.invalid"


def test_a_proxy_of_the_environment_is_not_used_unless_a_setting_asks(tmp_path: Path) -> None:
    """Ours: a variable of the shell does not decide who reads the messages."""
    with (
        elsewhere() as proxy,
        remotely(tmp_path, "http://books.invalid/mcp", HTTP_PROXY=proxy.url, http_proxy=proxy.url) as guarded,
    ):
        assert "could not be resolved" in guarded.ask(modern(1, "tools/list"))["error"]["message"]
        assert proxy.order() == []


def test_a_proxy_is_not_used_for_this_machine(tmp_path: Path) -> None:
    """Ours: nobody else is to see what stays here."""
    with (
        elsewhere() as server,
        elsewhere() as proxy,
        remotely(tmp_path, server.url, **PROXIES, HTTP_PROXY=proxy.url, http_proxy=proxy.url) as guarded,
    ):
        assert guarded.ask(modern(1, "tools/list"))["result"]["tools"]
        assert proxy.order() == []


@pytest.mark.parametrize("proxy", [f"socks9://me:{TOKEN}@a", f"http://me:{TOKEN}@a:b"])
def test_a_proxy_that_cannot_be_used_is_status_2(tmp_path: Path, proxy: str) -> None:
    """Ours: and its password is not told."""
    done = guard(tmp_path, "--target", "https://books.invalid/mcp", ALL_PROXY=proxy, **PROXIES)
    assert done.returncode == 2
    assert "the proxy that HTTPS_PROXY, HTTP_PROXY or ALL_PROXY names cannot be used" in done.stderr
    assert TOKEN not in done.stderr
    assert "Traceback" not in done.stderr


def test_headers_reach_the_server_with_everything(tmp_path: Path) -> None:
    """Ours: from the command line, and from the environment."""
    options = ("--header", "Authorization: Bearer env:BOOKS_TOKEN", "--header", "X-Tenant: süd")
    with elsewhere() as server:
        with enforcing(tmp_path, server.url, *options, BOOKS_TOKEN=TOKEN) as guarded:
            guarded.open()
            server.heard("GET")
            assert guarded.rest() == []
            assert guarded.ended() == 0
        assert server.heard("DELETE")
        for each in server.heard():
            assert each.headers["authorization"] == f"Bearer {TOKEN}"
            assert each.headers["x-tenant"] == "süd"


def test_secrets_are_told_to_the_server_alone(tmp_path: Path) -> None:
    """Ours: neither people nor the journal see them, whatever fails."""
    options = ("--header", f"X-Key: {TOKEN}", "--journal", "records", "--set", "journal.payloads=true")
    url_of = "http://me:{token}@127.0.0.1:{port}/mcp?key={token}"
    with elsewhere({"prompts/list": lambda line, _: line.reply(401, b"who?")}) as server:
        url = url_of.format(token=TOKEN, port=server.url.split(":")[2].split("/")[0])
        with remotely(tmp_path, url, *options) as guarded:
            assert guarded.ask(modern(1, "tools/list"))["result"]
            assert TOKEN not in json.dumps(guarded.ask(modern(2, "prompts/list")))
            assert guarded.rest() == []
            assert guarded.ended() == 0
        assert TOKEN not in guarded.log
        assert "it answered 401" in guarded.log
        (journal,) = [each for each in (tmp_path / "records").iterdir() if not each.is_symlink()]
        assert len(journals.records(journal)) == 4
        assert TOKEN not in journal.read_text(encoding="utf-8")
        assert all(each.headers["x-key"] == TOKEN for each in server.heard())


def test_what_is_answered_is_on_record(tmp_path: Path) -> None:
    """Specs/000: one line for every message, and for an answer that never came."""
    scripts = {"prompts/list": lambda line, _: line.reset()}
    with elsewhere(scripts) as server, remotely(tmp_path, server.url, "--journal", "records") as guarded:
        guarded.ask(modern(1, "tools/list"))
        guarded.ask(modern(2, "prompts/list"))
        (journal,) = [each for each in (tmp_path / "records").iterdir() if not each.is_symlink()]
        rows = journals.records(journal)
        assert [each["method"] for each in rows] == ["tools/list", "tools/list", "prompts/list", "prompts/list"]
        assert rows[0]["requestId"] == rows[1]["requestId"]
        assert rows[3]["error"]["code"] == "UPSTREAM_FAILURE"


def test_an_interrupted_guard_tells_its_summary(tmp_path: Path) -> None:
    """As with a child process."""
    with elsewhere() as server, remotely(tmp_path, server.url) as guarded:
        guarded.ask(modern(1, "tools/list"))
        guarded.process.terminate()
        assert guarded.ended() == 0
        assert "] 1 message from the client, 1 from the server, 0 findings" in guarded.log


def test_a_server_at_a_url_is_introduced_by_its_host(tmp_path: Path) -> None:
    with elsewhere() as server, remotely(tmp_path, server.url + "?key=s3cret", "--journal", "off") as guard:
        assert guard.rest() == []
        assert guard.ended() == 0
        log = guard.log
    assert f"assay: guarding {server.url.split('/')[2]} (audit), no journal\n" in log
    assert "s3cret" not in log
