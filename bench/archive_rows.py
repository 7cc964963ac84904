"""Large recordings to judge: many conversations at a time, mostly good calls of tools, and a few findings."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import orjson

REVISION: Final = "2025-11-25"

SEED: Final = 20251125
"""Every run makes the same files."""

LIVE: Final = 20
"""Conversations that go on at the same time."""

CALLS: Final = 100
"""Calls in a conversation, on average."""

WRONG: Final = 0.0005
"""Share of the calls whose arguments break the contract."""

_STRING: Final = {"type": "string"}
_COUNT: Final = {"type": "integer", "minimum": 0}

_ISSUE: Final = {
    "type": "object",
    "properties": {
        "key": _STRING,
        "title": _STRING,
        "state": {"enum": ["open", "closed"]},
        "votes": _COUNT,
        "labels": {"type": "array", "items": _STRING},
    },
    "required": ["key", "title", "state"],
}


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*required], "additionalProperties": False}


TOOLS: Final[tuple[dict[str, Any], ...]] = (
    {
        "name": "search_issues",
        "description": "Search issues by words, state and labels; the newest come first.",
        "inputSchema": _object(
            {
                "words": _STRING,
                "state": {"enum": ["open", "closed", "all"]},
                "labels": {"type": "array", "items": _STRING},
                "limit": {"type": "integer", "minimum": 1, "maximum": 50},
            },
            "words",
        ),
        "outputSchema": _object({"issues": {"type": "array", "items": _ISSUE}, "total": _COUNT}, "issues", "total"),
    },
    {
        "name": "read_file",
        "description": "Return the text of a file.",
        "inputSchema": _object({"path": _STRING, "from": _COUNT, "lines": _COUNT}, "path"),
    },
    {
        "name": "write_file",
        "description": "Write a file; an existing one is replaced.",
        "inputSchema": _object({"path": _STRING, "content": _STRING, "mode": _STRING}, "path", "content"),
        "outputSchema": _object({"path": _STRING, "bytes": _COUNT}, "path", "bytes"),
    },
)

_SENTENCE: Final = (
    "the archive of a team has some gigabytes of traffic with tools that search read and write files where every "
    "message is a line of text with a number a name and a few values of which most are short"
)
_WORDS: Final = tuple(_SENTENCE.split(" "))


def write_archive(path: Path, messages: int, seed: int = SEED) -> None:
    """Write a recording of *messages* messages to *path*, unless it is there."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    with partial.open("wb", buffering=1 << 20) as file:
        for row in rows(messages, seed):
            file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
    partial.replace(path)


def rows(messages: int, seed: int = SEED) -> Iterator[dict[str, Any]]:
    """Yield the rows of a recording: *messages* messages, and the events of the guard between them."""
    chance = random.Random(seed)  # noqa: S311 - a test file, not a secret
    yield {"event": "recording", "version": 1, "assay": "0.1.0"}
    live: list[Iterator[dict[str, Any]]] = []
    number = written = 0
    while written < messages:
        while len(live) < LIVE:
            number += 1
            live.append(_conversation(number, chance))
        turn = chance.randrange(len(live))
        row = next(live[turn], None)
        if row is None:
            del live[turn]
            continue
        yield row
        written += "msg" in row
    yield {"event": "close"}


def _conversation(number: int, chance: random.Random) -> Iterator[dict[str, Any]]:
    """Yield the rows of one conversation: its opening, its calls with their results, and its end."""
    head = {"conversation": number}
    opening = {"server": "tracker", "mode": "audit", "revision": None, "lines": True, "frameBytes": 16 << 20}
    yield {"event": "open", **head, **opening}
    for side, message in _handshake():
        yield {"dir": side, **head, "msg": _text(message)}
    for ident in range(2, 2 + int(chance.uniform(0.5, 1.5) * CALLS)):
        tool = chance.choice(TOOLS)["name"]
        arguments = _arguments(tool, chance)
        params = {"name": tool, "arguments": arguments}
        yield {"dir": "c2s", **head, "msg": _text({"id": ident, "method": "tools/call", "params": params})}
        yield {"dir": "s2c", **head, "msg": _text({"id": ident, "result": _result(tool, chance)})}
    yield {"event": "end", **head, "dir": "s2c", "why": ""}
    yield {"event": "release", **head}


def _handshake() -> Iterator[tuple[str, dict[str, Any]]]:
    info = {"name": "archive", "version": "1"}
    asked = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": info}
    answered = {"protocolVersion": REVISION, "capabilities": {"tools": {}}, "serverInfo": info}
    yield "c2s", {"id": 0, "method": "initialize", "params": asked}
    yield "s2c", {"id": 0, "result": answered}
    yield "c2s", {"method": "notifications/initialized"}
    yield "c2s", {"id": 1, "method": "tools/list"}
    yield "s2c", {"id": 1, "result": {"tools": [*TOOLS]}}


def _text(message: dict[str, Any]) -> str:
    return orjson.dumps({"jsonrpc": "2.0", **message}).decode()


def _prose(chance: random.Random, words: int) -> str:
    return " ".join(chance.choices(_WORDS, k=words))


def _arguments(tool: str, chance: random.Random) -> dict[str, Any]:
    if tool == "search_issues":
        limit: Any = "ten" if chance.random() < WRONG else chance.randint(1, 50)
        return {"words": _prose(chance, 30), "state": "open", "labels": ["bug", _prose(chance, 3)], "limit": limit}
    path = f"/srv/projects/{chance.randrange(1000)}/{chance.choice(_WORDS)}.md"
    if tool == "read_file":
        return {"path": path, "from": chance.randrange(500), "lines": 40}
    return {"path": path, "content": _prose(chance, chance.randint(40, 160)), "mode": "0644"}


def _result(tool: str, chance: random.Random) -> dict[str, Any]:
    if tool == "search_issues":
        found = [_issue(chance) for _ in range(chance.randint(1, 3))]
        return {
            "content": [{"type": "text", "text": f"{len(found)} issues"}],
            "structuredContent": {"issues": found, "total": len(found)},
        }
    if tool == "read_file":
        return {"content": [{"type": "text", "text": _prose(chance, chance.randint(80, 240))}]}
    done = {"path": "/srv/projects/notes.md", "bytes": chance.randrange(100_000)}
    return {"content": [{"type": "text", "text": orjson.dumps(done).decode()}], "structuredContent": done}


def _issue(chance: random.Random) -> dict[str, Any]:
    return {
        "key": f"TEAM-{chance.randrange(10_000)}",
        "title": _prose(chance, 10),
        "state": "closed" if chance.random() < 0.5 else "open",
        "votes": chance.randrange(40),
        "labels": ["bug", "archive"],
    }
