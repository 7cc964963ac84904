"""What the asset server answers to MCP's methods: in every revision, what the official schema says."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from assay.assets.asset_sources import Catalogue
from assay.assets.mcp_methods import PAGE, MethodError, Methods
from assay.spec.methods import methods as methods_of
from assay.spec.revisions import REVISIONS, handshake
from assay.spec.schema import protocol_schema
from kit.places import ROOT
from kit.rows import rows

BUNDLED = {
    "SYN_SCHEMAS_DIR": str(ROOT / "examples" / "catalogue" / "jsonschema"),
    "SYN_EXAMPLES_DIR": str(ROOT / "examples" / "catalogue" / "examples"),
}

every_revision = rows("revision", REVISIONS)


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return Catalogue.read(BUNDLED, ROOT)


@pytest.fixture(scope="module")
def server(catalogue: Catalogue) -> Methods:
    return Methods(catalogue)


def answered(server: Methods, method: str, params: dict[str, Any], revision: str) -> Any:
    """The result as it goes over the wire, after it was held to its definition."""
    result = orjson.loads(server.answer(method, params, revision))
    definition = methods_of(revision)[method].result
    assert definition is not None
    faults = protocol_schema(revision).validator(definition, formats=True).faults(result)
    assert faults.listed == ()
    return result


def opening(revision: str) -> tuple[str, dict[str, Any]]:
    if not handshake(revision):
        return "server/discover", {}
    return "initialize", {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}


@rows("asked", ["1.0", "2026-07-28", "2030-01-01"])
def test_a_revision_without_a_handshake_we_know_gets_the_newest_that_has_one(server: Methods, asked: str) -> None:
    params = {**opening("2025-11-25")[1], "protocolVersion": asked}
    assert answered(server, "initialize", params, "2025-11-25")["protocolVersion"] == "2025-11-25"


@every_revision
def test_the_tools_are_listed_in_the_same_order_every_time(server: Methods, revision: str) -> None:
    names = [tool["name"] for tool in answered(server, "tools/list", {}, revision)["tools"]]
    assert names == [tool["name"] for tool in answered(server, "tools/list", {}, revision)["tools"]]
    assert names[0] == "list_schemas"
    assert len(names) == 7


@every_revision
def test_a_tool_has_the_members_that_the_revision_knows(server: Methods, revision: str) -> None:
    for tool in answered(server, "tools/list", {}, revision)["tools"]:
        assert ("outputSchema" in tool) == (revision >= "2025-06-18")
        assert ("annotations" in tool) == (revision >= "2025-03-26")
        assert tool["description"]


@every_revision
def test_every_resource_that_is_listed_can_be_read(server: Methods, catalogue: Catalogue, revision: str) -> None:
    listed = answered(server, "resources/list", {}, revision)["resources"]
    assert len(listed) == len(catalogue.schemas) + len(catalogue.examples)
    for resource in listed:
        [contents] = answered(server, "resources/read", {"uri": resource["uri"]}, revision)["contents"]
        assert contents["uri"] == resource["uri"]
        assert orjson.loads(contents["text"])


@every_revision
@rows(
    "uri",
    [
        "resource://schemas/nope",
        "resource://examples/../../pyproject.toml",
        "resource://examples//etc/passwd",
        "file:///",
    ],
)
def test_a_resource_that_is_not_there_is_named_in_the_error(server: Methods, revision: str, uri: str) -> None:
    """-32002 in the handshake revisions, -32602 from 2026-07-28 on; never an empty list of contents."""
    with pytest.raises(MethodError) as caught:
        server.answer("resources/read", {"uri": uri}, revision)
    assert caught.value.error()["code"] == (-32002 if handshake(revision) else -32602)
    assert caught.value.data == {"uri": uri}


@every_revision
def test_names_and_paths_are_completed(server: Methods, revision: str) -> None:
    templates = answered(server, "resources/templates/list", {}, revision)["resourceTemplates"]
    assert [each["uriTemplate"] for each in templates] == ["resource://schemas/{name}", "resource://examples/{+path}"]
    reference = {"type": "ref/resource", "uri": "resource://schemas/{name}"}
    params = {"ref": reference, "argument": {"name": "name", "value": "TO"}}
    assert answered(server, "completion/complete", params, revision)["completion"]["values"] == ["tone"]


@rows(
    ("method", "params"),
    [
        ("tools/call", {"name": "nope"}),
        ("tools/list", {"cursor": "x"}),
        ("tools/list", {"cursor": "999"}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "a"}, "argument": {"name": "b", "value": ""}}),
        (
            "completion/complete",
            {"ref": {"type": "ref/resource", "uri": "x:y"}, "argument": {"name": "name", "value": ""}},
        ),
    ],
)
def test_what_cannot_be_answered_is_invalid_params(server: Methods, method: str, params: dict[str, Any]) -> None:
    with pytest.raises(MethodError) as caught:
        server.answer(method, params, "2025-11-25")
    assert caught.value.error()["code"] == -32602


def test_long_lists_come_in_pages(tmp_path: Path) -> None:
    for index in range(2 * PAGE + 1):
        (tmp_path / f"s{index:03}.schema.json").write_text("{}")
    server = Methods(Catalogue.read({"SYN_SCHEMAS_DIR": str(tmp_path)}, tmp_path))
    seen: list[str] = []
    params: dict[str, Any] = {}
    for _ in range(3):
        page = answered(server, "resources/list", params, "2025-11-25")
        seen += [each["uri"] for each in page["resources"]]
        params = {"cursor": page.get("nextCursor", "")}
    assert len(seen) == len(set(seen)) == 2 * PAGE + 1
    assert params == {"cursor": ""}
