"""What we say is wrong with an instance, and that saying it stays cheap."""

from typing import Any

import orjson
import pytest
from engine_schemas import DRAFT_4, DRAFT_7, DRAFT_2019, FILTER, STRINGS, wrong_filter
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.schema.compiled import compile_schema
from assay.schema.explain import STEPS, Subschemas, explained
from assay.schema.fault import Fault
from assay.schema.pointers import NOWHERE, from_fragment, looked_up
from kit.laws import law
from kit.rows import rows

TEXT = {"type": "object", "properties": {"type": {"const": "text"}, "text": STRINGS}, "required": ["type", "text"]}
IMAGE = {"type": "object", "properties": {"type": {"const": "image"}, "data": STRINGS}, "required": ["type", "data"]}
BLOCK = {"anyOf": [TEXT, IMAGE]}
CALL = {"anyOf": [{"type": "object", "properties": {"jsonrpc": {"const": "2.0"}, "method": {"const": method}}}
        for method in ("ping", "tools/list")]}  # fmt: skip
OBJECT = {"type": "object", "properties": {"a": STRINGS, "b": {"type": "integer"}}, "additionalProperties": False}

# schema, value, and of every fault: where, keyword, expected, found
ROWS = [
    (STRINGS, 1, [("", "type", "a string", "1")]),
    ({"type": ["string", "integer"]}, None, [("", "type", "a string or an integer", "null")]),
    ({"type": "integer", "minimum": 1}, 0, [("", "minimum", "an integer of at least 1", "0")]),
    ({"type": "integer", "minimum": 1}, "x", [("", "type", "an integer of at least 1", 'the string "x"')]),
    ({"type": "integer"}, True, [("", "type", "an integer", "true")]),
    ({"exclusiveMinimum": 1}, 1, [("", "exclusiveMinimum", "a number greater than 1", "1")]),
    ({"maximum": 1.5}, 2, [("", "maximum", "a number of at most 1.5", "2")]),
    ({"multipleOf": 0.1}, 0.25, [("", "multipleOf", "a number that is a multiple of 0.1", "0.25")]),
    ({"$schema": DRAFT_4, "minimum": 1, "exclusiveMinimum": True}, 1,
     [("", "minimum", "a number greater than 1", "1")]),
    ({"type": "integer", "minimum": 1, "maximum": 50}, "x",
     [("", "type", "an integer from 1 to 50", 'the string "x"')]),
    ({"type": "string", "minLength": 1, "maxLength": 9}, 5, [("", "type", "a string of 1 to 9 characters", "5")]),
    ({"type": "array", "minItems": 2, "maxItems": 2}, 5, [("", "type", "an array of 2 items", "5")]),
    ({"type": "string", "pattern": "^x", "minLength": 3}, 5,
     [("", "type", "a string that matches ^x, of at least 3 characters", "5")]),
    ({"type": ["string", "number"], "minimum": 3}, None,
     [("", "type", "a string or a number of at least 3", "null")]),
    ({"const": 1}, True, [("", "const", "1", "true")]),
    ({"const": {"a": 1}}, {"a": 2}, [("", "const", "an object", "an object with `a`")]),
    ({"enum": ["a", "b"]}, "c", [("", "enum", '"a" or "b"', 'the string "c"')]),
    ({"enum": ["a", "b", "c", "d", "e"]}, 1, [("", "enum", 'one of "a", "b", "c" or 2 more', "1")]),
    ({"minLength": 2}, "é", [("", "minLength", "at least 2 characters", "a string of 1 character")]),
    ({"maxLength": 1}, "ab", [("", "maxLength", "at most 1 character", "a string of 2 characters")]),
    ({"pattern": "^x$"}, "y", [("", "pattern", "a string that matches ^x$", 'the string "y"')]),
    ({"minItems": 1}, [], [("", "minItems", "at least 1 item", "an empty array")]),
    ({"maxItems": 2}, [1, 2, 3], [("", "maxItems", "at most 2 items", "an array of 3 items")]),
    ({"uniqueItems": True}, [1, 1.0], [("", "uniqueItems", "items that all differ", "an array of 2 items")]),
    ({"minProperties": 1}, {}, [("", "minProperties", "at least 1 property", "an empty object")]),
    ({"maxProperties": 1}, {"a": 1, "b": 2},
     [("", "maxProperties", "at most 1 property", "an object of 2 properties")]),
    ({"required": ["a", "b"]}, {"b": 1}, [("", "required", "the property `a`", "an object with `b`")]),
    ({"required": ["x"]}, {"a": 1, "b": 1, "c": 1, "d": 1, "e": 1},
     [("", "required", "the property `x`", "an object with `a`, `b`, `c` and 2 more")]),
    ({"dependentRequired": {"a": ["b"]}}, {"a": 1},
     [("", "dependentRequired", "the property `b`, which `a` requires", "an object with `a`")]),
    ({"$schema": DRAFT_7, "dependencies": {"a": ["b"], "c": {"required": ["d"]}}}, {"a": 1, "c": 1},
     [("", "dependencies", "the property `b`, which `a` requires", "an object with `a` and `c`"),
     ("", "required", "the property `d`", "an object with `a` and `c`")]),
    (OBJECT, {"b": "x", "a": 1}, [("/b", "type", "an integer", 'the string "x"'), ("/a", "type", "a string", "1")]),
    (OBJECT, {"c": 1}, [("/c", "additionalProperties", "no property but `a` and `b`", "the property `c`")]),
    ({"additionalProperties": STRINGS}, {"a~/b": 1}, [("/a~0~1b", "type", "a string", "1")]),
    ({"patternProperties": {"^x": STRINGS}, "additionalProperties": False}, {"x1": 1, "y": 1},
     [("/x1", "type", "a string", "1"), ("/y", "additionalProperties", "no property with this name",
     "the property `y`")]),
    ({"propertyNames": {"maxLength": 1}}, {"ab": 1},
     [("/ab", "propertyNames", "a property name that is a value of at most 1 character", "the name `ab`")]),
    ({"items": STRINGS}, ["a", 1], [("/1", "type", "a string", "1")]),
    ({"prefixItems": [STRINGS], "items": False}, ["a", 1], [("", "items", "at most 1 item", "an array of 2 items")]),
    ({"prefixItems": [STRINGS], "items": STRINGS}, [1, 2],
     [("/0", "type", "a string", "1"), ("/1", "type", "a string", "2")]),
    ({"$schema": DRAFT_7, "items": [STRINGS], "additionalItems": {"type": "null"}}, ["a", 1],
     [("/1", "type", "null", "1")]),
    ({"contains": STRINGS}, [1, 2], [("", "contains", "at least 1 item that is a string", "0 of 2")]),
    ({"contains": STRINGS, "maxContains": 1}, ["a", "b"],
     [("", "maxContains", "at most 1 item that is a string", "2 of 2")]),
    ({"allOf": [STRINGS, {"maxLength": 1}]}, "ab",
     [("", "maxLength", "at most 1 character", "a string of 2 characters")]),
    ({"anyOf": [STRINGS, {"type": "integer"}]}, None, [("", "anyOf", "a string or an integer", "null")]),
    ({"anyOf": [{"type": "string", "minLength": 2}, {"type": "null"}]}, "x",
     [("", "minLength", "at least 2 characters", "a string of 1 character")]),
    ({"anyOf": [{"const": "a"}, {"const": "b"}]}, "c", [("", "anyOf", '"a" or "b"', 'the string "c"')]),
    ({"oneOf": [STRINGS, {"maxLength": 3}]}, "x",
     [("", "oneOf", "exactly one of: a string or a value of at most 3 characters",
     'the string "x", which fits 2 of them')]),
    (BLOCK, {"type": "text", "text": 1}, [("/text", "type", "a string", "1")]),
    (BLOCK, {"type": "image"}, [("", "required", "the property `data`", "an object with `type`")]),
    (BLOCK, {"type": "vdeo"},
     [("", "anyOf", 'an object whose `type` is "text" or "image"',
     'one whose `type` is "vdeo"')]),
    (BLOCK, {"text": "x"}, [("", "anyOf", 'an object whose `type` is "text" or "image"',
     "an object with `text`")]),
    (BLOCK, 5, [("", "anyOf", 'an object whose `type` is "text" or "image"', "5")]),
    (CALL, {"jsonrpc": 2, "method": "tools/list"}, [("/jsonrpc", "const", '"2.0"', "2")]),
    ({"anyOf": [{"type": "object", "required": ["a"]}, {"type": "object", "required": ["b"]}]}, {},
     [("", "anyOf", "an object with `a` or an object with `b`", "an empty object")]),
    ({"anyOf": [{"type": "object", "required": ["a", "b"]}, {"type": "object", "required": ["c", "d"]}]}, {"a": 1},
     [("", "required", "the property `b`", "an object with `a`")]),
    ({"not": STRINGS}, "x", [("", "not", "anything but a string", 'the string "x"')]),
    ({"if": STRINGS, "then": {"minLength": 2}}, "x",
     [("", "minLength", "at least 2 characters", "a string of 1 character")]),
    ({"if": STRINGS, "else": {"minimum": 2}}, 1, [("", "minimum", "a number of at least 2", "1")]),
    ({"dependentSchemas": {"a": {"required": ["b"]}}}, {"a": 1},
     [("", "required", "the property `b`", "an object with `a`")]),
    ({"$ref": "#/$defs/a", "$defs": {"a": STRINGS}}, 1, [("", "type", "a string", "1")]),
    ({"$dynamicRef": "#a", "$defs": {"a": {"$dynamicAnchor": "a", **STRINGS}}}, 1, [("", "type", "a string", "1")]),
    ({"$schema": DRAFT_2019, "properties": {"a": {"$recursiveRef": "#"}}, "maxProperties": 1}, {"a": {"b": 1, "c": 1}},
     [("/a", "maxProperties", "at most 1 property", "an object of 2 properties")]),
    ({"properties": {"a": False}}, {"a": 1}, [("/a", "false", "nothing here", "1")]),
    ({"allOf": [{"properties": {"a": True}}], "unevaluatedProperties": False}, {"a": 1, "b": 1},
     [("/b", "unevaluatedProperties", "nothing beyond the schema", "the property `b`")]),
    ({"unevaluatedProperties": STRINGS}, {"b": 1}, [("/b", "type", "a string", "1")]),
    ({"prefixItems": [True], "unevaluatedItems": False}, [1, 2],
     [("/1", "unevaluatedItems", "nothing beyond the schema", "2")]),
]  # fmt: skip


