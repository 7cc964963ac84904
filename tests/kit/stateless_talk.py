"""Requests and results of 2026-07-28, the revision without a handshake."""

from typing import Any

from kit.talk import request

REVISION = "2026-07-28"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
LEVEL_KEY = "io.modelcontextprotocol/logLevel"
META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    CAPABILITIES_KEY: {"roots": {}, "sampling": {}, "elicitation": {}},
}
HINTS: dict[str, Any] = {"ttlMs": 0, "cacheScope": "private"}
COMPLETE: dict[str, Any] = {"resultType": "complete"}


def asks(ident: Any, method: str, meta: dict[str, Any] | None = None, **params: Any) -> dict[str, Any]:
    """A request; *meta* is added to what every request has in `_meta`."""
    return request(ident, method, {**params, "_meta": META | (meta or {})})


def calls(ident: Any, meta: dict[str, Any] | None = None) -> dict[str, Any]:
    """A call of a tool that the server has not listed."""
    return asks(ident, "tools/call", meta, name="search", arguments={"words": "sea"})
