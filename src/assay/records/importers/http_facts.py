"""What recorded HTTP requests say about their messages: MCP headers, the era, the conversation. No I/O."""

from collections.abc import Iterable
from typing import Any, Final

from assay.base.meta import named_revision
from assay.spec.revisions import REVISIONS, handshake

VERSION: Final = "mcp-protocol-version"
SESSION: Final = "mcp-session-id"

Headers = dict[str, str | list[str]]
"""Values by name in lower case; a list for a header that was sent more than once."""


def headers_of(pairs: Iterable[tuple[str, str]]) -> Headers:
    """Return headers by name in lower case."""
    found: Headers = {}
    for name, value in pairs:
        key, sent = name.lower(), _as_sent(value)
        before = found.get(key)
        found[key] = sent if before is None else [*([before] if isinstance(before, str) else before), sent]
    return found


def _as_sent(value: str) -> str:
    """Return the bytes of a header as Latin-1, as everywhere else: a recorder may have decoded UTF-8."""
    try:
        value.encode("latin-1")
    except UnicodeEncodeError:
        return value.encode(errors="replace").decode("latin-1")
    return value


def facts_of(headers: Headers) -> dict[str, Any]:
    """Return the member `http` of a row: the headers that are judged."""
    judged = {name: value for name, value in headers.items() if name.startswith("mcp-") and name != SESSION}
    version = headers.get(VERSION)
    return {"headers": judged, **({"revision": version} if isinstance(version, str) else {})}


def is_stateless(message: Any, headers: Headers) -> bool:
    """Return whether a request stands alone: its revision has no handshake, so there is no session."""
    version = headers.get(VERSION)
    named = named_revision(message) if isinstance(message, dict) else None
    known = [each for each in (version, named) if isinstance(each, str) and each in REVISIONS]
    if known:
        return any(not handshake(each) for each in known)
    return isinstance(message, dict) and message.get("method") == "server/discover"


def revision_of(message: Any, headers: Headers) -> str | None:
    """Return the revision without a handshake that a request names, in its header or its body."""
    named = named_revision(message) if isinstance(message, dict) else None
    for each in (headers.get(VERSION), named):
        if isinstance(each, str) and each in REVISIONS and not handshake(each):
            return each
    return None


def text_of(headers: Headers, name: str) -> str:
    """Return the value of a header, the last one of several; "" without one."""
    value = headers.get(name, "")
    return value if isinstance(value, str) else value[-1]
