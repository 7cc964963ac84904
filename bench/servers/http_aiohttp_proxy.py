"""The least that can stand between HTTP clients and a server: uvicorn and aiohttp. It looks at nothing."""

import sys
from importlib import import_module
from typing import Any

from stack import Receive, Send, body, run

aiohttp: Any = import_module("aiohttp")

target = sys.argv[1]
OWN = {b"host", b"connection", b"content-length", b"accept-encoding"}
ENDED = {"connection", "transfer-encoding", "date"}
sessions: list[Any] = []


def session() -> Any:
    """The one session; it can be made only where the loop runs."""
    if not sessions:
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60)
        sessions.append(aiohttp.ClientSession(connector=connector, auto_decompress=False, trust_env=False))
    return sessions[0]


async def app(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """One request there, its answer back."""
    content = await body(receive)
    headers = [(name.decode(), value.decode()) for name, value in scope["headers"] if name not in OWN]
    asked = session().request(scope["method"], target, data=content, headers=headers, allow_redirects=False)
    async with asked as answer:
        kept = [
            (name.lower().encode(), value.encode())
            for name, value in answer.headers.items()
            if name.lower() not in ENDED
        ]
        await send({"type": "http.response.start", "status": answer.status, "headers": kept})
        async for chunk in answer.content.iter_any():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


run(app, int(sys.argv[2]), lifespan="off")
