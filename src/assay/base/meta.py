"""Read the `_meta` of messages of a revision without a handshake. No state."""

from typing import Any, Final

REVISION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
CLIENT_KEY: Final = "io.modelcontextprotocol/clientInfo"
LEVEL_KEY: Final = "io.modelcontextprotocol/logLevel"
SERVER_KEY: Final = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_KEY: Final = "io.modelcontextprotocol/subscriptionId"


def named_revision(message: dict[str, Any]) -> str | None:
    """Return the revision in a request's `_meta`."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    named = meta.get(REVISION_KEY) if isinstance(meta, dict) else None
    return named if isinstance(named, str) else None
