"""A real server behind the guard: the asset server, asked directly and through it, by hand and by official clients."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.assets.asset_tools import TOOLS
from assay.spec.revisions import REVISIONS, handshake
from kit.guard_process import GUARD, INITIALIZED, SECONDS, Guarded, Lines, initialize, notification, request
from kit.places import ROOT

CATALOGUE = ROOT / "examples" / "catalogue"
SDK = ROOT / ".venvs" / "sdk"
# In such a run ids follow from what is asked, and nothing takes any time: so that answers can be compared.
SERVER = [sys.executable, "-m", "assay", "serve", "--deterministic", "--journal", "journal"]
ENFORCING = [*GUARD, "--mode", "enforce", "--"]

ASSET = json.loads((CATALOGUE / "examples" / "synesthetic-asset.quiet.json").read_bytes())
CALLS: dict[str, list[dict[str, Any]]] = {
    "list_schemas": [{}],
    "get_schema": [{"name": "tone"}, {"name": "nope"}],
    "list_examples": [{"component": "all"}, {"component": "tone"}],
    "get_example": [{"path": "tone.hum.json"}, {"path": "../secret"}],
    "validate_asset": [{"asset": ASSET, "schema": "synesthetic-asset"}, {"asset": {}, "schema": "tone"}],
    "diff_assets": [{"base": {"a": 1, "n": 12345678901234567890123}, "new": {"n": 1.0}}],
    "populate_backend": [{"asset": ASSET}],
}
"""Good arguments for every tool; those that lead to a failure among them."""


def variables(directory: Path) -> dict[str, str]:
    """What the server is to know."""
    return {
        **os.environ,
        "SYN_SCHEMAS_DIR": str(CATALOGUE / "jsonschema"),
        "SYN_EXAMPLES_DIR": str(CATALOGUE / "examples"),
        "MCP_READY_FILE": str(directory / "ready"),
    }


def asked(revision: str) -> Iterator[dict[str, Any]]:
    """Everything that a client can ask for."""
    if handshake(revision):
        yield from (initialize(revision), INITIALIZED)
    else:
        yield placed(revision, request("discover", "server/discover"))
    for method in ("tools/list", "resources/list", "resources/templates/list", "prompts/list"):
        yield placed(revision, request(method, method))
    for tool, each in CALLS.items():
        for number, arguments in enumerate(each):
            params = {"name": tool, "arguments": arguments, "_meta": {"request_id": f"{tool}-{number}"}}
            yield placed(revision, request(f"{tool} {number}", "tools/call", params))
    yield placed(revision, request("read", "resources/read", {"uri": "resource://schemas/tone"}))
    yield placed(revision, request("absent", "resources/read", {"uri": "resource://schemas/nope"}))
    yield placed(
        revision, request("get", "prompts/get", {"name": "write_asset", "arguments": {"schema": "tone", "idea": ""}})
    )
    reference = {"ref": {"type": "ref/prompt", "name": "write_asset"}, "argument": {"name": "schema", "value": "to"}}
    yield placed(revision, request("complete", "completion/complete", reference))
    if handshake(revision):
        yield request("ping", "ping")
    yield notification("notifications/cancelled", {"requestId": "complete"})


def placed(revision: str, message: dict[str, Any]) -> dict[str, Any]:
    """*message* with the revision in it, where there is no handshake."""
    if handshake(revision) or "id" not in message:
        return message
    params = message.get("params", {})
    meta = {
        "io.modelcontextprotocol/protocolVersion": revision,
        "io.modelcontextprotocol/clientCapabilities": {},
        **params.get("_meta", {}),
    }
    return {**message, "params": {**params, "_meta": meta}}


def answered(command: list[str], revision: str, directory: Path) -> tuple[list[bytes], list[bytes]]:
    """What comes of all that, one after the other; and the log."""
    streams: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, cwd=directory, env=variables(directory), bufsize=0, **streams) as process:
        one = Guarded(process, Lines(-1))
        answers = []
        for each in asked(revision):
            one.say(each)
            if "id" in each:
                answers.append(one.out.next())
        one.close()
        assert one.out.all() == b""
        assert one.ended() == 0
        return answers, one.log.rest()


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_asset_server_answers_the_same_behind_the_guard(tmp_path: Path, revision: str) -> None:
    """All that there is in it, in both eras, byte for byte; and nothing is found."""
    assert list(CALLS) == list(TOOLS)
    expected, _ = answered(SERVER, revision, tmp_path)
    found, log = answered([*ENFORCING, *SERVER], revision, tmp_path)
    assert found == expected
    lines = [line for line in log if b" guarding " not in line and b" speaks MCP " not in line]
    assert len(lines) == 2, lines
    ready, summary = lines
    assert ready == b"mcp:ready mode=stdio"
    assert summary.endswith(b" 0 findings, 0 blocked")


@pytest.mark.parametrize("revision", REVISIONS[-2:])
def test_an_official_client_sees_no_difference(tmp_path: Path, revision: str) -> None:
    """It agrees on the revision, holds results to their schemas itself, and ends the server in its own way."""
    if not (SDK / ".done").exists():
        pytest.skip("the official Python SDK is not installed: `make test` installs it")
    reports = [carried_out(tmp_path, revision, command) for command in (SERVER, [*ENFORCING, *SERVER])]
    assert reports[1]["revision"] == revision
    assert len(reports[1]["calls"]) == len(TOOLS)
    assert reports[0] == reports[1]
    assert not (tmp_path / "ready").exists()


def carried_out(directory: Path, revision: str, command: list[str]) -> dict[str, Any]:
    """What the official client reports; `tests/clients` has it."""
    environment = {
        name: value for name, value in variables(directory).items() if name.startswith(("SYN_", "MCP_", "ASSAY_"))
    }
    plan = {
        "transport": "stdio",
        "server": {"command": command[0], "args": command[1:], "env": environment, "cwd": str(directory)},
        "revision": revision,
        "handshake": handshake(revision),
        "calls": [{"name": name, "arguments": each[0]} for name, each in CALLS.items()],
        "reads": ["resource://schemas/nope"],
        "gets": [{"name": "write_asset", "arguments": {"schema": "tone", "idea": "Low."}}],
        "completions": [],
    }
    client = [str(SDK / "bin" / "python"), str(ROOT / "tests" / "clients" / "python_client.py")]
    done = subprocess.run(
        client, input=json.dumps(plan), capture_output=True, encoding="utf-8", timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report
