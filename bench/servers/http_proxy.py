"""The least that can stand between HTTP clients and a server: uvicorn and httpx, and nothing is looked at."""

import sys
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

uvicorn: Any = import_module("uvicorn")
httpx: Any = import_module("httpx")

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

target = sys.argv[1]
client = httpx.AsyncClient(timeout=60.0, limits=httpx.Limits(max_connections=None, max_keepalive_connections=100))
OWN = {b"host", b"connection", b"content-length", b"accept-encoding"}


async def app(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """One request there, its answer back."""
    message = await receive()
    body = message.get("body", b"")
    while message.get("more_body"):
        message = await receive()
        body += message["body"]
    headers = [pair for pair in scope["headers"] if pair[0] not in OWN]
    async with client.stream(scope["method"], target, content=body, headers=headers) as answer:
        kept = [pair for pair in answer.headers.raw if pair[0].lower() not in {b"connection", b"transfer-encoding"}]
        await send({"type": "http.response.start", "status": answer.status_code, "headers": kept})
        async for chunk in answer.aiter_raw():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


uvicorn.run(
    app,
    host="127.0.0.1",
    port=int(sys.argv[2]),
    http="httptools",
    loop="uvloop",
    ws="none",
    lifespan="off",
    log_level="error",
    access_log=False,
    server_header=False,
    date_header=False,
    timeout_keep_alive=120,
)
