"""Recordings with many conversations that begin alike, at random and always the same."""

from collections.abc import Iterator
from random import Random
from typing import Any

import orjson

from assay.base.verdict import Party
from kit.archives import ADD, REVISION, text


def handshake(tools: list[dict[str, Any]], revision: str = REVISION) -> Iterator[tuple[Party, bytes]]:
    """The first messages of a conversation."""
    info = {"name": "a", "version": "1"}
    asked = {"protocolVersion": revision, "capabilities": {"roots": {"listChanged": True}}, "clientInfo": info}
    answered = {"protocolVersion": revision, "capabilities": {"tools": {}, "logging": {}}, "serverInfo": info}
    yield Party.CLIENT, text({"id": 0, "method": "initialize", "params": asked}).encode()
    yield Party.SERVER, text({"id": 0, "result": answered}).encode()
    yield Party.CLIENT, text({"method": "notifications/initialized"}).encode()
    yield Party.CLIENT, text({"id": 1, "method": "tools/list"}).encode()
    yield Party.SERVER, text({"id": 1, "result": {"tools": tools}}).encode()


LISTS: list[list[dict[str, Any]]] = [
    [ADD],
    [ADD, {"name": "sub", "inputSchema": {"type": "object"}}],
    [{"name": "bad", "inputSchema": {"type": "nonsense"}}, ADD],
    [],
]
EVENTS: list[dict[str, Any]] = [
    {"event": "gap"},
    {"event": "restart"},
    {"event": "forget"},
    {"event": "end", "dir": "s2c", "why": ""},
    {"event": "end", "dir": "c2s", "why": "gone"},
    {"event": "unanswered", "dir": "s2c", "id": 1, "code": "TIMEOUT", "why": ""},
    {"event": "unanswered", "dir": "s2c", "id": 0, "code": "UPSTREAM_INVALID", "why": "lost"},
    {"event": "unanswered", "dir": "s2c", "id": 1, "code": "NONSENSE", "why": "lost"},
    {"event": "release"},
    {"event": "open", "mode": "enforce"},
]


def talk(random: Random, number: int, shared: int | None) -> Iterator[dict[str, Any]]:
    """The rows of a conversation, most of which begin alike."""
    head = {"conversation": number}
    opening: dict[str, Any] = {"server": "s", "mode": random.choice(["audit", "audit", "enforce"]), "lines": True}
    if random.random() < 0.1:
        opening["frameBytes"] = random.choice([200, 1 << 20])
    if random.random() < 0.95:
        yield {"event": "open", **head, **opening, **({} if shared is None else {"tools": shared})}
    messages = [*handshake(random.choice(LISTS), random.choice([REVISION, REVISION, "2025-03-26"]))]
    for ident in range(2, 2 + random.randrange(4)):
        call = {"name": random.choice(["add", "add", "sub"]), "arguments": {"n": random.choice([1, 1, "1"])}}
        messages.append((Party.CLIENT, text({"id": ident, "method": "tools/call", "params": call}).encode()))
        done = {"content": [], "structuredContent": {"sum": random.choice([1, 1, None])}}
        messages.append((Party.SERVER, text({"id": ident, "result": done}).encode()))
    for party, frame in messages:
        side = "c2s" if party is Party.CLIENT else "s2c"
        chance = random.random()
        if chance < 0.04:
            yield {**random.choice(EVENTS), **head}
        elif chance < 0.06:
            continue
        elif chance < 0.08:
            yield {"dir": side, **head, "http": {"revision": REVISION}, "msg": frame.decode()}
            continue
        elif chance < 0.1:
            actions = [{"rule": "contract/input", "at": "/params/arguments/n", "action": "report"}]
            yield {"dir": side, **head, "actions": actions, "msg": frame.decode()}
            continue
        elif chance < 0.12:
            yield {"dir": side, **head, "omitted": True, "kind": "request", "id": 1}
            continue
        yield {"dir": side, **head, "msg": frame.decode()}
        if chance > 0.97:
            yield {"dir": side, **head, "msg": frame.decode()}
    if random.random() < 0.8:
        yield {"event": "end", **head, "dir": "s2c", "why": ""}
        yield {"event": "release", **head}


def recorded(random: Random, talks: int) -> bytes:
    """A recording with many conversations, mixed."""
    rows: list[dict[str, Any]] = [{"event": "recording", "version": 1}] if random.random() < 0.7 else []
    live: list[Iterator[dict[str, Any]]] = []
    for number in range(1, talks + 1):
        shared = random.randrange(1, number) if number > 1 and random.random() < 0.1 else None
        live.append(talk(random, number, shared))
        while len(live) > 3:
            turn = random.randrange(len(live))
            row = next(live[turn], None)
            if row is None:
                del live[turn]
            else:
                rows.append(row)
    rows += [row for each in live for row in each]
    if random.random() < 0.3:
        rows.append({"event": "tools", "conversation": talks + 1, "from": 1})
        rows.append({"event": "open", "conversation": talks + 2, "tools": talks + 1})
        call = {"name": "add", "arguments": {"n": "1"}}
        message = text({"id": 9, "method": "tools/call", "params": call})
        rows.append({"dir": "c2s", "conversation": talks + 2, "msg": message})
    return b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)
