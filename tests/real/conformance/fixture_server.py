"""
A server with everything that the official conformance suite looks for, on the official Python SDK.

    fixture_server.py                       over standard input and output
    fixture_server.py --http 127.0.0.1:0    over Streamable HTTP; where, it says on stderr: url=…

Both are served in every revision that the SDK knows: with sessions up to 2025-11-25, without from 2026-07-28 on. Over
standard input and output the first request settles which, for as long as the process lives.

It runs in the environment of the SDK and imports nothing of Assay. What there is to serve is in `fixtures.py`, for the
official extensions in `fixture_tasks.py` and `fixture_skills.py`; what the suite finds, in `fixture_server.toml`.
"""

import argparse
import asyncio
import json
import socket
import sys
import warnings
from collections.abc import Awaitable, Callable, Sequence
from importlib import import_module
from typing import Any

import fixture_skills
import fixture_tasks
import fixtures
from fixture_tasks import JOBS, Job
from fixtures import JSON, PROMPTS, TEMPLATE, TOOLS, Call, Failed, InputRequired, Tool, text

jsonschema: Any = import_module("jsonschema")
uvicorn: Any = import_module("uvicorn")
mcp_types: Any = import_module("mcp_types")
caching: Any = import_module("mcp.server.caching")
lowlevel: Any = import_module("mcp.server.lowlevel")
request_state: Any = import_module("mcp.server.request_state")
stdio: Any = import_module("mcp.server.stdio")
streamable_http: Any = import_module("mcp.server.streamable_http")
subscriptions: Any = import_module("mcp.server.subscriptions")
exceptions: Any = import_module("mcp.shared.exceptions")

STATE_KEY = "no secret: whoever reads this can forge a state"
"""Seals `requestState`. The same in every process, or one could not go on with what another has begun."""

RETRY_MS = 100
"""How long a client should wait until it comes back to a stream that was closed."""

FRESH_MS = 60_000
"""How long a client may keep what it has read: nothing here ever changes."""

NO_RESOURCE = -32002
"""What a resource that is not there was before 2026-07-28; since then it is an invalid parameter."""


# ── answering ────────────────────────────────────────────────────────────────────────────────────────────────────────


def whole(**fields: Any) -> JSON:
    """A result. The SDK drops its type for the revisions that have none, but adds it for none that has."""
    return {"resultType": "complete", **fields}


CALLABLE: dict[str, Tool | Job] = {**TOOLS, **JOBS}
"""Every tool, by name: those that answer at once, and those that run as tasks."""

RESOURCES = {**fixtures.RESOURCES, **fixture_skills.RESOURCES}
"""Every resource that is no template's, by its URI."""


async def list_tools(_: Any, __: Any) -> JSON:
    return whole(tools=[listed_tool(name, each) for name, each in CALLABLE.items()])


def listed_tool(name: str, tool: Tool | Job) -> JSON:
    listed: JSON = {"name": name, "description": tool.about, "inputSchema": tool.schema}
    return {**listed, "outputSchema": tool.output} if isinstance(tool, Job) and tool.output else listed


async def call_tool(ctx: Any, params: Any) -> JSON:
    tool = CALLABLE.get(params.name)
    if tool is None:
        raise exceptions.MCPError(mcp_types.INVALID_PARAMS, f"There is no tool {params.name!r}")
    arguments = params.arguments or {}
    try:
        check_arguments(tool.schema, arguments)
        if isinstance(tool, Job):
            return await fixture_tasks.called(ctx, tool, arguments)
        return whole(content=list(await tool.act(Call(ctx, arguments))))
    except Failed as why:
        return whole(content=[text(str(why))], isError=True)
    except InputRequired as more:
        return more.result


def check_arguments(schema: JSON, arguments: JSON) -> None:
    """Raises `Failed` if they do not fit: the SDK leaves that to us."""
    wrong = [each.message for each in jsonschema.Draft202012Validator(schema).iter_errors(arguments)]
    if wrong:
        raise Failed("; ".join(wrong))


def schema_of(name: str) -> JSON | None:
    """What the SDK holds the headers of a call against."""
    return CALLABLE[name].schema if name in CALLABLE else None


async def list_prompts(_: Any, __: Any) -> JSON:
    def arguments(names: Sequence[str]) -> list[JSON]:
        return [{"name": each, "required": True} for each in names]

    listed = [
        {"name": name, "description": each.about, "arguments": arguments(each.arguments)}
        for name, each in PROMPTS.items()
    ]
    return whole(prompts=listed)


async def get_prompt(ctx: Any, params: Any) -> JSON:
    prompt = PROMPTS.get(params.name)
    if prompt is None:
        raise exceptions.MCPError(mcp_types.INVALID_PARAMS, f"There is no prompt {params.name!r}")
    arguments = params.arguments or {}
    if missing := set(prompt.arguments) - arguments.keys():
        raise exceptions.MCPError(mcp_types.INVALID_PARAMS, f"Arguments are missing: {', '.join(sorted(missing))}")
    try:
        content = await prompt.act(Call(ctx, arguments))
    except InputRequired as more:
        return more.result
    return whole(description=prompt.about, messages=[{"role": "user", "content": each} for each in content])


