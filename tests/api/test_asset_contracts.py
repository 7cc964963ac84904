"""specs/001, sections 4 and 6: what the seven tools take and give, with the very examples that stand there."""

from typing import Any

from assay.api.exceptions import ValidationError
from assay.api.registry import SchemaRegistry
from assay.contracts.own_tools import TOOLS
from assay.contracts.store import compiled
from assay.engine.compiled import Compiled
from kit.rows import rows

NOT_FOUND = {"ok": False, "reason": "not_found"}
INVALID = {
    "ok": False,
    "reason": "validation_failed",
    "errors": [{"path": "/shader/uniforms/0", "msg": "expected number"}],
}
TOO_LARGE = {"ok": False, "reason": "validation_failed", "errors": [{"path": "", "msg": "payload_too_large"}]}
BACKEND = {"ok": False, "reason": "backend_error", "status": 500, "detail": "internal error"}
UNSUPPORTED = {"ok": False, "reason": "unsupported", "detail": "tool not implemented"}
LISTED = {
    "name": "synesthetic-asset",
    "version": "0.7.0",
    "path": "libs/synesthetic-schemas/jsonschema/synesthetic-asset.json",
}

INPUTS: list[tuple[str, Any, bool]] = [
    ("list_schemas", {}, True),
    ("list_schemas", {"name": "a"}, False),
    ("get_schema", {"name": "a"}, True),
    ("get_schema", {}, False),
    ("get_schema", {"name": 1}, False),
    ("list_examples", {}, True),
    ("list_examples", {"component": "all"}, True),
    ("list_examples", {"component": "shader"}, True),
    ("list_examples", {"component": None}, False),
    ("get_example", {"path": "a.json"}, True),
    ("get_example", {}, False),
    ("get_example", {"path": ["a.json"]}, False),
    ("validate_asset", {"asset": {}, "schema": "a"}, True),
    # What is no asset fails by its schema, in the result; and without a schema there is nothing to fail by.
    ("validate_asset", {"asset": [], "schema": "a"}, True),
    ("validate_asset", {"asset": {}}, False),
    ("validate_asset", {"schema": "a"}, False),
    ("validate_asset", {"asset": {}, "schema": {}}, False),
    ("diff_assets", {"base": {}, "new": {}}, True),
    # The pointer of the whole document is "": a patch can replace it.
    ("diff_assets", {"base": 1, "new": True}, True),
    ("diff_assets", {"base": {}}, False),
    ("diff_assets", {"base": {}, "new": {}, "old": {}}, False),
    ("populate_backend", {"asset": {}}, True),
    ("populate_backend", {"asset": {}, "validate_first": False}, True),
    ("populate_backend", {"asset": {}, "validate_first": 1}, False),
    ("populate_backend", {"validate_first": True}, False),
]

