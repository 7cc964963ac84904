"""Long bodies of requests that are not answered yet are bounded together, and no principal takes all of the room."""

import asyncio
import json
from typing import Any

import pytest

from assay.edges import http_front
from assay.edges.auth import Principal
from assay.edges.backend import HttpRequest
from assay.edges.http.access import Door
from assay.edges.http.origin_check import Safety
from assay.edges.http.replies import Receive, Send, reply
from assay.edges.http_front import LONG_BODY, Front
from assay.settings.http_section import Http

LONG = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"x":"%b"}}}' % (b"x" * LONG_BODY)
SHORT = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


class Slow:
    """A backend that answers when it is let go."""

    def __init__(self) -> None:
        self.go = asyncio.Event()

    async def answer(self, request: HttpRequest, _: Receive, send: Send) -> None:
        """Wait, then answer."""
        if len(request.frame) > LONG_BODY:
            await self.go.wait()
        await reply(send, 200, b"{}")

    def stop(self) -> None:
        """Nothing runs."""

    async def close(self) -> None:
        """Nothing runs."""


async def asked(front: Front, body: bytes) -> tuple[int, Any]:
    """What comes of a POST."""
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b"", "headers": headers}
    await front(scope, receive, send)
    start, content = sent
    return start["status"], json.loads(content["body"])


def test_one_long_body_too_many_is_refused_and_short_ones_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_front, "BODIES", 2 * len(LONG))

    async def run() -> None:
        backend = Slow()
        door = Door(Safety(), None, Principal("anonymous", "community"))
        front = Front({"/mcp": backend}, door, Http(), frame_bytes=1 << 20, metrics=bytes)
        waiting = [asyncio.create_task(asked(front, LONG)) for _ in range(2)]
        await asyncio.sleep(0)
        status, refusal = await asked(front, LONG)
        assert (status, refusal["error"]["code"]) == (503, -31016)
        assert (await asked(front, SHORT))[0] == 200
        backend.go.set()
        assert [status for status, _ in await asyncio.gather(*waiting)] == [200, 200]
        assert (await asked(front, LONG))[0] == 200

    asyncio.run(run())
