"""References between schema files: resolved from the files, wherever they are; never fetched."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from assay.assets.asset_sources import Catalogue
from kit.catalogues import answer, of_schemas, variables
from kit.rows import rows

D2020, D7 = "https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"
STRING = {"type": "string"}
BASE, INNER = "https://s.example", "https://s.example/inner"
OTHER = "other.schema.json"


def pointing(to: str, **more: Any) -> dict[str, Any]:
    return {"properties": {"x": {"$ref": to}}, **more}


def assert_x_is_a_string(directory: Path, main: Any, other: Any) -> None:
    """The schema called `main` wants that, by way of the other file or not, and is handed out as it was written."""
    catalogue = of_schemas(directory, {"main.schema.json": main, OTHER: other})
    assert answer(catalogue, "validate_asset", asset={"x": "text"}, schema="main") == {"ok": True, "errors": []}
    assert answer(catalogue, "validate_asset", asset={"x": 1}, schema="main") == {
        "ok": False,
        "reason": "validation_failed",
        "errors": [{"path": "/x", "msg": "expected a string, found 1"}],
    }
    assert answer(catalogue, "get_schema", name="main")["schema"] == main


def error_of(catalogue: Catalogue, schema: str) -> str:
    """Why a schema cannot be used."""
    [error] = answer(catalogue, "validate_asset", asset={}, schema=schema)["errors"]
    assert error["path"] == ""
    assert error["msg"].startswith(f"schema `{schema}` cannot be used: ")
    message: str = error["msg"]
    return message


@rows("folder", ["plain", "with space & ünïcödé %41#?"])
@rows(
    ("main", "other"),
    [
        *((pointing(to), STRING) for to in (OTHER, f"./{OTHER}", f"../jsonschema/{OTHER}")),
        (pointing(f"{OTHER}#/$defs/s"), {"$defs": {"s": STRING}}),
        (pointing(f"{OTHER}#s"), {"$defs": {"s": {"$anchor": "s", **STRING}}}),
        # Below no keyword.
        (pointing(f"{OTHER}#/shapes/a~1b"), {"shapes": {"a/b": STRING}}),
        (pointing(f"{OTHER}#/shapes/a"), {"shapes": {"a": {"$ref": f"{OTHER}#/shapes/b"}, "b": STRING}}),
        # By identifiers.
        (pointing(f"{BASE}/o"), {"$id": f"{BASE}/o", **STRING}),
        (pointing(f"{BASE}/o"), {"$id": f"{BASE}/o#", **STRING}),
        (pointing("o", **{"$id": f"{BASE}/main"}), {"$id": f"{BASE}/o", **STRING}),
        (pointing(OTHER, **{"$id": f"{BASE}/a/main"}), {"$id": f"{BASE}/b/o", **STRING}),
        (pointing("urn:x:o"), {"$id": "urn:x:o", **STRING}),
        (pointing(INNER), {"$defs": {"i": {"$id": INNER, **STRING}}}),
        (
            pointing(f"{BASE}/deep/inner#/$defs/s"),
            {
                "$id": f"{BASE}/",
                "$defs": {
                    "i": {"$id": "deep/inner", "$defs": {"s": {"$ref": "beside"}}},
                    "b": {"$id": "deep/beside", **STRING},
                },
            },
        ),
        ({"$schema": D7, **pointing(f"{OTHER}#/definitions/s")}, {"$schema": D7, "definitions": {"s": STRING}}),
        # Data is left alone.
        ({"properties": {"x": STRING, "default": {"$ref": "#"}}, "default": {"$ref": "nowhere"}}, STRING),
        # There and back.
        (
            pointing(OTHER),
            {"$ref": "main.schema.json#/$defs/s", "$defs": {"back": {"$ref": "main.schema.json"}}},
        ),
    ],
)
def test_a_reference_leads_to_the_other_file(main: Any, other: Any, folder: str, tmp_path: Path) -> None:
    main = {**main, "$defs": {**main.get("$defs", {}), "s": STRING}}
    assert_x_is_a_string(tmp_path / folder, main, other)


TO_S = {"$ref": "#/definitions/s"}
TO_X = {"$ref": "#/definitions/x"}


@rows("draft", ["04", "06", "07"])
@rows(
    ("main", "other"),
    [
        (TO_X, {}),
        # What is beside it is ignored, but can be pointed into.
        ({**TO_X, "properties": {"x": False}}, {}),
        ({"$ref": "#/items/a~1b%20c", "items": {"a/b c": pointing("#/definitions/s")}}, {}),
        ({"$ref": "#x", "definitions": {"x": {"$id": "#x", **pointing("#s")}}}, {}),
        ({**TO_X, "definitions": {"x": pointing(INNER), "i": {"$id": INNER, **STRING}}}, {}),
        (
            {
                "$ref": INNER,
                "definitions": {"i": {"$id": INNER, **pointing("#/definitions/j"), "definitions": {"j": STRING}}},
            },
            {},
        ),
        ({**TO_X, "definitions": {"x": pointing("#/definitions/s", items={"$ref": "#"})}}, {}),
        # To such a file.
        *((pointing(to), TO_S) for to in (OTHER, f"{OTHER}#", f"{OTHER}#/definitions/s")),
        (pointing(f"{OTHER}#t"), {**TO_S, "definitions": {"t": {"$id": "#t", **STRING}}}),
        (pointing(INNER), {**TO_S, "definitions": {"t": {"$id": INNER, **STRING}}}),
        # From such a file, and back.
        ({"$ref": OTHER}, pointing("#/definitions/s")),
        ({"$ref": f"{OTHER}#/definitions/x"}, {}),
        ({**TO_X, "definitions": {"x": pointing(OTHER)}}, TO_S),
        ({"$ref": OTHER}, {"$ref": "main.schema.json#/definitions/x"}),
        # Its identifier is ignored.
        ({"$id": f"{BASE}/deep/", "$ref": OTHER}, {"$id": f"{BASE}/flat/", **pointing("#/definitions/s")}),
    ],
)
def test_up_to_draft_7_a_root_can_be_a_reference(main: Any, other: Any, draft: str, tmp_path: Path) -> None:
    """Draft 7, "$ref": all other properties are ignored, the identifier too. Generators write such files."""
    usual = {"s": {"$id": "#s", **STRING}, "x": pointing("#/definitions/s")}
    files = ({**each, "definitions": {**usual, **each.get("definitions", {})}} for each in (main, other))
    assert_x_is_a_string(tmp_path, *(in_draft(draft, each) for each in files))


def in_draft(draft: str, schema: Any) -> Any:
    """*schema*, which is one of draft 7, as an older *draft* spells it."""
    text = json.dumps({"$schema": f"http://json-schema.org/draft-{draft}/schema#", **schema})
    return json.loads(text.replace('"$id"', '"id"').replace("false", '{"not": {}}') if draft == "04" else text)


@rows(
    ("schema", "words"),
    [
        (TO_X, "a reference that resolves, found #/definitions/x at"),
        ({"$ref": "x.json"}, "a reference inside the schema, found x.json at"),
        ({"$ref": "good.json#/none"}, "a reference that resolves, found good.json#/none at"),
        ({"$ref": "#"}, "found a cycle through `$ref` at"),
        ({**TO_X, "definitions": {"x": {"pattern": "("}}}, "a regular expression"),
        (pointing("https://schemas.example.org/else.json"), "a reference inside the schema"),
        (pointing("file:///etc/passwd"), "a reference inside the schema"),
        (pointing("missing.json"), "found missing.json at jsonschema/bad.json#/prop"),
        (pointing("#/$defs/none"), "a reference that resolves"),
        (pointing("good.json#/$defs/no"), "found good.json#/$defs/no at"),
        (pointing("http://[broken"), "a reference inside the schema"),
        ({"type": "strnig"}, "expected one of array, boolean"),
        ({"$schema": "https://example.org/mine"}, "a known draft"),
        # In a definition called `file`, as we call the one that a file is wrapped in.
        *(
            ({"definitions": {"file": pointing("no.json")}, **more}, "bad.json#/definitions/file/properties/x/$ref")
            for more in ({}, {"$ref": "#/definitions/file"})
        ),
    ],
)
@rows("draft", [D2020, D7])
def test_a_schema_that_cannot_be_used_is_said_to_be_so_with_the_place_in_the_file(
    schema: Any, words: str, draft: str, tmp_path: Path
) -> None:
    catalogue = of_schemas(tmp_path, {"bad.json": {"$schema": draft, **schema}, "good.json": STRING})
    error = error_of(catalogue, "bad")
    assert words in error
    assert " at jsonschema/bad.json" in error
    assert error.count("/definitions/file") == words.count("/definitions/file")
    assert "catalogue.invalid" not in error
    assert answer(catalogue, "validate_asset", asset="text", schema="good")["ok"] is True


def test_look_around_in_a_pattern_is_allowed_to_the_operator(tmp_path: Path) -> None:
    """Unlike in schemas from an upstream server: these files are the operator's own."""
    catalogue = of_schemas(tmp_path, {"a.schema.json": {"type": "string", "pattern": "^(?!x).*$"}})
    assert [answer(catalogue, "validate_asset", asset=each, schema="a")["ok"] for each in "yx"] == [True, False]


