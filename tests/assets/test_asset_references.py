"""References between schema files: resolved from the files, wherever they are; never fetched."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from assay.assets.asset_sources import Catalogue
from kit.catalogues import answer, of_schemas, variables

D2020 = "https://json-schema.org/draft/2020-12/schema"
STRING = {"type": "string"}


def pointing(to: str, **more: Any) -> dict[str, Any]:
    return {"properties": {"x": {"$ref": to}}, **more}


@pytest.mark.parametrize(
    ("main", "other"),
    [
        pytest.param(pointing("other.schema.json"), STRING, id="file-name"),
        pytest.param(pointing("./other.schema.json"), STRING, id="dot"),
        pytest.param(pointing("../jsonschema/other.schema.json"), STRING, id="dots"),
        pytest.param(pointing("other.schema.json#/$defs/s"), {"$defs": {"s": STRING}}, id="pointer"),
        pytest.param(pointing("other.schema.json#s"), {"$defs": {"s": {"$anchor": "s", **STRING}}}, id="anchor"),
        pytest.param(pointing("other.schema.json#/shapes/a~1b"), {"shapes": {"a/b": STRING}}, id="no-keyword"),
        pytest.param(
            pointing("other.schema.json#/shapes/a"),
            {"shapes": {"a": {"$ref": "other.schema.json#/shapes/b"}, "b": STRING}},
            id="reference-in-no-keyword",
        ),
        pytest.param(pointing("https://s.example/o"), {"$id": "https://s.example/o", **STRING}, id="identifier"),
        pytest.param(pointing("https://s.example/o"), {"$id": "https://s.example/o#", **STRING}, id="empty-fragment"),
        pytest.param(
            pointing("o", **{"$id": "https://s.example/main"}), {"$id": "https://s.example/o", **STRING}, id="beside"
        ),
        pytest.param(
            pointing("other.schema.json", **{"$id": "https://s.example/a/main"}),
            {"$id": "https://s.example/b/o", **STRING},
            id="path-beside-another-identifier",
        ),
        pytest.param(pointing("urn:x:o"), {"$id": "urn:x:o", **STRING}, id="urn"),
        pytest.param(
            pointing("https://s.example/inner"),
            {"$defs": {"i": {"$id": "https://s.example/inner", **STRING}}},
            id="embedded-identifier",
        ),
        pytest.param(
            pointing("https://s.example/deep/inner#/$defs/s"),
            {
                "$id": "https://s.example/",
                "$defs": {
                    "i": {"$id": "deep/inner", "$defs": {"s": {"$ref": "beside"}}},
                    "b": {"$id": "deep/beside", **STRING},
                },
            },
            id="relative-in-embedded",
        ),
        pytest.param(
            {"$schema": "http://json-schema.org/draft-07/schema#", **pointing("other.schema.json#/definitions/s")},
            {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"s": STRING}},
            id="draft-07",
        ),
        pytest.param(
            {"properties": {"x": {"type": "string"}, "default": {"$ref": "#"}}, "default": {"$ref": "nowhere"}},
            STRING,
            id="data-is-left-alone",
        ),
        pytest.param(
            pointing("other.schema.json"),
            {"$ref": "main.schema.json#/$defs/s", "$defs": {"back": {"$ref": "main.schema.json"}}},
            id="there-and-back",
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("folder", ["plain", "with space & ünïcödé %41#?"])
def test_a_reference_leads_to_the_other_file(main: Any, other: Any, folder: str, tmp_path: Path) -> None:
    main = {**main, "$defs": {**main.get("$defs", {}), "s": STRING}}
    catalogue = of_schemas(tmp_path / folder, {"main.schema.json": main, "other.schema.json": other})
    assert answer(catalogue, "validate_asset", asset={"x": "text"}, schema="main") == {"ok": True, "errors": []}
    assert answer(catalogue, "validate_asset", asset={"x": 1}, schema="main") == {
        "ok": False,
        "reason": "validation_failed",
        "errors": [{"path": "/x", "msg": "expected a string, found 1"}],
    }
    # What is handed out is the file, not what we made of it.
    assert answer(catalogue, "get_schema", name="main")["schema"] == main


INNER = "https://s.example/inner"
TO_S = {"$ref": "#/definitions/s"}


@pytest.mark.parametrize("draft", ["04", "06", "07"])
@pytest.mark.parametrize(
    ("main", "other"),
    [
        pytest.param({"$ref": "#/definitions/x", "definitions": {"x": pointing("#/definitions/s")}}, {}, id="alone"),
        pytest.param(
            {"$ref": "#/definitions/x", "definitions": {"x": pointing("#/definitions/s")}, "properties": {"x": False}},
            {},
            id="what-is-beside-it-is-ignored",
        ),
        pytest.param(
            {"$ref": "#/items/a~1b%20c", "items": {"a/b c": pointing("#/definitions/s")}}, {}, id="into-what-is-ignored"
        ),
        pytest.param({"$ref": "#x", "definitions": {"x": {"$id": "#x", **pointing("#s")}}}, {}, id="by-a-name"),
        pytest.param(
            {"$ref": "#/definitions/x", "definitions": {"x": pointing(INNER), "i": {"$id": INNER, **STRING}}},
            {},
            id="by-an-identifier-inside",
        ),
        pytest.param(
            {
                "$ref": INNER,
                "definitions": {"i": {"$id": INNER, **pointing("#/definitions/j"), "definitions": {"j": STRING}}},
            },
            {},
            id="pointers-below-an-identifier",
        ),
        pytest.param(
            {"$ref": "#/definitions/x", "definitions": {"x": pointing("#/definitions/s", items={"$ref": "#"})}},
            {},
            id="that-comes-back",
        ),
        pytest.param(pointing("other.schema.json"), TO_S, id="to-it"),
        pytest.param(pointing("other.schema.json#"), TO_S, id="to-its-root"),
        pytest.param(pointing("other.schema.json#/definitions/s"), TO_S, id="to-what-it-defines"),
        pytest.param(
            pointing("other.schema.json#t"), {**TO_S, "definitions": {"t": {"$id": "#t", **STRING}}}, id="to-its-names"
        ),
        pytest.param(
            pointing(INNER), {**TO_S, "definitions": {"t": {"$id": INNER, **STRING}}}, id="to-identifiers-in-it"
        ),
        pytest.param({"$ref": "other.schema.json"}, pointing("#/definitions/s"), id="from-it"),
        pytest.param(
            {"$ref": "other.schema.json#/definitions/x"},
            {"definitions": {"x": pointing("#/definitions/s")}},
            id="from-it-to-what-is-defined",
        ),
        pytest.param(
            {"$ref": "#/definitions/x", "definitions": {"x": pointing("other.schema.json")}}, TO_S, id="from-one-to-one"
        ),
        pytest.param(
            {"$ref": "other.schema.json"},
            {"$ref": "main.schema.json#/definitions/x"},
            id="there-and-back",
        ),
        pytest.param(
            {"$id": "https://s.example/deep/", "$ref": "other.schema.json"},
            {"$id": "https://s.example/flat/", **pointing("#/definitions/s")},
            id="its-identifier-is-ignored",
        ),
    ],
)  # fmt: skip
def test_up_to_draft_7_a_root_can_be_a_reference(main: Any, other: Any, draft: str, tmp_path: Path) -> None:
    """Draft 7, "$ref": all other properties are ignored, the identifier too. Generators write such files."""
    usual = {"s": {"$id": "#s", **STRING}, "x": pointing("#/definitions/s")}
    files = {
        f"{name}.schema.json": in_draft(draft, {**file, "definitions": {**usual, **file.get("definitions", {})}})
        for name, file in (("main", main), ("other", other))
    }
    catalogue = of_schemas(tmp_path, files)
    assert answer(catalogue, "validate_asset", asset={"x": "text"}, schema="main") == {"ok": True, "errors": []}
    assert answer(catalogue, "validate_asset", asset={"x": 1}, schema="main") == {
        "ok": False,
        "reason": "validation_failed",
        "errors": [{"path": "/x", "msg": "expected a string, found 1"}],
    }
    assert answer(catalogue, "get_schema", name="main")["schema"] == files["main.schema.json"]


def in_draft(draft: str, schema: Any) -> Any:
    """*schema*, which is one of draft 7, as an older *draft* spells it."""
    text = json.dumps({"$schema": f"http://json-schema.org/draft-{draft}/schema#", **schema})
    return json.loads(text.replace('"$id"', '"id"').replace("false", '{"not": {}}') if draft == "04" else text)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        pytest.param({"$ref": "#/definitions/x"}, "something that is there, found #/definitions/x at", id="dangling"),
        pytest.param({"$ref": "x.json"}, "a reference inside the schema, found x.json at", id="missing"),
        pytest.param({"$ref": "good.json#/none"}, "something that is there, found good.json#/none at", id="in-another"),
        pytest.param({"$ref": "#"}, "found a circle through `$ref` at", id="circle"),
        pytest.param(
            {"$ref": "#/definitions/x", "definitions": {"x": {"pattern": "("}}}, "a regular expression", id="pattern"
        ),
    ],
)
def test_a_root_that_refers_to_nothing_is_named_as_it_was_written(schema: Any, words: str, tmp_path: Path) -> None:
    catalogue = of_schemas(tmp_path, {"bad.json": in_draft("07", schema), "good.json": in_draft("07", STRING)})
    [error] = answer(catalogue, "validate_asset", asset={}, schema="bad")["errors"]
    assert words in error["msg"]
    assert " at jsonschema/bad.json#" in error["msg"]
    assert "/definitions/file" not in error["msg"]
    assert "catalogue.invalid" not in error["msg"]


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        pytest.param(pointing("https://schemas.example.org/else.json"), "a reference inside the schema", id="http"),
        pytest.param(pointing("file:///etc/passwd"), "a reference inside the schema", id="file"),
        pytest.param(pointing("missing.json"), "found missing.json at jsonschema/bad.schema.json#/prop", id="missing"),
        pytest.param(pointing("#/$defs/none"), "something that is there", id="dangling"),
        pytest.param(
            pointing("good.schema.json#/$defs/no"), "found good.schema.json#/$defs/no at", id="dangling-in-another"
        ),
        pytest.param(pointing("http://[broken"), "a reference inside the schema", id="no-uri"),
        pytest.param({"type": "strnig"}, "expected one of array, boolean", id="no-schema"),
        pytest.param({"$schema": "https://example.org/mine"}, "a known draft", id="dialect"),
        pytest.param({"$ref": "#"}, "cannot be used", id="cycle"),
        pytest.param({"pattern": "("}, "a regular expression", id="pattern"),
    ],
)
def test_a_schema_that_cannot_be_used_is_said_to_be_so(schema: Any, words: str, tmp_path: Path) -> None:
    catalogue = of_schemas(tmp_path, {"bad.schema.json": schema, "good.schema.json": STRING})
    errors = answer(catalogue, "validate_asset", asset={}, schema="bad")["errors"]
    assert [error["path"] for error in errors] == [""]
    assert errors[0]["msg"].startswith("schema `bad` cannot be used: ")
    assert words in errors[0]["msg"]
    assert answer(catalogue, "validate_asset", asset="text", schema="good")["ok"] is True


def test_the_place_of_a_fault_is_that_in_the_file(tmp_path: Path) -> None:
    """In a definition called `file`, as we call the one that a file is wrapped in."""
    faulty = {"definitions": {"file": pointing("nowhere.json")}}
    for name, schema in (("plain", faulty), ("wrapped", {**faulty, "$ref": "#/definitions/file"})):
        catalogue = of_schemas(tmp_path / name, {"a.json": in_draft("07", schema)})
        [error] = answer(catalogue, "validate_asset", asset={}, schema="a")["errors"]
        assert error["msg"].endswith("found nowhere.json at jsonschema/a.json#/definitions/file/properties/x/$ref")


def test_look_around_in_a_pattern_is_allowed_to_the_operator(tmp_path: Path) -> None:
    """Unlike in schemas from an upstream server: these files are the operator's own."""
    catalogue = of_schemas(tmp_path, {"a.schema.json": {"type": "string", "pattern": "^(?!x).*$"}})
    assert answer(catalogue, "validate_asset", asset="y", schema="a")["ok"] is True
    assert answer(catalogue, "validate_asset", asset="x", schema="a")["ok"] is False


