"""
Schemas that are made to do harm, in the list of a scripted server: what a session makes of the list, and of a call.

The tool between two good ones costs a bounded amount of work, which is counted: what goes beyond it is not judged.
`tests/real/pairings/test_schema_references.py` shows that nothing is fetched.
"""

import json
from typing import Any, NamedTuple

import pytest

from assay.guard.terms import Mode
from kit.broken_rules import doubling, tool
from kit.guard_process import INITIALIZED, call, frame_of, initialize, request
from kit.guarded_session import ScriptedSession
from kit.rows import rows

META = "https://json-schema.org/draft/2020-12/schema"


class Hostile(NamedTuple):
    """A schema, what to call its tool with, and what comes of it."""

    schema: dict[str, Any]
    """Of the argument `value`, or of all arguments if it says that they are an object."""
    value: Any
    rule: str | None
    """What is found, in the list or at the call; None if it is a good schema after all, and the value fits."""
    listed: bool = True
    """Whether the client sees the tool."""


def nested(levels: int, schema: dict[str, Any]) -> dict[str, Any]:
    """A schema so many levels down."""
    for _ in range(levels):
        schema = {"properties": {"a": schema}}
    return schema


def deep(levels: int, value: Any) -> Any:
    """The same for a value."""
    for _ in range(levels):
        value = {"a": value}
    return value


BRANCHING = {"$ref": "#/$defs/filter"}
FILTER = {
    "type": "object",
    "properties": {"value": BRANCHING},
    "$defs": {
        "filter": {
            "anyOf": [
                {"type": "object", "properties": {name: {"type": "array", "items": BRANCHING}}, "required": [name]}
                for name in ("and", "or", "not", "any")
            ]
            + [{"type": "object", "properties": {"is": {"type": "string"}}, "required": ["is"]}]
        }
    },
}
"""A schema that means no harm, and has cost other programs seconds and gigabytes."""

WRONG: Any = {"is": 5}
for _level in range(14):
    WRONG = {"and": [WRONG]}

PATTERNS = {
    "regex-nested-repeats": Hostile({"pattern": "^(a+)+$"}, "a" * 100_000 + "!", "contract/input"),
    "regex-alternatives": Hostile({"pattern": "^(a|aa)+$"}, "a" * 100_000 + "!", "contract/input"),
    "regex-dots": Hostile({"pattern": "^(.*a){20}$"}, "a" * 20_000 + "!", "contract/input"),
    "regex-look-ahead": Hostile({"pattern": "(?=a)a*a*a*a*b"}, "a" * 100_000, "contract/unjudged"),
    "regex-back-reference": Hostile({"pattern": r"^(a+)\1$"}, "a" * 100_000, "contract/unjudged"),
    "regex-large-repeats": Hostile({"pattern": "^((a{1000}){1000}){1000}$"}, "a", "contract/"),
    "regex-many": Hostile(
        {"properties": {f"p{n}": {"pattern": f"[ab]{{500}}{n}"} for n in range(500)}},
        {"p1": "a" * 500 + "1"},
        "contract/pattern",
    ),
    "regex-as-property": Hostile({"patternProperties": {"(?!a)": {}}}, {"b": 1}, None),
    "regex-as-long-property": Hostile(
        {"patternProperties": {"(?=a)a*a*a*a*b": False}}, {"a" * 100_000: 1}, "contract/unjudged"
    ),
    "regex-look-ahead-on-many": Hostile(
        {"items": {"pattern": "(?=a)a*a*a*a*b"}}, ["a" * 300 + str(n) for n in range(1_000)], "contract/unjudged"
    ),
    "regex-looks-ahead-in-loops": Hostile(
        {"pattern": "^(?=(?:(?=(?:(?=a+)a)+)a)+)b"}, "a" * 1_000, "contract/unjudged"
    ),
    "regex-broken": Hostile({"pattern": "(["}, "a", "contract/pattern"),
}

