"""
A client on standard streams, for an event loop: lines in and out, without blocking.

Bytes that cannot be written yet are kept, and their source waits for room.
"""

import asyncio
import os
import select
import stat
from collections.abc import AsyncIterator, Callable

from assay.edges.pipes import CHUNK, Outlet
from assay.judge.framing import Splitter


class StdioClient:
    """The client. Create it inside its event loop, which must support files: one that uses `poll`."""

    def __init__(self, source: int, sink: int, *, limit: int, before_writing: Callable[[], None]) -> None:
        """A line longer than *limit* is cut one byte past it. *before_writing* is called before each write."""
        self._loop = asyncio.get_running_loop()
        self._source = source
        self._sink = sink
        self._splitter = Splitter(limit)
        self._before_writing = before_writing
        self._out = Outlet(sink)
        self._due = False
        self._waiting: set[asyncio.Future[None]] = set()
        self.gone = asyncio.Event()
        """Set when the client no longer reads."""
        if stat.S_ISFIFO(os.fstat(sink).st_mode):
            # The only event of a pipe that is only written is that its reader closed it.
            self._loop.add_reader(sink, self._heard_of_sink)

    async def frames(self) -> AsyncIterator[bytes]:
        """Yield the lines of the client, until its end."""
        while chunk := await self._read():
            for frame in self._splitter.feed(chunk):
                yield frame
        last = self._splitter.end()
        if last is not None:
            yield last

    def say(self, line: bytes) -> None:
        """Send *line*, which ends in a newline, as soon as there is room."""
        self._out.write(line)
        self._soon()

    def reply(self, frame: bytes) -> None:
        """Send *frame* in reply to a message of the client."""
        self._out.reply(frame)
        self._soon()

    @property
    def full(self) -> bool:
        """Whether the buffer for the client is full."""
        return self._out.full

    async def room(self) -> None:
        """Wait until there is room, or the client is gone."""
        while self._out.full:
            await self._written()

    async def quiet(self) -> None:
        """Wait until our replies are read: a client that does not read them is not read either."""
        while self._out.clogged:
            await self._written()

    async def finish(self) -> None:
        """Wait until everything is written."""
        self._push()
        while self._out.waiting:
            await self._written()

    def close(self) -> None:
        """Restore the original mode of both descriptors."""
        for remove in (self._loop.remove_reader, self._loop.remove_writer):
            remove(self._source)
            remove(self._sink)
        self._out.restore()

    # ── bytes ────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _read(self) -> bytes:
        ready = self._loop.create_future()
        self._loop.add_reader(self._source, _settle, ready)
        try:
            await ready
        finally:
            self._loop.remove_reader(self._source)
        try:
            return os.read(self._source, CHUNK)
        except BlockingIOError:
            return await self._read()
        except OSError:
            return b""

    async def _written(self) -> None:
        """Wait until part of the buffer is written."""
        written = self._loop.create_future()
        self._waiting.add(written)
        try:
            await written
        finally:
            self._waiting.discard(written)

    def _soon(self) -> None:
        """Write everything of one turn of the loop together."""
        if not self._due:
            self._due = True
            self._loop.call_soon(self._push)

    def _push(self) -> None:
        self._due = False
        # The records first, so that no answered request is lost.
        self._before_writing()
        self._out.push()
        if self._out.waiting:
            self._loop.add_writer(self._sink, self._has_room)
        self._look()

    def _has_room(self) -> None:
        # Lines that were added meanwhile may fit, too.
        self._before_writing()
        self._out.push(room=True)
        if not self._out.waiting:
            self._loop.remove_writer(self._sink)
        self._look()

    def _look(self) -> None:
        if self._out.broken:
            self.gone.set()
        for each in list(self._waiting):
            _settle(each)

    def _heard_of_sink(self) -> None:
        poll = select.poll()
        poll.register(self._sink, 0)
        if poll.poll(0):
            self._out.give_up()
            self._loop.remove_writer(self._sink)
            self._look()
        self._loop.remove_reader(self._sink)


def _settle(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
