"""Recordings for the page of a report: one with times and all kinds of findings, and what others are made of."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

MAPPED = ("--map", "dir=direction,msg=payload,ts=ts,conversation=session")

START = datetime(2026, 7, 24, 2, 3, 14, tzinfo=UTC)

SEARCH = {
    "name": "search", "title": "Search books", "description": "Search the library.",
    "annotations": {"readOnlyHint": True},
    "inputSchema": {"type": "object", "properties": {"limit": {"type": "integer"}}},
    "outputSchema": {"type": "object", "properties": {"books": {"type": "array", "items": {
        "type": "object", "properties": {"year": {"type": "integer"}}}}}},
}  # fmt: skip
WRITE = {"name": "write", "inputSchema": {"type": "object"}}
BROKEN = {"name": "broken", "inputSchema": {"type": "object", "properties": {"words": "string"}}}


def opening(tools: list[dict[str, Any]], client: str = "tester") -> list[dict[str, Any]]:
    """The messages that open a session and list *tools*."""
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": client, "version": "1.0"}}
    welcome = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "library", "version": "2"},
    }
    return [
        {"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "id": "i", "result": welcome},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": "l", "method": "tools/list"},
        {"jsonrpc": "2.0", "id": "l", "result": {"tools": tools}},
    ]  # fmt: skip


def call(ident: int, arguments: dict[str, Any], tool: str = "search") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def books(ident: int, *years: Any) -> dict[str, Any]:
    content = {"books": [{"year": year} for year in years]}
    return {"jsonrpc": "2.0", "id": ident, "result": {"content": [], "structuredContent": content}}


def write(path: Path, rows: Iterator[tuple[int, int, Any]]) -> Path:
    """Write rows of session, milliseconds since the start and message, as another program would."""
    with path.open("w", encoding="utf-8") as file:
        for session, after, message in rows:
            side = "client" if isinstance(message, dict) and "method" in message else "server"
            ts = (START + timedelta(milliseconds=after)).isoformat()
            row = {"session": f"s{session}", "ts": ts, "direction": side, "payload": message}
            file.write(json.dumps(row) + "\n")
    return path


def timed(path: Path) -> Path:
    """Three sessions: calls take 100 ms each, one 1,600 ms; findings are in the first and the last."""

    def rows() -> Iterator[tuple[int, int, Any]]:
        for session in (1, 2, 3):
            start = session * 10_000
            tools = [SEARCH, WRITE] if session == 2 else [SEARCH, WRITE, BROKEN]
            for number, each in enumerate(opening(tools, f"tester-{session}")):
                yield session, start + 10 * number, each
            for ident in range(1, 11):
                at = start + 200 * ident
                slow = session == 2 and ident == 10
                is_bad = session == 1 and ident == 4
                yield session, at, call(ident, {"limit": "five" if is_bad else ident, "apiKey": "hunter2hunter2"})
                years = [1987] * 40 + ["1988"] if session == 1 and ident == 7 else [1987]
                yield session, at + (1600 if slow else 100), books(ident, *years)
        yield 3, 40_000, call(99, {}, "write")

    return write(path, rows())
