"""
Schemas that are made to do harm, from a server that lists them: what the guard makes of the list, and of a call.

The tool between two good ones costs the guard a bounded amount of work and memory; nothing is ever fetched.
"""

import json
import os
import re
import select
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from test_broken_rules import CPU_SECONDS, MEMORY, work

from kit.broken_rules import doubling, tool
from kit.guard_process import SERVER, Guarded, call, guarded, peak, request

META = "https://json-schema.org/draft/2020-12/schema"


class Hostile(NamedTuple):
    """A schema, what to call its tool with, and what comes of it."""

    schema: dict[str, Any]
    """Of the argument `value`, or of all arguments if it says that they are an object."""
    value: Any
    rule: str | None
    """What is told of it, in the list or at the call; None if it is a good schema after all, and the value fits."""
    listed: bool
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
    "regex-nested-repeats": Hostile({"pattern": "^(a+)+$"}, "a" * 100_000 + "!", "contract/input", True),
    "regex-alternatives": Hostile({"pattern": "^(a|aa)+$"}, "a" * 100_000 + "!", "contract/input", True),
    "regex-dots": Hostile({"pattern": "^(.*a){20}$"}, "a" * 20_000 + "!", "contract/input", True),
    "regex-look-ahead": Hostile({"pattern": "(?=a)a*a*a*a*b"}, "a" * 100_000, "contract/unjudged", True),
    "regex-back-reference": Hostile({"pattern": r"^(a+)\1$"}, "a" * 100_000, "contract/unjudged", True),
    "regex-large-repeats": Hostile({"pattern": "^((a{1000}){1000}){1000}$"}, "a", "contract/", True),
    "regex-many": Hostile(
        {"properties": {f"p{n}": {"pattern": f"[ab]{{500}}{n}"} for n in range(500)}},
        {"p1": "a" * 500 + "1"},
        "contract/pattern",
        True,
    ),
    "regex-as-property": Hostile({"patternProperties": {"(?!a)": {}}}, {"b": 1}, None, True),
    "regex-as-long-property": Hostile(
        {"patternProperties": {"(?=a)a*a*a*a*b": False}}, {"a" * 100_000: 1}, "contract/unjudged", True
    ),
    "regex-look-ahead-on-many": Hostile(
        {"items": {"pattern": "(?=a)a*a*a*a*b"}}, ["a" * 300 + str(n) for n in range(1_000)], "contract/unjudged", True
    ),
    "regex-looks-ahead-in-loops": Hostile(
        {"pattern": "^(?=(?:(?=(?:(?=a+)a)+)a)+)b"}, "a" * 1_000, "contract/unjudged", True
    ),
    "regex-broken": Hostile({"pattern": "(["}, "a", "contract/pattern", True),
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
    "over-https": Hostile({"$ref": "https://example.com/a.json"}, 1, "contract/remote-ref", True),
    "over-http-to-us": Hostile({"$ref": "http://ADDRESS/a.json"}, 1, "contract/remote-ref", True),
    "from-a-pipe": Hostile({"$ref": "file://PIPE"}, 1, "contract/remote-ref", True),
    "relative": Hostile({"$ref": "other.json#/a"}, 1, "contract/remote-ref", True),
    "relative-to-an-id": Hostile(
        {"type": "object", "$id": "http://ADDRESS/a/", "properties": {"value": {"$ref": "b"}}},
        1,
        "contract/remote-ref",
        True,
    ),
    "dynamic": Hostile({"$dynamicRef": "http://ADDRESS/a.json"}, 1, "contract/remote-ref", True),
    "recursion-that-is-meant": Hostile(FILTER, WRONG, "contract/input", True),
}

