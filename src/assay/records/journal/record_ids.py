"""When a message came, and by which ids it is known: fresh ones, or ones that follow from what was said. No I/O."""

import os
from collections.abc import Iterator
from itertools import count
from os import urandom
from typing import Final, NamedTuple


class Moment(NamedTuple):
    """What is known of a message beside its verdict. A request and its answer share one."""

    transport: str
    """``stdio`` or ``http``."""
    route: str
    """``stdio``, or the path of the HTTP request."""
    request_id: str
    """A UUID."""
    trace_id: str
    """32 hexadecimal digits: the trace that the caller named, or one of our own."""
    span_id: str
    """16 hexadecimal digits."""
    began: float
    """When the message came, by the clock of the journal."""
    session: str = ""
    """What tells this connection from others that are in the same journal."""
    method: str | None = None
    """The method that was asked for, for an answer that does not know it itself."""


Ids = tuple[str, str, str]
"""Of a request, of a trace, of a span."""

_LAST_DIGITS: Final = tuple(f"{number:02x}" for number in range(256))


class Fresh:
    """
    Ids that nobody else has.

    The first digits are drawn once in a process, the rest counts: a UUID takes ten times as long. No secret.
    """

    __slots__ = ("_blocks", "_heads", "left")

    left: Iterator[Ids]
    """What is left of some hundred. No line of Python runs for one of them, so that threads may share it."""

    def __init__(self) -> None:
        self.draw()

    def draw(self) -> None:
        """Begin anew: what the process before a fork has used is not ours."""
        drawn = urandom(21).hex()
        # Version 4, random, in the places where a UUID says so.
        request = f"{drawn[:8]}-{drawn[8:12]}-4{drawn[12:15]}-8{drawn[15:18]}-"
        self._heads = request, drawn[18:34], drawn[34:42]
        self._blocks = count(1)
        self.left = iter(())

    def more(self) -> Ids:
        """The first of the next few hundred."""
        request, trace, span = self._heads
        block = next(self._blocks)
        heads = (
            f"{request}{block & 0xFFFFFFFFFF:010x}",
            f"{trace}{block & 0xFFFFFFFFFFFFFF:014x}",
            f"{span}{block & 0xFFFFFF:06x}",
        )
        left = zip(*(map(head.__add__, _LAST_DIGITS) for head in heads), strict=False)
        first: Ids = next(left)
        self.left = left
        return first


FRESH: Final = Fresh()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=FRESH.draw)


_NAMESPACE: Final = bytes.fromhex("6f1c2a5e9d0b4f7c8a3e51d2c4b6e7f8")
"""The namespace of our deterministic ids, drawn once and for all."""


def deterministic_ids(route: str, method: str | None, frame: bytes) -> Ids:
    """The ids of *frame* where two runs of the same traffic must be the same: a UUIDv5 of what was said, and where."""
    from hashlib import sha1  # noqa: PLC0415 - only where ids follow from the traffic

    name = b"\0".join((route.encode(errors="replace"), (method or "").encode(errors="replace"), frame))
    digest = sha1(_NAMESPACE + name, usedforsecurity=False).hexdigest()
    variant = "89ab"[int(digest[16], 16) & 3]
    plain = f"{digest[:12]}5{digest[13:16]}{variant}{digest[17:32]}"
    return "-".join((plain[:8], plain[8:12], plain[12:16], plain[16:20], plain[20:])), plain, plain[16:]


_DIGITS: Final = frozenset("0123456789abcdef")


def trace_of(traceparent: str) -> str | None:
    """
    The trace that a `traceparent` names; None if it is invalid.

    W3C Trace Context, 3.2: four fields of lower-case digits; no zeros alone; a version past 00 may add fields.
    """
    version, _, rest = traceparent.partition("-")
    trace, _, rest = rest.partition("-")
    span, _, rest = rest.partition("-")
    flags, more, _ = rest.partition("-")
    fields = ((version, 2), (trace, 32), (span, 16), (flags, 2))
    if any(len(field) != size or not _DIGITS.issuperset(field) for field, size in fields):
        return None
    if version == "ff" or (version == "00" and more) or not trace.strip("0") or not span.strip("0"):
        return None
    return trace