OUTPUTS: list[tuple[str, Any, bool]] = [
    ("list_schemas", {"ok": True, "schemas": [LISTED]}, True),
    ("list_schemas", {"ok": True}, False),
    ("list_schemas", {"ok": False, "schemas": []}, False),
    ("list_schemas", {"ok": True, "schemas": [{"name": "a", "version": "1"}]}, False),
    ("list_schemas", {"ok": True, "schemas": [LISTED | {"version": 1}]}, False),
    ("get_schema", {"ok": True, "schema": {}, "version": "1"}, True),
    ("get_schema", NOT_FOUND, True),
    ("get_schema", {"ok": True, "schema": {}}, False),
    ("get_schema", {"ok": True, "schema": "text", "version": "1"}, False),
    ("get_schema", {"ok": False}, False),
    ("get_schema", {"ok": False, "reason": "unsupported"}, False),
    ("get_schema", {"ok": 1, "schema": {}, "version": "1"}, False),
    ("list_examples", {"ok": True, "examples": [{"component": "shader", "path": "shader.a.json"}]}, True),
    ("list_examples", {"ok": True, "examples": [{"component": "shader"}]}, False),
    ("get_example", {"ok": True, "example": {}, "schema": "a", "validated": True}, True),
    ("get_example", NOT_FOUND, True),
    ("get_example", {"ok": True, "example": {}, "schema": "a"}, False),
    ("get_example", {"ok": True, "example": {}, "schema": "a", "validated": "yes"}, False),
    ("get_example", NOT_FOUND | {"example": {}}, False),
    ("validate_asset", {"ok": True}, True),
    ("validate_asset", {"ok": True, "errors": []}, True),
    ("validate_asset", INVALID, True),
    ("validate_asset", TOO_LARGE, True),
    ("validate_asset", {"ok": False}, True),
    ("validate_asset", {}, False),
    ("validate_asset", {"ok": True, "errors": INVALID["errors"]}, False),
    ("validate_asset", {"ok": True, "reason": "validation_failed"}, False),
    ("validate_asset", {"ok": False, "reason": "not_found"}, False),
    ("validate_asset", {"ok": False, "errors": [{"path": "/a"}]}, False),
    ("validate_asset", {"ok": False, "errors": [{"path": 0, "msg": "m"}]}, False),
    ("diff_assets", {"ok": True, "patch": []}, True),
    ("diff_assets", {"ok": True, "patch": [{"op": "add", "path": "/a", "value": None}]}, True),
    ("diff_assets", {"ok": True, "patch": [{"op": "remove", "path": "/a"}]}, True),
    ("diff_assets", {"ok": True, "patch": [{"op": "replace", "path": "", "value": [1]}]}, True),
    ("diff_assets", {"ok": True, "patch": [{"op": "move", "path": "/a", "from": "/b"}]}, False),
    ("diff_assets", {"ok": True, "patch": [{"op": "add", "value": 1}]}, False),
    ("populate_backend", {"ok": True, "asset_id": "1", "backend_url": "http://127.0.0.1"}, True),
    ("populate_backend", INVALID, True),
    ("populate_backend", BACKEND, True),
    ("populate_backend", UNSUPPORTED, True),
    ("populate_backend", {"ok": False, "reason": "backend_error"}, True),
    ("populate_backend", {"ok": True, "asset_id": 1, "backend_url": "http://127.0.0.1"}, False),
    ("populate_backend", {"ok": True, "asset_id": "1"}, False),
    ("populate_backend", {"ok": False}, False),
    ("populate_backend", NOT_FOUND, False),
    ("populate_backend", BACKEND | {"status": "500"}, False),
    ("populate_backend", BACKEND | {"detail": {}}, False),
]


def keeps(direction: str, tool: str, value: Any) -> bool:
    schema = getattr(SchemaRegistry().load_tool_io(tool), direction)
    try:
        schema.validate({"tool": tool, direction: value})
    except ValidationError:
        return False
    return True


@rows(("tool", "value", "good"), INPUTS)
def test_what_a_tool_takes(tool: str, value: Any, good: bool) -> None:
    """Source: specs/001, 4."""
    assert keeps("input", tool, value) is good


@rows(("tool", "value", "good"), OUTPUTS)
def test_what_a_tool_gives(tool: str, value: Any, good: bool) -> None:
    """Source: specs/001, 4 and 6."""
    assert keeps("output", tool, value) is good


def test_there_are_seven_tools_with_examples_of_both_kinds_each() -> None:
    assert len(TOOLS) == 7
    for table in (INPUTS, OUTPUTS):
        assert {(tool, good) for tool, _, good in table} == {(tool, good) for tool in TOOLS for good in (True, False)}


@rows("tool", TOOLS)
def test_both_schemas_are_objects_that_an_mcp_client_can_take(tool: str) -> None:
    """Source: MCP, Tool.inputSchema and Tool.outputSchema have type "object" at their root."""
    for schema in TOOLS[tool]:
        assert schema["type"] == "object"
        assert isinstance(compiled(schema), Compiled)