@rows(("schema", "value", "faults"), ROWS, ids=[orjson.dumps(row[:2]).decode()[:90] for row in ROWS])
def test_a_refused_value_is_explained(schema: dict[str, Any], value: Any, faults: list[tuple[str, ...]]) -> None:
    listed = compile_schema(schema).faults(value).listed
    assert [(one.at, one.keyword, one.expected, one.found) for one in listed] == faults


def test_a_fault_says_where_in_the_schema_it_was_found() -> None:
    schema = {"properties": {"ä b": {"$ref": "#/$defs/x~1y"}}, "$defs": {"x/y": {"type": "object", "required": ["z"]}}}
    assert compile_schema(schema).faults({"ä b": 1}).listed[0].schema_at == "#/$defs/x~1y/type"
    assert compile_schema({"properties": {"ä b": STRINGS}}).faults({"ä b": 1}).listed[0].schema_at == (
        "#/properties/%C3%A4%20b/type"
    )


def test_the_place_of_the_instance_is_put_in_front() -> None:
    listed = compile_schema(OBJECT).faults({"b": "x"}, at="/params/arguments").listed
    assert [one.at for one in listed] == ["/params/arguments/b"]


def test_what_we_quote_is_short_and_printable() -> None:
    nasty = "\x1b[31m\n" + "x" * 10_000
    schema = {"properties": {"a": {"enum": [nasty]}}, "additionalProperties": False}
    for fault in compile_schema(schema).faults({"a": nasty + "y", nasty: 10**5_000}).listed:
        assert len(fault.expected + fault.found) < 200
        assert (fault.expected + fault.found).isprintable()


