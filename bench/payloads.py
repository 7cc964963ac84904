"""What is measured: calls of tools, in three sizes and several shapes, and the conversation they are part of."""

from typing import Any

import orjson

from assay.judge.conversation import Conversation
from assay.model.verdict import Party

REVISION = "2025-11-25"

_PROSE = "The quick brown fox jumps over the lazy dog, and then it goes home to sleep until the morning.\n"
_CODE = 'def greet(name: str) -> str:\n    """Say hello."""\n    return f"hello, {name}"\n\n\n'


def _rows(count: int) -> list[dict[str, Any]]:
    return [
        {"id": index, "name": f"user {index}", "email": f"u{index}@example.com", "active": True, "score": index * 0.5}
        for index in range(count)
    ]


def _entities(count: int) -> list[dict[str, Any]]:
    facts = ["likes tea", "lives by the sea", "speaks three languages"]
    return [{"name": f"entity {index}", "entityType": "person", "observations": facts} for index in range(count)]


_STRING = {"type": "string"}

TOOLS: dict[str, dict[str, Any]] = {
    "search_files": {
        "type": "object",
        "properties": {
            "path": _STRING,
            "pattern": _STRING,
            "excludePatterns": {"type": "array", "items": _STRING},
            "limit": {"type": "integer", "minimum": 1},
        },
        "required": ["path", "pattern"],
        "additionalProperties": False,
    },
    "insert_rows": {
        "type": "object",
        "properties": {"table": _STRING, "rows": {"type": "array", "items": {"type": "object"}}},
        "required": ["table", "rows"],
    },
    "create_entities": {
        "type": "object",
        "properties": {
            "entities": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "name": _STRING,
                        "entityType": _STRING,
                        "observations": {"type": "array", "items": _STRING},
                    },
                    "required": ["name", "entityType", "observations"],
                    "additionalProperties": False,
                },
            }
        },
        "required": ["entities"],
        "additionalProperties": False,
    },
    "write_file": {
        "type": "object",
        "properties": {"path": _STRING, "content": _STRING},
        "required": ["path", "content"],
        "additionalProperties": False,
    },
}

CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "200 B": (
        "search_files",
        {"path": "/srv/projects/demo", "pattern": "*.py", "excludePatterns": ["node_modules", ".git"], "limit": 50},
    ),
    "2 KB rows": ("insert_rows", {"table": "people", "rows": _rows(24)}),
    "2 KB entities": ("create_entities", {"entities": _entities(17)}),
    "2 KB text": ("write_file", {"path": "/srv/readme.md", "content": (_PROSE * 30)[:1900]}),
    "50 KB text": ("write_file", {"path": "/srv/readme.md", "content": (_PROSE * 600)[:49_000]}),
    "50 KB code": ("write_file", {"path": "/srv/greet.py", "content": (_CODE * 700)[:47_000]}),
    "50 KB rows": ("insert_rows", {"table": "people", "rows": _rows(600)}),
}
"""By name: the tool and its arguments. The schemas are of the shapes that real servers list."""


def call(ident: int, tool: str, arguments: dict[str, Any]) -> bytes:
    """One call, as the SDKs spell it."""
    params = {"name": tool, "arguments": arguments}
    return orjson.dumps({"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params})


def result(ident: int) -> bytes:
    """A short answer."""
    content = {"content": [{"type": "text", "text": "done"}]}
    return orjson.dumps({"jsonrpc": "2.0", "id": ident, "result": content})


def opened() -> Conversation:
    """A conversation in which the tools have been listed."""
    conversation = Conversation()
    info = {"name": "bench", "version": "1"}
    opening = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": info}
    answer = {"protocolVersion": REVISION, "capabilities": {"tools": {}}, "serverInfo": info}
    tools = [{"name": name, "inputSchema": schema} for name, schema in TOOLS.items()]
    for party, message in (
        (Party.CLIENT, {"id": 0, "method": "initialize", "params": opening}),
        (Party.SERVER, {"id": 0, "result": answer}),
        (Party.CLIENT, {"method": "notifications/initialized"}),
        (Party.CLIENT, {"id": 1, "method": "tools/list"}),
        (Party.SERVER, {"id": 1, "result": {"tools": tools}}),
    ):
        verdict = conversation.hear(party, orjson.dumps({"jsonrpc": "2.0", **message}))
        assert verdict.violations == (), verdict.violations
    return conversation
