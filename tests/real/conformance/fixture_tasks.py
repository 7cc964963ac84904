"""
The tools of the fixture server that run as tasks, and the methods of `io.modelcontextprotocol/tasks`.

The SDK has no tasks of its own: here they are written on its low-level API, for the tools that the official conformance
suite calls. A client that does not declare the extension gets the result of a tool at once where that is possible, and
-32021 where it is not.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, NamedTuple

from fixtures import A_NAME, BOOLEAN, JSON, NO_ARGUMENTS, STRING, Call, Failed, Round, asked, form, takes, text, told

mcp_types: Any = import_module("mcp_types")
exceptions: Any = import_module("mcp.shared.exceptions")

EXTENSION = "io.modelcontextprotocol/tasks"

SECOND = 0.1
"""How long a second of `slow_compute` takes. The suite asks for up to 60, and waits for the short ones."""

KEPT_MS = 600_000
"""How long the server promises to keep a task; it keeps all of them until it ends."""

POLL_MS = 100
"""How often a client should ask for the status of a task."""

HEADER_MISMATCH = -32020
"""A header that does not repeat the body. The SDK checks those of the core methods only."""


class Task:
    """A tool that runs in the background, with what `tasks/get` says about it."""

    def __init__(self, job: "Job", arguments: JSON) -> None:
        self.ident = secrets.token_urlsafe(12)
        self.created = self.updated = now()
        self.status = "working"
        self.details: JSON = {}
        """What the status adds: `inputRequests`, `result`, or `error` with a message for people."""
        self._answers: JSON = {}
        self._answered = asyncio.Event()
        self._work = asyncio.create_task(self._run(job, arguments))

    async def _run(self, job: "Job", arguments: JSON) -> None:
        """Do the work, and keep how it ends. A tool that fails has completed; only a protocol error is a failure."""
        try:
            self._become("completed", result=await job.work(self.ask, arguments))
        except Failed as why:
            self._become("completed", result={"content": [text(str(why))], "isError": True})
        except exceptions.MCPError as why:
            details = {"statusMessage": why.message, "error": {"code": why.code, "message": why.message}}
            self._become("failed", **details)

    def _become(self, status: str, **details: Any) -> None:
        self.status, self.details, self.updated = status, details, now()

    async def ask(self, requests: Mapping[str, JSON]) -> JSON:
        """Return the client's answers to *requests*, once it has sent all of them with `tasks/update`."""
        self._answers, self._answered = {}, asyncio.Event()
        self._become("input_required", inputRequests=dict(requests))
        await self._answered.wait()
        return self._answers

    def update(self, responses: Mapping[str, JSON]) -> None:
        """Take the answers to open requests; others are ignored."""
        waiting: JSON = self.details.get("inputRequests", {})
        self._answers |= {key: value for key, value in responses.items() if key in waiting}
        left = {key: request for key, request in waiting.items() if key not in responses}
        if left:
            self._become("input_required", inputRequests=left)
        elif waiting:
            self._become("working")
            self._answered.set()

    def cancel(self) -> None:
        """Stop the work, unless it has ended."""
        if self.status in {"working", "input_required"}:
            self._work.cancel()
            self._become("cancelled")

    def shown(self, kind: str, **details: Any) -> JSON:
        """The task as a result of type *kind*."""
        times = {"createdAt": self.created, "lastUpdatedAt": self.updated}
        limits = {"ttlMs": KEPT_MS, "pollIntervalMs": POLL_MS}
        return {"resultType": kind, "taskId": self.ident, "status": self.status, **times, **limits, **details}


Ask = Callable[[Mapping[str, JSON]], Awaitable[JSON]]
Work = Callable[[Ask, JSON], Awaitable[JSON]]
"""What a tool does in the background: it may ask the client, and returns the fields of its result."""


class Job(NamedTuple):
    """A tool that runs as a task."""

    about: str
    work: Work
    schema: JSON = NO_ARGUMENTS
    output: JSON | None = None
    """What its `structuredContent` looks like, if it has one."""
    required: bool = False
    """Whether only a client that declares the extension can call it."""
    rounds: Sequence[Round] = ()
    """What to ask by way of the result, before there is a task."""


def now() -> str:
    return datetime.now(UTC).isoformat()


# ── the tools ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def computes(_: Ask, given: JSON) -> JSON:
    await asyncio.sleep(given["seconds"] * SECOND)
    said = f"{given.get('label', 'It')} took {given['seconds']} seconds."
    return {"content": [text(said)], "structuredContent": {"seconds": given["seconds"]}}


