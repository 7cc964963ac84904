"""The official clients, Python and TypeScript, against the asset server over STDIO and HTTP."""

import json
import select
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from assay.assets.asset_tools import TOOLS
from assay.assets.mcp_content import PROMPTS
from assay.spec.revisions import REVISIONS, handshake
from kit.http_client import environment, serving
from kit.official_clients import SECONDS, reported, skip_without
from kit.places import CATALOGUE, ROOT

HERE = Path(__file__).parent

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

MISSING: tuple[str, Any] = ("get_schema", {})
UNKNOWN: tuple[str, Any] = ("nope", {})

RESOURCES = {
    **{f"resource://schemas/{path.name.split('.')[0]}": path for path in (CATALOGUE / "jsonschema").iterdir()},
    **{f"resource://examples/{path.name}": path for path in (CATALOGUE / "examples").iterdir()},
}
ABSENT = "resource://schemas/nope"

GETS: dict[str, dict[str, str]] = {
    "write_asset": {"schema": "tone", "idea": "Something low."},
    "mend_asset": {"schema": "tone", "asset": '{"name": 7}'},
}
"""Good arguments for every prompt."""

WITHOUT = ("mend_asset", {"schema": "tone"})
NO_PROMPT: tuple[str, Any] = ("nope", {})

COMPLETIONS: list[tuple[dict[str, str], dict[str, str], list[str]]] = [
    ({"type": kind, by: name}, {"name": argument, "value": begun}, expected)
    for kind, by, name, argument, begun, expected in (
        ("ref/resource", "uri", "resource://schemas/{name}", "name", "s", ["shader", "synesthetic-asset"]),
        ("ref/resource", "uri", "resource://examples/{+path}", "path", "tone.h", ["tone.hum.json"]),
        ("ref/prompt", "name", "write_asset", "schema", "ha", ["haptic"]),
        ("ref/prompt", "name", "mend_asset", "asset", "{", []),
    )
]
"""What can be completed, and to what."""

STEPS: list[list[Any]] = [
    *(
        ["misuse", name, given]
        for name, given in (*((name, given) for name, (given, _) in CALLS.items()), MISSING, UNKNOWN)
    ),
    *(["read", uri] for uri in (*RESOURCES, ABSENT)),
    *(["get", name, given] for name, given in (*GETS.items(), WITHOUT, NO_PROMPT)),
    *(["complete", reference, argument, {}] for reference, argument, _ in COMPLETIONS),
]
"""`misuse` is a call without a progress token."""

TALKS = [
    # ClientSession offers the last revision that has a handshake; Client asks for the stateless one first.
    *(("stdio", "python", REVISIONS[-2]), ("http", "python", REVISIONS[-1])),
    *(("stdio", "typescript", REVISIONS[0]), ("http", "typescript", REVISIONS[2])),
]
"""Each client over either transport, each in another revision."""


def without_data(error: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in error.items() if name != "data"}


class Talk(NamedTuple):
    """A plan that was carried out, and what came of it."""

    client: str
    revision: str
    report: dict[str, Any]

    def came(self, verb: str) -> list[Any]:
        """What the steps with this verb came to; of an error the code and the message."""
        found = (came for (each, *_), came in zip(STEPS, self.report["steps"], strict=True) if each == verb)
        return [{"error": without_data(came["error"])} if "error" in came else came for came in found]

    def listed(self, what: str) -> Any:
        """The list with this name."""
        kind = {"templates": "resourceTemplates"}.get(what, what)
        return self.report[what]["result"][kind]


class Backend(NamedTuple):
    """A running service that stores assets."""

    address: str
    database: Path


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
    skip_without(client)
    talk = Talk(client, revision, carried_out(transport, client, revision, backend, tmp_path))
    assert (talk.report["revision"], talk.report["server"]["name"]) == (revision, "assay")
    assert_tools_are_listed(talk)
    assert_every_tool_does_what_it_is_called_for(talk, backend)
    assert_bad_arguments_are_refused_as_the_revision_wants_it(talk)
    assert_every_resource_can_be_read(talk)
    assert_prompts_can_be_had(talk)
    found = [answer["result"]["completion"] for answer in talk.came("complete")]
    assert found == [{"values": expected, "total": len(expected), "hasMore": False} for *_, expected in COMPLETIONS]
    assert not (tmp_path / "ready").exists(), "a server that had to be killed leaves this behind"


