"""When a message came, and its ids: new ones, or ones that follow from the message. No I/O."""

import os
import re
from collections.abc import Iterator, Mapping
from hashlib import sha1
from itertools import count, repeat
from os import urandom
from time import gmtime, strftime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from assay.records.http_notes import HttpNote


class Moment(NamedTuple):
    """When a message came, and its ids. A request and its answer share one."""

    transport: str
    """``stdio`` or ``http``."""
    route: str
    """``stdio``, or the path of the HTTP request."""
    ids: bytes
    """The three ids as members of a JSON object: every line has them, and the answer has the same."""
    began: float
    """When the message came, by the clock of the journal."""
    session: str = ""
    """The name of the connection, where several share a journal."""
    method: str | None = None
    """The method of the request, for an answer that does not name it."""
    http: "HttpNote | None" = None
    """The HTTP request that carried the message, for records with payloads."""

    @property
    def request_id(self) -> str:
        """A UUID."""
        return self.ids[13:49].decode()

    @property
    def trace_id(self) -> str:
        """32 hexadecimal digits: the trace that the caller named, or a new one."""
        return self.ids[62:94].decode()

    @property
    def span_id(self) -> str:
        """16 hexadecimal digits."""
        return self.ids[106:122].decode()


def spelled_ids(request_id: str, trace_id: str, span_id: str) -> bytes:
    """Return the ids as `Moment.ids` has them."""
    return f'"requestId":"{request_id}","traceId":"{trace_id}","spanId":"{span_id}"'.encode()


_LAST_DIGITS: Final = tuple(b"%02x" % number for number in range(256))


class Fresh:
    """
    Ids that no other process has.

    The first digits are drawn once in a process, the rest counts: a UUID takes ten times as long. They are not secret.
    """

    __slots__ = ("_blocks", "_heads", "left")

    left: Iterator[bytes]
    """The rest of a block of 256. No line of Python runs for one of them, so threads may share it."""

    def __init__(self) -> None:
        self.draw()

    def draw(self) -> None:
        """Draw new first digits: a process that was forked must not repeat those of its parent."""
        drawn = urandom(21).hex()
        # Version 4, random, in the places where a UUID says so.
        request = f"{drawn[:8]}-{drawn[8:12]}-4{drawn[12:15]}-8{drawn[15:18]}-"
        self._heads = request, drawn[18:34], drawn[34:42]
        self._blocks = count(1)
        self.left = iter(())

    def request_id(self) -> str:
        """Return a new UUID."""
        return (next(self.left, None) or self.more())[13:49].decode()

    def more(self) -> bytes:
        """Begin the next block, and return the first ids of it."""
        request, trace, span = self._heads
        block = next(self._blocks)
        # The last two digits are the same in all three ids, so one join spells all of them.
        text = spelled_ids(
            f"{request}{block & 0xFFFFFFFFFF:010x}__",
            f"{trace}{block & 0xFFFFFFFFFFFFFF:014x}__",
            f"{span}{block & 0xFFFFFF:06x}__",
        )
        left = map(bytes.join, _LAST_DIGITS, repeat(text.split(b"__")))
        first = next(left)
        self.left = left
        return first


FRESH: Final = Fresh()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=FRESH.draw)


_NAMESPACE: Final = bytes.fromhex("6f1c2a5e9d0b4f7c8a3e51d2c4b6e7f8")
"""The namespace of our deterministic ids, drawn once and for all."""


def deterministic_ids(route: str, method: str | None, frame: bytes) -> bytes:
    """Return ids that are the same in two runs with the same traffic: a UUIDv5 of route, method and frame."""
    name = b"\0".join((route.encode(errors="replace"), (method or "").encode(errors="replace"), frame))
    digest = sha1(_NAMESPACE + name, usedforsecurity=False).hexdigest()
    variant = "89ab"[int(digest[16], 16) & 3]
    plain = f"{digest[:12]}5{digest[13:16]}{variant}{digest[17:32]}"
    request_id = "-".join((plain[:8], plain[8:12], plain[12:16], plain[16:20], plain[20:]))
    return spelled_ids(request_id, plain, plain[16:])


_TRACEPARENT: Final = re.compile(
    r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?", re.DOTALL
)


def trace_of(traceparent: str) -> str | None:
    """
    The trace that a `traceparent` names; None if it is invalid.

    W3C Trace Context, 3.2: four fields of lower-case digits; no zeros alone; a version past 00 may add fields.
    """
    found = _TRACEPARENT.fullmatch(traceparent)
    return None if found is None or (found[1] == "00" and found[3]) else found[2]


def traceparent_of(value: Any, headers: Mapping[bytes, bytes] | None = None) -> str | None:
    """Return the trace that a message names: MCP has it in `_meta`, HTTP in a header."""
    params = value.get("params") if type(value) is dict else None
    meta = params.get("_meta") if type(params) is dict else None
    given = meta.get("traceparent") if type(meta) is dict else None
    if isinstance(given, str):
        return given
    header = headers.get(b"traceparent") if headers is not None else None
    return header.decode("latin-1") if header is not None else None


def shown_second(stamp: int) -> str:
    """Return the second of *stamp*, in nanoseconds, up to the decimal point."""
    return strftime("%Y-%m-%dT%H:%M:%S.", gmtime(stamp // 1_000_000_000))


def shown_time(stamp: int) -> str:
    """Return *stamp*, in nanoseconds since 1970, as records have it."""
    return f"{shown_second(stamp)}{stamp // 1000 % 1_000_000:06}Z"
