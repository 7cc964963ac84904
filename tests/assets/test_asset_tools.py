"""The seven tools: their table, validation, and that the same question gets the same bytes."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from orjson import dumps

from assay.assets import own_tools as contracts
from assay.assets.asset_sources import Catalogue
from assay.assets.asset_tools import TOOLS
from assay.model.limits import ASSET_TOOLS
from kit.catalogues import BUNDLED, answer, bundled, of_schemas, variables, written
from kit.places import ROOT
from kit.rows import rows

# ── the table ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_tools_are_those_of_the_specification_in_its_order() -> None:
    assert list(TOOLS) == list(contracts.TOOLS) == [*ASSET_TOOLS] == [
        "list_schemas", "get_schema", "list_examples", "get_example", "validate_asset", "diff_assets",
        "populate_backend",
    ]  # fmt: skip
    for name, tool in TOOLS.items():
        assert (tool.name, (tool.input, tool.output)) == (name, contracts.TOOLS[name])
        assert tool.title
        assert tool.description.endswith(".")
        assert set(tool.annotations) == {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
        assert tool.annotations["readOnlyHint"] is (name != "populate_backend")


# ── determinism (specs/001 §5) ───────────────────────────────────────────────────────────────────────────────────────


def questions(catalogue: Catalogue) -> list[tuple[str, dict[str, Any]]]:
    names = [one.name for one in catalogue.schemas]
    return [
        ("list_schemas", {}),
        ("list_examples", {}),
        ("list_examples", {"component": "tone"}),
        ("list_examples", {"component": "none"}),
        *(("get_schema", {"name": name}) for name in (*names, "none")),
        *(("get_example", {"path": one.file.path}) for one in catalogue.examples),
        *(("validate_asset", {"asset": {"x": [1], "name": ""}, "schema": name}) for name in (*names, "none")),
        ("diff_assets", {"base": {"a": 1, "b": [1], "c": {}}, "new": {"b": [2], "d": 1, "c": {"e": None}}}),
        ("populate_backend", {"asset": {}}),
    ]


def test_the_same_question_gets_the_same_bytes() -> None:
    """Of two catalogues, asked in two orders; that other processes say the same shows over HTTP and STDIO."""

    def said(catalogue: Catalogue, order: int) -> list[bytes]:
        found = [dumps(answer(catalogue, tool, **arguments)) for tool, arguments in questions(catalogue)[::order]]
        return found[::order]

    assert said(bundled(), 1) == said(bundled(), -1)


# ── validation ───────────────────────────────────────────────────────────────────────────────────────────────────────


def errors_of(asset: Any, schema: str, catalogue: Catalogue | None = None) -> list[tuple[str, str]]:
    result = answer(catalogue or bundled(), "validate_asset", asset=asset, schema=schema)
    assert result["ok"] is (not result["errors"])
    assert result.get("reason") == (None if result["ok"] else "validation_failed")
    return [(error["path"], error["msg"]) for error in result["errors"]]


ENVELOPE = {"attack": 0, "decay": 0, "sustain": 1, "release": 0}
TONE = {"name": "t", "waveform": "sine", "frequency": 440, "envelope": ENVELOPE}
NO_OTHER = "expected no property but `name`, `waveform`, `frequency` and 2 more"


@rows(
    ("asset", "schema", "errors"),
    [
        (TONE, "tone", []),
        ({**TONE, "frequency": 0}, "tone", [("/frequency", "expected a number greater than 0, found 0")]),
        ({"name": "a", "tone": TONE}, "synesthetic-asset", []),
        ({"name": "a", "tone": TONE}, "nested-synesthetic-asset", []),
        ({"name": "a", "tone": TONE, "$schemaRef": "anything"}, "nested-synesthetic-asset", []),
        ({**TONE, "$schemaRef": "jsonschema/shader.schema.json"}, "tone", []),
        (
            {"name": "a", "tone": {**TONE, "$schemaRef": "x"}},
            "nested-synesthetic-asset",
            [("/tone/$schemaRef", f"{NO_OTHER}, found the property `$schemaRef`")],
        ),
        ([], "tone", [("", "expected an object, found an empty array")]),
        (TONE, "tome", [("", "unknown schema `tome`: did you mean `tone`?")]),
        (TONE, "", [("", "unknown schema ``; see list_schemas")]),
    ],
)
def test_an_asset_gets_its_errors(asset: Any, schema: str, errors: list[tuple[str, str]]) -> None:
    assert errors_of(asset, schema) == errors
    # Without schemas none is suggested.
    nothing_here = [("", f"unknown schema `{schema}`: there are no schemas here")]
    assert errors_of(asset, schema, Catalogue()) == nothing_here


def test_errors_are_sorted_bounded_and_absolute(tmp_path: Path) -> None:
    schema = {"additionalProperties": {"items": {"type": "number"}}}
    catalogue = of_schemas(tmp_path, {"a.schema.json": schema})
    asset = {key: ["x"] * 3 for key in ("b", "a/c", "a~c", "", "ä", "10", "9")}
    found = errors_of(asset, "a", catalogue)
    assert found == sorted(found)
    assert ("/a~1c/0", 'expected a number, found the string "x"') in found
    assert ("//2", 'expected a number, found the string "x"') in found
    assert found[0] == ("", "1 more are not listed")
    assert len(found) == 21


def nested(levels: int, inner: Any = None) -> Any:
    for _ in range(levels):
        inner = [inner]
    return inner


@rows(
    ("asset", "said"),
    [
        (nested(128), None),
        ({"a": nested(127)}, None),
        (2**200, None),
        ({"__proto__": {"constructor": {"$ref": "#"}}, "": "", "\0": "\0", "~/": 1}, None),
        ({str(number): number for number in range(100_000)}, None),
        ("x" * 1_000_000, None),
        (nested(129), "too many levels"),
        pytest.param(nested(100_000), "too many levels", id="very deep"),
        ({"a": nested(128)}, "too many levels"),
        (nested(129, 2**200), "too many levels"),
        *((asset, "half of a surrogate pair") for asset in ({"\ud800": 1}, "\udfff")),
        ({1: 2}, "a key that is not a string"),
        ({"a": {1, 2}}, "a Python set"),
    ],
)
def test_odd_assets_are_judged_or_refused_but_raise_nothing(asset: Any, said: str | None, tmp_path: Path) -> None:
    catalogue = of_schemas(tmp_path, {"any.schema.json": {}})
    result = TOOLS["validate_asset"].call(catalogue, {"asset": asset, "schema": "any"})
    assert result["ok"] is (said is None)
    assert said is None or said in result["errors"][0]["msg"]
    TOOLS["validate_asset"].call(bundled_once(), {"asset": asset, "schema": "synesthetic-asset"})


bundled_once = cache(bundled)


# ── examples and schemas ─────────────────────────────────────────────────────────────────────────────────────────────


@rows(
    ("base", "asset", "schema"),
    [
        ("x.json", {"$schemaRef": "jsonschema/tone.schema.json"}, "tone"),
        ("x.json", {"$schemaRef": "https://s.example/0.7.0/tone.schema.json#/x"}, "tone"),
        ("x.json", {"$schemaRef": "tone"}, "tone"),
        ("tone.json", {"$schemaRef": "jsonschema/unheard-of.json"}, "unheard-of"),
        ("tone.json", {"$schemaRef": 1}, "tone"),
        ("rule-bundle.small.json", {}, "rule-bundle"),
        ("RuleBundle_Example.json", {}, "rule-bundle"),
        ("Rule-Bundle_Example2.json", {}, "rule-bundle"),
        ("SynestheticAsset_Example1.json", {}, "synesthetic-asset"),
        ("ToneRow_Example.json", {}, "synesthetic-asset"),
        ("_.json", {}, "synesthetic-asset"),
        ("", [], "synesthetic-asset"),
    ],
)
def test_the_schema_of_an_asset_is_the_one_it_names_or_is_named_after(base: str, asset: Any, schema: str) -> None:
    assert bundled_once().schema_of(asset, base) == schema


def test_an_example_is_validated_when_it_is_asked_for(tmp_path: Path) -> None:
    examples = {"tone.bad.json": {"name": 1}, "x.json": {"$schemaRef": "unheard-of"}, "tone.good.json": TONE}
    written(tmp_path, examples)
    catalogue = Catalogue.read({**variables(BUNDLED), "SYN_EXAMPLES_DIR": str(tmp_path)}, ROOT)
    found = [("tone.bad.json", "tone", False), ("tone.good.json", "tone", True), ("x.json", "unheard-of", False)]
    for path, schema, validated in found:
        assert answer(catalogue, "get_example", path=path) == {
            "ok": True, "example": examples[path], "schema": schema, "validated": validated,
        }  # fmt: skip


def test_examples_and_schemas_are_found_by_component_and_by_the_alias() -> None:
    catalogue = bundled_once()
    for component in ("synesthetic-asset", "nested-synesthetic-asset"):
        listed = answer(catalogue, "list_examples", component=component)["examples"]
        assert [each["component"] for each in listed] == ["synesthetic-asset"] * 2
        assert answer(catalogue, "get_schema", name=component) == answer(
            catalogue, "get_schema", name="synesthetic-asset"
        )
    assert answer(catalogue, "list_examples", component="all") == answer(catalogue, "list_examples")
    assert answer(catalogue, "list_examples", component="none") == {"ok": True, "examples": []}