def test_a_million_faults_are_not_all_listed() -> None:
    faults = compile_schema({"items": STRINGS}).faults(list(range(200_000)), most=20)
    assert [one.at for one in faults.listed] == [f"/{number}" for number in range(20)]
    assert 1_000 < faults.more <= STEPS


def counted(schema: Any, value: Any, steps: int = STEPS) -> tuple[int, tuple[Fault, ...]]:
    """The questions of one explanation, and its faults."""
    subschemas = Subschemas(schema, "", compile_schema(schema)._options)
    faults, left = explained(subschemas, value, steps=steps)
    return steps - left, faults.listed


@rows("levels", [1, 4, 8, 12, 24, 40])
def test_a_wrong_leaf_deep_in_a_recursive_filter_is_found_in_steps_linear_in_its_depth(levels: int) -> None:
    """The engine's own explanation took 4.2 s and 649 MB at 8 levels, and ended the process at 12."""
    asked, listed = counted(FILTER, wrong_filter(levels))
    assert [(one.at.rpartition("/")[2], one.keyword, one.expected) for one in listed] == [
        ("equals", "type", "an integer")
    ]
    assert asked < 200 * (levels + 1)


def test_a_large_instance_is_charged_for_at_every_level_it_is_judged_again() -> None:
    rows: list[Any] = [{"id": number, "tags": ["a", "b"]} for number in range(30_000)]
    rows[-1]["id"] = "last"
    value: Any = rows
    for _ in range(40):
        value = {"next": value}
    schema = {"properties": {"next": {"$ref": "#"}}, "items": {"properties": {"id": {"type": "integer"}}}}
    asked, listed = counted(schema, value)
    assert [one.at for one in listed] == ["/next" * 40 + "/29999/id"]
    assert asked > 40 * (len(rows) // 2_048)


@rows("steps", [0, 1, 2, 3, 5, 8, 13, 21, 34, 55])
def test_however_small_the_budget_something_is_said(steps: int) -> None:
    value = wrong_filter(6)
    _, listed = counted(FILTER, value, steps)
    assert listed
    assert all(looked_up(value, one.at) is not NOWHERE for one in listed)


def test_validators_kept_for_explaining_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.schema.explain._HELD", 1_000)
    places = range(60)
    links = {f"d{each}": {"properties": {f"p{each}": {"$ref": f"#/$defs/d{(each + 1) % 60}"}}} for each in places}
    schema = {"properties": {f"q{each}": {"$ref": f"#/$defs/d{each}"} for each in places}, "$defs": links}
    subschemas = Subschemas(schema, "", compile_schema(schema)._options)
    compiled = sum(subschemas.judge(place)[1] for place in subschemas.index.places.values())
    assert subschemas._held <= 1_000 < compiled


def test_what_takes_long_to_compile_is_drawn_from_the_steps() -> None:
    """2,000 properties that refer to one enum of 25,000 values took 12.9 s and 6.5 GB, which stayed."""
    large = {"enum": [100_000 + number for number in range(25_000)]}
    for shared, least in (
        (large, 1_000),
        ({"pattern": "^.{0,900}$"}, 900),
        ({"required": [f"a required name {number}" for number in range(10_000)]}, 1_000),
    ):
        schema = {"properties": {"p": {"$ref": "#/$defs/e", "minimum": 0}}, "$defs": {"e": shared}}
        subschemas = Subschemas(schema, "", compile_schema(schema)._options)
        sizes = {place.at: subschemas.judge(place)[1] for place in subschemas.index.places.values()}
        assert sizes["/properties/p"] >= least
        assert subschemas._held <= 20_000


NAMES = st.sampled_from(["a", "b", "a/b", "~", "é"])
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 3), st.sampled_from([0.5, 1.0]), st.sampled_from(["", "a", "ab", "xy"])
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
)
TYPES = st.sampled_from(["string", "integer", "number", "boolean", "array", "object", "null"])
LEAVES: dict[str, st.SearchStrategy[Any]] = {
    "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
    "const": VALUES,
    "enum": st.lists(VALUES, min_size=1, max_size=3),
    "minimum": st.integers(-1, 2),
    "exclusiveMaximum": st.integers(0, 3),
    "multipleOf": st.sampled_from([2, 0.5]),
    "minLength": st.integers(0, 2),
    "maxLength": st.integers(0, 2),
    "pattern": st.sampled_from(["^a", "b$", "x"]),
    "minItems": st.integers(0, 2),
    "maxItems": st.integers(0, 2),
    "uniqueItems": st.booleans(),
    "minProperties": st.integers(0, 2),
    "maxProperties": st.integers(0, 2),
    "required": st.lists(NAMES, max_size=2, unique=True),
    "dependentRequired": st.dictionaries(NAMES, st.lists(NAMES, max_size=2, unique=True), max_size=2),
    "minContains": st.integers(0, 2),
    "maxContains": st.integers(0, 2),
    "$ref": st.sampled_from(["#/$defs/one", "#/$defs/two", "#anchor"]),
    "$dynamicRef": st.just("#anchor"),
}


