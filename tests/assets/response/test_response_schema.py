"""The envelope as JSON Schema: a tool's own schema inside it goes on meaning what it meant."""

from typing import Any

import pytest
from response_examples import FAILURE, SUCCESS, but

from assay.assets.response import ResponseEnvelope
from assay.engine.admission import SchemaRefusal, compile_untrusted
from kit.rows import rows

NODE = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "name": {"$ref": "#/$defs/name"},
        "next": {"$ref": "#"},
        "const": {"$ref": "#/$defs/name"},
        "$ref": {"type": "integer"},
    },
    "required": ["name"],
    "$defs": {"name": {"type": "string", "minLength": 1}},
}


def judged(schema: Any, data: Any, *, failed: bool = False) -> bool:
    compiled = compile_untrusted(ResponseEnvelope.json_schema(schema))
    assert not isinstance(compiled, SchemaRefusal)
    return compiled.is_valid(but(FAILURE if failed else SUCCESS, data=data))


@rows(
    ("schema", "good", "bad"),
    [
        pytest.param({"type": "integer"}, 1, "x", id="plain"),
        pytest.param(NODE, {"name": "a", "next": {"name": "b"}}, {"name": "a", "next": {"name": ""}}, id="recursive"),
        pytest.param(NODE, {"name": "a", "const": "b"}, {"name": "a", "const": 1}, id="property-called-const"),
        pytest.param(NODE, {"name": "a", "$ref": 1}, {"name": "a", "$ref": "b"}, id="property-called-ref"),
        pytest.param({"const": {"$ref": "#/x"}}, {"$ref": "#/x"}, {"$ref": "#/$defs/data/x"}, id="reference-as-value"),
        pytest.param({"$id": "urn:x", **NODE}, {"name": "a"}, {"name": ""}, id="document-of-its-own"),
        pytest.param(
            {"$ref": "#here", "$defs": {"a": {"$anchor": "here", "type": "null"}}}, None, 1, id="anchor"
        ),
        pytest.param({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"type": "null"}}}, None, 1, id="in-a-list"),
    ],
)  # fmt: skip
def test_the_schema_of_data_applies(schema: dict[str, Any], good: Any, bad: Any) -> None:
    assert judged(schema, good)
    assert not judged(schema, bad)


@rows("data", [None, {"success": False}, 7])
def test_the_data_of_a_failure_is_the_tools_own_affair(data: Any) -> None:
    assert judged(NODE, data, failed=True)


def test_a_schema_that_allows_nothing_allows_failures_only() -> None:
    assert not judged(False, None)
    assert judged(False, None, failed=True)


def test_without_a_schema_data_is_anything() -> None:
    assert "$defs" not in ResponseEnvelope.json_schema()
    assert judged(True, [None])


def test_the_schema_is_fresh_and_leaves_what_it_was_given_alone() -> None:
    ResponseEnvelope.json_schema()["properties"].clear()
    given = {"$ref": "#/$defs/a", "$defs": {"a": {}}}
    ResponseEnvelope.json_schema(given)["$defs"]["data"]["$defs"].clear()
    assert given == {"$ref": "#/$defs/a", "$defs": {"a": {}}}
    assert len(ResponseEnvelope.json_schema()["properties"]) == 9


@rows(
    ("schema", "kind"),
    [
        pytest.param({"$schema": "http://json-schema.org/draft-07/schema#"}, ValueError, id="another-draft"),
        pytest.param([], TypeError, id="no-schema"),
        pytest.param(None, TypeError, id="null"),
    ],
)
def test_what_is_no_schema_of_this_draft_is_refused(schema: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="data must be"):
        ResponseEnvelope.json_schema(schema)
