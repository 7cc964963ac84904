"""Server-Sent Events: how a message is written as one, and how a stream of them is read. No I/O."""

import re
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
        # Some clients take no notice of blanks around the name.
        return bool(self.data) and self.name.strip() in {b"", b"message"}


class Reader:
    """
    A stream of events, as its bytes come (the standard is WHATWG HTML, 9.2.6).

    All bytes come out again, in their order, as soon as the event is there that they belong to: passed on as they are,
    they give the very stream. Blank lines that follow an event come out together. At most *limit* bytes, the overhead
    and a chunk are held.
    """

    __slots__ = ("_ends", "_first", "_held", "_limit", "_long", "_start")

    def __init__(self, limit: int) -> None:
        """*limit* is how many bytes of data an event may carry."""
        self._limit = limit
        self._held = bytearray()
        self._start = 0
        """Where the event begins that is being read, in what is held."""
        self._ends = [_NOWHERE] * len(_ENDS)
        """Where each of `_ENDS` comes next in what is held."""
        self._first = True
        """Whether nothing has been given out yet: a byte order mark may stand before the first line."""
        self._long = False
        """Whether the first piece of the event that is being read has been given out."""

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """The events that end in *chunk*."""
        if not chunk:
            return
        # The first half of an end may be the last byte. Every byte is looked at once: else a stream without one of the
        # ends would be gone through for each event.
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
        """Bytes that wait for the end of their event."""
        return len(self._held) - self._start

    def rest(self) -> bytes:
        """What came behind the last blank line, and is no event: clients drop it."""
        rest = bytes(self._held[self._start :])
        self._start = len(self._held)
        self._forget()
        return rest

    def _end(self) -> int | None:
        """Where the event that is being read ends; None if that is not there yet."""
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
        # A line feed behind a carriage return belongs to it; should it come later, it is a blank line of its own.
        return end + 1 if held[end - 1] == 0x0D and held[end : end + 1] == b"\n" else end

    def _look(self, begin: int) -> None:
        """Looks for those of `_ENDS` that were not there before *begin*."""
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
        """The event that *text* spells, all of *raw* but a byte order mark."""
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
        """Lets go of what was given out, once for all events of a chunk."""
        start = self._start
        if start:
            del self._held[:start]
            self._ends = [place if place == _NOWHERE else place - start for place in self._ends]
            self._start = 0

    def _piece(self) -> Event:
        """What is held of an event that is too long, but for the end of a line: the next one may be blank."""
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
            # Of a line that goes on only data can be told.
            last = max(text.rfind(b"\n"), text.rfind(b"\r")) + 1
            text = text if text.startswith(b"data:", last) else text[:last]
        return self._made(text, raw, whole=False)


_ENDS: Final = (b"\n\n", b"\n\r", b"\r\r")
"""A line end and another one, whichever they are: there a blank line ends, and with it an event."""

_NOWHERE: Final = 1 << 62

_BLANK: Final = re.compile(rb"[\r\n]++")

_MANY: Final = 64
"""Lines from which on it pays to look for the fields that mean something first."""

_FIELD: Final = re.compile(rb"^(?:data|event|id|retry)(?::[^\n]*+)?$", re.MULTILINE)


def _fields(text: bytes) -> list[bytes]:
    """The lines of an event; of very many only those that mean something."""
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    lines = text.split(b"\n", _MANY)
    return lines if len(lines) <= _MANY else _FIELD.findall(text)
