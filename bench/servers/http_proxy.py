"""The least that can stand between HTTP clients and a server: uvicorn and httpx, and nothing is looked at."""

import sys
from importlib import import_module
from typing import Any

from stack import Receive, Send, body, run

httpx: Any = import_module("httpx")

target = sys.argv[1]
client = httpx.AsyncClient(timeout=60.0, limits=httpx.Limits(max_connections=None, max_keepalive_connections=100))
OWN = {b"host", b"connection", b"content-length", b"accept-encoding"}


async def app(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """One request there, its answer back."""
    content = await body(receive)
    headers = [pair for pair in scope["headers"] if pair[0] not in OWN]
    async with client.stream(scope["method"], target, content=content, headers=headers) as answer:
        kept = [pair for pair in answer.headers.raw if pair[0].lower() not in {b"connection", b"transfer-encoding"}]
        await send({"type": "http.response.start", "status": answer.status_code, "headers": kept})
        async for chunk in answer.aiter_raw():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


run(app, int(sys.argv[2]), lifespan="off", date_header=False)
