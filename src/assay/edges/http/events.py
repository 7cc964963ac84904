"""Server-Sent Events: how a message is written as one. No I/O."""

from typing import Final

PING: Final = b":\r\n\r\n"
"""A comment: says that the stream is alive, and means nothing else."""


def event(data: bytes, ident: bytes | None = None) -> bytes:
    """One event that carries *data*; a frame holds no line break, since JSON text written by us is on one line."""
    head = b"event: message\r\n" if ident is None else b"event: message\r\nid: %b\r\n" % ident
    return b"%bdata: %b\r\n\r\n" % (head, data)


def primer(ident: bytes) -> bytes:
    """An event without data: gives a client the id to come back with, should the stream break off (2025-11-25)."""
    return b"id: %b\r\nretry: 1000\r\ndata: \r\n\r\n" % ident
