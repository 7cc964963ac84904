"""The proxy of the fastmcp package in front of a server on pipes."""

import sys
from importlib import import_module
from typing import Any

server: Any = import_module("fastmcp.server")
transports: Any = import_module("fastmcp.client.transports")

command, *arguments = sys.argv[1:]
upstream = transports.StdioTransport(command=command, args=arguments, keep_alive=True)
server.create_proxy(upstream, name="bench").run(transport="stdio", show_banner=False, log_level="ERROR")
