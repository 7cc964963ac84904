"""
What the official clients make of defective answers, with and without a guard that repairs them: real processes.

The tools of every recorded server are listed, and results with and without `structuredContent` are read. The guard has
the settings of docs/policy.md.
"""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from replay_server import ADDED, Recorded
from test_official_clients import HERE

from assay.rules.policy import REPAIRED_RESULTS
from assay.spec.revisions import REVISIONS, handshake
from kit.official_clients import SECONDS
from kit.places import ROOT
from kit.rows import rows

SERVER = [sys.executable, "-IS", str(HERE / "replay_server.py")]

EACH = 1 if "LAWS" in os.environ else 15
"""Of how many recorded servers one is tried; `make soak` tries all of them."""

TYPELESS = {"mcp-obsidian"}
"""Recordings of servers with an `inputSchema` without `type`: every official client rejects their whole list."""

STATELESS = ".2026-07-28"
"""How the names of recordings end whose server has no handshake."""


@pytest.fixture(scope="module")
def repairing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The settings on the page about policies that turn on every repair of results."""
    page = (ROOT / "docs" / "policy.md").read_text()
    [toml] = [each.partition("```")[0] for each in page.split("```toml\n")[1:] if '"protocol/cache-hints"' in each]
    assert {rule for rule, row in tomllib.loads(toml)["guard"]["policy"].items() if row["repair"]} == set(
        REPAIRED_RESULTS
    )
    path = tmp_path_factory.mktemp("settings") / "repairs.toml"
    path.write_text(toml)
    return path


def guard(*options: str) -> list[str]:
    """The command of a guard that enforces and keeps nothing."""
    options = ("--mode", "enforce", "--journal", "off", "--quiet", "--set", "guard.flights=off", *options)
    return [sys.executable, "-m", "assay", "guard", *options, "--"]


def with_node(script: str, *arguments: str, said: str = "") -> Any:
    """What a script of the TypeScript client prints."""
    if not (HERE / "node_modules" / ".done").exists():
        pytest.skip("the TypeScript client is not installed: `make test` does it where there are npm and Node.js 20")
    command = ["node", str(HERE / script), *arguments]
    done = subprocess.run(command, input=said, capture_output=True, text=True, timeout=SECONDS, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def listed(recordings: list[Path], before: list[str], *after: str) -> dict[str, list[str] | str]:
    """The tools that the TypeScript client gets of each recorded server, or its error."""
    commands = {each.stem: [*before, *SERVER, str(each), *after] for each in recordings}
    found: dict[str, list[str] | str] = with_node("list_many.mjs", said=json.dumps(commands))
    return found


@pytest.fixture(scope="module")
def recordings(shared: Path) -> list[Path]:
    found = sorted((shared / "transcripts").glob("*.jsonl"))
    assert len(found) == 75
    return found


def test_a_client_gets_all_tools_of_recorded_servers_through_the_guard(recordings: list[Path], repairing: Path) -> None:
    chosen = [each for number, each in enumerate(recordings) if number % EACH == 0 or each.stem in TYPELESS]
    offered = {each.stem: list(Recorded(each).tools()) for each in chosen}
    assert all(offered.values())
    assert listed(chosen, guard("--config", str(repairing))) == offered
    bare = listed([each for each in recordings if each.stem in TYPELESS], [])
    assert bare.keys() == TYPELESS
    assert all(isinstance(each, str) for each in bare.values())


def test_a_client_gets_all_tools_of_a_server_without_cache_hints_through_the_guard(
    recordings: list[Path], repairing: Path
) -> None:
    """Without the guard, and without repair, it gets none: the server is on a library that does not know the hints."""
    aged = [each for each in recordings if each.stem.endswith(STATELESS)][:1]
    assert listed(aged, guard("--config", str(repairing)), "aged") == {
        each.stem: list(Recorded(each).tools()) for each in aged
    }
    for before in ([], guard()):
        lost = listed(aged, before, "aged")
        assert all(isinstance(each, str) and ADDED[0] in each for each in lost.values())


# ── structured content ───────────────────────────────────────────────────────────────────────────────────────────────

TEXT = [{"type": "text", "text": "found"}]
HITS = {"type": "object", "properties": {"hits": {"type": "integer"}}, "required": ["hits"]}
RESULTS: dict[str, tuple[bool, dict[str, Any]]] = {
    "promised, missing": (True, {}),
    "promised, wrong": (True, {"structuredContent": {"hits": "1"}}),
    "promised, an array": (True, {"structuredContent": [1]}),
    "promised, failed": (True, {"isError": True}),
    "promised, failed with an array": (True, {"isError": True, "structuredContent": [1]}),
    "promised, failed with wrong content": (True, {"isError": True, "structuredContent": {"hits": "1"}}),
    "plain": (False, {}),
    "plain, an object": (False, {"structuredContent": {}}),
    "plain, an array": (False, {"structuredContent": [1]}),
}
"""Results, and whether their tool has an output schema."""

REJECTED = {"promised, missing", "promised, wrong", "promised, an array"}
"""Results that both clients reject in every revision: leaving the content out does not help."""

SHAPELESS = {"promised, failed with an array", "plain, an array"}
"""Results that both clients reject before 2026-07-28, where the content must be an object, and accept without it."""


def recording(path: Path, revision: str) -> Path:
    """A recording of a server with these tools and results."""
    rows: list[dict[str, str]] = []
    new = {} if handshake(revision) else {"resultType": "complete"}
    cached = {} if handshake(revision) else {"ttlMs": 0, "cacheScope": "private"}

    def add(method: str, params: dict[str, Any], result: dict[str, Any]) -> None:
        head = {"jsonrpc": "2.0", "id": len(rows)}
        rows.append({"dir": "c2s", "msg": json.dumps({**head, "method": method, "params": params})})
        rows.append({"dir": "s2c", "msg": json.dumps({**head, "result": {**new, **result}})})

    if handshake(revision):
        server = {"serverInfo": {"name": "n", "version": "1"}}
        add("initialize", {}, {"protocolVersion": revision, "capabilities": {"tools": {}}, **server})
    else:
        add("server/discover", {}, {**cached, "supportedVersions": [revision], "capabilities": {"tools": {}}})
    tools = [
        {"name": name, "inputSchema": {"type": "object"}, **({"outputSchema": HITS} if promised else {})}
        for name, (promised, _) in RESULTS.items()
    ]
    add("tools/list", {}, {**cached, "tools": tools})
    for name, (_, members) in RESULTS.items():
        add("tools/call", {"name": name}, {"content": TEXT, **members})
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def texts(client: str, command: list[str]) -> dict[str, str | None]:
    """The text of each tool's result, as the official *client* gets it; None for a result that it rejects."""
    if client == "typescript":
        return with_node("call_tools.mjs", *command)  # type: ignore[no-any-return]  # as the script prints it
    if not (ROOT / ".venvs" / "sdk" / ".done").exists():
        pytest.skip("the official Python SDK is not installed: `make test` installs it")
    python = [str(ROOT / ".venvs" / "sdk" / "bin" / "python"), str(HERE / "call_tools.py")]
    done = subprocess.run([*python, *command], capture_output=True, text=True, timeout=SECONDS, check=True)
    return json.loads(done.stdout)  # type: ignore[no-any-return]  # as the script prints it


