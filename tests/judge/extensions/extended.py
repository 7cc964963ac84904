"""A conversation without a handshake to test extensions with: what both parties declare, and a tool with an output."""

from typing import Any

from assay.spec.revisions import LATEST
from kit.talk import SEARCH, Talk, good, request, result

TASKS: dict[str, Any] = {"io.modelcontextprotocol/tasks": {}}
ACME: dict[str, Any] = {"com.example/acme": {}}
MODES = ("enforce", "audit")


def stateless(
    ident: Any, method: str, extensions: dict[str, Any] | None = None, able: dict[str, Any] | None = None, **params: Any
) -> dict[str, Any]:
    """A request of the revision without handshake, with what the client declares in it."""
    declared = {**(able or {}), **({} if extensions is None else {"extensions": extensions})}
    meta = {"io.modelcontextprotocol/protocolVersion": LATEST, "io.modelcontextprotocol/clientCapabilities": declared}
    return request(ident, method, {**params, "_meta": meta})


def discover(talk: Talk, extensions: dict[str, Any] | None = None, **capabilities: Any) -> Any:
    """The verdict on what the server declares."""
    good(talk.client(stateless("discover", "server/discover")))
    declared: dict[str, Any] = {"tools": {}, **capabilities}
    answer = {
        "resultType": "complete",
        "supportedVersions": [LATEST],
        "capabilities": declared if extensions is None else {**declared, "extensions": extensions},
        "ttlMs": 0,
        "cacheScope": "private",
    }
    return talk.server(result("discover", answer))


def discovered(talk: Talk, extensions: dict[str, Any] | None = None, **capabilities: Any) -> Talk:
    """The same conversation, after the server has declared what it supports."""
    good(discover(talk, extensions, **capabilities))
    return talk


def listed(talk: Talk, *tools: dict[str, Any]) -> Talk:
    """The same conversation, after the server has listed a tool that has an output schema."""
    good(talk.client(stateless("list", "tools/list")))
    answer = {"resultType": "complete", "tools": list(tools) or [SEARCH], "ttlMs": 0, "cacheScope": "private"}
    good(talk.server(result("list", answer)))
    return talk
