"""Real servers at a URL, behind the guard: the same answers as without it, and nothing to be said of them."""

import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from stdio_to_url import GUARD, INITIALIZE, INITIALIZED, modern, remotely, request
from url_server import SECONDS

from assay.spec.revisions import LATEST, REVISIONS
from kit import journals
from kit.places import ROOT

CATALOGUE = ROOT / "examples" / "catalogue"
SDK = ROOT / ".venvs" / "sdk"
CLIENT = ROOT / "tests" / "clients" / "python_client.py"
FIXTURE = ROOT / "tests" / "conformance" / "fixture_server.py"
ASSETS = (
    *(sys.executable, "-m", "assay", "serve", "--http", "127.0.0.1:0", "--journal", "off", "--deterministic"),
    *("--schemas", str(CATALOGUE / "jsonschema"), "--examples", str(CATALOGUE / "examples")),
)


@contextmanager
def serving(directory: Path, command: Sequence[str]) -> Iterator[str]:
    """A server, which says on stderr where it is: the URL."""
    with subprocess.Popen(
        command,
        cwd=directory,
        env={**os.environ, "MCP_READY_FILE": str(directory / "ready")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        try:
            assert process.stderr is not None
            said: re.Match[str] | None = None
            while said is None:
                assert select.select([process.stderr], [], [], SECONDS)[0], "the server does not start"
                line = process.stderr.readline()
                assert line, "the server has ended"
                said = re.search(r"url=(\S+)", line)
            yield said[1]
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=SECONDS)


CALLS = [
    ("list_schemas", {}),
    ("get_schema", {"name": "tone"}),
    ("get_schema", {"name": 7}),
    ("diff_assets", {"base": {"a": 1}, "new": {"é": 12345678901234567890}}),
]


def asked(revision: str) -> list[Any]:
    """Some of everything that the asset server can be asked."""
    plain: list[tuple[str, dict[str, Any]]] = [
        ("tools/list", {}),
        ("resources/list", {}),
        ("resources/read", {"uri": "resource://schemas/tone"}),
    ]
    plain += [("tools/call", {"name": name, "arguments": arguments}) for name, arguments in CALLS]
    if revision == LATEST:
        return [modern(ident, method, **params) for ident, (method, params) in enumerate(plain)]
    return [request(ident, method, params) for ident, (method, params) in enumerate(plain)]


@pytest.mark.parametrize("mode", ["audit", "enforce"])
@pytest.mark.parametrize("revision", REVISIONS)
def test_the_asset_server_answers_as_it_does_over_standard_streams(tmp_path: Path, revision: str, mode: str) -> None:
    """The same server, reached in two ways: over HTTP behind the guard, and as a process without it."""
    opening: list[Any] = []
    if revision != LATEST:
        params = {**INITIALIZE["params"], "protocolVersion": revision}
        opening = [{**INITIALIZE, "params": params}, INITIALIZED]
    said = [*opening, *asked(revision)]
    frames = b"".join(json.dumps(each).encode() + b"\n" for each in said)
    direct = subprocess.run(
        [each for each in ASSETS if each not in ("--http", "127.0.0.1:0")],
        cwd=tmp_path,
        env={**os.environ, "MCP_READY_FILE": str(tmp_path / "ready")},
        input=frames,
        capture_output=True,
        timeout=SECONDS,
        check=True,
    )
    expected = {_ident(each): each for each in direct.stdout.splitlines()}
    with serving(tmp_path, ASSETS) as url, remotely(tmp_path, url, "--mode", mode) as guard:
        guard.say(frames)
        got = [guard.next() for _ in expected]
        assert guard.rest() == []
        assert guard.ended() == 0
    assert len(got) == len(asked(revision)) + bool(opening)
    refused = _ident(direct.stdout.splitlines()[-2])
    for line in got:
        if mode == "enforce" and _ident(line) == refused:
            # The guard refuses bad arguments itself, once it knows the tool; in its own words.
            continue
        assert _without_ids(line) == _without_ids(expected[_ident(line)])


def test_a_server_that_was_down_is_found_again(tmp_path: Path) -> None:
    """Ours: one answer for each request, before, meanwhile and after; the client begins nothing anew."""
    listing = {"name": "list_schemas", "arguments": {}}
    with ExitStack() as stack:
        with serving(tmp_path, ASSETS) as url:
            guard = stack.enter_context(remotely(tmp_path, url, "--mode", "enforce"))
            guard.open()
            assert guard.ask(request(1, "tools/call", listing))["result"]["structuredContent"]["data"]["ok"]
        address = url.removeprefix("http://").removesuffix("/mcp")
        down = guard.ask(request(2, "tools/call", listing))["error"]
        assert down["code"] == -31011
        assert down["message"] == f"No answer came: cannot connect to {address}: Connection refused"
        with serving(tmp_path, [each.replace("127.0.0.1:0", address) for each in ASSETS]):
            assert guard.ask(request(3, "tools/call", listing))["result"]["structuredContent"]["data"]["ok"]
            assert guard.rest() == []
            assert guard.ended() == 0


def _ident(frame: bytes) -> Any:
    return json.loads(frame)["id"]


def _without_ids(frame: bytes) -> bytes:
    """Without what differs from one answer to the next."""
    return re.sub(rb'((?:request_id|duration_ms)\\?":(?:\\?")?)[0-9a-f.-]+', rb"\1", frame)


# ── the official SDK ─────────────────────────────────────────────────────────────────────────────────────────────────

PLAN: dict[str, Any] = {
    "calls": [
        {"name": name, "arguments": {}}
        for name in (
            *("test_simple_text", "test_image_content", "test_multiple_content_types", "test_error_handling"),
            *("test_tool_with_progress", "no_such_tool"),
        )
    ],
    "reads": ["test://template/7/data", "test://nowhere"],
    "gets": [
        {"name": "test_simple_prompt", "arguments": {}},
        {"name": "test_prompt_with_arguments", "arguments": {"arg1": "a", "arg2": "b"}},
    ],
    "completions": [
        {
            "ref": {"type": "ref/prompt", "name": "test_prompt_with_arguments"},
            "argument": {"name": "arg1", "value": ""},
        }
    ],
}


def carried_out(directory: Path, plan: Mapping[str, Any]) -> Any:
    """What the official client makes of *plan*."""
    done = subprocess.run(
        [str(SDK / "bin" / "python"), str(CLIENT)],
        cwd=directory,
        input=json.dumps(plan),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("mode", ["audit", "enforce"])
@pytest.mark.parametrize("handshake", [True, False], ids=["handshake", "stateless"])
def test_the_official_client_finds_the_official_server_unchanged(tmp_path: Path, handshake: bool, mode: str) -> None:
    """The client over standard streams, through the guard, against the client over HTTP, without it."""
    if not (SDK / ".done").exists():
        pytest.skip("the official Python SDK is not installed: `make test` installs it")
    plan = {**PLAN, "handshake": handshake, "revision": None}
    with serving(tmp_path, [str(SDK / "bin" / "python"), str(FIXTURE), "--http", "127.0.0.1:0"]) as url:
        direct = carried_out(tmp_path, {**plan, "transport": "http", "server": {"url": url}})
        options = ["--mode", mode, "--journal", str(tmp_path / "records"), "--target", url]
        server = {"command": GUARD[0], "args": [*GUARD[1:], *options], "cwd": str(tmp_path)}
        guarded = carried_out(tmp_path, {**plan, "transport": "stdio", "server": server})
    assert direct["revision"] == ("2025-11-25" if handshake else LATEST)
    assert guarded == direct
    (journal,) = [each for each in (tmp_path / "records").iterdir() if not each.is_symlink()]
    rows = journals.records(journal)
    rules = {each["rule"] for row in rows if row["error"] for each in row["error"].get("violations", ())}
    assert rules <= {"contract/unknown-tool"}, rules