SIZES = {
    "exponential": Hostile({"type": "object", **doubling(40)}, 1, "contract/schema-cost", True),
    "exponential-any-of": Hostile(
        {"type": "object", **json.loads(json.dumps(doubling(30)).replace("allOf", "anyOf"))},
        1,
        "contract/schema-cost",
        True,
    ),
    "exponential-unevaluated": Hostile(
        {"type": "object", **doubling(16), "unevaluatedProperties": False}, 1, "contract/schema-cost", True
    ),
    "deep": Hostile(nested(35, {}), deep(35, 1), "contract/schema-size", True),
    "deep-as-it-may-be": Hostile(nested(20, {"type": "string"}), deep(20, 1), "contract/input", True),
    "thousands-of-definitions": Hostile(
        {"type": "object", "$defs": {str(n): {} for n in range(6000)}}, 1, "contract/schema-size", True
    ),
    "a-megabyte": Hostile({"enum": ["x" * 1_000_000]}, "x", "contract/schema-size", True),
    "a-hundred-thousand-alternatives": Hostile({"enum": list(range(100_000))}, -1, "contract/schema-size", True),
}

DIALECTS = {
    "unknown-dialect": Hostile(
        {"type": "object", "$schema": "https://example.com/mine"}, 1, "contract/unknown-dialect", True
    ),
    "dialect-of-our-own": Hostile(
        {"type": "object", "$schema": "http://ADDRESS/schema"}, 1, "contract/unknown-dialect", True
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
        True,
    ),
    "the-meta-schema": Hostile({"$ref": META}, {"type": "strnig"}, "contract/remote-ref", True),
    "no-schema": Hostile({"type": "strnig"}, 1, "contract/schema", False),
    "no-schema-below": Hostile({"anyOf": {}}, 1, "contract/schema", False),
}

HOSTILE = {**PATTERNS, **REFERENCES, **SIZES, **DIALECTS}


@pytest.fixture(scope="module")
def trap() -> Iterator[socket.socket]:
    """Listens where schemas point to."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def written(place: Path, hostile: Hostile, trap: socket.socket) -> Path:
    """The script of a server that lists the tool between two good ones."""
    pipe = place / "pipe"
    os.mkfifo(pipe)
    schema = hostile.schema
    if schema.get("type") != "object":
        schema = {"type": "object", "properties": {"value": schema}}
    host, port = trap.getsockname()
    tools = [tool("first"), tool("odd", inputSchema=schema), tool("last")]
    text = json.dumps({"tools": tools}).replace("ADDRESS", f"{host}:{port}").replace("PIPE", str(pipe))
    (place / "script").write_text(text)
    return place / "script"


def ask(one: Guarded, message: Any) -> Any:
    """The answer to it."""
    answer = one.ask(message)
    assert answer["id"] == message["id"]
    return answer


@pytest.mark.parametrize("mode", ["enforce", "audit"])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_schema_that_is_made_to_do_harm_does_none(tmp_path: Path, trap: socket.socket, name: str, mode: str) -> None:
    """Twice listed, then called; the tools beside it work on, and nobody has called where it points to."""
    hostile = HOSTILE[name]
    command = [sys.executable, "-IS", str(SERVER), f"@{written(tmp_path, hostile, trap)}"]
    with guarded(tmp_path, "--mode", mode, command=command) as one:
        seen = [[each["name"] for each in one.open()["tools"]]]
        seen.append([each["name"] for each in ask(one, request(1, "tools/list"))["result"]["tools"]])
        answer = ask(one, call(2, "odd", value=hostile.value))
        for each in ("first", "last"):
            assert "result" in ask(one, call(each, each))
        assert peak(one.process) < MEMORY
        assert work(one.process.pid) < CPU_SECONDS
        one.close()
        log = one.log.rest()
        assert one.ended() == 0
    rules = {each.decode() for line in log for each in re.findall(rb" \[([a-z]+/[a-z-]+)\]", line)}
    assert any(each.startswith(hostile.rule) for each in rules) if hostile.rule else rules == set(), rules
    assert seen == [["first", *(["odd"] if hostile.listed or mode == "audit" else []), "last"]] * 2
    refused = mode == "enforce" and hostile.rule == "contract/input"
    assert answer.get("result", {}).get("isError", False) is refused or "error" in answer
    assert not select.select([trap], [], [], 0)[0]
