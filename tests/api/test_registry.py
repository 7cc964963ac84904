"""specs/000: the envelope, and the input and output records of tools."""

from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import pytest

from assay.api.exceptions import ValidationError
from assay.api.registry import SchemaRegistry
from assay.assets.own_tools import TOOLS
from kit.rows import rows

ENVELOPE: dict[str, Any] = {"id": "a", "jsonrpc": "2.0", "method": "tools/list", "params": {}}
UUID = "0d4d5b3e-6f0a-5c56-9f57-0e5a4b1c2d3e"


def nested(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def faults(validate: Any, instance: Any) -> list[tuple[str, str]]:
    try:
        validate(instance)
    except ValidationError as error:
        return sorted((each.rule, each.at) for each in error.violations)
    return []


@rows(
    ("envelope", "found"),
    [
        (ENVELOPE, []),
        (ENVELOPE | {"params": {"a": 1}, "trace": "x"}, []),
        (ENVELOPE | {"id": ""}, []),
        (ENVELOPE | {"id": 1}, [("envelope/id", "/id")]),
        (ENVELOPE | {"jsonrpc": "1.0"}, [("envelope/jsonrpc", "/jsonrpc")]),
        (ENVELOPE | {"method": ""}, [("envelope/method", "/method")]),
        (ENVELOPE | {"params": []}, [("envelope/params", "/params")]),
        ({}, [("envelope/id", ""), ("envelope/jsonrpc", ""), ("envelope/method", ""), ("envelope/params", "")]),
        ([], [("envelope/message", "")]),
    ],
)
def test_an_envelope_has_all_four_members(envelope: Any, found: list[tuple[str, str]]) -> None:
    """Source: specs/000, Envelope Schema."""
    assert faults(SchemaRegistry().load_envelope().validate, envelope) == found


@rows(
    ("ident", "good"),
    [
        (UUID, True),
        (UUID.upper(), True),
        ("a", False),
        (f"{{{UUID}}}", False),
        (UUID.replace("-", ""), False),
        (5, False),
    ],
)
def test_with_deterministic_ids_an_id_is_a_uuid(ident: Any, good: bool) -> None:
    """Source: specs/000, UUID formatted when deterministic IDs enabled."""
    envelope = SchemaRegistry(deterministic_ids=True).load_envelope()
    assert (faults(envelope.validate, ENVELOPE | {"id": ident}) == []) is good


@rows(
    ("direction", "record", "found"),
    [
        ("input", {"tool": "get_schema", "input": {"name": "a"}}, []),
        ("input", {"tool": "get_schema", "input": {"name": "a"}, "more": 1}, []),
        ("input", {"tool": "x", "input": {"name": "a"}}, [("contract/input", "/tool")]),
        ("input", {"input": {"name": "a"}}, [("contract/input", "")]),
        ("input", {"tool": "get_schema"}, [("contract/input", "")]),
        ("input", {"tool": "get_schema", "input": {}}, [("contract/input", "/input")]),
        (
            "input",
            {"tool": 5, "input": {"name": 5, "more": 5}},
            [("contract/input", "/input/more"), ("contract/input", "/input/name"), ("contract/input", "/tool")],
        ),
        ("input", "get_schema", [("contract/input", "")]),
        ("input", {"tool": "get_schema", "input": nested(100_000)}, [("syntax/json", "")]),
        ("input", {"tool": "get_schema", "input": {"name": object()}}, [("syntax/json", "")]),
        ("output", {"tool": "get_schema", "output": {"ok": True, "schema": {}, "version": "1"}}, []),
        ("output", {"tool": "get_schema", "input": {"name": "a"}, "output": {"ok": False, "reason": "not_found"}}, []),
        ("output", {"tool": "get_schema", "input": {"name": "a"}}, [("contract/output", "")]),
        (
            "output",
            {"tool": "get_schema", "output": {"ok": True, "schema": {}, "version": 1}},
            [("contract/output", "/output/version")],
        ),
        (
            "output",
            {"tool": "x", "input": {"name": 1}, "output": {"ok": True, "schema": {}, "version": 1}},
            [("contract/input", "/input/name"), ("contract/output", "/output/version"), ("contract/output", "/tool")],
        ),
    ],
)
def test_a_record_names_the_tool_and_carries_what_its_schemas_ask(
    direction: str, record: Any, found: list[tuple[str, str]]
) -> None:
    """Source: specs/000, Tool I/O Schema; design, `SchemaRegistry`."""
    schemas = SchemaRegistry().load_tool_io("get_schema")
    assert faults(getattr(schemas, direction).validate, record) == found


@rows("tool", TOOLS)
def test_without_a_root_the_asset_servers_own_tools_are_known(tool: str) -> None:
    registry = SchemaRegistry()
    schemas = registry.load_tool_io(tool)
    assert schemas.tool == tool
    assert registry.load_tool_io(tool) is schemas
    canonical = orjson.dumps([tool, *TOOLS[tool]], option=orjson.OPT_SORT_KEYS)
    assert schemas.fingerprint == sha256(canonical).hexdigest()


@pytest.mark.parametrize("tool", ["search", "", "../get_schema", "get_schema ", None, 5, ["get_schema"], "x" * 10_000])
def test_an_unknown_tool_is_a_key_error(tmp_path: Path, tool: Any) -> None:
    for registry in (SchemaRegistry(), SchemaRegistry(tmp_path), SchemaRegistry(tmp_path / "nowhere")):
        with pytest.raises(KeyError) as raised:
            registry.load_tool_io(tool)
        assert len(str(raised.value)) < 500


BAD_OUTPUTS: list[tuple[str, Any]] = [
    ("list_schemas", {"ok": True}),
    ("list_schemas", {"ok": False, "schemas": []}),
    ("list_schemas", {"ok": True, "schemas": [{"name": "a", "version": "1"}]}),
    ("list_schemas", {"ok": True, "schemas": [{"name": "a", "version": 1, "path": "a.json"}]}),
    ("get_schema", {"ok": True, "schema": {}}),
    ("get_schema", {"ok": True, "schema": "text", "version": "1"}),
    ("get_schema", {"ok": False}),
    ("get_schema", {"ok": False, "reason": "unsupported"}),
    ("get_schema", {"ok": 1, "schema": {}, "version": "1"}),
    ("list_examples", {"ok": True, "examples": [{"component": "shader"}]}),
    ("get_example", {"ok": True, "example": {}, "schema": "a"}),
    ("get_example", {"ok": True, "example": {}, "schema": "a", "validated": "yes"}),
    ("get_example", {"ok": False, "reason": "not_found", "example": {}}),
    ("validate_asset", {}),
    ("validate_asset", {"ok": True, "errors": [{"path": "/a", "msg": "m"}]}),
    ("validate_asset", {"ok": True, "reason": "validation_failed"}),
    ("validate_asset", {"ok": False, "reason": "not_found"}),
    ("validate_asset", {"ok": False, "errors": [{"path": "/a"}]}),
    ("validate_asset", {"ok": False, "errors": [{"path": 0, "msg": "m"}]}),
    ("diff_assets", {"ok": True, "patch": [{"op": "move", "path": "/a", "from": "/b"}]}),
    ("diff_assets", {"ok": True, "patch": [{"op": "add", "value": 1}]}),
    ("populate_backend", {"ok": True, "asset_id": 1, "backend_url": "http://127.0.0.1"}),
    ("populate_backend", {"ok": True, "asset_id": "1"}),
    ("populate_backend", {"ok": False}),
    ("populate_backend", {"ok": False, "reason": "not_found"}),
    ("populate_backend", {"ok": False, "reason": "backend_error", "status": "500"}),
    ("populate_backend", {"ok": False, "reason": "backend_error", "detail": {}}),
]


@rows(("tool", "output"), BAD_OUTPUTS)
def test_what_a_tool_must_not_give_is_refused(tool: str, output: Any) -> None:
    """Source: specs/001, 4 and 6. What it may give, and what it takes, the tests of the asset server show."""
    assert {each for each, _ in BAD_OUTPUTS} == set(TOOLS)
    with pytest.raises(ValidationError):
        SchemaRegistry().load_tool_io(tool).output.validate({"tool": tool, "output": output})


# ── a directory of schemas ───────────────────────────────────────────────────────────────────────────────────────────

QUERY = {"type": "object", "properties": {"q": {"$ref": "#/$defs/text"}}, "$defs": {"text": {"type": "string"}}}
HITS = {"type": "object", "required": ["hits"]}


def write(root: Path, tool: str, direction: str, schema: Any) -> None:
    text = schema if isinstance(schema, bytes) else orjson.dumps(schema)
    (root / f"{tool}.{direction}.schema.json").write_bytes(text)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "schemas"
    made.mkdir()
    write(made, "search", "input", QUERY)
    write(made, "search", "output", HITS)
    return made


@rows("spelling", [str, Path])
def test_a_root_is_a_directory_of_schemas(root: Path, spelling: Any) -> None:
    registry = SchemaRegistry(spelling(root))
    schemas = registry.load_tool_io("search")
    assert faults(schemas.input.validate, {"tool": "search", "input": {"q": "a"}}) == []
    assert faults(schemas.input.validate, {"tool": "search", "input": {"q": 1}}) == [("contract/input", "/input/q")]
    assert faults(schemas.output.validate, {"tool": "search", "output": {}}) == [("contract/output", "/output")]
    with pytest.raises(KeyError):
        registry.load_tool_io("get_schema")


def test_a_changed_file_gives_a_new_fingerprint_and_the_old_object_when_it_is_changed_back(root: Path) -> None:
    registry = SchemaRegistry(root)
    first = registry.load_tool_io("search")
    write(root, "search", "output", b'{ "required" : ["hits"],\n "type": "object" }')
    assert registry.load_tool_io("search") is first
    write(root, "search", "output", {"type": "object"})
    second = registry.load_tool_io("search")
    assert second.fingerprint != first.fingerprint
    assert faults(second.output.validate, {"tool": "search", "output": {}}) == []
    write(root, "search", "output", HITS)
    assert registry.load_tool_io("search") is first
    write(root, "find", "input", QUERY)
    with pytest.raises(KeyError):
        registry.load_tool_io("find")
    write(root, "find", "output", HITS)
    assert registry.load_tool_io("find").fingerprint != first.fingerprint


@rows("tool", ["../outside", "../schemas/search", "sub/search", "/etc/passwd", ".", "..", "a\0b"])
def test_a_name_does_not_lead_out_of_the_root(root: Path, tool: str) -> None:
    """Source: ours; a tool's name comes from a message."""
    for where in (root.parent, root / "sub"):
        where.mkdir(exist_ok=True)
        for direction in ("input", "output"):
            write(where, "outside" if where is root.parent else "search", direction, {})
    with pytest.raises(KeyError):
        SchemaRegistry(root).load_tool_io(tool)


@rows(
    ("text", "reason"),
    [
        (b"{", "syntax/json"),
        (b'{"type":"strnig"}', "contract/schema"),
        (b'{"$ref":"http://127.0.0.1:1/x.json"}', "contract/remote-ref"),
    ],
)
@rows("direction", ["input", "output"])
def test_a_file_that_is_no_schema_is_a_value_error(root: Path, text: bytes, reason: str, direction: str) -> None:
    write(root, "search", direction, text)
    with pytest.raises(ValueError, match=reason):
        SchemaRegistry(root).load_tool_io("search")
    write(root, "search", direction, {})


def test_a_registry_shows_where_its_schemas_come_from(tmp_path: Path) -> None:
    assert repr(SchemaRegistry()) == "SchemaRegistry()"
    assert repr(SchemaRegistry(tmp_path, deterministic_ids=True)) == (
        f"SchemaRegistry({str(tmp_path)!r}, deterministic_ids=True)"
    )