async def complete(_: Any, params: Any) -> JSON:
    """What the argument of a prompt could be. Those of a resource template could be anything."""
    known = fixtures.COMPLETIONS.get((getattr(params.ref, "name", ""), params.argument.name), ())
    values = [each for each in known if each.startswith(params.argument.value)]
    return whole(completion={"values": values, "total": len(values), "hasMore": False})


async def list_resources(_: Any, __: Any) -> JSON:
    listed = [
        {"uri": uri, "name": uri.removeprefix("test://"), "description": f"At {uri}", "mimeType": each["mimeType"]}
        for uri, each in fixtures.RESOURCES.items()
    ]
    return whole(resources=listed + fixture_skills.LISTED)


async def list_resource_templates(_: Any, __: Any) -> JSON:
    about = {"name": "template", "description": "One for every id", "mimeType": "application/json"}
    return whole(resourceTemplates=[{"uriTemplate": TEMPLATE, **about}])


async def read_resource(ctx: Any, params: Any) -> JSON:
    return whole(contents=[{"uri": params.uri, **resource(ctx, params.uri)}])


async def watch_resource(ctx: Any, params: Any) -> JSON:
    """Subscribes, or ends it: as nothing ever changes, there is nothing to remember."""
    resource(ctx, params.uri)
    return {}


def resource(ctx: Any, uri: str) -> JSON:
    """What is at *uri*."""
    if uri in RESOURCES:
        return RESOURCES[uri]
    if found := fixtures.OF_TEMPLATE.fullmatch(uri):
        said = json.dumps({"id": found[1], "data": f"What belongs to {found[1]}"})
        return {"mimeType": "application/json", "text": said}
    code = mcp_types.INVALID_PARAMS if fixtures.modern(ctx) else NO_RESOURCE
    raise exceptions.MCPError(code, "Resource not found", {"uri": uri})


async def set_level(ctx: Any, params: Any) -> JSON:
    fixtures.WANTED[fixtures.session_of(ctx)] = params.level
    return {}


def fixture_server() -> Any:
    """All of it, as a server of the SDK's that is not served yet."""
    server = lowlevel.Server(
        fixtures.NAME,
        version="1",
        cache_hints={each: caching.CacheHint(FRESH_MS, "public") for each in caching.CACHEABLE_METHODS},
        get_tool_input_schema=schema_of,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
        on_list_resources=list_resources,
        on_list_resource_templates=list_resource_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=watch_resource,
        on_unsubscribe_resource=watch_resource,
        on_subscriptions_listen=subscriptions.ListenHandler(fixtures.BUS),
        on_set_logging_level=set_level,
    )
    fixture_tasks.add_to(server)
    fixture_skills.add_to(server)
    security = request_state.RequestStateSecurity(keys=[STATE_KEY])
    server.middleware.append(request_state.RequestStateBoundary(security, default_audience=fixtures.NAME))
    return server


# ── serving ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Events:
    """What was sent in one session, for a client that comes back to a stream: an event store, as the SDK has it."""

    def __init__(self) -> None:
        self.stored: list[tuple[str, Any]] = []

    async def store_event(self, stream: str, sent: Any) -> str:
        """The id of the event. The first of a stream has no message."""
        self.stored.append((stream, sent))
        return str(len(self.stored) - 1)

    async def replay_events_after(self, last: str, send: Callable[[Any], Awaitable[None]]) -> str | None:
        """Sends what came after the event *last* in its stream; the stream, if there is one."""
        if not last.isdecimal() or int(last) >= len(self.stored):
            return None
        start = int(last)
        stream, _ = self.stored[start]
        for ident, (where, sent) in enumerate(self.stored[start + 1 :], start + 1):
            if where == stream and sent is not None:
                await send(streamable_http.EventMessage(sent, str(ident)))
        return stream


def separate_events(manager: Any) -> None:
    """
    Give each session of *manager* an event store of its own.

    The SDK shares one, and names a stream by the id of its request: two clients that use the same ids would get each
    other's messages.
    """
    manager.__class__ = type("SeparateEvents", (type(manager),), {"event_store": property(lambda _: Events())})


def serve_http(server: Any, host: str, port: int) -> None:
    """Serves until it is told to end. On a host of this machine alone, it refuses requests that name another."""
    app = server.streamable_http_app(host=host, retry_interval=RETRY_MS)
    separate_events(server.session_manager)
    with socket.create_server((host, port)) as listening:
        # Whoever connects from here on is heard, if a little later.
        print(f"url=http://{host}:{listening.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
        uvicorn.Server(config).run(sockets=[listening])


async def serve_stdio(server: Any) -> None:
    """Serves until there is no more input."""
    async with stdio.stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def main(arguments: Sequence[str]) -> None:
    """Serve, over what the command line says."""
    parser = argparse.ArgumentParser(prog="fixture_server.py", description="What the conformance suite looks for.")
    parser.add_argument("--http", metavar="HOST:PORT", help="over HTTP; port 0 takes one that is free")
    where = parser.parse_args(arguments).http
    # Sampling, roots and logging are on their way out of the protocol. Here they are the point.
    warnings.simplefilter("ignore", exceptions.MCPDeprecationWarning)
    if where is None:
        asyncio.run(serve_stdio(fixture_server()))
    else:
        host, _, port = where.rpartition(":")
        serve_http(fixture_server(), host, int(port))


if __name__ == "__main__":
    main(sys.argv[1:])
