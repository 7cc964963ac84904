"""
The official Python SDK as a client: carries out the plan on standard input, and prints what it got as JSON.

It runs in the environment of the SDK and imports nothing of ours. `test_official_clients.py` says what a plan is.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from typing import Any

mcp: Any = import_module("mcp")
mcp_types: Any = import_module("mcp_types")
streamable_http: Any = import_module("mcp.client.streamable_http")

SECONDS = 45
"""What a plan may take; it takes one or two."""

Plan = dict[str, Any]
Report = dict[str, Any]


def by_stdio(server: dict[str, Any]) -> AbstractAsyncContextManager[Any]:
    """The streams to a server that is started for us. Its log goes where ours goes."""
    streams: AbstractAsyncContextManager[Any] = mcp.stdio_client(mcp.StdioServerParameters(**server))
    return streams


def by_http(server: dict[str, Any]) -> AbstractAsyncContextManager[Any]:
    """The streams to a server that is there. Its session, if it gives us one, is ended with them."""
    streams: AbstractAsyncContextManager[Any] = streamable_http.streamable_http_client(server["url"])
    return streams


TRANSPORTS = {"stdio": by_stdio, "http": by_http}
REFERENCES = {"ref/resource": mcp_types.ResourceTemplateReference, "ref/prompt": mcp_types.PromptReference}


@asynccontextmanager
async def connected(plan: Plan) -> AsyncIterator[Any]:
    """A client that has agreed on a revision: by `initialize` if the plan says so, else in the way it does unasked."""
    transport = TRANSPORTS[plan["transport"]](plan["server"])
    if plan["handshake"]:
        async with transport as (read, write), mcp.ClientSession(read, write) as session:
            await session.initialize()
            yield session
    else:
        async with mcp.Client(transport) as client:
            yield client


async def outcome(pending: Awaitable[Any]) -> Report:
    """What a request came to: its result, or the error that it was answered with."""
    try:
        return {"result": dumped(await pending)}
    except mcp.MCPError as error:
        return {"error": {"code": error.code, "message": error.message}}


def dumped(model: Any) -> Any:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def completing(client: Any, wanted: dict[str, Any]) -> Awaitable[Any]:
    reference = REFERENCES[wanted["ref"]["type"]](**wanted["ref"])
    pending: Awaitable[Any] = client.complete(reference, wanted["argument"])
    return pending


async def carried_out(plan: Plan) -> Report:
    """Every step of *plan*, one after the other."""
    async with asyncio.timeout(SECONDS), connected(plan) as client:
        report = {
            "revision": client.protocol_version,
            "server": dumped(client.server_info),
            "tools": dumped(await client.list_tools()),
            "resources": dumped(await client.list_resources()),
            "templates": dumped(await client.list_resource_templates()),
            "prompts": dumped(await client.list_prompts()),
        }
        report["calls"] = [await outcome(client.call_tool(each["name"], each["arguments"])) for each in plan["calls"]]
        uris = [each["uri"] for each in report["resources"]["resources"]]
        report["reads"] = [await outcome(client.read_resource(uri)) for uri in [*uris, *plan["reads"]]]
        report["gets"] = [await outcome(client.get_prompt(each["name"], each["arguments"])) for each in plan["gets"]]
        report["completions"] = [await outcome(completing(client, each)) for each in plan["completions"]]
    return report


if __name__ == "__main__":
    json.dump(asyncio.run(carried_out(json.load(sys.stdin))), sys.stdout)
