"""Any JSON value as the document of an operator: it is read, or refused with one line."""

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from own_documents import draft_document

from assay.settings.added_schemas import AddedSchema, understood
from assay.settings.schema_files import SchemaFileError
from kit.laws import law

KEYWORDS = (
    "$ref", "$defs", "$id", "$schema", "additionalProperties", "allOf", "anyOf", "const", "enum", "items", "maximum",
    "minLength", "not", "oneOf", "pattern", "prefixItems", "properties", "required", "type", "unevaluatedProperties",
    "dependencies", "additionalItems", "description", "default",
)  # fmt: skip
NAMES = ("A", "B", "ClientRequest", "JSONRPCRequest", "Result", "Tool")

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 5), st.sampled_from(("object", "string", "[a-", "^a+$", "#")),
    st.sampled_from([f"#/$defs/{name}" for name in NAMES]), st.sampled_from(["#/definitions/A", "#/$defs/Gone", "x#"]),
)  # fmt: skip
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=4),
        st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    ),
    max_leaves=12,
)
documents = st.one_of(
    values,
    st.fixed_dictionaries({"$defs": st.dictionaries(st.sampled_from(NAMES), values, min_size=1)}),
    st.fixed_dictionaries(
        {
            "$schema": st.just("http://json-schema.org/draft-07/schema#"),
            "definitions": st.dictionaries(st.sampled_from(NAMES), values, min_size=1),
        }
    ),
)


def check(document: Any) -> None:
    try:
        made = understood("x", json.dumps(document).encode())
    except SchemaFileError as error:
        [line] = str(error).splitlines()
        assert line
        return
    assert isinstance(made, AddedSchema)


@law(300)
@example(document={"$defs": {"A": {"const": {"$ref": "#/$defs/Gone"}}}})
@example(document={"$defs": {"A": {"properties": {"const": {"$ref": "#/$defs/B"}}}, "B": {}}})
@given(document=documents)
def test_any_document_is_read_or_refused(document: Any) -> None:
    check(document)


@law(60)
@given(name=st.sampled_from(["Tool", "CallToolRequest", "CallToolResultResponse", "Result"]), definition=values)
def test_a_revision_with_one_other_definition_is_read_or_refused(name: str, definition: Any) -> None:
    document = draft_document()
    document["$defs"][name] = definition
    check(document)
