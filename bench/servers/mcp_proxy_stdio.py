"""The proxy of the mcp-proxy package in front of a server on pipes, put together as its own commands are."""

import asyncio
import sys
from importlib import import_module
from typing import Any

proxy: Any = import_module("mcp_proxy.proxy_server")
client: Any = import_module("mcp.client.stdio")
session: Any = import_module("mcp.client.session")
server: Any = import_module("mcp.server.stdio")


async def main() -> None:
    """Stands between our pipes and those of the command."""
    command, *arguments = sys.argv[1:]
    parameters = client.StdioServerParameters(command=command, args=arguments)
    async with client.stdio_client(parameters) as upstream, session.ClientSession(*upstream) as remote:
        app = await proxy.create_proxy_server(remote)
        async with server.stdio_server() as streams:
            await app.run(*streams, app.create_initialization_options())


asyncio.run(main())
