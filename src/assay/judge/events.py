"""Write and parse Server-Sent Events. No I/O."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from assay.judge.framing import one_line

PING: Final = b":\r\n\r\n"
"""A comment that keeps the stream alive."""

OVERHEAD: Final = 64 << 10
"""Bytes of an event beyond its data: its id, comments, and the field name on each line."""

_BOM: Final = b"\xef\xbb\xbf"


_ASCII_BREAKS: Final = tuple((each, b"\\u%04x" % each[0]) for each in (b"\x0b", b"\x0c", b"\x1c", b"\x1d", b"\x1e"))
_WIDE_BREAKS: Final = tuple((each.encode(), b"\\u%04x" % ord(each)) for each in ("\x85", "\u2028", "\u2029"))
"""The characters beside CR and LF at which `str.splitlines` splits, each with its escape in JSON."""


def unbroken(data: bytes) -> bytes:
    """
    Return *data*, which is JSON on one line, with escapes in place of characters that some readers split lines at.

    Readers of events that use `str.splitlines`, such as httpx-sse before 0.4.2, would lose the message, and read the
    text after such a character as fields of the event. In valid JSON they stand only in strings, where the escape is
    the same value; those of ASCII do not stand there at all, but audit forwards invalid messages, too.
    """
    for raw, escaped in _ASCII_BREAKS if data.isascii() else (*_ASCII_BREAKS, *_WIDE_BREAKS):
        if raw in data:
            data = data.replace(raw, escaped)
    return data


def event(data: bytes, ident: bytes | None = None) -> bytes:
    """Return one event with the frame *data*, on one line."""
    data = unbroken(one_line(data.rstrip(b"\r\n")))
    head = b"event: message\r\n" if ident is None else b"event: message\r\nid: %b\r\n" % ident
    return b"%bdata: %b\r\n\r\n" % (head, data)


def primer(ident: bytes) -> bytes:
    """Return an event without data, whose id lets a client resume after a broken stream (2025-11-25)."""
    return b"id: %b\r\nretry: 1000\r\ndata: \r\n\r\n" % ident


class Event(NamedTuple):
    """
    One event as received, or a comment, or a blank line: everything up to a blank line.

    An event that is too long comes in pieces, of which only the first has the fields.
    """

    raw: bytes
    """The exact bytes, including the blank line."""
    data: bytes | None = None
    """The data; None without a data line, or for a later piece."""
    ident: bytes | None = None
    """The id for `Last-Event-ID`; None without one."""
    name: bytes = b""
    """The name of the event; an event without a name is a message."""
    retry: bytes | None = None
    """Milliseconds that a client has to wait before it reconnects."""
    whole: bool = True

    @property
    def is_message(self) -> bool:
        """Whether it is a message event with data."""
        # Some clients ignore spaces around the name.
        return bool(self.data) and self.name.strip() in {b"", b"message"}


class Reader:
    """
    An incremental parser of events (WHATWG HTML, 9.2.6).

    All bytes are returned in order, as soon as their event is complete: forwarded unchanged, they give the same stream.
    Blank lines after an event are returned together. At most *limit* bytes, the overhead and a chunk are held.
    """

    __slots__ = ("_ends", "_first", "_held", "_limit", "_long", "_start")

    def __init__(self, limit: int) -> None:
        """*limit* is the maximal number of data bytes of an event."""
        self._limit = limit
        self._held = bytearray()
        self._start = 0
        """The start of the current event in the buffer."""
        self._ends = [_NOWHERE] * len(_ENDS)
        """The next position of each of `_ENDS` in the buffer."""
        self._first = True
        """Whether nothing was returned yet: a byte order mark may precede the first line."""
        self._long = False
        """Whether the first piece of the current event was returned."""

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """Yield the events that end in *chunk*."""
        if not chunk:
            return
        # An end may be split between chunks. Every byte is searched once: otherwise a stream without one of the ends
        # would be searched for each event.
        before = max(len(self._held) - 1, 0)
        self._held += chunk
        self._look(before)
        while (end := self._end()) is not None:
            yield self._event(end)
        self._forget()
        if len(self._held) > self._limit + OVERHEAD:
            yield self._piece()

    @property
    def held(self) -> int:
        """The number of buffered bytes."""
        return len(self._held) - self._start

    def rest(self) -> bytes:
        """Return the bytes after the last blank line, which are not an event: clients drop them."""
        rest = bytes(self._held[self._start :])
        self._start = len(self._held)
        self._forget()
        return rest

    def _end(self) -> int | None:
        """Return the end of the current event; None if it is incomplete."""
        held, start = self._held, self._start
        blank = _BLANK.match(held, start) if not self._long else None
        if blank is not None:
            return blank.end()
        end = min(self._ends) + 2
        while end - 2 < start:
            number = self._ends.index(end - 2)
            found = held.find(_ENDS[number], start)
            self._ends[number] = found if found >= 0 else _NOWHERE
            end = min(self._ends) + 2
        if end > _NOWHERE:
            return None
        # A line feed after a carriage return belongs to it; if it comes later, it is a separate blank line.
        return end + 1 if held[end - 1] == 0x0D and held[end : end + 1] == b"\n" else end

    def _look(self, begin: int) -> None:
        """Search for those of `_ENDS` that were not found before *begin*."""
        for number, place in enumerate(self._ends):
            if place == _NOWHERE:
                found = self._held.find(_ENDS[number], begin)
                self._ends[number] = found if found >= 0 else _NOWHERE

    def _event(self, end: int) -> Event:
        raw = bytes(self._held[self._start : end])
        self._start = end
        first, self._first = self._first, False
        if self._long:
            self._long = False
            return Event(raw, whole=False)
        return self._made(raw.removeprefix(_BOM) if first else raw, raw)

    def _made(self, text: bytes, raw: bytes, *, whole: bool = True) -> Event:
        """Parse the event in *text*, which is *raw* without a byte order mark."""
        lines = _fields(text)
        data: list[bytes] = []
        ident, name, retry = None, b"", None
        for line in lines:
            field, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if field == b"data":
                data.append(value)
            elif field == b"event":
                name = value
            elif field == b"id" and b"\0" not in value:
                ident = value
            elif field == b"retry" and value.isdigit():
                retry = value
        joined = b"\n".join(data) if data else None
        if joined is not None and not whole:
            joined = joined[: self._limit + 1]
        whole = whole and (joined is None or len(joined) <= self._limit)
        return Event(raw, joined, ident, name, retry, whole)

    def _forget(self) -> None:
        """Drop returned bytes from the buffer, once for all events of a chunk."""
        start = self._start
        if start:
            del self._held[:start]
            self._ends = [place if place == _NOWHERE else place - start for place in self._ends]
            self._start = 0

    def _piece(self) -> Event:
        """Return the buffered part of an event that is too long, without its last line end."""
        whole_line = self._held.endswith((b"\r", b"\n"))
        self._start = len(self._held.rstrip(b"\r\n"))
        raw = bytes(self._held[: self._start])
        del self._held[: self._start]
        self._start = 0
        first, self._first = self._first, False
        if self._long:
            return Event(raw, whole=False)
        self._long = True
        text = raw.removeprefix(_BOM) if first else raw
        if not whole_line:
            # Of an incomplete line only the data field is known.
            last = max(text.rfind(b"\n"), text.rfind(b"\r")) + 1
            text = text if text.startswith(b"data:", last) else text[:last]
        return self._made(text, raw, whole=False)


_ENDS: Final = (b"\n\n", b"\n\r", b"\r\r")
"""Two line ends in all their forms: they end a blank line, and so an event."""

_NOWHERE: Final = 1 << 62

_BLANK: Final = re.compile(rb"[\r\n]++")

_MANY: Final = 64
"""Number of lines from which on searching for known fields first is faster."""

_FIELD: Final = re.compile(rb"^(?:data|event|id|retry)(?::[^\n]*+)?$", re.MULTILINE)


def _fields(text: bytes) -> list[bytes]:
    """Return the lines of an event; of very many, only those with known fields."""
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    lines = text.split(b"\n", _MANY)
    return lines if len(lines) <= _MANY else _FIELD.findall(text)