def test_two_files_with_one_identifier_are_logged(tmp_path: Path) -> None:
    same = {"$id": "https://s.example/same"}
    files = {"a.json": {**same, **STRING}, "b.json": {**same, "type": "null"}, "c.json": pointing(same["$id"])}
    of_schemas(tmp_path, files)
    lines: list[str] = []
    catalogue = Catalogue.read(variables(tmp_path), tmp_path, lines.append)
    assert "jsonschema/b.json: shares the name https://s.example/same with jsonschema/a.json" in lines
    assert answer(catalogue, "validate_asset", asset={"x": "text"}, schema="c")["ok"] is True
    assert answer(catalogue, "validate_asset", asset=None, schema="b")["ok"] is True


def test_a_schema_is_compiled_once_and_when_it_is_asked_for(tmp_path: Path) -> None:
    catalogue = of_schemas(tmp_path, {"a.json": STRING, "bad.json": {"type": 1}})
    assert catalogue.judge("a") is catalogue.judge("a")
    assert catalogue.judge("none") is None


# ── the reference data ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def reference(shared: Path) -> Path:
    return shared / "synesthetic-schemas"


def test_the_reference_schemas_are_listed(reference: Path) -> None:
    rows = answer(Catalogue.read(variables(reference), reference), "list_schemas")["schemas"]
    assert {row["version"] for row in rows} == {"0.7.0"}
    assert [row["name"] for row in rows] == [
        "control", "control-bundle", "haptic", "modulation", "rule", "rule-bundle", "shader", "synesthetic-asset",
        "tone",
    ]  # fmt: skip


