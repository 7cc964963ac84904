"""Server-Sent Events: how a message is written as one, and how those of others are read. No I/O."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from assay.limits import DEFAULT

PING: Final = b":\r\n\r\n"
"""A comment: says that the stream is alive, and means nothing else."""


def event(data: bytes, ident: bytes | None = None) -> bytes:
    """One event that carries *data*; a frame holds no line break, since JSON text written by us is on one line."""
    head = b"event: message\r\n" if ident is None else b"event: message\r\nid: %b\r\n" % ident
    return b"%bdata: %b\r\n\r\n" % (head, data)


def primer(ident: bytes) -> bytes:
    """An event without data: gives a client the id to come back with, should the stream break off (2025-11-25)."""
    return b"id: %b\r\nretry: 1000\r\ndata: \r\n\r\n" % ident


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────

_BOM: Final = b"\xef\xbb\xbf"
_LINE_END: Final = re.compile(rb"\r\n|\n|\r")
_ROOM: Final = 64 << 10
"""Bytes that an event may have beside its data: names of fields, an id, comments between its lines."""


class Event(NamedTuple):
    """One block of a stream, up to its blank line. Without data it is no message, but may still have an id."""

    raw: bytes
    """As it came, the blank line included; of one that is too long, its beginning."""
    data: bytes = b""
    """Its lines joined by newlines; of one that is too long, one byte more than the limit."""
    id: bytes | None = None
    event: bytes = b"message"
    retry: int | None = None
    """Milliseconds after which to come back, should the stream break off."""


class Reader:
    """
    Cuts a stream into events, the same ones however its bytes arrive.

    Lines end in CR, LF or both. What is left at the end, without a blank line, is no event. One whose data is over the
    *limit* comes out once, cut, which is enough to refuse it; the rest of it is dropped as it arrives.
    """

    def __init__(self, limit: int = DEFAULT.frame_bytes) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        """The line that has not ended yet. Pieces, since one that comes byte by byte must not be copied at each."""
        self._held = 0
        self._fields: list[tuple[bytes, bytes]] = []
        self._raw: list[bytes] = []
        self._size = 0
        self._long = False
        """Whether the rest of the event is dropped."""
        self._after_cr = False
        self._first = True

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """The events that *chunk* completes."""
        if self._after_cr and chunk:
            # The other half of a line end that came with the last chunk.
            self._after_cr = False
            if chunk.startswith(b"\n"):
                chunk = chunk[1:]
                if self._raw:
                    self._raw.append(b"\n")
        at = 0
        for found in _LINE_END.finditer(chunk):
            self._after_cr = found[0] == b"\r" and found.end() == len(chunk)
            yield from self._line(chunk[at : found.start()], found[0])
            at = found.end()
        if at < len(chunk):
            self._hold(chunk[at:])

    def _line(self, end_of_line: bytes, ending: bytes) -> Iterator[Event]:
        self._hold(end_of_line)
        line = b"".join(self._pieces)
        self._pieces.clear()
        self._held = 0
        if self._first:
            self._first = False
            line = line.removeprefix(_BOM)
        if line:
            self._field(line, ending)
        else:
            yield from self._block(ending)

    def _hold(self, data: bytes) -> None:
        """Keeps an unfinished line, as far as it can still matter."""
        room = self._limit + _ROOM - self._size - self._held
        if len(data) > room:
            self._long = True
            data = data[: max(0, room)]
        if data:
            self._pieces.append(data)
            self._held += len(data)

    def _field(self, line: bytes, ending: bytes) -> None:
        if self._size + len(line) > self._limit + _ROOM:
            self._long = True
            return
        self._size += len(line) + len(ending)
        self._raw.append(line + ending)
        name, _, value = line.partition(b":")
        if name:
            self._fields.append((name, value.removeprefix(b" ")))

    def _block(self, ending: bytes) -> Iterator[Event]:
        """The end of an event, if anything of one was there."""
        raw, fields = b"".join(self._raw) + ending, self._fields
        self._raw, self._fields, self._size, self._long = [], [], 0, False
        if not fields:
            return
        data = b"\n".join(value for name, value in fields if name == b"data")[: self._limit + 1]
        last = dict(fields)
        ident = last.get(b"id")
        retry = last.get(b"retry", b"")
        yield Event(
            raw,
            data,
            # As the specification of the format has it: an id with NUL in it is none.
            None if ident is not None and b"\0" in ident else ident,
            last.get(b"event") or b"message",
            int(retry) if retry.isdigit() and len(retry) < 10 else None,
        )
