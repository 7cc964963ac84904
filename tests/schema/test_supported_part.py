"""What is left of a schema without the parts that cannot be judged: it refuses nothing that the whole would accept."""

from random import Random
from typing import Any

import jsonschema_rs

from assay.schema.admission import compile_untrusted
from assay.schema.compiled import Compiled
from assay.schema.fault import SchemaRefusal
from assay.schema.schema_index import SchemaIndex, indexed
from assay.schema.supported_part import supported_part
from kit.rows import rows

UNKNOWN = "a$"
"""A pattern that counts as one which no one can judge by. The engine could, so that both schemas can be compared."""

DRAFTS = ("https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#")

LEAVES: list[Any] = [
    True,
    False,
    *[{"pattern": UNKNOWN}] * 4,
    {"pattern": "^b"},
    {"type": "string"},
    {"maxLength": 1},
    {"required": ["a"]},
    {"$ref": "#/definitions/x"},
    {"$ref": "#/definitions/y"},
]
HOLDING_ONE = (
    *("additionalProperties", "unevaluatedProperties", "propertyNames", "items", "contains", "unevaluatedItems"),
    *("not", "if", "then", "else"),
)
HOLDING_MANY = ("allOf", "anyOf", "oneOf")
HOLDING_NAMED = ("properties", "patternProperties", "dependentSchemas")

TEXTS = ["a", "ba", "b", "", "abc"]
OBJECTS = [{key: value} for key in ("a", "ba", "b", "c") for value in ("a", "b", 1)]
VALUES: list[Any] = [
    *(None, 1, *TEXTS, {}, *OBJECTS),
    *({**first, **second} for first in OBJECTS[::2] for second in OBJECTS[1::3]),
    *([], *([text] for text in TEXTS), ["a", "b"], ["a", "ba"], ["b", "b"], ["a", 1], [{"a": "b"}], [{"b": "a"}]),
    *({"a": {"a": "b"}}, {"b": ["a"]}, {"a": ["b"], "c": "a"}),
]


def made(chance: Random, depth: int = 3) -> Any:
    """A schema with a few keywords, one inside the other."""
    if depth == 0 or chance.random() < 0.2:
        return chance.choice(LEAVES)
    schema: dict[str, Any] = {}
    for keyword in chance.sample((*HOLDING_ONE, *HOLDING_MANY, *HOLDING_NAMED), chance.randint(1, 3)):
        if keyword in HOLDING_ONE:
            schema[keyword] = made(chance, depth - 1)
        elif keyword in HOLDING_MANY:
            schema[keyword] = [made(chance, depth - 1) for _ in range(chance.randint(1, 3))]
        else:
            names = (UNKNOWN, "^b") if keyword == "patternProperties" else ("a", "ba", "b")
            schema[keyword] = {name: made(chance, depth - 1) for name in chance.sample(names, chance.randint(1, 2))}
    if "if" in schema:
        schema.setdefault("then", made(chance, depth - 1))
    if "contains" in schema:
        schema["maxContains"] = 1
    return schema


def index_of(document: Any) -> SchemaIndex:
    index = indexed(document)
    assert isinstance(index, SchemaIndex)
    return index


@rows("draft", DRAFTS)
@rows("seed", range(2))
def test_nothing_is_refused_that_the_whole_schema_accepts(seed: int, draft: str) -> None:
    chance = Random(seed)  # noqa: S311 - the same schemas each time
    compared = 0
    for _ in range(100):
        apart = {"x": made(chance, 1), "y": {"pattern": UNKNOWN, "items": made(chance, 1)}}
        document = {"$schema": draft, "allOf": [made(chance)], "definitions": apart}
        whole = compile_untrusted(document)
        part = supported_part(index_of(document), {UNKNOWN})
        if isinstance(whole, SchemaRefusal) or part is None:
            continue  # a circle, for one
        fits = jsonschema_rs.validator_for(part).is_valid
        accepted = [value for value in VALUES if whole.is_valid(value)]
        assert [value for value in accepted if not fits(value)] == [], document
        compared += len(accepted)
    assert compared > 500


LEFT: list[Any] = [
    ({"pattern": UNKNOWN, "maxLength": 2}, ["b"], ["abc"]),
    ({"not": {"pattern": UNKNOWN}, "maxLength": 2}, ["a", "b"], ["abc"]),
    ({"not": {"not": {"pattern": UNKNOWN}}}, ["a", "b"], []),
    ({"if": {"pattern": UNKNOWN}, "then": {"maxLength": 1}, "else": {"maxLength": 2}}, ["bb", "aaa"], []),
    ({"oneOf": [{"type": "string", "pattern": UNKNOWN}, {"type": "string", "pattern": "^b"}, {"type": "null"}]},
     ["a", "b", None], [5]),
    ({"patternProperties": {UNKNOWN: {"type": "null"}, "^b": {"type": "string"}}, "additionalProperties": False},
     [{"a": 5}, {"b": "x"}, {"c": 1}], [{"b": 5}]),
    ({"allOf": [{"patternProperties": {UNKNOWN: True}, "required": ["c"]}], "unevaluatedProperties": False},
     [{"c": 1}, {"a": 1, "c": 1}], [{}]),
    ({"propertyNames": {"pattern": UNKNOWN, "maxLength": 1}}, [{"b": 1}], [{"bb": 1}]),
    ({"contains": {"pattern": UNKNOWN, "type": "string"}, "maxContains": 1}, [["a", "b"]], [[1]]),
    ({"properties": {"a": {"$ref": "https://example.com/x"}, "b": {"type": "null"}}}, [{"a": 1}], [{"b": 1}]),
    ({"$schema": DRAFTS[1], "properties": {"a": {"$ref": "https://example.com/x", "type": "null"}}}, [{"a": 1}], []),
]  # fmt: skip


@rows(("schema", "passing", "refused"), LEFT)
def test_what_is_left_is_judged_by(schema: dict[str, Any], passing: list[Any], refused: list[Any]) -> None:
    part = supported_part(index_of(schema), {UNKNOWN})
    assert part is not None
    fits = jsonschema_rs.validator_for(part).is_valid
    assert [value for value in passing if not fits(value)] == []
    assert [value for value in refused if fits(value)] == []


def test_a_reference_into_what_goes_leaves_nothing_to_judge_by() -> None:
    schema = {"not": {"pattern": UNKNOWN, "type": "string"}, "items": {"$ref": "#/not"}}
    assert supported_part(index_of(schema), {UNKNOWN}) is None
    refusal = compile_untrusted({**schema, "not": {"pattern": "[^]"}}, partly=True)
    assert isinstance(refusal, SchemaRefusal)
    assert refusal.rule == "contract/schema-cost"


@rows("pattern", ["[^]", r"a\Z", "(?P<x>a)(?P=x)", "(", "(?:a{1000}){1000}"])
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


@rows("draft", DRAFTS)
def test_a_pattern_with_a_lone_bracket_is_judged_by_in_every_draft(draft: str) -> None:
    """The engine refuses it up to draft 7."""
    compiled = compile_untrusted({"$schema": draft, "properties": {"a": {"pattern": "^(?!b)[a-z]]$"}}})
    assert isinstance(compiled, Compiled)
    assert compiled.is_valid({"a": "a]"})
    assert [each.at for each in compiled.faults({"a": "b]"}).listed] == ["/a"]
