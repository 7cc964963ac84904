"""What is left of a schema without the parts that cannot be judged: it refuses nothing that the whole would accept."""

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.engine.admission import compile_untrusted
from assay.engine.compiled import Compiled
from assay.engine.limits import Refusal
from assay.engine.milder import strictly, without
from assay.engine.outline import Outline, outlined

UNKNOWN = "a$"
"""A pattern that counts as one which nobody can judge by. The engine could, so that both schemas can be compared."""

KEYS = ("a", "ba", "b", "c")
DRAFTS = ("https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#")

LEAVES: list[dict[str, Any] | bool] = [
    True,
    False,
    {"pattern": UNKNOWN},
    {"pattern": "^b"},
    {"type": "string"},
    {"type": "object"},
    {"maxLength": 1},
    {"required": ["a"]},
    {"$ref": "#/definitions/x"},
    {"$ref": "#/definitions/y"},
]


def larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Schemas with others in them, several keywords at once."""
    some = st.lists(inner, min_size=1, max_size=3)
    named = st.dictionaries(st.sampled_from(KEYS), inner, max_size=2)
    return st.fixed_dictionaries(
        {},
        optional={
            "properties": named,
            "patternProperties": st.dictionaries(st.sampled_from([UNKNOWN, "^b"]), inner, max_size=2),
            "additionalProperties": inner,
            "unevaluatedProperties": inner,
            "propertyNames": inner,
            "items": inner,
            "contains": inner,
            "maxContains": st.just(1),
            "unevaluatedItems": inner,
            "allOf": some,
            "anyOf": some,
            "oneOf": some,
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
            "dependentSchemas": named,
        },
    )


SCHEMAS = st.recursive(st.sampled_from(LEAVES), larger, max_leaves=8)
VALUES = st.recursive(
    st.sampled_from(["a", "ba", "b", "", "abc", 1, None]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """A document with two definitions, of either draft."""
    apart = {"x": draw(SCHEMAS), "y": {"pattern": UNKNOWN, "items": draw(SCHEMAS)}}
    return {"$schema": draw(st.sampled_from(DRAFTS)), "allOf": [draw(SCHEMAS)], "definitions": apart}


def outline_of(document: Any) -> Outline:
    outline = outlined(document)
    assert isinstance(outline, Outline)
    return outline


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(documents(), st.lists(VALUES, min_size=3, max_size=8))
def test_nothing_is_refused_that_the_whole_schema_accepts(document: dict[str, Any], values: list[Any]) -> None:
    whole = compile_untrusted(document)
    if isinstance(whole, Refusal):
        return  # a circle, for one
    milder = without(outline_of(document), {UNKNOWN})
    if milder is None:
        return
    # Of keywords that a draft does not have nothing is left out.
    assert document["$schema"] != DRAFTS[0] or UNKNOWN not in str(milder)
    fits = jsonschema_rs.validator_for(milder).is_valid
    for value in values:
        assert fits(value) or not whole.is_valid(value), (milder, value)


LEFT: list[Any] = [
    pytest.param({"pattern": UNKNOWN, "maxLength": 2}, ["b"], ["abc"], id="beside"),
    pytest.param({"not": {"pattern": UNKNOWN}, "maxLength": 2}, ["a", "b"], ["abc"], id="not"),
    pytest.param({"not": {"not": {"pattern": UNKNOWN}}}, ["a", "b"], [], id="not-not"),
    pytest.param(
        {"if": {"pattern": UNKNOWN}, "then": {"maxLength": 1}, "else": {"maxLength": 2}}, ["bb", "aaa"], [], id="if"
    ),
    pytest.param(
        {"oneOf": [{"type": "string", "pattern": UNKNOWN}, {"type": "string", "pattern": "^b"}, {"type": "null"}]},
        ["a", "b", None],
        [5],
        id="one-of",
    ),
    pytest.param(
        {"patternProperties": {UNKNOWN: {"type": "null"}, "^b": {"type": "string"}}, "additionalProperties": False},
        [{"a": 5}, {"b": "x"}, {"c": 1}],
        [{"b": 5}],
        id="names",
    ),
    pytest.param(
        {"allOf": [{"patternProperties": {UNKNOWN: True}, "required": ["c"]}], "unevaluatedProperties": False},
        [{"c": 1}, {"a": 1, "c": 1}],
        [{}],
        id="unevaluated",
    ),
    pytest.param({"propertyNames": {"pattern": UNKNOWN, "maxLength": 1}}, [{"b": 1}], [{"bb": 1}], id="property-names"),
    pytest.param(
        {"contains": {"pattern": UNKNOWN, "type": "string"}, "maxContains": 1}, [["a", "b"]], [[1]], id="contains"
    ),
    pytest.param(
        {"properties": {"a": {"$ref": "https://example.com/x"}, "b": {"type": "null"}}},
        [{"a": 1}],
        [{"b": 1}],
        id="remote-reference",
    ),
    pytest.param(
        {"$schema": DRAFTS[1], "properties": {"a": {"$ref": "https://example.com/x", "type": "null"}}},
        [{"a": 1}],
        [],
        id="beside-a-remote-reference-of-draft-7",
    ),
]


@pytest.mark.parametrize(("schema", "passing", "refused"), LEFT)
def test_what_is_left_is_judged_by(schema: dict[str, Any], passing: list[Any], refused: list[Any]) -> None:
    milder = without(outline_of(schema), {UNKNOWN})
    assert milder is not None
    fits = jsonschema_rs.validator_for(milder).is_valid
    assert [value for value in passing if not fits(value)] == []
    assert [value for value in refused if fits(value)] == []


def test_a_reference_into_what_goes_leaves_nothing_to_judge_by() -> None:
    schema = {"not": {"pattern": UNKNOWN, "type": "string"}, "items": {"$ref": "#/not"}}
    assert without(outline_of(schema), {UNKNOWN}) is None
    refusal = compile_untrusted({**schema, "not": {"pattern": "[^]"}}, partly=True)
    assert isinstance(refusal, Refusal)
    assert refusal.rule == "contract/schema-cost"


@pytest.mark.parametrize("pattern", ["[^]", r"a\Z", "(?P<x>a)(?P=x)", "(", "(?:a{1000}){1000}"])
def test_a_pattern_that_no_engine_takes_is_left_out_with_its_place(pattern: str) -> None:
    named = {"type": "object", "patternProperties": {pattern: {"type": "null"}}, "additionalProperties": False}
    schema = {"properties": {"a": {"type": "string", "pattern": pattern, "maxLength": 3}, "b": named}}
    compiled = compile_untrusted(schema, partly=True)
    assert isinstance(compiled, Compiled)
    assert [each.rule for each in compiled.left_out] == ["contract/pattern"] * 2
    assert compiled.left_out[0].at == "/properties/a/pattern"
    assert compiled.left_out[1].at.startswith("/properties/b/patternProperties/")
    assert compiled.is_valid({"a": "any", "b": {"any": 1}})
    [fault] = compiled.faults({"a": "longer", "b": {}}).listed
    assert (fault.at, fault.schema_at) == ("/a", "#/properties/a/maxLength")
    assert not compiled.is_valid({"b": 5})


@pytest.mark.parametrize(
    ("pattern", "spelt"),
    [
        ("a]", r"a\]"),
        ("[]a]]}", r"[]a]\]\}"),
        (r"^[^\]]{1,3}\]$", r"^[^\]]{1,3}\]$"),
        (r"\p{L}(?:a|b)+?", r"\p{L}(?:a|b)+?"),
    ],
)
def test_a_lone_bracket_or_brace_is_escaped(pattern: str, spelt: str) -> None:
    assert strictly(pattern) == spelt


@pytest.mark.parametrize("draft", DRAFTS)
def test_a_pattern_with_a_lone_bracket_is_judged_by_in_every_draft(draft: str) -> None:
    """The engine refuses it up to draft 7."""
    compiled = compile_untrusted({"$schema": draft, "properties": {"a": {"pattern": "^(?!b)[a-z]]$"}}})
    assert isinstance(compiled, Compiled)
    assert compiled.is_valid({"a": "a]"})
    assert [each.at for each in compiled.faults({"a": "b]"}).listed] == ["/a"]
