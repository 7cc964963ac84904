"""The envelope as JSON Schema: a tool's own schema inside it goes on meaning what it meant."""

from typing import Any

import pytest
from response_examples import FAILURE, SUCCESS, but

from assay.assets.response_envelope import ResponseEnvelope
from assay.schema.admission import SchemaRefusal, compile_untrusted
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
        ({"type": "integer"}, 1, "x"),
        (NODE, {"name": "a", "next": {"name": "b"}}, {"name": "a", "next": {"name": ""}}),
        (NODE, {"name": "a", "const": "b"}, {"name": "a", "const": 1}),
        (NODE, {"name": "a", "$ref": 1}, {"name": "a", "$ref": "b"}),
        ({"const": {"$ref": "#/x"}}, {"$ref": "#/x"}, {"$ref": "#/$defs/data/x"}),
        ({"$id": "urn:x", **NODE}, {"name": "a"}, {"name": ""}),
        ({"$ref": "#here", "$defs": {"a": {"$anchor": "here", "type": "null"}}}, None, 1),
        ({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"type": "null"}}}, None, 1),
    ],
)
def test_the_schema_of_data_applies(schema: dict[str, Any], good: Any, bad: Any) -> None:
    assert judged(schema, good)
    assert not judged(schema, bad)


def test_the_data_of_a_failure_is_the_tools_own_affair() -> None:
    assert all(judged(NODE, data, failed=True) for data in (None, {"success": False}, 7))
    # A schema that allows nothing allows failures only; without one data is anything.
    assert [judged(False, None, failed=failed) for failed in (False, True)] == [False, True]
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
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, ValueError),
        ([], TypeError),
        (None, TypeError),
    ],
)
def test_what_is_no_schema_of_this_draft_is_refused(schema: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="data must be"):
        ResponseEnvelope.json_schema(schema)
