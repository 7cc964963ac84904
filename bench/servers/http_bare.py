"""
The least an application can do over HTTP: read the body, parse it, write the answer. It checks nothing, and always
says the same.
"""

import sys
from pathlib import Path
from typing import Any

import orjson
from stack import Receive, Send, answer, body, run

result = orjson.loads(Path(sys.argv[1]).read_bytes())["result"]


async def app(_: dict[str, Any], receive: Receive, send: Send) -> None:
    """One request, one answer."""
    request = orjson.loads(await body(receive))
    await answer(send, orjson.dumps({"jsonrpc": "2.0", "id": request.get("id"), "result": result}))


run(app, int(sys.argv[2]), lifespan="off")
