"""A server that streams thousands of tiny events at once: others have a turn before all of them are handled."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from assay.base.limits import DEFAULT
from assay.edges import time_slice
from assay.edges.backend import HttpRequest
from assay.edges.http.heads import RequestHead, read_head
from assay.edges.server_url import UrlServer
from assay.edges.upstream_answer import UpstreamAnswer
from assay.edges.upstream_client import HttpAnswer
from assay.edges.upstream_target import Answered, UpstreamTarget
from assay.edges.url_backend import UrlBackend
from assay.guard.factory import SessionFactory
from assay.guard.sinks import Sinks
from assay.guard.summary import GuardSummary
from assay.guard.terms import Mode, Terms
from assay.spec.revisions import LATEST
from kit.http_client import SECONDS, frame_of, modern, request
from kit.rows import rows

TINY = b"data:1\n\n" * 1000
KIND = "text/event-stream"


async def at_once(data: bytes, meanwhile: Callable[[], None]) -> AsyncIterator[bytes]:
    """A stream that comes in one piece; *meanwhile* is what somebody else wants to do."""
    asyncio.get_running_loop().call_soon(meanwhile)
    yield data


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode()


class Streaming:
    """An answer that is a stream, as the HTTP client gives it."""

    status, reason, is_whole = 200, "OK", False
    pairs = ((b"content-type", KIND.encode()),)

    def __init__(self, stream: AsyncIterator[bytes]) -> None:
        self._stream = stream
        self.chunks = lambda: stream

    async def piece(self) -> bytes:
        """The next bytes."""
        return await anext(self._stream, b"")

    def header(self, name: bytes) -> bytes | None:
        """The content type, and nothing else."""
        return KIND.encode() if name == b"content-type" else None

    def close(self) -> None:
        """Nothing to end."""


class Flooding(UpstreamTarget):
    """A server that answers with one stream."""

    def __init__(self, stream: AsyncIterator[bytes]) -> None:
        super().__init__("http://localhost/mcp")
        self._stream = stream

    async def ask(self, *_: Any) -> Answered:
        """The stream, whatever is asked."""
        return Answered(cast("HttpAnswer", Streaming(self._stream)))


@rows("mode", ["audit", "enforce"])
def test_other_clients_have_a_turn_amid_the_events_of_one_chunk(monkeypatch: pytest.MonkeyPatch, mode: Mode) -> None:
    monkeypatch.setattr(time_slice, "SECONDS", 0.0)
    asked = request(1, "prompts/list", {}, LATEST)
    last = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"LAST"}}'
    pairs = [(name.encode(), _bytes(value)) for name, value in modern(asked).items()]
    head = read_head("POST", pairs)
    assert isinstance(head, RequestHead)
    sent: list[bytes] = []
    seen: list[bool] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message.get("body", b""))

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    async def run() -> None:
        stream = at_once(TINY + b"data:" + last + b"\n\n", lambda: seen.append(b"LAST" in b"".join(sent)))
        watch = GuardSummary(lambda _: None, lambda _: None, enforcing=mode == "enforce")
        proxy = UrlBackend(SessionFactory(Terms(mode, DEFAULT, 60.0), Sinks(), watch), Flooding(stream))
        async with asyncio.timeout(SECONDS):
            await proxy.answer(HttpRequest(head, b"", frame_of(asked), "anonymous"), receive, send)

    asyncio.run(run())
    assert seen == [False]
    assert b"".join(sent).endswith(last + (b"\r\n\r\n" if mode == "enforce" else b"\n\n"))
    assert b"".join(sent).startswith(TINY) is (mode == "audit")


class UrlStreaming(UrlServer):
    """A server that says something unasked, on one stream."""

    def __init__(self, stream: AsyncIterator[bytes], hear: Callable[[bytes], Awaitable[None]]) -> None:
        super().__init__("http://localhost/mcp", (), hear=hear, limit=1000)
        self._stream = stream

    @asynccontextmanager
    async def _ask(self, *_: Any) -> AsyncIterator[UpstreamAnswer]:
        """The stream, whatever is asked."""
        yield UpstreamAnswer(cast("HttpAnswer", Streaming(self._stream)))


def test_a_client_over_stdio_is_heard_amid_the_events_of_one_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_slice, "SECONDS", 0.0)
    taken: list[bytes] = []
    seen: list[int] = []

    async def run() -> None:
        whole = asyncio.Event()

        async def take(data: bytes) -> None:
            taken.append(data)
            if data == b"2":
                whole.set()

        server = UrlStreaming(at_once(TINY + b"data:2\n\n", lambda: seen.append(len(taken))), take)
        listening = asyncio.ensure_future(server.listen())
        async with asyncio.timeout(SECONDS):
            await whole.wait()
        listening.cancel()
        await asyncio.wait({listening})

    asyncio.run(run())
    assert taken == [b"1"] * 1000 + [b"2"]
    assert seen[0] < len(taken)
