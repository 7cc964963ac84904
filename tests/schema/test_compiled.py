"""What a compiled schema says of an instance."""

from typing import Any

import pytest
from engine_schemas import DRAFT_4, DRAFT_7, DRAFT_2019, STRINGS

from assay.schema.compiled import compile_schema, options
from kit.rows import rows

DRAFT_6 = "http://json-schema.org/draft-06/schema#"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"

PARTS = {
    "definitions": {
        "plain": STRINGS,
        "reference": {"$ref": "#/definitions/plain"},
        "a/b~c d%é": {"$ref": "#/definitions/plain"},
        "named": {
            "$id": "http://example.com/x",
            "properties": {"y": {"$ref": "y"}},
            "$defs": {"y": {"$id": "y", **STRINGS}},
        },
    }
}


@rows(
    ("schema", "value", "fits"),
    [
        ({"$schema": DRAFT_4, "type": "integer"}, 1.0, False),
        ({"$schema": DRAFT_4, "const": 1}, 2, True),
        ({"$schema": DRAFT_6, "const": 1}, 2, False),
        ({"$schema": DRAFT_6, "if": True, "then": False}, 1, True),
        ({"$schema": DRAFT_7, "if": True, "then": False}, 1, False),
        ({"$schema": DRAFT_7, "prefixItems": [STRINGS]}, [1], True),
        ({"$schema": DRAFT_7, "$ref": "#/definitions/a", "type": "null", "definitions": {"a": STRINGS}}, "x", True),
        ({"$schema": DRAFT_2019, "items": [STRINGS]}, [1], False),
        ({"$schema": DRAFT_2020, "prefixItems": [STRINGS]}, [1], False),
        ({"prefixItems": [STRINGS]}, [1], False),
    ],
)
def test_each_draft_is_judged_by_its_own_rules(schema: dict[str, Any], value: Any, fits: bool) -> None:
    """2020-12 where none is named."""
    assert compile_schema(schema).is_valid(value) is fits


@rows("dialect", [DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019, DRAFT_2020])
def test_formats_are_asserted_only_on_demand_whatever_the_draft(dialect: str) -> None:
    """Left to itself, the engine asserts them up to draft 7 and not after."""
    schema = {"$schema": dialect, "format": "ipv4"}
    assert compile_schema(schema).is_valid("x")
    strict = compile_schema(schema, formats=True)
    assert not strict.is_valid("x")
    assert [fault.keyword for fault in strict.faults("x").listed] == ["format"]


@rows(
    ("at", "value"),
    [
        pytest.param("#/definitions/plain", 1, id="plain"),
        pytest.param("#/definitions/reference", 1, id="reference"),
        pytest.param("#/definitions/a~1b~0c%20d%25%C3%A9", 1, id="escaped"),
        pytest.param("#/definitions/named", {"y": 1}, id="named"),
        pytest.param("#/definitions/named/properties/y", 1, id="inside-named"),
    ],
)
def test_a_part_is_judged_with_the_whole_document_to_resolve_in(at: str, value: Any) -> None:
    part = compile_schema(PARTS, at=at)
    assert not part.is_valid(value)
    assert part.is_valid("x" if value == 1 else {"y": "x"})
    assert [(fault.keyword, fault.found) for fault in part.faults(value).listed] == [("type", "1")]
    assert (part.at, part.schema) == (at, PARTS)


def test_a_whole_document_is_judged_as_it_stands() -> None:
    assert compile_schema(PARTS).is_valid(1)
    assert compile_schema(True).is_valid(1)
    assert not compile_schema(False).is_valid(1)
    assert [fault.keyword for fault in compile_schema(False).faults(1).listed] == ["false"]


@rows("schema", [{"type": "strnig"}, {"$ref": "#/nowhere"}, {"$schema": "urn:x"}])
def test_a_broken_schema_of_our_own_raises(schema: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        compile_schema(schema)


def test_nothing_is_fetched() -> None:
    with pytest.raises(ValueError, match=r"disabled|not present"):
        compile_schema({"$ref": "http://localhost:1/schema"})


def test_the_dialect_is_the_drafts_own_name() -> None:
    assert compile_schema({"$schema": "https://json-schema.org/draft-07/schema"}).dialect == DRAFT_7
    assert compile_schema({}).dialect == DRAFT_2020


def test_no_schema_is_ever_fetched() -> None:
    assert options(formats=False)["offline"] is True
