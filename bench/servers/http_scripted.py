"""A small real server over HTTP, without sessions: it lists its one tool, and gives one result to every call."""

import sys
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import orjson

uvicorn: Any = import_module("uvicorn")

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

given = orjson.loads(Path(sys.argv[1]).read_bytes())
lasting = {"resultType": "complete", "ttlMs": 60_000, "cacheScope": "public"}
results: dict[str, Any] = {
    "server/discover": {
        "supportedVersions": [given["revision"]],
        "capabilities": {"tools": {}},
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "bench", "version": "1"}},
        **lasting,
    },
    "tools/list": {"tools": [given["tool"]], **lasting},
    "tools/call": {**given["result"], "resultType": "complete"},
}


async def app(_: dict[str, Any], receive: Receive, send: Send) -> None:
    """One request, one answer."""
    message = await receive()
    body = message.get("body", b"")
    while message.get("more_body"):
        message = await receive()
        body += message["body"]
    request = orjson.loads(body)
    answer = orjson.dumps({"jsonrpc": "2.0", "id": request.get("id"), "result": results.get(request["method"], {})})
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(answer))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


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
    timeout_keep_alive=120,
)
