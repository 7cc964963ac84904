"""The notifications that a guard writes itself, and how a frame becomes a line. No I/O."""

from typing import Final

from assay.judge import framing, syntax
from assay.model.verdict import Exchange

CANCELLED: Final = "notifications/cancelled"


def id_bytes(exchange: Exchange) -> bytes:
    """Return the id of a request as its sender wrote it."""
    return exchange.spelling or syntax.write(exchange.id)


def may_be_cancelled(exchange: Exchange) -> bool:
    """Return whether a request may be cancelled: `initialize` must not be."""
    return exchange.method != "initialize"


def cancelled(exchange: Exchange, why: str = "timed out") -> bytes:
    """Return the notification that cancels a request."""
    return b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%b,"reason":%b}}' % (
        id_bytes(exchange),
        syntax.write(why),
    )


def line(frame: bytes) -> bytes:
    """Return *frame* with a newline; line breaks inside it, which HTTP may bring, become spaces."""
    if frame.endswith(b"\r"):
        # A carriage return before the newline is part of the line's end, to everybody.
        return framing.write(framing.one_line(frame[:-1]) + b"\r")
    return framing.write(framing.one_line(frame))
