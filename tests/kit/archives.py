"""Recordings with many conversations and everything that a recording may have, at random and always the same."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

REVISION = "2025-11-25"

ADD = {
    "name": "add",
    "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    "outputSchema": {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]},
}


def text(message: dict[str, Any]) -> str:
    """Return a message as SDKs write it."""
    return json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":"), ensure_ascii=False)


def said(random: Random, calls: int) -> Iterator[tuple[str, str]]:
    """Yield the messages of a conversation, a few of them wrong, each with its direction."""
    info = {"name": "a", "version": "1"}
    asked = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": info}
    answered = {"protocolVersion": REVISION, "capabilities": {"tools": {}}, "serverInfo": info}
    yield "c2s", text({"id": 0, "method": "initialize", "params": asked})
    yield "s2c", text({"id": 0, "result": answered})
    yield "c2s", text({"method": "notifications/initialized"})
    yield "c2s", text({"id": 1, "method": "tools/list"})
    yield "s2c", text({"id": 1, "result": {"tools": [ADD]}})
    for ident in range(2, 2 + calls):
        value = random.choice([ident, ident, ident, "5", None])
        yield "c2s", text({"id": ident, "method": "tools/call", "params": {"name": "add", "arguments": {"n": value}}})
        if random.random() < 0.1:
            yield "s2c", random.choice(["library server starting", '{"jsonrpc":"2.0","id":', "{}"])
        if random.random() < 0.9:
            content = [{"type": "text", "text": random.choice(["done", "très bien ☃", 'a "quoted" word\n'])}]
            output = {"sum": random.choice([1, 2, "3"])}
            yield "s2c", text({"id": ident, "result": {"content": content, "structuredContent": output}})


def conversation(random: Random, number: int | None, *, by_guard: bool, shared: int | None) -> Iterator[dict[str, Any]]:
    """Yield the rows of a conversation; *shared* is one whose tools it has."""
    head = {} if number is None else {"conversation": number}
    if by_guard:
        opening = {"server": f"server {random.randrange(3)}", "mode": "audit", "revision": None, "lines": True}
        tools = {} if shared is None else {"tools": shared}
        if shared is not None and random.random() < 0.3:
            yield {"event": "tools", **head, "from": shared}
        yield {"event": "open", **head, **opening, **tools}
    for side, message in said(random, random.randrange(8)):
        chance = random.random()
        if chance < 0.05:
            yield {"dir": side, **head, "base64": base64.b64encode(message.encode()).decode()}
        elif chance < 0.1:
            yield {"party": "client" if side == "c2s" else "server", **head, "msg": message}
        elif chance < 0.15:
            yield {"msg": message, "dir": side, **head}
        elif chance < 0.2 and message.endswith("}}"):
            yield {"dir": side, **head, "msg": json.loads(message)}
        elif chance < 0.25:
            yield {"dir": side, **head, "http": {"revision": REVISION}, "msg": message}
        elif chance < 0.3 and by_guard:
            findings = [{"rule": "contract/input", "at": "/params/arguments/n", "action": "report"}]
            yield {"dir": side, **head, "actions": findings, "msg": message}
        elif chance < 0.35 and by_guard:
            yield {"dir": side, **head, "msg": message, "redacted": True, "findings": []}
        elif chance < 0.38:
            yield {"dir": side, **head, "omitted": True, "kind": "request", "id": random.randrange(9)}
        else:
            yield {"dir": side, **head, "msg": message}
    if by_guard:
        if random.random() < 0.2:
            yield {"event": "unanswered", **head, "dir": "s2c", "id": 2, "code": "TIMEOUT", "why": ""}
        yield {"event": "end", **head, "dir": "s2c", "why": random.choice(["", "the server exited"])}
        yield {"event": "release", **head}


def segment(random: Random, conversations: int, *, by_guard: bool) -> Iterator[dict[str, Any]]:
    """Yield the rows of one recording, its conversations mixed."""
    if by_guard:
        yield {"event": "recording", "version": 1, "assay": "0.1.0"}
    live = []
    for number in range(1, conversations + 1):
        shared = random.randrange(1, number) if number > 1 and random.random() < 0.2 else None
        # Rows without a number belong to one conversation, too.
        named = None if random.random() < 0.1 and not by_guard else number
        live.append(conversation(random, named, by_guard=by_guard, shared=shared))
    active = [live.pop(0) for _ in range(min(4, len(live)))]
    while active:
        turn = random.randrange(len(active))
        row = next(active[turn], None)
        if row is not None:
            yield row
            continue
        del active[turn]
        if live:
            active.append(live.pop(0))
    if by_guard and random.random() < 0.7:
        yield random.choice([{"event": "close"}, {"event": "stopped", "why": "the disk is full"}])


def archive(path: Path, seed: int, *, conversations: int = 12, is_cut: bool = True) -> Path:
    """Write a recording with several recordings in it, the first one of another program."""
    random = Random(seed)  # noqa: S311 - no secret
    lines = []
    for index in range(random.randrange(1, 4)):
        by_guard = index > 0 or random.random() < 0.5
        for row in segment(random, conversations, by_guard=by_guard):
            spaced = random.random() < 0.05
            lines.append(json.dumps(row, separators=None if spaced else (",", ":"), ensure_ascii=False))
            if random.random() < 0.02:
                lines.append(random.choice(["", "  "]))
    end = '\n{"dir":"c2s","conversation":1,"msg":"{\\"jsonrpc' if is_cut and random.random() < 0.7 else "\n"
    path.write_text("\n".join(lines) + end, encoding="utf-8")
    return path
