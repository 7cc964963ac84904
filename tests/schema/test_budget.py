"""What a schema from outside may cost: to admit, to judge by, and to explain."""

from typing import Any

import pytest
from engine_schemas import FILTER, JSON_VALUE, METASCHEMA
from hypothesis import given
from hypothesis import strategies as st

from assay.schema.admission import compile_untrusted
from assay.schema.budget import affordable, counted, is_narrow
from assay.schema.compiled import Compiled
from assay.schema.cost import WORK, WORK_PER_BYTE, Work, width_of
from assay.schema.explain import Subschemas
from assay.schema.fault import SchemaLimits
from assay.schema.schema_index import SchemaIndex, indexed
from kit.laws import law
from kit.rows import rows


def made(schema: Any) -> Compiled:
    compiled = compile_untrusted(schema)
    assert isinstance(compiled, Compiled)
    return compiled


def entries_read(schema: Any) -> int:
    """How many table entries are read to compute the width of *schema*."""
    work = Work(len(str(schema)))
    before = work.left
    index = indexed(schema)
    assert isinstance(index, SchemaIndex)
    width_of(index, SchemaLimits(), work)
    return before - work.left


def doubled(levels: int, leaf: dict[str, Any]) -> dict[str, Any]:
    definitions = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)}
    return {"$defs": {**definitions, f"d{levels}": leaf}, "items": {"$ref": "#/$defs/d0"}}


def into_recursion(definitions: int, members: int) -> dict[str, Any]:
    """Many definitions that only lead into a recursion, beside one that calls it in twice."""
    back = {"$ref": "#/$defs/A"}
    places: dict[str, Any] = {"A": {"properties": {"n": back}}, "B": {"properties": {"n": {"allOf": [back, back]}}}}
    for n in range(definitions):
        places[f"d{n}"] = {"properties": {f"{n}_{m}": back for m in range(members)}}
        if n:
            places[f"d{n}"]["$ref"] = f"#/$defs/d{n - 1}"
    last = {"$ref": f"#/$defs/d{definitions - 1}"}
    return {"$defs": places, "properties": {"x": last, "y": {"$ref": "#/$defs/B"}}}


COSTLY = [
    (doubled(10, {"maximum": 5}), [1] * 50_000),
    ({"anyOf": [{"items": {"maximum": 5}}] * 200}, [1] * 500_000),
    ({"patternProperties": {f"^a{n}": True for n in range(4_000)}}, {f"k{n}": 1 for n in range(80_000)}),
    ({"pattern": "[ab]*a[ab]{3000}c"}, "ab" * 250_000),
    ({"items": {"enum": [{"a": n} for n in range(2_000)]}}, [{"a": 1}] * 5_000),
    ({"items": {"multipleOf": 1e-300}}, [3e300] * 50_000),
    ({"items": {"maximum": 3.5}}, [3e-300] * 100_000),
    ({"items": {"dependentRequired": {f"p{n}": ["x"] for n in range(4_000)}}}, [{}] * 50_000),
    ({"allOf": [{"uniqueItems": True}] * 200}, list(range(100_000))),
]


@rows(("schema", "instance"), COSTLY)
def test_what_would_hold_the_engine_for_seconds_is_not_judged(schema: Any, instance: Any) -> None:
    """Ours. Measured with jsonschema-rs 0.60.3: 1.4 to 63 s for a frame of 1 MiB."""
    compiled = made(schema)
    assert not compiled.always_affordable
    assert not affordable(compiled, instance)
    assert affordable(compiled, [1])


def test_faults_of_what_is_not_affordable_are_one_and_the_engine_is_not_asked() -> None:
    compiled = made(doubled(10, {"maximum": 5}))
    compiled.is_valid = lambda _: pytest.fail("asked")
    faults = compiled.faults([9] * 50_000, at="/params")
    assert [(fault.at, fault.keyword, fault.expected) for fault in faults.listed] == [
        ("/params", "cost", "a value that can be judged in bounded time")
    ]
    assert faults.more == 0


@rows(
    "schema",
    [
        pytest.param(FILTER, id="filter"),
        pytest.param(JSON_VALUE, id="json-value"),
        pytest.param(METASCHEMA, id="metaschema"),
        pytest.param({"properties": {"n": {"$ref": "#"}}}, id="linear-recursion"),
        pytest.param({"properties": {"id": {"type": "string", "pattern": "^[a-z0-9-]{1,64}$"}}}, id="pattern"),
    ],
)
def test_an_ordinary_schema_is_always_affordable(schema: Any) -> None:
    """Recursion without branching has the width of one round, not of 128."""
    compiled = made(schema)
    assert compiled.always_affordable
    assert is_narrow(compiled.width)


def test_what_leads_into_a_recursion_is_settled_once() -> None:
    """Ours: level by level this took 0.24 s for 6.4 kB, and 36 s for a list of such tools."""
    schema = into_recursion(40, 4)
    assert isinstance(made(schema), Compiled)
    assert entries_read(schema) < 16_000


