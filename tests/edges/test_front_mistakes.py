"""A mistake of the guard's own, in whatever a backend does: the request gets one answer, by its id."""

import asyncio
import json
import logging
from typing import Any

import pytest

from assay.edges.auth import Principal
from assay.edges.backend import HttpRequest
from assay.edges.http.access import Door
from assay.edges.http.origin_check import Safety
from assay.edges.http.replies import Receive, Send
from assay.edges.http_front import Front
from assay.settings.http_section import Http
from kit.http_client import frame_of, request
from kit.rows import rows


class Broken:
    """A backend with a mistake in it."""

    async def answer(self, _: HttpRequest, __: Receive, ___: Send) -> None:
        """Fails, whatever it is asked."""
        raise RuntimeError("a mistake of ours, with a secret in it")

    def stop(self) -> None:
        """Nothing runs."""

    async def close(self) -> None:
        """Nothing runs."""


def asked(body: bytes, *headers: tuple[bytes, bytes]) -> tuple[int, Any]:
    """What comes of a POST."""
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    door = Door(Safety(), None, Principal("anonymous", "community"))
    front = Front({"/mcp": Broken()}, door, Http(), frame_bytes=1000, metrics=lambda: b"")
    every = [(b"host", b"localhost"), (b"content-type", b"application/json"), *headers]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b"", "scheme": "http", "headers": every}
    asyncio.run(front(scope, receive, send))
    start, content = sent
    return start["status"], json.loads(content["body"])


@rows(
    ("body", "headers", "status", "ident"),
    [
        pytest.param(frame_of(request(7, "ping")), (), 500, 7, id="a-request"),
        pytest.param(frame_of(request("x", "ping")), ((b"mcp-session-id", b"s"),), 200, "x", id="in-a-session"),
        pytest.param(frame_of(request(True, "ping")), (), 500, None, id="no-id"),
        pytest.param(b"[", (), 500, None, id="no-json"),
    ],
)
def test_the_request_gets_one_answer_that_says_nothing_of_the_mistake(
    body: bytes, headers: tuple[tuple[bytes, bytes], ...], status: int, ident: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.clear()
    with caplog.at_level(logging.ERROR, "assay"):
        found, answer = asked(body, *headers)
    assert (found, answer.get("id"), answer["error"]["code"]) == (status, ident, -32603)
    assert "secret" not in json.dumps(answer)
    assert [record.exc_info is not None for record in caplog.records] == [True]
