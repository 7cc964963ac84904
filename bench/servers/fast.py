"""The fastmcp package: one tool, a function of the same arguments, whose result is made once."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import orjson

fastmcp: Any = import_module("fastmcp")
tool_result: Any = import_module("fastmcp.tools.base").ToolResult
text_content: Any = import_module("mcp_types").TextContent

given = orjson.loads(Path(sys.argv[1]).read_bytes())
content = [text_content.model_validate(each) for each in given["result"]["content"]]
result = tool_result(content=content, structured_content=given["result"]["structuredContent"])


async def validate_asset(asset: Any, schema: str) -> Any:  # noqa: ARG001 - the parameters are the tool's
    """The one result."""
    return result


async def list_schemas() -> Any:
    """The one result."""
    return result


server = fastmcp.FastMCP("bench")
tool = given["tool"]
function = {"validate_asset": validate_asset, "list_schemas": list_schemas}[tool["name"]]
server.tool(function, name=tool["name"], description=tool["description"], output_schema=tool["outputSchema"])
server.run(transport="stdio", show_banner=False, log_level="ERROR")
