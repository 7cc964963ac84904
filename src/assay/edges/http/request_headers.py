"""Read single headers of a request: path, content type, accepted types. No I/O."""

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from assay.edges.http.replies import Pairs
from assay.model import large_frames
from assay.model.json_values import REVISION_KEY
from assay.model.large_frames import loaded
from assay.model.limits import DEFAULT
from assay.spec.revisions import LATEST, WITHOUT_HEADER, handshake, is_known

ENDPOINT: Final = "/mcp"
_SLASHED: Final = ENDPOINT + "/"

UNNAMED: Final = WITHOUT_HEADER
"""The revision of a request without one: the last revision without this header."""

_REPEATABLE: Final = frozenset(
    {b"accept", b"cookie", b"via", b"forwarded", b"x-forwarded-for", b"access-control-request-headers"}
)

_UNSAID: Final = frozenset({b"", b"application/x-www-form-urlencoded"})

_NOT_AT_ALL: Final = re.compile(rb";\s*q\s*=\s*0(?:\.0*)?\s*(?:;|$)", re.IGNORECASE)
"""Parameters in `Accept` that exclude a type."""

Headers = dict[bytes, bytes]


def headers_of(scope: dict[str, Any]) -> Headers:
    """Return the headers of a request by name."""
    pairs = scope["headers"]
    headers: Headers = dict(pairs)
    return headers if len(headers) == len(pairs) else _joined(pairs)


def _joined(pairs: Pairs) -> Headers:
    """Return headers by name. The values of repeated lists are joined; any other repeated header is invalid."""
    headers: Headers = {}
    for name, value in pairs:
        # No header has a line break, so a value joined by one equals no other.
        between = b", " if name in _REPEATABLE else b"\n"
        headers[name] = headers[name] + between + value if name in headers else value
    return headers


def path_of(scope: dict[str, Any]) -> str:
    """Return the path of a request. `/mcp/` is `/mcp`: a redirect would drop the bodies of some clients."""
    path: str = scope["path"]
    return path[:-1] if path.endswith(_SLASHED) else path


def address_of(headers: Headers, public_url: str) -> str:
    """Return the address that the client uses: scheme, host and port; *public_url* if the operator has set it."""
    return public_url or f"http://{headers.get(b'host', b'localhost').decode('latin-1')}"


def is_json(headers: Headers) -> bool:
    """Whether the content type is JSON; or missing, or curl's default, and the request is not from a page."""
    plain = media_type(headers.get(b"content-type", b""))
    return plain == b"application/json" or (plain in _UNSAID and b"origin" not in headers)


def media_type(kind: bytes) -> bytes:
    """Return the type in a Content-Type, without its parameters."""
    return kind.partition(b";")[0].strip().lower()


class Accepts:
    """A cache of parsed `Accept` headers. Real clients send one or two values."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[bool, bool]] = {}

    def read(self, accept: bytes | None) -> tuple[bool, bool]:
        """Return whether the client accepts JSON, and whether it accepts a stream. Without a header it accepts both."""
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
    """Whether a client accepts the first of *kinds*; the most specific entry counts (RFC 9110, 12.5.1)."""
    return next((wanted[each] for each in (*kinds, b"*/*") if each in wanted), False)


def peeked(frame: bytes) -> Any:
    """
    Parse the message in *frame* before it is judged; None if it is not JSON.

    A frame with too many values is not parsed: the judge refuses it.
    """
    if not frame or large_frames.more_than(frame, DEFAULT.values):
        return None
    try:
        return loaded(frame)
    except orjson.JSONDecodeError:
        return None


def names_revision(message: dict[str, Any]) -> bool:
    """Whether a message has its revision in `_meta`, as without a handshake."""
    meta = message["params"].get("_meta") if isinstance(message.get("params"), dict) else None
    return isinstance(meta, dict) and REVISION_KEY in meta


def revision_of(version: str | None, message: Any) -> str | None:
    """
    Return the revision of a message without a session; None for `initialize`.

    *version* is the revision in the header; *message* may be None if that is one without a handshake.
    """
    if is_known(version) and not handshake(version):
        return version
    if isinstance(message, dict) and message.get("method") == "initialize":
        return None
    if version is not None:
        return version if is_known(version) else LATEST
    return LATEST if isinstance(message, dict) and names_revision(message) else UNNAMED
