"""JSON Schema documents as a source of definitions: what is read, what is refused, and why."""

import json
from pathlib import Path
from typing import Any

import pytest
from own_documents import draft_document, extension_document, facts

from assay.spec.document_facts import DEEPEST, MOST_DEFINITIONS, DocumentError, DocumentFacts
from assay.spec.draft_revisions import DraftRevision, in_use, is_revision
from assay.spec.extensions.configured import ConfiguredMethod, configured
from assay.spec.extensions.official import ExtensionSet
from assay.spec.methods import methods
from assay.spec.revision_diff import changes
from assay.spec.revisions import LATEST, REVISIONS
from assay.spec.schema import ProtocolSchema, protocol_schema

DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def read(definition: Any, **more: Any) -> Any:
    """The one definition `A` as it is read, in a document with *more*."""
    return facts({**more, "$defs": {"A": definition, "B": {"type": "string"}}}).read("A", 0)


def refusal(document: Any) -> str:
    with pytest.raises(DocumentError) as caught:
        DocumentFacts(document)
    [line] = str(caught.value).splitlines()
    return line


def test_annotations_are_left_out_and_fields_of_these_names_stay() -> None:
    definition = {
        "title": "A", "description": "…", "type": "object", "default": {}, "examples": [{}],
        "properties": {"title": {"type": "string", "title": "T"}, "default": {"$ref": "#/$defs/B"}},
    }  # fmt: skip
    fields = {"title": {"type": "string"}, "default": {"$ref": "#/$defs/B"}}
    assert read(definition) == {"type": "object", "properties": fields}


def test_a_constant_keeps_its_place_in_values() -> None:
    assert read({"const": {"$ref": "#/nowhere", "title": 1}}) == {"const": {"$ref": "#/nowhere", "title": 1}}
    assert read({"enum": [{"description": "x"}]}) == {"enum": [{"description": "x"}]}


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        ({"$ref": "#/definitions/B", "minLength": 3}, {"$ref": "#/$defs/B"}),
        ({"items": [{"type": "null"}], "additionalItems": False}, {"prefixItems": [{"type": "null"}], "items": False}),
        ({"items": {"type": "string"}, "additionalItems": False}, {"items": {"type": "string"}}),
        (
            {"dependencies": {"a": ["b"], "c": {"minProperties": 2}}},
            {"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {"minProperties": 2}}},
        ),
    ],
)  # fmt: skip
def test_draft_07_is_read_by_its_own_meaning(definition: Any, expected: Any) -> None:
    document = {"$schema": DRAFT_7, "definitions": {"A": definition, "B": {"type": "string"}}}
    assert facts(document).read("A", 0) == expected


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ([], "expected a JSON object with definitions"),
        ({}, "expected definitions, as one object under $defs or definitions; use the schema.json of a revision"),
        ({"$defs": {}}, "expected definitions"),
        ({"$defs": []}, "expected definitions"),
        ({"type": "object"}, "expected definitions"),
        ({"$defs": {"A": {}}, "definitions": {"A": {}}}, "expected definitions"),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "$defs": {"A": {}}}, "$schema: expected JSON Schema"),
        ({"$schema": 5, "$defs": {"A": {}}}, "$schema: expected JSON Schema"),
        ({"$defs": {"A/B": {}}}, "the definition 'A/B' needs a name of letters"),
        ({"$defs": {"A": 5}}, "A: expected a schema"),
        ({"$defs": {"A": {"anyOf": {}}}}, "A/anyOf: expected an array of schemas"),
        ({"$defs": {"A": {"properties": []}}}, "A/properties: expected an object of schemas"),
        ({"$defs": {"A": {"items": {"$ref": "other.json#/A"}}}}, "A/items/$ref: expected a definition of this file"),
        ({"$defs": {"A": {"$ref": "#/$defs/A/properties/b"}}}, "A/$ref: expected a definition of this file"),
        ({"$defs": {"A": {"$ref": 5}}}, "A/$ref: expected a definition of this file"),
        ({"$defs": {"A": {"$id": "https://x/"}}}, "A/$id: a definition cannot have $id; remove it"),
        ({"$defs": {"A": {"$dynamicRef": "#x"}}}, "A/$dynamicRef: a definition cannot have $dynamicRef; remove it"),
        ({"$defs": {"A": {"$schema": DRAFT_7}}}, "A/$schema: a definition cannot have $schema; remove it"),
        ({"$defs": {f"A{number}": {} for number in range(MOST_DEFINITIONS + 1)}}, "it has 1,001 definitions"),
    ],
)
def test_a_document_that_cannot_be_used_is_refused_with_the_place(document: Any, why: str) -> None:
    assert refusal(document).startswith(why)


