"""The official Python SDK, its low-level server: one tool, whose result is made once and never looked at."""

import sys
from importlib import import_module
from typing import Any

from sdk import server

anyio: Any = import_module("anyio")
stdio: Any = import_module("mcp.server.stdio")


async def main() -> None:
    """Serve until the input ends."""
    made = server(sys.argv[1])
    async with stdio.stdio_server() as (source, sink):
        await made.run(source, sink, made.create_initialization_options())


anyio.run(main)
