"""HTTP in memory: requests to a front, or to whatever answers one. No sockets, and a clock that stands still."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeVar

from assay.edges.http.replies import AwaitedReply, HttpReply
from assay.edges.http_front import Front
from kit.http_client import Answer, events
from kit.still_loop import StillLoop

T = TypeVar("T")
Pair = tuple[bytes, bytes]

HERE = "localhost:8765"
SECONDS = 3600
"""What anything here may take by the clock of the loop, which moves at once when everything waits."""

TURNS = 30
"""Turns of the loop in which everything is done that waits for nothing."""


async def settled() -> None:
    """Everything is done that waits for nothing."""
    for _ in range(TURNS):
        await asyncio.sleep(0)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Do *work* in a loop whose clock moves when everything waits."""
    with asyncio.Runner(loop_factory=StillLoop) as runner:
        return runner.run(work)


class Exchange:
    """A request whose answer may still be on its way."""

    def __init__(self, doing: Callable[["Exchange"], Awaitable[None]], body: bytes = b"") -> None:
        self._body: bytes | None = body
        self._gone, self._news, self.reads = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.reads.set()
        self.so_far = Answer(0, [])
        self.task = asyncio.ensure_future(doing(self))

    async def receive(self) -> dict[str, Any]:
        """What the guard gets of the request."""
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        """What the guard answers, as soon as the client reads."""
        await self.reads.wait()
        if message["type"] == "http.response.start":
            self.so_far.status = message["status"]
            self.so_far.pairs = [(name.decode(), value.decode("latin-1")) for name, value in message["headers"]]
        else:
            self.so_far.body += message.get("body", b"")
        self._news.set()

    @property
    def body(self) -> bytes:
        """What has come of the body."""
        return self.so_far.body

    @property
    def is_silent(self) -> bool:
        """Whether nothing has come."""
        return not self.so_far.status

    async def _until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(SECONDS):
            while not holds():
                assert not self.task.done(), self.so_far
                self._news.clear()
                news = asyncio.ensure_future(self._news.wait())
                await asyncio.wait((news, self.task), return_when=asyncio.FIRST_COMPLETED)
                news.cancel()

    async def until(self, mark: bytes) -> bytes:
        """The body so far, once *mark* is in it."""
        await self._until(lambda: mark in self.body)
        return self.body

    async def head(self) -> Answer:
        """The answer so far, once its head is there."""
        await self._until(lambda: not self.is_silent)
        return self.so_far

    async def answer(self) -> Answer:
        """The whole answer."""
        async with asyncio.timeout(SECONDS):
            await self.task
        return self.so_far

    async def messages(self) -> list[Any]:
        """The messages of the whole answer, JSON or events."""
        answer = await self.answer()
        assert answer.status == 200, answer
        if answer.header("content-type") == "application/json":
            return [answer.json()]
        return [json.loads(each["data"]) for each in answer.events() if each.get("data")]

    async def first_event(self) -> str:
        """The id of the first event, which a client can resume after."""
        return events(await self.until(b"\r\n\r\n"))[0]["id"]

    async def leave(self) -> None:
        """The client goes; what is sent to it is lost."""
        self._gone.set()
        self.reads.set()
        await self.answer()


def answer_of(doing: Callable[[Any, Any], Awaitable[None]], body: bytes = b"") -> Answer:
    """What comes of a request that *doing* answers, with how to receive and to send."""

    async def work() -> Answer:
        return await Exchange(lambda each: doing(each.receive, each.send), body).answer()

    return run(work())


def begun(front: Front, method: str, path: str, body: bytes, pairs: list[Pair]) -> Exchange:
    """A request that is sent to *front*."""
    return Exchange(lambda each: _carried_out(front, each, method, path, body, pairs), body)


async def _carried_out(
    front: Front, exchange: Exchange, method: str, path: str, body: bytes, pairs: list[Pair]
) -> None:
    """As the HTTP server does: a POST to the endpoint that is there whole is begun without a task."""
    if method == "POST" and path == "/mcp":
        found = front.at_once(pairs, body)
        if isinstance(found, HttpReply):
            _write(exchange, found)
            return
        if found is not None:
            await _awaited(exchange, found)
            return
    where, _, query = path.partition("?")
    scope = {"type": "http", "method": method, "path": where, "query_string": query.encode(), "scheme": "http"}
    await front({**scope, "headers": pairs}, exchange.receive, exchange.send)


async def _awaited(exchange: Exchange, awaited: AwaitedReply) -> None:
    await exchange.receive()
    for _ in range(TURNS):
        if awaited.response.is_settled:
            break
        await asyncio.sleep(0)
    found = awaited.reply() if awaited.response.is_settled and exchange.reads.is_set() else None
    if found is None:
        await awaited.carry_on(exchange.receive, exchange.send)
    else:
        awaited.finish()
        _write(exchange, found)


def _write(exchange: Exchange, found: HttpReply) -> None:
    pairs = [*found.headers, *([(b"content-type", b"application/json")] if found.content else [])]
    exchange.so_far.status, exchange.so_far.body = found.status, found.content
    exchange.so_far.pairs = [(name.decode(), value.decode("latin-1")) for name, value in pairs]
    exchange.so_far.pairs.append(("content-length", str(len(found.content))))


def as_pairs(headers: Any) -> list[Pair]:
    """The headers of a mapping as they are sent; pairs of bytes are so already."""
    if not isinstance(headers, Mapping):
        return list(headers)
    return [(name.lower().encode(), v if isinstance(v, bytes) else v.encode()) for name, v in headers.items()]
