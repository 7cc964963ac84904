"""A real server behind the guard: the asset server, asked directly and through it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assay.assets.asset_tools import TOOLS
from assay.spec.revisions import LATEST, handshake
from kit.guard_process import GUARD, INITIALIZED, Guarded, Lines, initialize, notification, request
from kit.places import ROOT
from kit.rows import rows

CATALOGUE = ROOT / "examples" / "catalogue"
# In such a run ids follow from what is asked, and nothing takes any time: so that answers can be compared.
SERVER = [sys.executable, "-m", "assay", "serve", "--deterministic", "--journal", "journal"]
ENFORCING = [*GUARD, "--mode", "enforce", "--"]
META = {"io.modelcontextprotocol/protocolVersion": LATEST, "io.modelcontextprotocol/clientCapabilities": {}}

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


def asked(revision: str) -> Iterator[dict[str, Any]]:
    """Everything that a client can ask for."""
    if handshake(revision):
        yield from (initialize(revision), INITIALIZED, request("ping", "ping"))
    else:
        yield request("discover", "server/discover")
    for method in ("tools/list", "resources/list", "resources/templates/list", "prompts/list"):
        yield request(method, method)
    for tool, each in CALLS.items():
        for number, arguments in enumerate(each):
            params = {"name": tool, "arguments": arguments, "_meta": {"request_id": f"{tool}-{number}"}}
            yield request(f"{tool} {number}", "tools/call", params)
    yield request("read", "resources/read", {"uri": "resource://schemas/tone"})
    yield request("absent", "resources/read", {"uri": "resource://schemas/nope"})
    yield request("get", "prompts/get", {"name": "write_asset", "arguments": {"schema": "tone", "idea": ""}})
    reference = {"ref": {"type": "ref/prompt", "name": "write_asset"}, "argument": {"name": "schema", "value": "to"}}
    yield request("complete", "completion/complete", reference)
    yield notification("notifications/cancelled", {"requestId": "complete"})


def placed(revision: str, message: dict[str, Any]) -> dict[str, Any]:
    """*message* with the revision in it, where there is no handshake."""
    if handshake(revision) or "id" not in message:
        return message
    params = message.get("params", {})
    return {**message, "params": {**params, "_meta": {**META, **params.get("_meta", {})}}}


def answered(command: list[str], revision: str, directory: Path) -> tuple[list[bytes], list[bytes]]:
    """What comes of all that, one after the other; and the log."""
    streams: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    variables = {
        **os.environ,
        "SYN_SCHEMAS_DIR": str(CATALOGUE / "jsonschema"),
        "SYN_EXAMPLES_DIR": str(CATALOGUE / "examples"),
        "MCP_READY_FILE": str(directory / "ready"),
    }
    with subprocess.Popen(command, cwd=directory, env=variables, bufsize=0, **streams) as process:
        one = Guarded(process, Lines(-1))
        answers = []
        for each in asked(revision):
            one.say(placed(revision, each))
            if "id" in each:
                answers.append(one.out.next())
        one.close()
        assert one.out.all() == b""
        assert one.ended() == 0
        return answers, one.log.rest()


@rows("revision", ["2025-03-26", LATEST])
def test_the_asset_server_answers_the_same_behind_the_guard(tmp_path: Path, revision: str) -> None:
    """All that there is in it, in both eras, byte for byte; and nothing is found."""
    assert list(CALLS) == list(TOOLS)
    expected, _ = answered(SERVER, revision, tmp_path)
    found, log = answered([*ENFORCING, *SERVER], revision, tmp_path)
    assert found == expected
    ready, summary = [line for line in log if b" guarding " not in line and b" speaks MCP " not in line]
    assert ready == b"mcp:ready mode=stdio"
    assert summary.endswith(b" 0 findings, 0 blocked")