async def fails(_: Ask, __: JSON) -> JSON:
    await asyncio.sleep(SECOND)
    raise Failed("This job fails whenever it is started.")


async def breaks(_: Ask, __: JSON) -> JSON:
    await asyncio.sleep(SECOND)
    raise exceptions.MCPError(mcp_types.INTERNAL_ERROR, "This job breaks whenever it is started.")


async def deletes(ask: Ask, given: JSON) -> JSON:
    answers = await ask({"consent": form(f"Delete {given['filename']}?", confirm=BOOLEAN)})
    return {"content": [text(f"{given['filename']}: {told(answers['consent'])}")]}


async def asks_twice(ask: Ask, _: JSON) -> JSON:
    answers = await ask({"first": form("Who comes first?", name=STRING), "second": form("And then?", name=STRING)})
    return {"content": [text("; ".join(map(told, answers.values())))]}


async def greets_later(_: Ask, given: JSON) -> JSON:
    await asyncio.sleep(SECOND)
    return {"content": [text(f"It was started by {told(given['user_name'])}.")]}


NUMBER: JSON = {"type": "number", "minimum": 0}
COMPUTE: JSON = {"type": "object", "properties": {"seconds": NUMBER, "label": STRING}, "required": ["seconds"]}

JOBS = {
    # With an output schema: the handle of the task has nothing of what it asks for.
    "slow_compute": Job("Takes its time.", computes, COMPUTE, takes(seconds=NUMBER)),
    "failing_job": Job("Fails in the background.", fails, required=True),
    "protocol_error_job": Job("Breaks in the background.", breaks, required=True),
    "confirm_delete": Job("Asks before it deletes nothing.", deletes, takes(filename=STRING), required=True),
    "multi_input": Job("Asks two things at a time.", asks_twice, required=True),
    "test_tool_with_task": Job("Asks who starts it, then starts.", greets_later, required=True, rounds=(A_NAME,)),
}


# ── the methods ──────────────────────────────────────────────────────────────────────────────────────────────────────

TASKS: dict[str, Task] = {}
"""Every task that was ever started, by id: they are few, and the server does not live long."""


def declared(ctx: Any) -> bool:
    """Whether the client declares the extension: since 2026-07-28 it does so in each request."""
    able: bool = ctx.session.check_client_capability(mcp_types.ClientCapabilities(extensions={EXTENSION: {}}))
    return able


def check_declared(ctx: Any) -> None:
    if not declared(ctx):
        raise exceptions.MCPError(
            mcp_types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            f"The client has to declare {EXTENSION}",
            {"requiredCapabilities": {"extensions": {EXTENSION: {}}}},
        )


async def called(ctx: Any, job: Job, arguments: JSON) -> JSON:
    """Start *job* as a task; or, for a client that does not know tasks, return its result."""
    if job.required:
        check_declared(ctx)
    if not declared(ctx):
        return {"resultType": "complete", **await job.work(cannot_ask, arguments)}
    answers = await asked(Call(ctx, arguments), job.rounds, stateful=False, only_declared=False)
    task = Task(job, {**arguments, **answers})
    TASKS[task.ident] = task
    return task.shown("task")


async def cannot_ask(_: Mapping[str, JSON]) -> JSON:
    raise Failed("Only a task can ask.")


def task_of(ctx: Any) -> Task:
    """The task that a request names, in its body and over HTTP in a header as well."""
    check_declared(ctx)
    ident = ctx.params.get("taskId")
    if ctx.request is not None and ctx.request.headers.get("mcp-name") != ident:
        raise exceptions.MCPError(HEADER_MISMATCH, "The header Mcp-Name is not the taskId")
    if ident not in TASKS:
        raise exceptions.MCPError(mcp_types.INVALID_PARAMS, "There is no such task")
    return TASKS[ident]


async def get(ctx: Any, _: Any) -> JSON:
    task = task_of(ctx)
    return task.shown("complete", **task.details)


async def update(ctx: Any, _: Any) -> JSON:
    task_of(ctx).update(ctx.params.get("inputResponses", {}))
    return {"resultType": "complete"}


async def cancel(ctx: Any, _: Any) -> JSON:
    task_of(ctx).cancel()
    return {"resultType": "complete"}


METHODS = {"tasks/get": get, "tasks/update": update, "tasks/cancel": cancel}


def add_to(server: Any) -> None:
    """Serve the methods with *server*, a low-level one of the SDK, and declare the extension."""
    server.extensions[EXTENSION] = {}
    for method, handler in METHODS.items():
        server.add_request_handler(method, mcp_types.RequestParams, handler)
