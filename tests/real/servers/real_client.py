"""
The official Python SDK as a client of a real server: carries out the plan on standard input, prints
what it got as JSON.

It runs in the environment of the SDK and imports nothing of ours. `real_servers.py` says what a plan is.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any

mcp: Any = import_module("mcp")
types: Any = import_module("mcp_types")

SECONDS = 50
"""What a plan may take; it takes one or two."""

Plan = dict[str, Any]
Report = dict[str, Any]

REFERENCES = {"ref/resource": types.ResourceTemplateReference, "ref/prompt": types.PromptReference}


class Person:
    """Whoever sits at the client: answers what the server asks, and remembers all that it says unasked."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers
        self.heard: dict[str, list[Any]] = {}
        self.changed = asyncio.Event()

    def note(self, kind: str, what: Any) -> None:
        """Remembers it."""
        self.heard.setdefault(kind, []).append(what)
        self.changed.set()

    async def until(self, kind: str, number: int) -> None:
        """Waits until that much of a kind was heard."""
        while len(self.heard.get(kind, ())) < number:
            self.changed.clear()
            await self.changed.wait()

    async def sample(self, _: Any, params: Any) -> Any:
        """Speaks for a model."""
        self.note("sampling", dumped(params))
        return types.CreateMessageResult(**self.answers["sampling"])

    async def elicit(self, _: Any, params: Any) -> Any:
        """Fills in a form, or has opened a page."""
        self.note("elicitation", dumped(params))
        mode = "url" if getattr(params, "mode", None) == "url" else "form"
        return types.ElicitResult(**self.answers["elicitation"][mode])

    async def roots(self, _: Any) -> Any:
        """Shows which directories are open."""
        self.note("roots", None)
        return types.ListRootsResult(**self.answers["roots"])

    async def log(self, params: Any) -> None:
        """Reads the log."""
        self.note("log", dumped(params))

    async def other(self, message: Any) -> None:
        """Whatever else comes."""
        if isinstance(message, Exception):
            self.note("exception", repr(message))
        else:
            self.note("notification", dumped(message))

    def options(self) -> dict[str, Any]:
        """What a session is made with."""
        return {
            "sampling_callback": self.sample,
            "elicitation_callback": self.elicit,
            "list_roots_callback": self.roots,
            "logging_callback": self.log,
            "message_handler": self.other,
        }


@asynccontextmanager
async def connected(plan: Plan, person: Person) -> AsyncIterator[Any]:
    """A session that has agreed on a revision: by `initialize` if the plan says so, else in the way it does unasked."""
    with open(plan["log"], "w") as log:
        if "url" in plan["server"]:
            transport = import_module("mcp.client.streamable_http").streamable_http_client(plan["server"]["url"])
        else:
            transport = mcp.stdio_client(mcp.StdioServerParameters(**plan["server"]), errlog=log)
        if plan["handshake"]:
            async with transport as (read, write), mcp.ClientSession(read, write, **person.options()) as session:
                await session.initialize()
                yield session
        else:
            async with mcp.Client(transport, **person.options()) as client:
                yield client


def dumped(model: Any) -> Any:
    """A model as JSON has it."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def outcome(pending: Awaitable[Any]) -> Any:
    """What a request came to: its result, or the error that it was answered with."""
    try:
        return {"result": dumped(await pending)}
    except mcp.MCPError as error:
        return {"error": {"code": error.code, "message": error.message, "data": error.data}}
    except RuntimeError as error:
        # The SDK holds results to the tool's contract itself.
        return {"refused": str(error)}


class Steps:
    """What a plan consists of."""

    def __init__(self, client: Any, person: Person) -> None:
        self.client = client
        self.person = person

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """A call of a tool, with its progress."""
        told = []

        async def progress(done: float, total: float | None, message: str | None) -> None:
            told.append([done, total, message])

        return {**await outcome(self.client.call_tool(name, arguments, progress_callback=progress)), "progress": told}

    async def misuse(self, name: str, arguments: dict[str, Any]) -> Any:
        """A call that breaks the contract."""
        return await outcome(self.client.call_tool(name, arguments))

    async def read(self, uri: str) -> Any:
        """A resource."""
        return await outcome(self.client.read_resource(uri))

    async def get(self, name: str, arguments: dict[str, str]) -> Any:
        """A prompt."""
        return await outcome(self.client.get_prompt(name, arguments))

    async def complete(self, ref: dict[str, Any], argument: dict[str, str], context: dict[str, str]) -> Any:
        """A completion."""
        reference = REFERENCES[ref["type"]](**ref)
        return await outcome(self.client.complete(reference, argument, context or None))

    async def level(self, level: str) -> Any:
        """How much of the log is wanted."""
        return await outcome(self.client.set_logging_level(level))

    async def subscribe(self, uri: str) -> Any:
        """To changes of a resource."""
        return await outcome(self.client.subscribe_resource(uri))

    async def unsubscribe(self, uri: str) -> Any:
        """From them."""
        return await outcome(self.client.unsubscribe_resource(uri))

    async def ping(self) -> Any:
        """Whether it is there."""
        return await outcome(self.client.send_ping())

    async def move(self) -> Any:
        """Other directories are open now; the server asks which."""
        before = len(self.person.heard.get("roots", ()))
        await self.client.send_roots_list_changed()
        await self.person.until("roots", before + 1)

    async def hear(self, kind: str, number: int) -> Any:
        """Waits for what the server says unasked."""
        await self.person.until(kind, number)


async def carried_out(plan: Plan) -> Report:
    """Every step of *plan*, one after the other."""
    person = Person(plan["answers"])
    async with asyncio.timeout(SECONDS), connected(plan, person) as client:
        lists: dict[str, Callable[[], Awaitable[Any]]] = {
            "tools": client.list_tools,
            "resources": client.list_resources,
            "templates": client.list_resource_templates,
            "prompts": client.list_prompts,
        }
        report = {
            "revision": client.protocol_version,
            "server": dumped(client.server_info),
            "capabilities": dumped(client.server_capabilities),
            "instructions": client.instructions,
            **{name: await outcome(ask()) for name, ask in lists.items()},
        }
        steps = Steps(client, person)
        report["steps"] = [await getattr(steps, verb)(*given) for verb, *given in plan["steps"]]
        report["heard"] = person.heard
    return report


if __name__ == "__main__":
    json.dump(asyncio.run(carried_out(json.load(sys.stdin))), sys.stdout)
