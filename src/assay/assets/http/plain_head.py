"""
The head of a request that can be answered at once, read in one look. What is not plain `read_head` reads.

A client repeats most of its heads, so they are remembered: reading them anew took 190 of the 2,340 bytecodes of a call.
The client and its session are looked up for each request: a key can be withdrawn, and a session can end.
"""

from typing import Final, NamedTuple

from assay.assets.asset_server import WAITING
from assay.core.conversation import Facts
from assay.edges.http.heads import SESSION, VERSION, may_be_odd
from assay.edges.http.replies import SMALL, Pairs
from assay.edges.http.request_headers import Accepts, Headers
from assay.spec.revisions import REVISIONS, handshake

_PLAIN_CONNECTIONS: Final = frozenset({None, b"keep-alive", b"Keep-Alive", b"close"})
_MOST_HEADS: Final = 128
"""Heads that are remembered, of up to 64 kB each."""

_LISTEN: Final = b"subscriptions/listen"
_WAITING: Final = WAITING.encode()
"""What a frame may contain that has no answer at once."""


class PlainHead(NamedTuple):
    """The head of a POST."""

    headers: Headers
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


class PlainHeads:
    """Reads heads, and remembers them."""

    __slots__ = ("_accepts", "_known")

    def __init__(self) -> None:
        self._accepts = Accepts()
        self._known: dict[tuple[tuple[bytes, bytes], ...], PlainHead] = {}

    def read(self, pairs: Pairs) -> PlainHead | None:
        """Return the head that *pairs* are; None if it is not plain."""
        key = tuple(pairs)
        head = self._known.get(key)
        if head is None:
            head = self._read(pairs)
            if head is not None:
                if len(self._known) >= _MOST_HEADS:
                    self._known.clear()
                self._known[key] = head
        return head

    def _read(self, pairs: Pairs) -> PlainHead | None:
        headers: Headers = dict(pairs)
        given = headers.get(VERSION)
        version = None if given is None else given.decode("latin-1")
        plain = (
            len(headers) == len(pairs)
            and headers.get(b"content-type") == b"application/json"
            and (version is None or version in REVISIONS)
            and headers.get(b"connection") in _PLAIN_CONNECTIONS
            and b"content-encoding" not in headers
            and not may_be_odd(headers, version)
            and self._accepts.read(headers.get(b"accept"))[0]
        )
        if not plain:
            return None
        opens = version is None or handshake(version)
        # Revisions without a handshake have no sessions: the header is ignored.
        session = headers.get(SESSION) if opens else None
        slow = None if opens else _names_slow(headers)
        return PlainHead(headers, version, session, Facts("http", version, headers), slow)


def _names_slow(headers: Headers) -> bool:
    """Return whether the headers name a stream or a backend; a message that says something else is refused."""
    name = headers.get(b"mcp-name", b"")
    return headers.get(b"mcp-method") == _LISTEN or name == _WAITING or name.startswith(b"=?")
