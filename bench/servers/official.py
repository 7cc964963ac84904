"""The official Python SDK, its low-level server: one tool, whose result is made once and never looked at."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import orjson

anyio: Any = import_module("anyio")
lowlevel: Any = import_module("mcp.server.lowlevel")
stdio: Any = import_module("mcp.server.stdio")
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


async def main() -> None:
    """Serve until the input ends."""
    server = lowlevel.Server("bench", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio.stdio_server() as (source, sink):
        await server.run(source, sink, server.create_initialization_options())


anyio.run(main)
