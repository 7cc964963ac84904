"""The least that can stand between HTTP clients and a server: uvicorn and aiohttp, and nothing is looked at."""

import sys
from importlib import import_module
from typing import Any

from stack import Receive, Send, body, run

aiohttp: Any = import_module("aiohttp")

target = sys.argv[1]
OWN = {b"host", b"connection", b"content-length", b"accept-encoding"}
HOPS = {b"connection", b"transfer-encoding"}
opened: list[Any] = []


def session() -> Any:
    """One for all, made in the loop that serves."""
    if not opened:
        opened.append(
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0), cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False
            )
        )
    return opened[0]


async def app(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """One request there, its answer back."""
    content = await body(receive)
    headers = [(name.decode(), value.decode()) for name, value in scope["headers"] if name not in OWN]
    asked = session().request(scope["method"], target, data=content, headers=headers, allow_redirects=False)
    async with asked as answer:
        kept = [pair for pair in answer.raw_headers if pair[0].lower() not in HOPS]
        await send({"type": "http.response.start", "status": answer.status, "headers": kept})
        async for chunk in answer.content.iter_any():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


run(app, int(sys.argv[2]), lifespan="off", date_header=False)
