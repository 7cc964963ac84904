"""
The official Python client: calls every tool of the server that its arguments start.

Prints the text of each result by name, as JSON; null for a result that the client rejects.
"""

import asyncio
import json
import os
import sys
from importlib import import_module
from typing import Any

mcp: Any = import_module("mcp")


async def called(client: Any, name: str) -> str | None:
    try:
        text: str = (await client.call_tool(name, {})).content[0].text
    except (RuntimeError, ValueError, mcp.MCPError):
        return None
    return text


async def main() -> None:
    command, *arguments = sys.argv[1:]
    server = mcp.StdioServerParameters(command=command, args=arguments, env=dict(os.environ))
    with open(os.devnull, "w") as log:
        async with asyncio.timeout(45), mcp.Client(mcp.stdio_client(server, errlog=log)) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            print(json.dumps({name: await called(client, name) for name in names}))


if __name__ == "__main__":
    asyncio.run(main())
