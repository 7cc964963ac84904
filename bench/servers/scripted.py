"""A small real server: it shakes hands, lists its one tool and gives one result, whatever it is called with."""

import sys
from pathlib import Path
from typing import Any

import orjson

given = orjson.loads(Path(sys.argv[1]).read_bytes())
lasting = {"resultType": "complete", "ttlMs": 60_000, "cacheScope": "public"}
results: dict[str, Any] = {
    "initialize": {
        "protocolVersion": given["revision"],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "bench", "version": "1"},
    },
    "tools/list": {"tools": [given["tool"]]},
    "tools/call": given["result"],
}
if given["revision"] >= "2026-07-28":
    results["tools/list"] |= lasting
    results["tools/call"] |= {"resultType": "complete"}
write, flush = sys.stdout.buffer.write, sys.stdout.buffer.flush

for line in sys.stdin.buffer:
    request = orjson.loads(line)
    if "id" in request:
        result = results.get(request["method"], {})
        write(orjson.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}) + b"\n")
        flush()
