"""What a request says of itself in its head: where it goes, what it carries, what it takes. No I/O."""

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from assay.base import value_count
from assay.base.collector import loaded
from assay.base.limits import DEFAULT
from assay.base.meta import REVISION_KEY
from assay.edges.http.replies import Pairs
from assay.spec.revisions import WITHOUT_HEADER

ENDPOINT: Final = "/mcp"
_SLASHED: Final = ENDPOINT + "/"

UNNAMED: Final = WITHOUT_HEADER
"""The revision of a request that names none: the last one that had no header for it."""

_REPEATABLE: Final = frozenset(
    {b"accept", b"cookie", b"via", b"forwarded", b"x-forwarded-for", b"access-control-request-headers"}
)

_UNSAID: Final = frozenset({b"", b"application/x-www-form-urlencoded"})

_NOT_AT_ALL: Final = re.compile(rb";\s*q\s*=\s*0(?:\.0*)?\s*(?:;|$)", re.IGNORECASE)
"""In what a client takes: that it takes this not."""

Headers = dict[bytes, bytes]


def headers_of(scope: dict[str, Any]) -> Headers:
    """The headers of a request, by name."""
    pairs = scope["headers"]
    headers: Headers = dict(pairs)
    return headers if len(headers) == len(pairs) else _joined(pairs)


def _joined(pairs: Pairs) -> Headers:
    """Headers by name. One that comes twice has no one value: what lists are made of is joined, all else is refused."""
    headers: Headers = {}
    for name, value in pairs:
        # A line break is in no header, so what is joined by one equals nothing.
        between = b", " if name in _REPEATABLE else b"\n"
        headers[name] = headers[name] + between + value if name in headers else value
    return headers


def path_of(scope: dict[str, Any]) -> str:
    """The path of a request. `/mcp/` is `/mcp`: people write either, and a redirect would lose some clients' bodies."""
    path: str = scope["path"]
    return path[:-1] if path.endswith(_SLASHED) else path


def address_of(scope: dict[str, Any], headers: Headers) -> str:
    """Where the client thinks that it is: scheme, host and port."""
    return f"{scope['scheme']}://{headers.get(b'host', b'localhost').decode('latin-1')}"


def is_json(headers: Headers) -> bool:
    """Whether the body is said to be JSON; or nothing, or what curl says of any body, and no page is behind it."""
    plain = media_type(headers.get(b"content-type", b""))
    return plain == b"application/json" or (plain in _UNSAID and b"origin" not in headers)


def media_type(kind: bytes) -> bytes:
    """The type in a Content-Type, without its parameters."""
    return kind.partition(b";")[0].strip().lower()


class Accepts:
    """What clients take. Real ones say it in one or two ways, which are remembered."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[bool, bool]] = {}

    def read(self, accept: bytes | None) -> tuple[bool, bool]:
        """Whether the client takes JSON, and whether it takes a stream. One that says nothing takes anything."""
        if accept is None:
            return True, True
        known = self._known.get(accept)
        if known is None:
            wanted = {media_type(each): _NOT_AT_ALL.search(each) is None for each in accept.split(b",")}
            known = (
                _takes(wanted, b"application/json", b"application/*"),
                _takes(wanted, b"text/event-stream", b"text/*"),
            )
            if len(self._known) < 256:
                self._known[accept] = known
        return known


def _takes(wanted: Mapping[bytes, bool], *kinds: bytes) -> bool:
    """Whether a client wants the first of *kinds*; the most exact of what it says of it counts (RFC 9110, 12.5.1)."""
    return next((wanted[each] for each in (*kinds, b"*/*") if each in wanted), False)


def peeked(frame: bytes) -> Any:
    """
    Return the message in *frame* for a look at it before it is judged; None if it is not JSON.

    One with more values than a message may have is not read either: the judge refuses it.
    """
    if not frame or value_count.more_than(frame, DEFAULT.values):
        return None
    try:
        return loaded(frame)
    except orjson.JSONDecodeError:
        return None


def names_revision(message: dict[str, Any]) -> bool:
    """Whether a message names its revision itself, as those of an era without handshake do."""
    meta = message["params"].get("_meta") if isinstance(message.get("params"), dict) else None
    return isinstance(meta, dict) and REVISION_KEY in meta