def test_a_definition_that_nothing_refers_to_costs_nothing() -> None:
    back = {"$ref": "#/$defs/a"}
    definitions = {"a": {"properties": {"n": {"allOf": [back, back]}}, "uniqueItems": True, "items": back}}
    assert made({"$defs": definitions, "type": "string"}).width == made({"type": "string"}).width


@rows("count", [40, 100, 300])
def test_a_recursion_that_takes_long_to_measure_is_refused_within_its_allowance(count: int) -> None:
    definitions: dict[str, Any] = {
        f"c{n}": {"properties": {"n": {"$ref": f"#/$defs/c{(n + 1) % count}"}}} for n in range(count)
    }
    definitions["c0"]["properties"]["n"] = {"allOf": [{"$ref": "#/$defs/c1"}] * 2}
    schema = {"$defs": definitions, "$ref": "#/$defs/c0"}
    outcome = compile_untrusted(schema)
    # One row more may be begun than there is room for.
    assert entries_read(schema) < (WORK + WORK_PER_BYTE * len(str(schema))) * 1.01
    assert isinstance(outcome, Compiled) or outcome.rule == "contract/schema-cost"


def test_a_branch_that_is_called_in_a_thousand_times_is_looked_at_once() -> None:
    """Ours: 95 bytes of arguments took 26 s to explain."""
    definitions: dict[str, Any] = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 8} for n in range(4)}
    definitions["d4"] = {"properties": {f"p{n}": {"const": 1} for n in range(3_000)}}
    other = {"type": "object", "properties": {"p1": {"const": 3}}}
    schema = {"$defs": definitions, "anyOf": [{"$ref": "#/$defs/d0"}, other]}
    subschemas = Subschemas(schema, "", {})
    assert subschemas.traits(subschemas.index.places["/anyOf/0"]).looked <= 512
    assert [fault.keyword for fault in made(schema).faults({"p1": 2}).listed] == ["anyOf"]


def test_members_are_not_blamed_where_the_budget_did_not_suffice_to_see_what_covers_them() -> None:
    patterns = {f"^a{n}": True for n in range(300)} | {"^k": True}
    schema = {"properties": {"o": {"unevaluatedProperties": False, "allOf": [{"patternProperties": patterns}]}}}
    value = {"o": {f"k{n}": 1 for n in range(900)} | {"z": 1}}
    faults = made(schema).faults(value).listed
    assert [fault.at for fault in faults] in (["/o"], ["/o/z"])


# ── the bound is no less than what an instance costs ─────────────────────────────────────────────────────────────────

REFERENCES = st.sampled_from([{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}, {"type": "integer"}])


def applied(below: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Schemas that apply others to what is inside a value."""
    keywords = ("x", "y")
    return st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(st.sampled_from(keywords), below, max_size=2),
            "additionalProperties": below,
            "items": below,
            "allOf": st.lists(
                st.fixed_dictionaries({"properties": st.dictionaries(st.sampled_from(keywords), below, max_size=2)}),
                min_size=1,
                max_size=2,
            ),
        },
    )


DEFINITIONS = st.fixed_dictionaries({"a": applied(REFERENCES), "b": applied(REFERENCES)})


def evaluated(schema: Any, definitions: Any, path: list[str | int]) -> int:
    """The subschemas that judge the value at the end of *path*, counted one by one."""
    count = 0 if path else 1
    if "$ref" in schema:
        return count + evaluated(definitions[schema["$ref"].rpartition("/")[2]], definitions, path)
    count += sum(evaluated(one, definitions, path) for one in schema.get("allOf", ()))
    if path:
        count += sum(evaluated(one, definitions, path[1:]) for one in speaking_of(schema, path[0]))
    return count


def speaking_of(schema: Any, step: str | int) -> list[Any]:
    if isinstance(step, int):
        return [schema["items"]] if "items" in schema else []
    if step in schema.get("properties", {}):
        return [schema["properties"][step]]
    return [schema["additionalProperties"]] if "additionalProperties" in schema else []


@law(200)
@given(DEFINITIONS, st.lists(st.sampled_from(["x", "y", "z", 0]), max_size=7))
def test_no_value_is_judged_by_more_subschemas_than_the_bound(definitions: Any, path: list[str | int]) -> None:
    compiled = compile_untrusted({"$ref": "#/$defs/a", "$defs": definitions})
    if isinstance(compiled, Compiled):
        assert evaluated({"$ref": "#/$defs/a"}, definitions, path) <= compiled.width


def test_a_number_with_a_large_exponent_weighs_more_than_another() -> None:
    """Exact comparison of one takes the engine longer."""
    assert counted([1.5] * 100, 10_000) == 101
    assert counted([1e300] * 100, 10_000) == 901