def carried_out(transport: str, client: str, revision: str, backend: Backend, directory: Path) -> dict[str, Any]:
    """What one client reports that does everything, over one transport, in one revision; the server logs nothing."""
    plan = {"revision": revision, "handshake": handshake(revision), "steps": STEPS}
    log, variables = directory / "log.txt", {"SYN_BACKEND_URL": backend.address}
    if transport == "stdio":
        server = {"command": sys.executable, "args": ["-m", "assay", "serve"], "cwd": str(directory)}
        report = reported(client, {**plan, "server": {**server, "env": environment(directory, **variables)}}, log)
        assert log.read_text() == "mcp:ready mode=stdio\n"
    else:
        with serving(directory, env=variables) as service:
            report = reported(client, {**plan, "server": {"url": "http://{}:{}/mcp".format(*service.address)}}, log)
            service.signal(signal.SIGTERM)
            assert service.ended() == 0
            assert len(service.log.whole()) == 1
    return dict(report)


def assert_tools_are_listed(talk: Talk) -> None:
    listed = talk.listed("tools")
    assert [tool["name"] for tool in listed] == list(TOOLS) == list(CALLS)
    assert all(tool["inputSchema"] == TOOLS[tool["name"]].input for tool in listed)
    assert all(("outputSchema" in tool) == (talk.revision >= "2025-06-18") for tool in listed)


def assert_every_tool_does_what_it_is_called_for(talk: Talk, backend: Backend) -> None:
    """From 2025-06-18 on, the clients themselves hold `structuredContent` to the tool's `outputSchema`."""
    found: dict[str, Any] = {}
    for (name, (_, expected)), answer in zip(CALLS.items(), talk.came("misuse"), strict=False):
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
    missing, unknown = talk.came("misuse")[len(CALLS) :]
    if talk.revision >= "2025-11-25":
        assert missing["result"]["isError"] is True
        assert "the property `name`" in missing["result"]["content"][0]["text"]
    else:
        assert missing["error"]["code"] == -32602
    assert unknown["error"] == {"code": -32602, "message": "Unknown tool: nope"}


def assert_every_resource_can_be_read(talk: Talk) -> None:
    types = {each["uri"]: each["mimeType"] for each in talk.listed("resources")}
    assert types.keys() == RESOURCES.keys()
    *answers, absent = talk.came("read")
    for (uri, file), answer in zip(RESOURCES.items(), answers, strict=True):
        [contents] = answer["result"]["contents"]
        assert (contents["uri"], contents["mimeType"]) == (uri, types[uri])
        assert json.loads(contents["text"]) == json.loads(file.read_bytes())
    # The TypeScript client shows the code of 2026-07-28 for that of the older revisions, too.
    older = handshake(talk.revision) and talk.client != "typescript"
    assert absent["error"] == {"code": -32002 if older else -32602, "message": "Resource not found"}
    templates = [each["uriTemplate"] for each in talk.listed("templates")]
    assert templates == ["resource://schemas/{name}", "resource://examples/{+path}"]


def assert_prompts_can_be_had(talk: Talk) -> None:
    listed = talk.listed("prompts")
    assert [prompt["name"] for prompt in listed] == list(PROMPTS) == list(GETS)
    for (name, given), answer in zip(GETS.items(), talk.came("get"), strict=False):
        assert answer["result"]["description"] == PROMPTS[name].description
        said, attached = (each["content"] for each in answer["result"]["messages"])
        assert all(value in said["text"] for value in given.values())
        schema = json.loads(attached["resource"]["text"])
        assert schema == json.loads((CATALOGUE / "jsonschema" / f"{given['schema']}.schema.json").read_bytes())
    without, unknown = talk.came("get")[len(GETS) :]
    assert without["error"] == {"code": -32602, "message": "Missing argument: asset"}
    assert unknown["error"] == {"code": -32602, "message": "Unknown prompt"}
