"""JSON values of any type: their parts, the names of `_meta`, and their text for a terminal. No I/O."""

import re
from typing import Any, Final

import orjson

REVISION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
CLIENT_KEY: Final = "io.modelcontextprotocol/clientInfo"
LEVEL_KEY: Final = "io.modelcontextprotocol/logLevel"
SERVER_KEY: Final = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_KEY: Final = "io.modelcontextprotocol/subscriptionId"

Id = str | int
"""An id or a token, as the state of a conversation keeps it."""

_NOTHING: Final[dict[str, Any]] = {}
_NONE: Final[list[Any]] = []


def obj(value: Any) -> dict[str, Any]:
    """Return *value* if it is an object, otherwise an empty one: its fault is reported elsewhere."""
    return value if isinstance(value, dict) else _NOTHING


def items(value: Any) -> list[Any]:
    """Return *value* if it is an array, otherwise an empty one."""
    return value if isinstance(value, list) else _NONE


def text(value: Any) -> str:
    """Return *value* if it is a string, otherwise an empty one."""
    return value if isinstance(value, str) else ""


def ident(value: Any) -> Id | None:
    """Return an id or a token as the state keeps it: 1.0 is 1, "1" is another."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, str | int) else None


def params_of(message: Any) -> dict[str, Any]:
    """
    Return the params of *message* if they are an object, else an empty one.

    An invalid message that is forwarded, as under audit, may have params of any type.
    """
    return obj(obj(message).get("params"))


def named_revision(message: dict[str, Any]) -> str | None:
    """Return the revision in the `_meta` of a request, which revisions without a handshake have there."""
    # Written out: requests of such a revision are asked this several times, and calls would take half as long again.
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    named = meta.get(REVISION_KEY) if isinstance(meta, dict) else None
    return named if isinstance(named, str) else None


def versions_of(message: Any) -> list[str]:
    """Return the first 100 revisions in a result of `server/discover`; empty if it has no list."""
    listed = items(obj(obj(message).get("result")).get("supportedVersions"))
    return [each for each in listed[:100] if isinstance(each, str)]


_INVISIBLE: Final = "[\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
"""Characters that JSON allows in strings and that hide or reorder text on a terminal."""


def dumped(value: Any, *, indent: bool = False) -> str:
    """Return *value* as JSON that is safe to show: control characters and marks for the direction are escaped."""
    text = orjson.dumps(value, option=orjson.OPT_INDENT_2 if indent else None).decode()
    # All of them occur in strings only, where an escape means the same.
    return re.sub(_INVISIBLE, lambda found: f"\\u{ord(found[0]):04x}", text)
