"""
The headers that a frame needs on its way to a server over Streamable HTTP: what `ladder.headers` asks for. No I/O.

From 2026-07-28 on the method, the name and marked arguments stand in headers too. What no header can carry (an integer
beyond 2^53, a method that is no visible ASCII) is left out: then whoever checks has something to say, as it should.
"""

from typing import Any, Final

from assay.base.meta import named_revision
from assay.contracts.header_arguments import ParamHeaders
from assay.ladder.headers import NAMED, encode
from assay.spec.revisions import LATEST, REVISIONS, handshake

Pairs = list[tuple[bytes, bytes]]

VERSION: Final = b"mcp-protocol-version"
_METHOD: Final = b"mcp-method"
_NAME: Final = b"mcp-name"

_SAFE: Final = (1 << 53) - 1


def is_stateless(message: Any, revision: str | None) -> bool:
    """Whether *message*, judged by *revision*, is of an era without sessions."""
    named = _named(message)
    if named is not None and message.get("method") != "initialize":
        return named not in REVISIONS or not handshake(named)
    return revision is not None and not handshake(revision)


def stateless_headers(message: dict[str, Any], params: ParamHeaders = ()) -> Pairs:
    """The headers of a request or notification of 2026-07-28; *params* are those of the tool that it calls."""
    method = message.get("method")
    version = header_text(_named(message) or LATEST)
    pairs: Pairs = [] if version is None else [(VERSION, version)]
    if isinstance(method, str) and (spelt := header_text(method)) is not None:
        pairs.append((_METHOD, spelt))
    asked = message.get("params")
    member = NAMED.get(method) if isinstance(method, str) else None
    if member is None or not isinstance(asked, dict):
        return pairs
    if isinstance(asked.get(member), str):
        pairs.append((_NAME, encode(asked[member])))
    if method == "tools/call":
        pairs += _repeated(asked.get("arguments"), params)
    return pairs


def header_text(text: str) -> bytes | None:
    """*text* as a header that is never encoded; None if none can carry it unharmed."""
    return text.encode() if text.isascii() and text.isprintable() and text and text.strip(" ") == text else None


def _repeated(arguments: Any, params: ParamHeaders) -> Pairs:
    found = ((param.name.encode(), _spelt(_value(arguments, param.path))) for param in params)
    return [(name, value) for name, value in found if value is not None]


def _spelt(value: Any) -> bytes | None:
    """An argument as a header has it; None for what is not to be sent, or cannot be."""
    if isinstance(value, str):
        return encode(value)
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return b"%d" % value if isinstance(value, int) and -_SAFE <= value <= _SAFE else None


def _value(arguments: Any, path: tuple[str, ...]) -> Any:
    value = arguments
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _named(message: Any) -> str | None:
    asked = message.get("params") if isinstance(message, dict) else None
    return named_revision(message) if isinstance(asked, dict) else None
