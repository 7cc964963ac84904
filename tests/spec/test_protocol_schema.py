"""The compiled schema of each revision: complete, lazy, the same on every run, corrected unless asked otherwise."""

from typing import Any

import jsonschema_rs
import pytest

from assay.spec.revisions import REVISIONS
from assay.spec.schema import ERRATA, protocol_schema
from kit.rows import rows

DEFINITIONS = {"2024-11-05": 79, "2025-03-26": 83, "2025-06-18": 91, "2025-11-25": 145, "2026-07-28": 155}


def takes(revision: str, definition: str, value: Any, *, errata: bool = True) -> bool:
    """The verdict of the schema alone, without our engine."""
    document = {"$ref": f"#/$defs/{definition}"} | protocol_schema(revision, errata=errata).closure(definition)
    return jsonschema_rs.Draft202012Validator(document).is_valid(value)


@rows("errata", [True, False])
@rows("revision", REVISIONS)
def test_every_definition_compiles(revision: str, errata: bool) -> None:
    protocol = protocol_schema(revision, errata=errata)
    assert len(protocol.definitions) == DEFINITIONS[revision]
    assert list(protocol.definitions) == sorted(protocol.definitions)
    document = protocol.document()
    assert tuple(document["$defs"]) == protocol.definitions
    jsonschema_rs.meta.validate(document)
    for name in protocol.definitions:
        jsonschema_rs.Draft202012Validator({"$ref": f"#/$defs/{name}"} | protocol.closure(name))


def test_a_closure_has_what_is_needed_and_no_more() -> None:
    closure = protocol_schema("2025-11-25").closure("CallToolRequest")
    assert closure["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert list(closure["$defs"]) == [
        "CallToolRequest",
        "CallToolRequestParams",
        "ProgressToken",
        "RequestId",
        "TaskMetadata",
    ]


@rows(
    ("revision", "definition", "message"),
    [
        pytest.param("2025-11-25", "calltoolresult", "did you mean CallToolResult?", id="case"),
        pytest.param("2025-11-25", "CalToolResult", "did you mean CallToolResult", id="close"),
        pytest.param("2025-11-25", "Qqqqqq", "2025-11-25 has no definition 'Qqqqqq'", id="nothing-close"),
        pytest.param("2024-11-05", "ElicitResult", "it is in 2025-06-18, 2025-11-25, 2026-07-28", id="other-revision"),
        pytest.param("2024-11-05", "request", "2024-11-05 has no definition 'request'", id="ours"),
    ],
)
def test_an_unknown_name_is_refused_with_a_hint(revision: str, definition: str, message: str) -> None:
    with pytest.raises(KeyError) as caught:
        protocol_schema(revision).definition(definition)
    assert message in caught.value.args[0]


@rows(
    ("definition", "value", "revisions"),
    [
        ("ElicitResult", {"action": "accept", "content": {"n": 3.14}}, ("2025-06-18", "2025-11-25", "2026-07-28")),
        pytest.param("JSONValue", 1.5, ("2026-07-28",), id="a-fraction"),
        pytest.param("JSONValue", None, ("2026-07-28",), id="null"),
        pytest.param("JSONObject", {"a": [None, {"b": 0.5}]}, ("2026-07-28",), id="deep-in-an-object"),
        pytest.param("ClientCapabilities", {"experimental": {"x": {"y": 0.5}}}, ("2026-07-28",), id="where-it-is-used"),
    ],
)
def test_the_slips_of_the_official_files_are_corrected_unless_asked_for(
    definition: str, value: Any, revisions: tuple[str, ...]
) -> None:
    """Source: schema.ts of these revisions, which has `number` (and null) where schema.json has `integer`."""
    for revision in revisions:
        assert takes(revision, definition, value)
        assert not takes(revision, definition, value, errata=False)


@rows(
    ("revision", "definition", "value"),
    [
        ("2025-06-18", "ElicitResult", {"action": "accept", "content": {"n": None}}),
        pytest.param("2025-06-18", "ElicitResult", {"action": "accept", "content": {"n": ["a"]}}, id="array-too-early"),
        pytest.param("2025-11-25", "ElicitResult", {"action": "accept", "content": {"n": [1]}}, id="array-of-numbers"),
    ],
)
def test_a_correction_takes_no_more_than_the_specification(revision: str, definition: str, value: Any) -> None:
    assert not takes(revision, definition, value)


@rows("revision", REVISIONS)
def test_the_corrections_are_the_only_difference(revision: str) -> None:
    corrected, literal = (protocol_schema(revision, errata=errata) for errata in (True, False))
    differing = {name for name in literal.definitions if corrected.definition(name) != literal.definition(name)}
    assert differing == {erratum.definition for erratum in ERRATA if revision in erratum.revisions}


def test_formats_are_asserted_on_request_only() -> None:
    protocol = protocol_schema("2025-11-25")
    root = {"uri": "no URI at all"}
    assert protocol.validator("Root").is_valid(root)
    assert not protocol.validator("Root", formats=True).is_valid(root)


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(KeyError, match="has no part /properties/parms"):
        protocol_schema("2025-11-25").validator("CallToolRequest", "/properties/parms")
