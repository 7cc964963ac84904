"""
The official clients, Python and TypeScript, against the asset server over STDIO and HTTP: real processes on both sides.

Each client is a script that takes a plan as JSON on standard input and gives a report as JSON on standard output:

    plan                                            report
    transport    "stdio" or "http"                  revision   what both agreed on
    server       command, args, env, cwd; or url    server     its name and version
    revision     the one to agree on                tools, resources, templates, prompts   the lists
    handshake    whether by `initialize`
    calls        name and arguments of each         calls      result, or error with code and message, of each
    reads        what to read beside all listed     reads      the same: those listed, then these
    gets         name and arguments of prompts      gets       the same
    completions  reference, and argument begun      completions   the same
"""

import json
import select
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from asset_service import CATALOGUE, SOURCES, serving

from assay.assets.asset_tools import TOOLS
from assay.assets.prompts import PROMPTS
from assay.spec.revisions import REVISIONS, handshake
from kit.places import ROOT

HERE = Path(__file__).parent

SECONDS = 60
"""What a client may take; it takes one or two seconds."""

ASSET = json.loads((CATALOGUE / "examples" / "synesthetic-asset.quiet.json").read_bytes())
CALLS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "list_schemas": ({}, {}),
    "get_schema": ({"name": "tone"}, {"version": "1.0.0"}),
    "list_examples": ({"component": "all"}, {}),
    "get_example": ({"path": "tone.hum.json"}, {"schema": "tone", "validated": True}),
    "validate_asset": ({"asset": ASSET, "schema": "synesthetic-asset"}, {"errors": []}),
    "diff_assets": ({"base": {"a": 1}, "new": {}}, {"patch": [{"op": "remove", "path": "/a"}]}),
    "populate_backend": ({"asset": ASSET, "validate_first": True}, {}),
}
"""Good arguments for every tool, and some of what it makes of them beside `ok: true`."""

MISSING = {"name": "get_schema", "arguments": {}}
UNKNOWN = {"name": "nope", "arguments": {}}
ABSENT = "resource://schemas/nope"

GETS: dict[str, dict[str, str]] = {
    "write_asset": {"schema": "tone", "idea": "Something low."},
    "mend_asset": {"schema": "tone", "asset": '{"name": 7}'},
}
"""Good arguments for every prompt."""

WITHOUT = {"name": "mend_asset", "arguments": {"schema": "tone"}}
NO_PROMPT = {"name": "nope", "arguments": {}}

COMPLETIONS: list[tuple[dict[str, Any], list[str]]] = [
    (
        {"ref": {"type": kind, by: name}, "argument": {"name": argument, "value": begun}},
        expected,
    )
    for kind, by, name, argument, begun, expected in (
        ("ref/resource", "uri", "resource://schemas/{name}", "name", "s", ["shader", "synesthetic-asset"]),
        ("ref/resource", "uri", "resource://examples/{+path}", "path", "tone.h", ["tone.hum.json"]),
        ("ref/prompt", "name", "write_asset", "schema", "ha", ["haptic"]),
        ("ref/prompt", "name", "mend_asset", "asset", "{", []),
    )
]
"""What can be completed, and to what."""

TALKS = [
    # ClientSession offers the last revision that has a handshake; Client asks for the stateless one first.
    *(("stdio", "python", REVISIONS[-2]), ("http", "python", REVISIONS[-1])),
    *(("stdio", "typescript", REVISIONS[0]), ("http", "typescript", REVISIONS[2])),
]
"""Each client over either transport, each in another revision."""


class Talk(NamedTuple):
    """A plan that was carried out, and what came of it."""

    transport: str
    client: str
    revision: str
    report: dict[str, Any]
    log: str
    """What client and server wrote to stderr."""
    directory: Path
    """Where the server was running. Its ready file is `ready`."""


class Backend(NamedTuple):
    """A running service that stores assets."""

    address: str
    database: Path


