"""What is read at start, how it is named, and what is left out."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from orjson import dumps

from assay.assets.asset_sources import Catalogue
from assay.assets.library import version_of
from kit.catalogues import BUNDLED, answer, bundled, of_schemas, variables, written
from kit.rows import rows

OBJECT = {"type": "object"}
NOT_FOUND = {"ok": False, "reason": "not_found"}


def names(catalogue: Catalogue) -> list[str]:
    return [row["name"] for row in answer(catalogue, "list_schemas")["schemas"]]


def paths(catalogue: Catalogue, component: str = "all") -> list[str]:
    return [row["path"] for row in answer(catalogue, "list_examples", component=component)["examples"]]


# ── where they come from (specs/001 §2) ──────────────────────────────────────────────────────────────────────────────


def test_variables_come_before_the_submodule_each_for_itself(tmp_path: Path) -> None:
    shutil.copytree(BUNDLED, tmp_path / "libs" / "synesthetic-schemas")
    assert answer(Catalogue.read({}, tmp_path), "list_schemas")["schemas"][0] == {
        "name": "control",
        "version": "1.0.0",
        "path": "libs/synesthetic-schemas/jsonschema/control.schema.json",
    }
    written(tmp_path / "mine", {"only.schema.json": OBJECT})
    catalogue = Catalogue.read({"SYN_SCHEMAS_DIR": "mine"}, tmp_path)
    assert answer(catalogue, "list_schemas")["schemas"] == [
        {"name": "only", "version": "", "path": "mine/only.schema.json"}
    ]
    assert len(paths(catalogue)) == 9
    # Ours: a slip in a path must not serve other schemas than the operator meant.
    assert names(Catalogue.read({"SYN_SCHEMAS_DIR": "nowhere"}, tmp_path)) == []


@rows("environ", [{}, {"SYN_SCHEMAS_DIR": "nowhere", "SYN_EXAMPLES_DIR": "nowhere"}])
def test_with_neither_everything_is_empty_and_nothing_is_found(environ: dict[str, str], tmp_path: Path) -> None:
    lines: list[str] = []
    catalogue = Catalogue.read(environ, tmp_path, lines.append)
    assert (names(catalogue), paths(catalogue), len(lines)) == ([], [], 2)
    assert answer(catalogue, "get_schema", name="tone") == NOT_FOUND
    assert answer(catalogue, "get_example", path="tone.json") == NOT_FOUND


def test_files_are_read_at_start_only(tmp_path: Path) -> None:
    catalogue = of_schemas(tmp_path, {"a.schema.json": OBJECT})
    before = answer(catalogue, "list_schemas")
    written(tmp_path / "jsonschema", {"b.schema.json": OBJECT, "a.schema.json": {"type": "string"}})
    assert answer(catalogue, "list_schemas") == before
    assert answer(catalogue, "get_schema", name="a")["schema"] == OBJECT
    assert answer(catalogue, "validate_asset", asset={}, schema="a")["ok"] is True


# ── paths and names ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_paths_are_relative_below_the_working_directory_and_as_given_outside(tmp_path: Path) -> None:
    written(tmp_path / "in" / "jsonschema", {"a.json": OBJECT})
    written(tmp_path / "in" / "examples", {"deep/a.one.json": {}})
    inside = Catalogue.read(variables(tmp_path / "in"), tmp_path)
    outside = Catalogue.read(variables(tmp_path / "in"), tmp_path / "other")
    beside = Catalogue.read({"SYN_EXAMPLES_DIR": "../in/examples"}, written(tmp_path / "out", {"x": {}}))
    assert paths(inside) == ["in/examples/deep/a.one.json"]
    assert paths(outside) == [f"{tmp_path.as_posix()}/in/examples/deep/a.one.json"]
    assert paths(beside) == ["../in/examples/deep/a.one.json"]
    for catalogue in (inside, outside, beside):
        for path in (*paths(catalogue), "deep/a.one.json"):
            assert answer(catalogue, "get_example", path=path)["ok"] is True


@rows(
    ("schema", "version"),
    [
        ({"version": "1.2.3", "x-schema-version": "9.9.9"}, "1.2.3"),
        ({"version": 3, "x-schema-version": "0.7.0"}, "0.7.0"),
        ({"$id": "https://schemas.example.org/0.7.0/tone.schema.json"}, "0.7.0"),
        ({"$id": "https://schemas.example.org/tone-1.4.0.schema.json"}, "1.4.0"),
        ({"$id": "https://schemas.example.org/v2.0.0-rc.1/tone.schema.json"}, "2.0.0-rc.1"),
        ({"$id": "urn:example:tone:1.0.0"}, "1.0.0"),
        ({"$id": "https://127.0.0.1/tone.schema.json"}, ""),
        ({"$id": "https://schemas.example.org/1.2.3.4/tone.schema.json"}, ""),
        ({"$id": "https://[broken/1.2.3"}, ""),
        ({"$id": 1}, ""),
        ({}, ""),
    ],
)
def test_the_version_is_what_the_schema_says_it_is(schema: dict[str, Any], version: str) -> None:
    assert version_of(schema) == version


def test_listings_are_sorted_and_of_several_with_one_name_the_newest_is_meant(tmp_path: Path) -> None:
    """specs/001 §5: schemas by name, version and path; examples by component and path."""
    schemas = {"b.schema.json": OBJECT, "2/a.json": {"version": "1"}, "1/a.json": {"version": "2"}, "a.json": OBJECT}
    examples: dict[str, Any] = {"z/a.json": {}, "b.json": {}, "a.x.json": {}, "B.json": {}}
    written(tmp_path / "jsonschema", schemas)
    written(tmp_path / "examples", examples)
    catalogue = Catalogue.read(variables(tmp_path), tmp_path)
    rows = answer(catalogue, "list_schemas")["schemas"]
    assert [(row["name"], row["version"], row["path"]) for row in rows] == [
        ("a", "", "jsonschema/a.json"),
        ("a", "1", "jsonschema/2/a.json"),
        ("a", "2", "jsonschema/1/a.json"),
        ("b", "", "jsonschema/b.schema.json"),
    ]
    assert paths(catalogue) == ["examples/B.json", "examples/a.x.json", "examples/z/a.json", "examples/b.json"]
    versions = ("0.9.0", "0.10.0", "0.10.0-rc.1")
    several = of_schemas(tmp_path / "several", {f"{each}/a.schema.json": {"version": each} for each in versions})
    assert answer(several, "get_schema", name="a")["version"] == "0.10.0"


# ── what is left out ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_cannot_be_used_is_left_out_with_a_line(tmp_path: Path) -> None:
    files: dict[str, Any] = {
        "good.schema.json": OBJECT,
        "broken.json": b'{"type": ',
        "bytes.json": b"\xff",
        "twice.json": b'{"a": 1, "a": 2}',
        "deep.json": b"[" * 500 + b"]" * 500,
        "list.json": [],
        "boolean.schema.json": True,
        "_old/good2.json": OBJECT,
        ".git/good3.json": OBJECT,
        ".hidden.json": OBJECT,
        ".json": OBJECT,
        "notes.txt": b"",
    }
    written(tmp_path / "jsonschema", files)
    (tmp_path / "jsonschema" / "folder.json").mkdir()
    (tmp_path / "jsonschema" / "gone.json").symlink_to("nothing-here")
    os.mkfifo(tmp_path / "jsonschema" / "pipe.json")
    lines: list[str] = []
    assert names(Catalogue.read(variables(tmp_path), tmp_path, lines.append)) == ["good"]
    named = {line.partition(":")[0].rpartition("/")[2] for line in lines}
    assert named == {
        "examples", "broken.json", "bytes.json", "twice.json", "deep.json", "list.json", "boolean.schema.json",
        "_old", ".git", "pipe.json", "gone.json",
    }  # fmt: skip
    assert any("gone.json: skipped, No such file" in line for line in lines)


def test_a_name_that_is_no_text_is_left_out(tmp_path: Path) -> None:
    """It could not be listed: JSON has no way to write it."""
    written(tmp_path / "jsonschema", {"a.json": OBJECT})
    try:
        Path(os.fsdecode(os.fsencode(tmp_path / "jsonschema") + b"/\xff.json")).write_text("{}")
    except OSError:
        pytest.skip("this file system takes no such names")
    assert names(Catalogue.read(variables(tmp_path), tmp_path)) == ["a"]


def test_links_are_followed_inside_the_directory_only(tmp_path: Path) -> None:
    written(tmp_path, {"secret.json": {"secret": 1}, "far/x.json": {}, "examples/real.json": {}})
    (tmp_path / "examples" / "leak.json").symlink_to(tmp_path / "secret.json")
    (tmp_path / "examples" / "folder").symlink_to(tmp_path / "far")
    (tmp_path / "examples" / "again.json").symlink_to("real.json")
    catalogue = Catalogue.read(variables(tmp_path), tmp_path)
    assert paths(catalogue) == ["examples/again.json", "examples/real.json"]
    for path in ("leak.json", "examples/leak.json", "folder/x.json"):
        assert answer(catalogue, "get_example", path=path) == NOT_FOUND


@rows(
    "path",
    [
        "../jsonschema/tone.schema.json", "examples/catalogue/examples/../jsonschema/tone.schema.json", "/etc/passwd",
        str(BUNDLED / "jsonschema" / "tone.schema.json"), "file:///etc/passwd", "..", ".", "", "/", "~", "tone.hum",
        "tone.hum.json\0", "tone.hum.json/", "./tone.hum.json", "..\\jsonschema\\tone.schema.json", "%2e%2e/secret",
        "x" * 100_000,
    ],
)  # fmt: skip
def test_no_path_leads_out_of_the_examples(path: str) -> None:
    assert answer(bundled(), "get_example", path=path) == NOT_FOUND


def test_nothing_handed_out_can_change_the_catalogue() -> None:
    """specs/001 §1: schemas must not be mutated."""
    catalogue = bundled()
    before = dumps(answer(catalogue, "get_schema", name="tone"))
    answer(catalogue, "get_schema", name="tone")["schema"].clear()
    answer(catalogue, "get_example", path="tone.hum.json")["example"].clear()
    assert dumps(answer(catalogue, "get_schema", name="tone")) == before
    assert answer(catalogue, "get_example", path="tone.hum.json")["validated"] is True


def test_the_bundled_catalogue_is_whole() -> None:
    catalogue = bundled()
    assert names(catalogue) == [
        "control", "haptic", "modulation", "parameter", "rule-bundle", "shader", "synesthetic-asset", "tone",
    ]  # fmt: skip
    for row in answer(catalogue, "list_schemas")["schemas"]:
        schema = answer(catalogue, "get_schema", name=row["name"])["schema"]
        assert row["version"] == "1.0.0"
        assert schema["title"]
        assert schema["description"]
        assert schema["$id"].endswith(f"/{row['name']}.schema.json")
        assert paths(catalogue, row["name"]), f"no example of {row['name']}"
    for path in paths(catalogue):
        found = answer(catalogue, "get_example", path=path)
        assert found["validated"], path
        assert Path(path).name.startswith(found["schema"])
    assert all(path.startswith("examples/catalogue/examples/") for path in paths(catalogue))
