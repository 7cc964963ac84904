"""The official Python client: lists the tools of the server that its arguments start, and prints their names."""

import asyncio
import sys

from mcp import ClientSession, StdioServerParameters  # type: ignore[import-not-found]  # in an environment of its own
from mcp.client.stdio import stdio_client  # type: ignore[import-not-found]  # as above


async def main() -> None:
    server = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:])
    async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as session:
        await session.initialize()
        try:
            listed = await session.list_tools()
        except Exception as error:  # whatever it makes of the list is what is asked
            print(f"no tools: {type(error).__name__}")
        else:
            print(", ".join(tool.name for tool in listed.tools))


asyncio.run(main())