def test_two_files_with_one_identifier_are_logged(tmp_path: Path) -> None:
    same = {"$id": "https://s.example/same"}
    files = {"a.json": {**same, **STRING}, "b.json": {**same, "type": "null"}, "c.json": pointing(same["$id"])}
    of_schemas(tmp_path, files)
    lines: list[str] = []
    catalogue = Catalogue.read(variables(tmp_path), tmp_path, lines.append)
    assert "jsonschema/b.json: shares the name https://s.example/same with jsonschema/a.json" in lines
    assert answer(catalogue, "validate_asset", asset={"x": "text"}, schema="c")["ok"] is True
    assert answer(catalogue, "validate_asset", asset=None, schema="b")["ok"] is True


# ── the reference data ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def reference(shared: Path) -> Path:
    return shared / "synesthetic-schemas"


@rows("folder", ["", "somewhere else/deep"])
def test_every_reference_example_validates_from_any_directory(reference: Path, folder: str, tmp_path: Path) -> None:
    """specs/001 §9. `_skip` is left out: its one file matches no schema."""
    directory = Path(shutil.copytree(reference, tmp_path / folder)) if folder else reference
    catalogue = Catalogue.read(variables(directory), tmp_path)
    listed = answer(catalogue, "list_examples")["examples"]
    assert len(listed) == 14
    for each in listed:
        found = answer(catalogue, "get_example", path=each["path"])
        assert found["validated"], each
        assert found["example"]["$schemaRef"] == f"jsonschema/{found['schema']}.schema.json"
        if found["schema"] == "synesthetic-asset":
            nested = answer(catalogue, "validate_asset", asset=found["example"], schema="nested-synesthetic-asset")
            assert nested == {"ok": True, "errors": []}
    assert len(answer(catalogue, "list_examples", component="synesthetic-asset")["examples"]) == 9
    assert answer(catalogue, "get_example", path="_skip/ShaderLib_Example.json")["ok"] is False


def test_what_is_wrong_in_a_nested_asset_is_pointed_at(reference: Path) -> None:
    catalogue = Catalogue.read(variables(reference), reference)
    asset = answer(catalogue, "get_example", path="SynestheticAsset_Example1.json")["example"]
    asset["shader"]["uniforms"][0] = 1
    asset["tone"]["synth"] = None
    errors = answer(catalogue, "validate_asset", asset=asset, schema="nested-synesthetic-asset")["errors"]
    assert [error["path"] for error in errors] == ["/shader/uniforms/0", "/tone/synth"]


@rows("draft", [D7, D2020])
def test_a_schemaref_that_is_asked_for_behind_a_root_reference_is_judged(draft: str, tmp_path: Path) -> None:
    inner = {"required": ["$schemaRef"], "properties": {"$schemaRef": STRING}, "additionalProperties": False}
    schema = {"$schema": draft, "$ref": "#/definitions/x", "definitions": {"x": inner}}
    catalogue = of_schemas(tmp_path, {"a.schema.json": schema})
    asset = {"$schemaRef": "jsonschema/a.schema.json"}
    assert answer(catalogue, "validate_asset", asset=asset, schema="a") == {"ok": True, "errors": []}
