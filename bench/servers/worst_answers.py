"""What a server says for one message: what a file has for the request 2, and a good answer to every other one."""

from pathlib import Path
from typing import Any

import orjson

LASTING = {"resultType": "complete", "ttlMs": 60_000, "cacheScope": "public"}


def answer(message: bytes, place: Path) -> bytes | None:
    """The answer to *message*; *place* has `frame`, if the server is the bad one, `tool` and `revision`."""
    # What is too long is not read: a real server would take seconds for it.
    head = message[:300]
    if b'"id":2,' in head:
        return (place / "frame").read_bytes()
    if len(message) > 10_000:
        return b'{"jsonrpc":"2.0","id":5,"result":{"content":[]}}' if b'"id":5' in head else None
    value = orjson.loads(message)
    if "id" not in value or "method" not in value:
        return None
    return orjson.dumps({"jsonrpc": "2.0", "id": value["id"], "result": _result(value, place)})


def _result(value: dict[str, Any], place: Path) -> dict[str, Any]:
    revision = (place / "revision").read_text(encoding="ascii")
    lasting = LASTING if revision >= "2026" else {}
    if value["method"] == "initialize":
        told = value["params"]["protocolVersion"]
        capabilities: dict[str, Any] = {"tools": {}, "prompts": {}, "resources": {}}
        return {"protocolVersion": told, "capabilities": capabilities, "serverInfo": {"name": "w", "version": "1"}}
    if value["method"] == "tools/list":
        return {"tools": [orjson.loads((place / "tool").read_bytes())], **lasting}
    return {"resultType": "complete"} if revision >= "2026" else {}
