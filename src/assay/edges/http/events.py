"""Server-Sent Events: how a message is written as one, and how a stream of them is read. No I/O."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from assay.ladder.framing import one_line

PING: Final = b":\r\n\r\n"
"""A comment: says that the stream is alive, and means nothing else."""

OVERHEAD: Final = 64 << 10
"""Bytes of an event beside its data: its id, comments, and the name of the field on each line."""

_BOM: Final = b"\xef\xbb\xbf"


def event(data: bytes, ident: bytes | None = None) -> bytes:
    """One event that carries *data*, a frame; on one line, since a line break would end it."""
    data = one_line(data.rstrip(b"\r\n"))
    head = b"event: message\r\n" if ident is None else b"event: message\r\nid: %b\r\n" % ident
    return b"%bdata: %b\r\n\r\n" % (head, data)


def primer(ident: bytes) -> bytes:
    """An event without data: gives a client the id to come back with, should the stream break off (2025-11-25)."""
    return b"id: %b\r\nretry: 1000\r\ndata: \r\n\r\n" % ident


class Event(NamedTuple):
    """
    One event as it came, or a comment, or a blank line: whatever a blank line ends.

    One that is too long comes in pieces, of which only the first tells what it is.
    """

    raw: bytes
    """Its very bytes, up to and with the blank line."""
    data: bytes | None = None
    """What it carries; None if it has no line of data, or is a later piece."""
    ident: bytes | None = None
    """The id that it gives a client to come back with; None if it gives none."""
    name: bytes = b""
    """What kind of event it is; the kind that has no name is a message."""
    retry: bytes | None = None
    """Milliseconds that a client is to wait before it comes back."""
    whole: bool = True

    @property
    def is_message(self) -> bool:
        """Whether it carries something that is meant to be a message."""
        return bool(self.data) and self.name in {b"", b"message"}


class Reader:
    """
    A stream of events, as its bytes come (the standard is WHATWG HTML, 9.2.6).

    All bytes come out again, in their order, as soon as the event is there that they belong to: passed on as they are,
    they give the very stream. At most *limit* bytes, the overhead and a chunk are held.
    """

    __slots__ = (
        "_began", "_data", "_half", "_held", "_ident", "_limit", "_line", "_long", "_mid", "_name", "_retry",
        "_scanned",
    )  # fmt: skip

    def __init__(self, limit: int) -> None:
        """*limit* is how many bytes of data an event may carry."""
        self._limit = limit
        self._held = bytearray()
        self._line = 0
        """Where the line begins that is being read, in what is held."""
        self._scanned = 0
        """Up to where there is no line end behind that."""
        self._began = False
        """Whether the first line, which a byte order mark may stand before, has been read."""
        self._half = False
        """Whether the last byte was a CR: it ends a line, and a line feed behind it belongs to it."""
        self._mid = False
        """Whether the beginning of the line that is being read has been given out."""
        self._long = False
        """Whether the first piece of the event that is being read has."""
        self._forget()

    def _forget(self) -> None:
        self._data: list[bytes] = []
        self._ident: bytes | None = None
        self._name = b""
        self._retry: bytes | None = None

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """The events that end in *chunk*."""
        if not chunk:
            return
        if self._half and chunk.startswith(b"\n"):
            if self._held:
                self._line += 1
                self._scanned = self._line
            else:
                yield Event(b"\n")
                chunk = chunk[1:]
        self._half = False
        self._held += chunk
        while (found := self._line_end()) is not None:
            end, after = found
            line = bytes(self._held[self._line : end])
            blank = not line and not self._mid
            self._line = self._scanned = after
            self._mid = False
            if blank:
                yield self._event()
            elif not self._long:
                self._take(line)
        if len(self._held) > self._limit + OVERHEAD:
            yield self._piece()

    @property
    def held(self) -> int:
        """Bytes that wait for the end of their event."""
        return len(self._held)

    def rest(self) -> bytes:
        """What came behind the last blank line, and is no event: clients drop it."""
        rest = bytes(self._held)
        self._held.clear()
        self._line = self._scanned = 0
        return rest

    def _line_end(self) -> tuple[int, int] | None:
        """Where the line that is being read ends, and where the next begins; None if that is not there yet."""
        held = self._held
        newline = held.find(b"\n", self._scanned)
        carriage = held.find(b"\r", self._scanned, newline if newline >= 0 else len(held))
        if carriage < 0:
            self._scanned = len(held)
            return None if newline < 0 else (newline, newline + 1)
        if carriage + 1 == len(held):
            self._half = True
            return carriage, carriage + 1
        return carriage, carriage + (2 if held[carriage + 1] == 0x0A else 1)

    def _take(self, line: bytes) -> None:
        if not self._began:
            self._began = True
            line = line.removeprefix(_BOM)
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value
        elif field == b"id" and b"\0" not in value:
            self._ident = value
        elif field == b"retry" and value.isdigit():
            self._retry = value

    def _event(self) -> Event:
        self._began = True
        raw = bytes(self._held[: self._line])
        del self._held[: self._line]
        self._line = self._scanned = 0
        if self._long:
            self._long = False
            return Event(raw, whole=False)
        data = b"\n".join(self._data) if self._data else None
        made = Event(raw, data, self._ident, self._name, self._retry, data is None or len(data) <= self._limit)
        self._forget()
        return made

    def _piece(self) -> Event:
        """What is held of an event that is too long."""
        raw = bytes(self._held)
        begun = raw[self._line :]
        self._mid = self._mid or bool(begun)
        self._held.clear()
        self._line = self._scanned = 0
        if self._long:
            return Event(raw, whole=False)
        self._long = True
        if begun.startswith(b"data:"):
            self._data.append(begun[5:].removeprefix(b" "))
        data = b"\n".join(self._data)[: self._limit + 1] if self._data else None
        made = Event(raw, data, self._ident, self._name, self._retry, whole=False)
        self._forget()
        return made
