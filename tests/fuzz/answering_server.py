"""
A server that answers everything with an id that is no answer itself, over STDIO or HTTP, and says odd things beside.
Imports nothing of ours but how messages are changed.

Its arguments: a number that says how it behaves, and for HTTP a file that it writes its port to. What it answers has
the id of the request and is a result, whose content is changed in half of the cases; before some answers it says a
changed notification or request of its own.
"""

import asyncio
import json
import os
import signal
import sys
from random import Random
from typing import Any

from mutations import changed

LIFETIME = 3600
TOOL = {
    "name": "search",
    "inputSchema": {"type": "object", "properties": {"words": {"type": "string"}, "limit": {"type": "integer"}}},
}
CAPABILITIES = {"tools": {}, "logging": {}, "resources": {"subscribe": True}, "prompts": {}, "completions": {}}
OWN = [
    {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}},
    {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 7, "progress": 1}},
    {"jsonrpc": "2.0", "id": "mine", "method": "ping", "params": {}},
    {"jsonrpc": "2.0", "id": "none", "result": {}},
]


def result(message: dict[str, Any]) -> Any:
    """What a good server answers."""
    params = message.get("params")
    method = message.get("method")
    stateless = "io.modelcontextprotocol/protocolVersion" in str(params)
    found: dict[str, Any] = {}
    if method == "initialize":
        found = {
            "protocolVersion": params.get("protocolVersion") if isinstance(params, dict) else "2025-11-25",
            "capabilities": CAPABILITIES,
            "serverInfo": {"name": "odd", "version": "1"},
        }
    elif method == "tools/list":
        found = {"tools": [TOOL]}
    elif method == "tools/call":
        found = {"content": [{"type": "text", "text": "x"}]}
    if stateless:
        found |= {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}
    return found


def answers(random: Random, line: bytes) -> tuple[list[bytes], list[bytes]]:
    """What is said beside, and the answers themselves."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return [], []
    beside, said = [], []
    for message in value if isinstance(value, list) else [value]:
        if not isinstance(message, dict) or "id" not in message:
            continue
        if "method" not in message and ("result" in message or "error" in message):
            continue
        given = result(message)
        if random.random() < 0.5 and message.get("method") != "initialize" and b"steady" not in line:
            given = changed(random, {"result": given}, None).get("result", {})
        if random.random() < 0.1:
            beside.append(json.dumps(changed(random, random.choice(OWN), "mine")).encode())
        said.append(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": given}).encode())
    return beside, [b"[" + b",".join(said) + b"]"] if isinstance(value, list) and said else said


def stdio(random: Random) -> None:
    """Until the input ends."""
    rest = b""
    while data := os.read(0, 1 << 16):
        *lines, rest = (rest + data).split(b"\n")
        out = b"".join(each + b"\n" for line in lines for part in answers(random, line) for each in part)
        while out:
            out = out[os.write(1, out) :]


async def http(random: Random, place: str) -> None:
    """For its lifetime."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await one(reader, writer):
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): text.strip() for name, _, text in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        if not first.startswith("POST"):
            writer.write(b"HTTP/1.1 405 No\r\ncontent-length: 0\r\n\r\n")
            return True
        beside, said = answers(random, body)
        session = b"mcp-session-id: odd\r\n" if b'"initialize"' in body else b""
        if not said:
            writer.write(b"HTTP/1.1 202 So\r\ncontent-length: 0\r\n\r\n")
        elif beside or random.random() < 0.3:
            events = b"".join(b"data: " + each + b"\n\n" for each in (*beside, *said))
            head = b"HTTP/1.1 200 So\r\n%bcontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n"
            writer.write(head % (session, len(events)) + events)
        else:
            head = b"HTTP/1.1 200 So\r\n%bcontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
            writer.write(head % (session, len(said[0])) + said[0])
        return True

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    with open(f"{place}.new", "w") as file:
        file.write(str(server.sockets[0].getsockname()[1]))
    os.replace(f"{place}.new", place)
    await server.serve_forever()


if __name__ == "__main__":
    signal.alarm(LIFETIME)
    if len(sys.argv) > 2:
        asyncio.run(http(Random(sys.argv[1]), sys.argv[2]))
    else:
        stdio(Random(sys.argv[1]))
