"""
A small MCP server with three faults that real servers have. It needs no package beyond Assay.

- ``search`` is listed with a schema that no client accepts: ``properties`` has a word in place of a schema.
- ``weather`` works, but prints to standard output, which belongs to the protocol.
- ``report`` crashes.
"""

import json
import sys
from collections.abc import Callable
from typing import Any

from assay.spec.revisions import REVISIONS, handshake

KNOWN = [each for each in REVISIONS if handshake(each)]

TOOLS: list[dict[str, Any]] = [
    {
        "name": "weather",
        "description": "Return the weather in a city.",
        "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
    {
        "name": "search",
        "description": "Search the archive.",
        "inputSchema": {"type": "object", "properties": {"words": "string"}, "required": True},
    },
    {
        "name": "report",
        "description": "Write the monthly report.",
        "inputSchema": {"type": "object"},
    },
]


class NoSuchMethodError(Exception):
    """The request has a method that this server does not know."""


class InvalidParamsError(Exception):
    """The request has params that this server cannot use."""


def weather(arguments: dict[str, Any]) -> str:
    """Return the weather, after a line that does not belong on standard output."""
    print("weather: cache is warm")
    return f"Sunny in {arguments['city']}, 21 °C."


def report(_: dict[str, Any]) -> str:
    """Crash, like a server that lost its database."""
    raise RuntimeError("database is gone")


def search(_: dict[str, Any]) -> str:
    """Return nothing found. No client can call it."""
    return "Nothing found."


CALLS: dict[str, Callable[[dict[str, Any]], str]] = {"weather": weather, "search": search, "report": report}


def result_of(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request."""
    if method == "initialize":
        wanted = params.get("protocolVersion")
        revision = wanted if wanted in KNOWN else KNOWN[-1]
        info = {"name": "demo", "version": "1.0.0"}
        return {"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        call = CALLS.get(params.get("name", ""))
        if call is None:
            raise InvalidParamsError(f"unknown tool: {params.get('name')}")
        return {"content": [{"type": "text", "text": call(params.get("arguments") or {})}]}
    if method == "ping":
        return {}
    raise NoSuchMethodError(method)


def answer(message: dict[str, Any]) -> dict[str, Any]:
    """Return the response to a request."""
    head = {"jsonrpc": "2.0", "id": message["id"]}
    try:
        return {**head, "result": result_of(message["method"], message.get("params") or {})}
    except NoSuchMethodError:
        return {**head, "error": {"code": -32601, "message": "Method not found"}}
    except InvalidParamsError as error:
        return {**head, "error": {"code": -32602, "message": str(error)}}


def main() -> None:
    """Answer the requests on standard input until it ends."""
    for stream in (sys.stdin, sys.stdout):
        stream.reconfigure(encoding="utf-8")  # type: ignore[union-attr]  # they are text streams unless replaced
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            print(json.dumps(answer(message), ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
