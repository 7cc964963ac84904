"""A server that streams thousands of tiny events at once: others have a turn before all of them are handled."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from assay.edges import time_slice
from assay.edges.server_url import UrlServer
from assay.edges.upstream_answer import UpstreamAnswer
from assay.edges.upstream_client import HttpAnswer
from assay.guard.terms import Mode
from assay.spec.revisions import LATEST
from kit.http_client import modern, request
from kit.memory_http import run, settled
from kit.rows import rows
from kit.url_guard import MemoryAnswer, MemoryPeer, UrlGuard

TINY = b"data:1\n\n" * 1000


@rows("mode", ["audit", "enforce"])
def test_other_clients_have_a_turn_amid_the_events_of_one_chunk(monkeypatch: pytest.MonkeyPatch, mode: Mode) -> None:
    monkeypatch.setattr(time_slice, "SECONDS", 0.0)
    asked = request(1, "prompts/list", {}, LATEST)
    last = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"LAST"}}'

    async def scenario() -> bytes:
        exchange = await guard.begun("POST", body=asked, headers=modern(asked))
        assert exchange.is_silent is (mode == "enforce")
        assert b"LAST" not in exchange.body
        return (await exchange.answer()).body

    with UrlGuard(mode, lambda _, peer: peer.events(TINY + b"data:" + last + b"\n\n")) as guard:
        body = guard.run(scenario())
    assert body.endswith(last + (b"\r\n\r\n" if mode == "enforce" else b"\n\n"))
    assert body.startswith(TINY) is (mode == "audit")


class Streaming(UrlServer):
    """A server that says something unasked, on one stream."""

    def __init__(self, stream: bytes, hear: Callable[[bytes], Awaitable[None]]) -> None:
        super().__init__("http://localhost/mcp", (), hear=hear, limit=1000)
        self._stream = stream

    @asynccontextmanager
    async def _ask(self, *_: Any) -> AsyncIterator[UpstreamAnswer]:
        """The stream, whatever is asked."""
        peer = MemoryPeer(asyncio.Event())
        peer.events(self._stream)
        answer = MemoryAnswer(peer, None)
        await answer.begin()
        yield UpstreamAnswer(cast("HttpAnswer", answer))


def test_a_client_over_stdio_is_heard_amid_the_events_of_one_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_slice, "SECONDS", 0.0)
    taken: list[bytes] = []

    async def scenario() -> None:
        whole = asyncio.Event()

        async def take(data: bytes) -> None:
            taken.append(data)
            if data == b"2":
                whole.set()

        listening = asyncio.ensure_future(Streaming(TINY + b"data:2\n\n", take).listen())
        await settled()
        assert 0 < len(taken) < 1000
        await whole.wait()
        listening.cancel()
        await asyncio.wait({listening})

    run(scenario())
    assert taken == [b"1"] * 1000 + [b"2"]
