"""
The official Python SDK over Streamable HTTP, its low-level server: one tool, whose result is made once and never looked
at. JSON answers; without sessions, or with them.
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import orjson
from stack import run

lowlevel: Any = import_module("mcp.server.lowlevel")
types: Any = import_module("mcp_types")

given = orjson.loads(Path(sys.argv[1]).read_bytes())
tool = types.Tool.model_validate(given["tool"])
result = types.CallToolResult.model_validate(given["result"])


async def list_tools(_: Any, __: Any) -> Any:
    """The one tool."""
    return types.ListToolsResult(tools=[tool])


async def call_tool(_: Any, __: Any) -> Any:
    """The one result."""
    return result


server = lowlevel.Server("bench", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
app = server.streamable_http_app(json_response=True, stateless_http="sessions" not in sys.argv[3:])
run(app, int(sys.argv[2]))