REFERENCES = {
    "cycle-of-one": Hostile({"type": "object", "$ref": "#"}, 1, "contract/schema-cycle", False),
    "cycle-of-two": Hostile(
        {"type": "object", "$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        1,
        "contract/schema-cycle",
        False,
    ),
    "cycle-in-all-of": Hostile(
        {"type": "object", "allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}},
        1,
        "contract/schema-cycle",
        False,
    ),
    "over-https": Hostile({"$ref": "https://example.com/a.json"}, 1, "contract/remote-ref"),
    "relative": Hostile({"$ref": "other.json#/a"}, 1, "contract/remote-ref"),
    "recursion-that-is-meant": Hostile(FILTER, WRONG, "contract/input"),
}

SIZES = {
    "exponential": Hostile({"type": "object", **doubling(40)}, 1, "contract/schema-cost"),
    "exponential-any-of": Hostile(
        {"type": "object", **json.loads(json.dumps(doubling(30)).replace("allOf", "anyOf"))},
        1,
        "contract/schema-cost",
    ),
    "exponential-unevaluated": Hostile(
        {"type": "object", **doubling(16), "unevaluatedProperties": False}, 1, "contract/schema-cost"
    ),
    "deep": Hostile(nested(35, {}), deep(35, 1), "contract/schema-size"),
    "deep-as-it-may-be": Hostile(nested(20, {"type": "string"}), deep(20, 1), "contract/input"),
    "thousands-of-definitions": Hostile(
        {"type": "object", "$defs": {str(n): {} for n in range(6000)}}, 1, "contract/schema-size"
    ),
    "a-megabyte": Hostile({"enum": ["x" * 1_000_000]}, "x", "contract/schema-size"),
    "a-hundred-thousand-alternatives": Hostile({"enum": list(range(100_000))}, -1, "contract/schema-size"),
}

DIALECTS = {
    "unknown-dialect": Hostile(
        {"type": "object", "$schema": "https://example.com/mine"}, 1, "contract/unknown-dialect"
    ),
    "dialect-that-is-no-text": Hostile({"type": "object", "$schema": 5}, 1, "protocol/result", False),
    "draft-7": Hostile(
        {
            "type": "object",
            "$schema": "http://json-schema.org/draft-07/schema#",
            "properties": {"value": {"$ref": "#/definitions/text"}},
            "definitions": {"text": {"type": "string"}},
        },
        5,
        "contract/input",
    ),
    "the-meta-schema": Hostile({"$ref": META}, {"type": "strnig"}, "contract/remote-ref"),
    "no-schema": Hostile({"type": "strnig"}, 1, "contract/schema", False),
    "no-schema-below": Hostile({"anyOf": {}}, 1, "contract/schema", False),
}

HOSTILE = {**PATTERNS, **REFERENCES, **SIZES, **DIALECTS}


def answers(one: ScriptedSession) -> dict[Any, Any]:
    """What came to each request; each has one answer."""
    found = [json.loads(line) for line in one.received.splitlines()]
    assert len({each["id"] for each in found}) == len(found)
    return {each["id"]: each for each in found}


@pytest.mark.parametrize("mode", ["enforce", "audit"])
@rows("hostile", HOSTILE.values(), ids=HOSTILE)
def test_a_schema_that_is_made_to_do_harm_does_none(hostile: Hostile, mode: Mode) -> None:
    """Twice listed, then called; the tools beside it work on."""
    schema = hostile.schema
    if schema.get("type") != "object":
        schema = {"type": "object", "properties": {"value": schema}}
    one = ScriptedSession({"tools": [tool("first"), tool("odd", inputSchema=schema), tool("last")]}, mode)
    listings = [request("list", "tools/list"), request("list again", "tools/list")]
    for message in (initialize(), INITIALIZED, *listings, call("odd", "odd", value=hostile.value)):
        one.converse(frame_of(message))
    one.converse(*(frame_of(call(each, each)) for each in ("first", "last")))
    one.leave()
    got, rules = answers(one), set(one.records.rules)
    assert any(each.startswith(hostile.rule) for each in rules) if hostile.rule else rules == set(), rules
    assert "guard/failure" not in rules
    seen = [[each["name"] for each in got[message["id"]]["result"]["tools"]] for message in listings]
    assert seen == [["first", *(["odd"] if hostile.listed or mode == "audit" else []), "last"]] * 2
    refused = mode == "enforce" and hostile.rule == "contract/input"
    assert got["odd"].get("result", {}).get("isError", False) is refused or "error" in got["odd"]
    assert all("result" in got[each] for each in ("first", "last"))
