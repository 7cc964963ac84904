"""
A small MCP server with one tool, find_books, for trying things out. It needs nothing but Python.

It speaks every revision, and is valid as it is. Each option gives it a fault that real servers have.
"""

import argparse
import json
import sys
import time
from typing import Any

Members = dict[str, Any]

CATALOGUE = {"sea": ["Moby-Dick", "The Old Man and the Sea"], "dog": ["The Call of the Wild"]}

FIND_BOOKS = {
    "name": "find_books",
    "description": "Finds books by words.",
    "inputSchema": {"type": "object", "properties": {"words": {"type": "string"}}, "required": ["words"]},
}


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", metavar="FILE", help="offer the tools in this JSON file")
    parser.add_argument("--ask", action="store_true", help="offer a second tool to clients that can be asked for input")
    parser.add_argument("--banner", action="store_true", help="print a banner to stdout, where only messages belong")
    parser.add_argument("--chatty", action="store_true", help="print a line to stdout during each call")
    parser.add_argument("--no-text", action="store_true", help="leave the text out of results")
    parser.add_argument("--old", action="store_true", help="answer in the form of older revisions")
    parser.add_argument("--slow", metavar="SECONDS", type=float, default=0, help="wait before each answer")
    parser.add_argument("--crash", action="store_true", help="crash at the first request")
    return parser.parse_args()


def tools_for(options: argparse.Namespace, params: Members) -> Any:
    if options.tools:
        with open(options.tools, encoding="utf-8") as file:
            return json.load(file)
    capabilities = params.get("capabilities") or {}
    ask = {"name": "ask_reader", "inputSchema": {"type": "object"}}
    return [FIND_BOOKS, ask] if options.ask and "elicitation" in capabilities else [FIND_BOOKS]


def call(options: argparse.Namespace, params: Members) -> tuple[Members, Members | None]:
    if params.get("name") != "find_books":
        return {}, {"code": -32602, "message": f"Unknown tool: {params.get('name')}"}
    if options.chatty:
        print("searching the catalogue")
    found = CATALOGUE.get((params.get("arguments") or {}).get("words", ""), [])
    text = {} if options.no_text else {"text": ", ".join(found) or "nothing found"}
    return {"content": [{"type": "text", **text}]}, None


def serve(options: argparse.Namespace) -> None:
    if options.banner:
        print("library server 0.3 starting", flush=True)
    tools = tools_for(options, {})
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        if options.crash:
            raise RuntimeError("the catalogue is gone")
        if options.slow:
            print("asking the catalogue", file=sys.stderr, flush=True)
            time.sleep(options.slow)
        params = message.get("params") or {}
        is_stateless = "io.modelcontextprotocol/protocolVersion" in (params.get("_meta") or {})
        result: Members = {}
        error: Members | None = None
        match message["method"]:
            case "initialize":
                tools = tools_for(options, params)
                result = {
                    "protocolVersion": params["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "library", "version": "0.3"},
                }
            case "ping":
                pass
            case "tools/list":
                result = {"tools": tools}
            case "tools/call":
                result, error = call(options, params)
            case "resources/read" if options.old:
                error = {"code": -32002, "message": "Resource not found"}
            case _:
                error = {"code": -32601, "message": f"Method not found: {message['method']}"}
        if error is None and is_stateless and not options.old:
            result["resultType"] = "complete"
            if message["method"] == "tools/list":
                result |= {"ttlMs": 0, "cacheScope": "public"}
        answer = {"error": error} if error else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)


if __name__ == "__main__":
    serve(read_options())
