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


_REMEMBERED: Final = frozenset({b"id", b"event", b"retry"})


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
        self._begun = False
        """Whether anything of that line has come."""
        # Not lists of lines: there may be millions, of a byte or two each.
        self._raw = bytearray()
        self._data = bytearray()
        self._fields: dict[bytes, bytes] = {}
        self._anything = False
        """Whether there was more than comments."""
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
                    self._raw += b"\n"
        at = 0
        for found in _LINE_END.finditer(chunk):
            self._after_cr = found[0] == b"\r" and found.end() == len(chunk)
            yield from self._line(chunk[at : found.start()], found[0])
            at = found.end()
        if at < len(chunk):
            self._hold(chunk[at:])

    def _line(self, end_of_line: bytes, ending: bytes) -> Iterator[Event]:
        self._hold(end_of_line)
        line, begun = b"".join(self._pieces), self._begun
        self._pieces.clear()
        self._held, self._begun = 0, False
        if self._first:
            self._first = False
            line = line.removeprefix(_BOM)
            begun = begun and line != b""
        if not begun:
            yield from self._block(ending)
        elif not self._long:
            self._field(line, ending)

    def _hold(self, data: bytes) -> None:
        """Keeps an unfinished line, as far as it can still matter."""
        self._begun = self._begun or data != b""
        room = self._limit + _ROOM - self._size - self._held
        if len(data) > room and not self._long:
            # What there is of it shows that it is too long.
            self._long = True
            self._field(b"".join(self._pieces) + data[: max(0, room)], b"")
        if self._long:
            self._pieces.clear()
        elif data:
            self._pieces.append(data)
            self._held += len(data)

    def _field(self, line: bytes, ending: bytes) -> None:
        self._size += len(line) + len(ending)
        self._raw += line + ending
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data += value + b"\n"
        elif name in _REMEMBERED:
            self._fields[name] = value
        self._anything = self._anything or name != b""

    def _block(self, ending: bytes) -> Iterator[Event]:
        """The end of an event, if anything of one was there."""
        raw, data, fields = bytes(self._raw + ending), bytes(self._data[:-1]), self._fields
        long, anything = self._long, self._anything
        self._raw, self._data, self._fields = bytearray(), bytearray(), {}
        self._size, self._long, self._anything = 0, False, False
        if not anything:
            return
        if long and data:
            # What was dropped may have been the rest of it.
            data = data.ljust(self._limit + 1)
        ident = fields.get(b"id")
        retry = fields.get(b"retry", b"")
        yield Event(
            raw,
            data[: self._limit + 1],
            # As the specification of the format has it: an id with NUL in it is none.
            None if ident is not None and b"\0" in ident else ident,
            fields.get(b"event") or b"message",
            int(retry) if retry.isdigit() and len(retry) < 10 else None,
        )