@rows("client", ["python", "typescript"])
def test_one_invalid_schema_costs_a_client_all_tools_and_the_guard_saves_the_rest(client: str) -> None:
    """As `assay demo` says of its server; one tool of it crashes."""
    demo = [sys.executable, str(ROOT / "src" / "assay" / "cli" / "demonstration" / "demo_server.py")]
    with pytest.raises(subprocess.CalledProcessError):
        texts(client, demo)
    assert texts(client, [*guard(), *demo]).keys() == {"weather", "report"}


@pytest.mark.parametrize("client", ["python", "typescript"])
def test_a_client_gets_the_text_of_a_result_whose_content_is_left_out(
    tmp_path: Path, client: str, repairing: Path
) -> None:
    """Without the guard a client rejects such results; those that break their contract do not get better by it."""
    for revision in REVISIONS[-2:] if client == "typescript" else REVISIONS[-2:-1]:
        found = texts(client, [*SERVER, str(recording(tmp_path / "recording", revision))])
        rejected = REJECTED | SHAPELESS if handshake(revision) else REJECTED
        assert found == {name: None if name in rejected else "found" for name in RESULTS}
    server = [*SERVER, str(recording(tmp_path / "recording", REVISIONS[-2]))]
    found = texts(client, [*guard("--config", str(repairing)), *server])
    assert {name for name, text in found.items() if text != "found"} == REJECTED
    assert all("withheld" in str(found[name]) for name in REJECTED)