def test_a_definition_that_is_nested_too_deep_is_refused() -> None:
    deep: Any = {}
    for _ in range(5_000):
        deep = {"not": deep}
    assert refusal({"$defs": {"A": deep}}) == f"A: nested more than {DEEPEST} levels deep"


def test_references_to_what_is_missing_are_known_with_their_place() -> None:
    assert facts({"$defs": {"A": {"items": {"$ref": "#/$defs/Gone"}}}}).lacking == {"Gone": "A"}


# ── official files ───────────────────────────────────────────────────────────────────────────────────────────────────


def official(shared: Path, revision: str) -> DraftRevision:
    document = json.loads((shared / "mcp-schema" / revision / "schema.json").read_bytes())
    return DraftRevision(f"copy-of-{revision}", DocumentFacts(document))


@pytest.mark.parametrize("revision", REVISIONS)
def test_an_official_file_has_the_methods_of_our_table(shared: Path, revision: str) -> None:
    ours, theirs = methods(revision), official(shared, revision).methods
    assert set(ours) == set(theirs)
    for name, method in ours.items():
        found = theirs[name]
        assert (found.kind, found.senders, found.definition, found.result) == (
            method.kind, method.senders, method.definition, method.result,
        )  # fmt: skip


@pytest.mark.parametrize("revision", REVISIONS)
def test_an_official_file_does_not_differ_from_our_facts(shared: Path, revision: str) -> None:
    draft = official(shared, revision)
    with in_use(draft):
        assert changes(revision, draft.name, errata=False) == []
        corrected = changes(revision, draft.name)
    # Corrections are those of the revision that a draft resembles; 2025-06-18 has one that others do not have.
    assert {change.definition for change in corrected} <= ({"ElicitResult"} if revision == "2025-06-18" else set())


def test_our_own_export_is_read_back_as_it_is() -> None:
    found = facts(draft_document())
    assert is_revision(found)
    for name in protocol_schema(LATEST).definitions:
        if name not in {"ClientRequest", "ListToolsResult"}:
            assert found.read(name, 0) == protocol_schema(LATEST, errata=False).definition(name)


# ── limits of the engine ─────────────────────────────────────────────────────────────────────────────────────────────

DOUBLED = {f"A{number}": {"allOf": [{"$ref": f"#/$defs/A{number + 1}"}] * 2} for number in range(30)} | {"A30": {}}


@pytest.mark.parametrize(
    ("definitions", "why"),
    [
        ({"A": {"$ref": "#/$defs/A"}}, "expected references that come to an end at one value"),
        ({"A": {"allOf": [{"$ref": "#/$defs/B"}]}, "B": {"anyOf": [{"$ref": "#/$defs/A"}]}}, "a circle through"),
        ({"A": {"pattern": "("}}, "A/pattern"),
        ({"A": {"type": "text"}}, "A/type"),
        ({"A": {"minimum": "low"}}, "A/minimum"),
        (DOUBLED, "expected"),
        ({f"A{number}": {"const": "x" * 1_000} for number in range(400)}, "expected"),
        ({"A": {"$ref": "#/$defs/Toll"}}, "A refers to Toll, which neither the file nor 2026-07-28 defines"),
    ],
)  # fmt: skip
def test_a_definition_that_cannot_be_compiled_is_refused(definitions: Any, why: str) -> None:
    with pytest.raises(DocumentError, match=why.replace("(", r"\(")):
        configured("com.example/x", "x.json", facts({"$defs": definitions}), [])


def test_a_definition_of_an_extension_may_refer_to_one_of_the_revision() -> None:
    rows = [ConfiguredMethod("x/run", "client", "RunParams", None)]
    extension = configured("com.example/x", "x.json", facts(extension_document()), rows)
    for revision in REVISIONS:
        schema = ExtensionSet([extension]).schema(extension, revision)
        assert isinstance(schema, ProtocolSchema)
        judge = schema.validator("RunParams")
        assert judge.is_valid({"job": {"steps": 1}})
        assert judge.is_valid({"job": {"steps": 1}, "tool": {"name": "a", "inputSchema": {"type": "object"}}})
        assert not judge.is_valid({"job": {"steps": 1}, "tool": {"name": "a"}})
        assert schema.own == ("AskParams", "DoneParams", "Job", "RunParams", "RunResult")
