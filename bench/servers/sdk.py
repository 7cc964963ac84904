"""What servers of the official Python SDK have in common: one tool, whose result is made once and never looked at."""

from importlib import import_module
from pathlib import Path
from typing import Any

import orjson

lowlevel: Any = import_module("mcp.server.lowlevel")
types: Any = import_module("mcp_types")


def server(path: str) -> Any:
    """The low-level server of the tool, and of its result, that are in the file at *path*."""
    given = orjson.loads(Path(path).read_bytes())
    tool = types.Tool.model_validate(given["tool"])
    result = types.CallToolResult.model_validate(given["result"])

    async def list_tools(_: Any, __: Any) -> Any:
        return types.ListToolsResult(tools=[tool])

    async def call_tool(_: Any, __: Any) -> Any:
        return result

    return lowlevel.Server("bench", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