@pytest.mark.parametrize("folder", ["", "somewhere else/deep"])
def test_every_reference_example_validates_from_any_directory(reference: Path, folder: str, tmp_path: Path) -> None:
    """specs/001 §9. `_skip` is left out: its one file matches no schema."""
    directory = reference
    if folder:
        directory = tmp_path / folder
        shutil.copytree(reference, directory)
    catalogue = Catalogue.read(variables(directory), tmp_path)
    rows = answer(catalogue, "list_examples")["examples"]
    assert len(rows) == 14
    for row in rows:
        found = answer(catalogue, "get_example", path=row["path"])
        assert found["validated"], row
        named = found["example"]["$schemaRef"]
        assert named == f"jsonschema/{found['schema']}.schema.json"
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


@pytest.mark.parametrize("draft", ["http://json-schema.org/draft-07/schema#", D2020])
def test_a_schemaref_that_is_asked_for_behind_a_root_reference_is_judged(draft: str, tmp_path: Path) -> None:
    inner = {"required": ["$schemaRef"], "properties": {"$schemaRef": STRING}, "additionalProperties": False}
    schema = {"$schema": draft, "$ref": "#/definitions/x", "definitions": {"x": inner}}
    catalogue = of_schemas(tmp_path, {"a.schema.json": schema})
    asset = {"$schemaRef": "jsonschema/a.schema.json"}
    assert answer(catalogue, "validate_asset", asset=asset, schema="a") == {"ok": True, "errors": []}