def schemas_of(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Schemas that hold *inner* ones under every keyword that can."""
    some = st.lists(inner, min_size=1, max_size=3)
    holding = {
        **dict.fromkeys(["not", "if", "then", "else", "items", "contains", "additionalProperties"], inner),
        **dict.fromkeys(["propertyNames", "unevaluatedProperties", "unevaluatedItems"], inner),
        **dict.fromkeys(["allOf", "anyOf", "oneOf", "prefixItems"], some),
        **dict.fromkeys(["properties", "dependentSchemas"], st.dictionaries(NAMES, inner, max_size=3)),
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "b", "."]), inner, max_size=2),
    }
    return some_of({**LEAVES, **holding})


def some_of(keywords: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    """Schemas with up to three of *keywords*."""
    chosen = st.lists(st.sampled_from(sorted(keywords)), max_size=3, unique=True)
    return chosen.flatmap(lambda names: st.fixed_dictionaries({name: keywords[name] for name in names}))


# What these refuse is a member of the value they are held against.
UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")
LOCAL = {name: values for name, values in LEAVES.items() if not name.startswith("$")}
SCHEMAS = st.recursive(st.booleans() | some_of(LEAVES), schemas_of, max_leaves=8)
SAFE = st.booleans() | some_of(LOCAL)


@given(schema=SCHEMAS, one=SAFE, two=SAFE, value=VALUES, most=st.integers(1, 5))
@settings(law(400), suppress_health_check=list(HealthCheck))
def test_a_value_has_faults_exactly_when_it_is_refused_and_each_has_a_place(
    schema: Any, one: Any, two: Any, value: Any, most: int
) -> None:
    anchored = {"$dynamicAnchor": "anchor", "type": ["object", "string", "array"]}
    document = {"allOf": [schema], "$defs": {"one": one, "two": two, "anchored": anchored}}
    compiled = compile_schema(document)
    faults = compiled.faults(value, most=most)
    assert bool(faults.listed) is not compiled.is_valid(value)
    assert len(faults.listed) <= most
    for fault in faults.listed:
        assert looked_up(value, fault.at) is not NOWHERE
        pointer = from_fragment(fault.schema_at[1:])
        assert pointer is not None
        assert looked_up(document, pointer) is not NOWHERE
        if fault.keyword not in ("false", "additionalProperties", "propertyNames", "dependentRequired", *UNEVALUATED):
            place = compile_schema(document, at=fault.schema_at.rpartition("/")[0])
            assert not place.is_valid(looked_up(value, fault.at)), "blamed, although it fits"


@rows("dialect", [DRAFT_7, DRAFT_2019])
@given(schema=SCHEMAS, value=VALUES)
@settings(law(150), suppress_health_check=list(HealthCheck))
def test_the_same_holds_for_older_drafts(dialect: str, schema: Any, value: Any) -> None:
    anchor: dict[str, Any] = {"$id": "#anchor"} if dialect == DRAFT_7 else {"$anchor": "anchor"}
    definitions = {"one": STRINGS, "two": {"minimum": 1}, "anchored": anchor}
    document = {
        "$schema": dialect,
        "allOf": [schema],
        "$defs": definitions,
        "definitions": definitions if dialect == DRAFT_7 else {},
    }
    compiled = compile_schema(document)
    assert bool(compiled.faults(value).listed) is not compiled.is_valid(value)
