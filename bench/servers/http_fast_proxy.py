"""The proxy of the fastmcp package in front of a server over HTTP."""

import sys
from importlib import import_module
from typing import Any

server: Any = import_module("fastmcp.server")

server.create_proxy(sys.argv[1], name="bench").run(
    transport="http",
    host="127.0.0.1",
    port=int(sys.argv[2]),
    path="/mcp",
    json_response=True,
    stateless_http=True,
    show_banner=False,
    log_level="ERROR",
)