def command(client: str) -> list[str]:
    """What runs *client*; the test is skipped if it is not there."""
    if client == "python":
        if not (ROOT / ".venvs" / "sdk" / ".done").exists():
            pytest.skip("the official Python SDK is not installed: `make test` installs it")
        return [str(ROOT / ".venvs" / "sdk" / "bin" / "python"), str(HERE / "python_client.py")]
    if not (HERE / "node_modules" / ".done").exists():
        pytest.skip("the TypeScript client is not installed: `make test` does it where there are npm and Node.js 20")
    return ["node", str(HERE / "typescript_client.mjs")]


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    """The reference backend, in a process of its own."""
    database = tmp_path_factory.mktemp("backend") / "assets.db"
    service = [sys.executable, str(ROOT / "examples" / "backend" / "server.py"), "--port", "0", "--db", str(database)]
    with subprocess.Popen(service, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            assert select.select([process.stdout], [], [], SECONDS)[0], "the backend does not start"
            yield Backend(process.stdout.readline().strip(), database)
        finally:
            process.kill()


@pytest.mark.parametrize(("transport", "client", "revision"), TALKS)
def test_an_official_client_can_do_everything_with_the_asset_server(
    backend: Backend, tmp_path: Path, transport: str, client: str, revision: str
) -> None:
    talk = carry_out(transport, client, revision, backend, tmp_path)
    assert (talk.report["revision"], talk.report["server"]["name"]) == (revision, "assay")
    assert_tools_are_listed(talk)
    assert_every_tool_does_what_it_is_called_for(talk, backend)
    assert_bad_arguments_are_refused_as_the_revision_wants_it(talk)
    assert_every_resource_can_be_read(talk)
    assert_prompts_can_be_had(talk)
    found = [answer["result"]["completion"] for answer in talk.report["completions"]]
    assert found == [{"values": expected, "total": len(expected), "hasMore": False} for _, expected in COMPLETIONS]
    assert talk.log == f"mcp:ready mode={talk.transport}\n"
    assert not (talk.directory / "ready").exists(), "a server that had to be killed leaves this behind"


def carry_out(transport: str, client: str, revision: str, backend: Backend, directory: Path) -> Talk:
    """One client does everything, over one transport, in one revision."""
    variables = {**SOURCES, "SYN_BACKEND_URL": backend.address, "MCP_READY_FILE": str(directory / "ready")}
    plan = {
        "transport": transport,
        "revision": revision,
        "handshake": handshake(revision),
        "calls": [*({"name": name, "arguments": given} for name, (given, _) in CALLS.items()), MISSING, UNKNOWN],
        "reads": [ABSENT],
        "gets": [*({"name": name, "arguments": given} for name, given in GETS.items()), WITHOUT, NO_PROMPT],
        "completions": [wanted for wanted, _ in COMPLETIONS],
    }
    if transport == "stdio":
        started = {"command": sys.executable, "args": ["-m", "assay", "serve"], "env": variables, "cwd": str(directory)}
        report, log = carried_out(client, {**plan, "server": started})
        return Talk(transport, client, revision, report, log, directory)
    with serving(directory, variables) as service:
        report, log = carried_out(client, {**plan, "server": {"url": service.url}})
    assert service.status == 0
    return Talk(transport, client, revision, report, log + service.log.replace(f" url={service.url}", ""), directory)


def carried_out(client: str, plan: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The report of *client* on *plan*, and what it wrote to stderr."""
    done = subprocess.run(
        command(client), input=json.dumps(plan), capture_output=True, encoding="utf-8", check=False, timeout=SECONDS
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def assert_tools_are_listed(talk: Talk) -> None:
    listed = talk.report["tools"]["tools"]
    assert [tool["name"] for tool in listed] == list(TOOLS) == list(CALLS)
    assert all(tool["inputSchema"] == TOOLS[tool["name"]].input for tool in listed)
    assert all(("outputSchema" in tool) == (talk.revision >= "2025-06-18") for tool in listed)


def assert_every_tool_does_what_it_is_called_for(talk: Talk, backend: Backend) -> None:
    """From 2025-06-18 on, the clients themselves hold `structuredContent` to the tool's `outputSchema`."""
    found: dict[str, Any] = {}
    for (name, (_, expected)), answer in zip(CALLS.items(), talk.report["calls"], strict=False):
        result = answer["result"]
        assert result["isError"] is False
        envelope = json.loads(result["content"][0]["text"])
        if talk.revision >= "2025-06-18":
            assert result["structuredContent"] == envelope
        assert (envelope["tool_id"], envelope["error"]) == (name, None)
        assert envelope["data"].items() >= {"ok": True, **expected}.items()
        found[name] = envelope["data"]
    assert len(found["list_schemas"]["schemas"]) == len(list((CATALOGUE / "jsonschema").iterdir()))
    assert len(found["list_examples"]["examples"]) == len(list((CATALOGUE / "examples").iterdir()))
    assert stored(backend, found["populate_backend"]["asset_id"]) == ASSET


def stored(backend: Backend, name: str) -> Any:
    """The asset with that id, from the backend's database."""
    with closing(sqlite3.connect(backend.database)) as connection:
        [(asset,)] = connection.execute("SELECT asset FROM assets WHERE id = ?", (name,)).fetchall()
    return json.loads(asset)


def assert_bad_arguments_are_refused_as_the_revision_wants_it(talk: Talk) -> None:
    """2025-11-25, server/tools, Error Handling: a result that the model can see and mend; before, a protocol error."""
    missing, unknown = talk.report["calls"][len(CALLS) :]
    if talk.revision >= "2025-11-25":
        assert missing["result"]["isError"] is True
        assert "the property `name`" in missing["result"]["content"][0]["text"]
    else:
        assert missing["error"]["code"] == -32602
    assert unknown["error"] == {"code": -32602, "message": "Unknown tool: nope"}


def assert_every_resource_can_be_read(talk: Talk) -> None:
    listed = talk.report["resources"]["resources"]
    assert len(listed) == len(list(CATALOGUE.glob("*/*.json")))
    for resource, answer in zip(listed, talk.report["reads"], strict=False):
        [contents] = answer["result"]["contents"]
        assert (contents["uri"], contents["mimeType"]) == (resource["uri"], resource["mimeType"])
        directory = "jsonschema" if resource["uri"].startswith("resource://schemas/") else "examples"
        file = f"{resource['name']}.schema.json" if directory == "jsonschema" else resource["name"]
        assert json.loads(contents["text"]) == json.loads((CATALOGUE / directory / file).read_bytes())
    *_, absent = talk.report["reads"]
    # The TypeScript client shows the code of 2026-07-28 for that of the older revisions, too.
    older = handshake(talk.revision) and talk.client != "typescript"
    assert absent["error"] == {"code": -32002 if older else -32602, "message": "Resource not found"}
    templates = [each["uriTemplate"] for each in talk.report["templates"]["resourceTemplates"]]
    assert templates == ["resource://schemas/{name}", "resource://examples/{+path}"]


def assert_prompts_can_be_had(talk: Talk) -> None:
    listed = talk.report["prompts"]["prompts"]
    assert [prompt["name"] for prompt in listed] == list(PROMPTS) == list(GETS)
    for (name, given), answer in zip(GETS.items(), talk.report["gets"], strict=False):
        assert answer["result"]["description"] == PROMPTS[name].description
        said, attached = (each["content"] for each in answer["result"]["messages"])
        assert all(value in said["text"] for value in given.values())
        schema = json.loads(attached["resource"]["text"])
        assert schema == json.loads((CATALOGUE / "jsonschema" / f"{given['schema']}.schema.json").read_bytes())
    without, unknown = talk.report["gets"][len(GETS) :]
    assert without["error"] == {"code": -32602, "message": "Missing argument: asset"}
    assert unknown["error"] == {"code": -32602, "message": "Unknown prompt"}
