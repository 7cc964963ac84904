"""
Read the feed of one running guard. Nothing here waits, except the two iterators at the end.

A broken or hostile socket breaks only its own reader: lines are bounded, and a guard that does not say hello in time
is given up.
"""

import select
import socket
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import suppress
from time import perf_counter
from typing import Any, Final

from assay.records.live.feed_items import FeedItem, item_of
from assay.records.live.live_sockets import connected

LONGEST_LINE: Final = 32 << 20
"""Maximal bytes of a line. A frame of 4 MiB, the longest in a record, has up to 24 MiB as JSON."""

HELLO_SECONDS: Final = 10.0
"""Seconds in which a guard must say hello. It does at once, unless its machine is overloaded: two were too few."""

_CHUNK: Final = 256 << 10
_MOST_CHUNKS: Final = 16
"""Chunks to read in one turn, 4 MiB in all: no guard keeps the reader from the others."""


class FeedReader:
    """The connection to one guard."""

    def __init__(self, path: str) -> None:
        """Connect to the socket at *path*; one at which no process listens is removed. Raises `OSError`."""
        self.path = path
        self.hello: dict[str, Any] | None = None
        """The first line of the guard, once it has come."""
        self.why = ""
        """Why the connection has ended; empty while it is open."""
        self._connection: socket.socket = connected(path)
        self._parts: list[bytes] = []
        self._size = 0
        self._due = perf_counter() + HELLO_SECONDS

    def fileno(self) -> int:
        """Return the descriptor of the connection, -1 after its end."""
        return self._connection.fileno()

    @property
    def ended(self) -> bool:
        """Whether the connection has ended."""
        return bool(self.why)

    def arrived(self) -> Iterator[FeedItem]:
        """Yield what has come since the last call. Never waits."""
        for _ in range(_MOST_CHUNKS):
            if self.ended:
                return
            try:
                data = self._connection.recv(_CHUNK)
            except BlockingIOError:
                break
            except OSError as error:
                self.close(error.strerror or "the connection was lost")
                return
            if not data:
                self.close("the guard has ended")
                return
            yield from self._taken(data)
        if self.hello is None and not self.ended and perf_counter() > self._due:
            self.close("it does not say hello")

    def close(self, why: str = "closed") -> None:
        """Close the connection."""
        self.why = self.why or why
        self._connection.close()

    def _taken(self, data: bytes) -> Iterator[FeedItem]:
        *lines, rest = data.split(b"\n")
        for line in lines:
            whole = b"".join((*self._parts, line))
            self._parts, self._size = [], 0
            item = item_of(whole)
            if item is not None and self._is_expected(item):
                yield item
            if self.ended:
                return
        if rest:
            self._parts.append(rest)
            self._size += len(rest)
            if self._size > LONGEST_LINE:
                self.close(f"a line of more than {LONGEST_LINE:,} bytes")

    def _is_expected(self, item: FeedItem) -> bool:
        """Whether *item* may come now: hello is first."""
        if item.event == "hello" and self.hello is None:
            self.hello = item.data
        elif item.event == "refused":
            self.close(str(item.data.get("why"))[:200])
        elif self.hello is None:
            self.close("it does not say hello first")
            return False
        return True


def feed(path: str) -> Generator[FeedItem, None, None]:
    """Yield the items of the guard at *path* until it ends; waits for each. Raises `OSError`."""
    reader = FeedReader(path)
    try:
        while not reader.ended:
            yield from reader.arrived()
            if not reader.ended:
                select.select([reader], [], [], HELLO_SECONDS)
    finally:
        reader.close()


async def feed_async(path: str) -> AsyncIterator[FeedItem]:
    """Yield the items of the guard at *path* until it ends, on an event loop. Raises `OSError`."""
    import asyncio  # noqa: PLC0415 - for programs with an event loop

    reader = FeedReader(path)
    loop, readable = asyncio.get_running_loop(), asyncio.Event()
    descriptor = reader.fileno()
    loop.add_reader(descriptor, readable.set)
    try:
        while not reader.ended:
            readable.clear()
            for item in reader.arrived():
                yield item
            if not reader.ended:
                with suppress(TimeoutError):
                    await asyncio.wait_for(readable.wait(), HELLO_SECONDS)
    finally:
        loop.remove_reader(descriptor)
        reader.close()
