"""The official clients through the guard, in both eras: they get what they get from the server itself."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.spec.revisions import REVISIONS, handshake
from kit.http_client import Service, serving
from kit.places import ROOT
from kit.scripted_http import guarding

SECONDS = 60
CLIENTS = ROOT / "tests" / "clients"

TALKS = [
    *(("python", revision) for revision in REVISIONS[-2:]),
    *(("typescript", revision) for revision in REVISIONS),
]

PLAN: dict[str, Any] = {
    "transport": "http",
    "calls": [
        {"name": "list_schemas", "arguments": {}},
        {"name": "get_schema", "arguments": {"name": "tone"}},
        {"name": "get_schema", "arguments": {}},
        {"name": "nope", "arguments": {}},
        {"name": "diff_assets", "arguments": {"base": {"a": 1}, "new": {}}},
    ],
    "reads": ["resource://schemas/nope"],
    "gets": [{"name": "write_asset", "arguments": {"schema": "tone", "idea": "Something low."}}],
    "completions": [
        {"ref": {"type": "ref/prompt", "name": "write_asset"}, "argument": {"name": "schema", "value": "h"}}
    ],
}


def command(client: str) -> list[str]:
    """What runs *client*; the test is skipped if it is not there."""
    if client == "python":
        if not (ROOT / ".venvs" / "sdk" / ".done").exists():
            pytest.skip("the official Python SDK is not installed: `make test` installs it")
        return [str(ROOT / ".venvs" / "sdk" / "bin" / "python"), str(CLIENTS / "python_client.py")]
    if not (CLIENTS / "node_modules" / ".done").exists():
        pytest.skip("the TypeScript client is not installed: `make test` does it where there are npm and Node.js 20")
    return ["node", str(CLIENTS / "typescript_client.mjs")]


def report(client: str, revision: str, url: str) -> dict[str, Any]:
    """What *client* gets at *url*."""
    plan = {**PLAN, "revision": revision, "handshake": handshake(revision), "server": {"url": url}}
    done = subprocess.run(
        command(client), input=json.dumps(plan), capture_output=True, encoding="utf-8", check=False, timeout=SECONDS
    )
    assert done.returncode == 0, done.stderr
    return {name: _lasting(value) for name, value in json.loads(done.stdout).items()}


def _lasting(value: Any) -> Any:
    """*value* without what is different each time, and without the words of errors, which may be the guard's."""
    if isinstance(value, list):
        return [_lasting(each) for each in value]
    if not isinstance(value, dict):
        return value
    if value.get("isError"):
        return {"isError": True}
    if value.get("error"):
        return {"error": value["error"].get("code")}
    fleeting = {"request_id", "duration_ms"} | ({"text"} if value.get("type") == "text" else set())
    return {name: _lasting(each) for name, each in value.items() if name not in fleeting}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, Service]]:
    """A server, and a guard in front of it."""
    with serving(tmp_path_factory.mktemp("server")) as server:
        url = f"http://127.0.0.1:{server.address[1]}/mcp"
        with guarding(tmp_path_factory.mktemp("guard"), url, "--mode", "enforce") as guard:
            yield server, guard


@pytest.mark.parametrize(("client", "revision"), TALKS)
def test_a_client_gets_what_it_gets_without_the_guard(
    both: tuple[Service, Service], client: str, revision: str
) -> None:
    direct, guarded = (report(client, revision, f"http://127.0.0.1:{each.address[1]}/mcp") for each in both)
    assert guarded == direct
    assert guarded["revision"] == revision
    assert guarded["calls"][2] == ({"result": {"isError": True}} if revision >= "2025-11-25" else {"error": -32602})


def test_nothing_that_the_server_says_is_wrong(both: tuple[Service, Service], tmp_path: Path) -> None:
    """What clients ask in vain is, and is told."""
    _, guard = both
    assert "server" not in [line.split(" ")[2] for line in guard.log.so_far().splitlines()[1:]]
