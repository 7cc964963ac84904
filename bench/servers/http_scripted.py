"""A small real server over HTTP, without sessions: it lists its one tool, and gives one result to every call."""

import sys
from pathlib import Path
from typing import Any

import orjson
from stack import Receive, Send, answer, body, run

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
    request = orjson.loads(await body(receive))
    given = results.get(request["method"], {})
    await answer(send, orjson.dumps({"jsonrpc": "2.0", "id": request.get("id"), "result": given}))


run(app, int(sys.argv[2]), lifespan="off")
