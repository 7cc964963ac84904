"""
The head of a request that can be answered at once, read in one look. What is not plain `read_head` reads.

A client sends the same head with every call of a tool but for its length, so a connection keeps the last one: reading
it anew took 190 of the 2,340 bytecodes of a call. The client and its session are looked up for each request: a key can
be withdrawn, and a session can end.
"""

from typing import Final, NamedTuple

from assay.assets.asset_server import WAITING
from assay.core.conversation import Facts
from assay.edges.http.heads import SESSION, VERSION, may_be_odd
from assay.edges.http.replies import SMALL, Pairs
from assay.edges.http.request_headers import Accepts, Headers
from assay.spec.revisions import REVISIONS, handshake

_PLAIN_CONNECTIONS: Final = frozenset({None, b"keep-alive", b"Keep-Alive", b"close"})
_LENGTH: Final = b"content-length"
_LISTEN: Final = b"subscriptions/listen"
_WAITING: Final = WAITING.encode()
"""What a frame may contain that has no answer at once."""


class PlainHead(NamedTuple):
    """The head of a POST, without its length."""

    headers: Headers
    total: int
    """Headers that came, the length too: one that came twice is not plain."""
    version: str | None
    session: bytes | None
    facts: Facts
    """What a message without a session is judged by."""
    slow: bool | None
    """Whether the headers name something that has no answer at once; None if only the frame can tell."""

    def may_take_long(self, frame: bytes) -> bool:
        """Return whether *frame* may open a stream, wait for a backend, or hold up other clients."""
        if self.slow is not None:
            return self.slow or len(frame) > SMALL
        return len(frame) > SMALL or _LISTEN in frame or _WAITING in frame


def plain_head(pairs: Pairs, last: PlainHead | None, accepts: Accepts) -> PlainHead | None:
    """Return the head that *pairs* are: the *last* one if it is the same, None if it is not plain."""
    headers: Headers = dict(pairs)
    length = headers.pop(_LENGTH, None)
    if last is not None and headers == last.headers and len(pairs) == last.total:
        return last
    given = headers.get(VERSION)
    version = None if given is None else given.decode("latin-1")
    plain = (
        len(headers) + (length is not None) == len(pairs)
        and headers.get(b"content-type") == b"application/json"
        and (version is None or version in REVISIONS)
        and headers.get(b"connection") in _PLAIN_CONNECTIONS
        and b"content-encoding" not in headers
        and not may_be_odd(headers, version)
        and accepts.read(headers.get(b"accept"))[0]
    )
    if not plain:
        return None
    opens = version is None or handshake(version)
    # Revisions without handshake have no sessions: there the header means nothing.
    session = headers.get(SESSION) if opens else None
    slow = None if opens else _names_slow(headers)
    return PlainHead(headers, len(pairs), version, session, Facts("http", version, headers), slow)


def _names_slow(headers: Headers) -> bool:
    """Return whether the headers name a stream or a backend; a message that says something else is refused."""
    name = headers.get(b"mcp-name", b"")
    return headers.get(b"mcp-method") == _LISTEN or name == _WAITING or name.startswith(b"=?")
