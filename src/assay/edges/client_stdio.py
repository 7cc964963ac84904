"""
A client on our standard streams, for an event loop: lines in, lines out, and neither is ever waited for by others.

What cannot be written yet is kept; whoever would add to it waits for room.
"""

import asyncio
import os
import select
import stat
from collections.abc import AsyncIterator, Callable

from assay.edges.pipes import CHUNK, Outlet
from assay.ladder.framing import Splitter


class StdioClient:
    """The client. To be made inside the loop that it is used in, which has to take files: one that uses `poll`."""

    def __init__(self, source: int, sink: int, *, limit: int, before_writing: Callable[[], None]) -> None:
        """A line longer than *limit* comes cut one byte past it. *before_writing* is called before anything goes."""
        self._loop = asyncio.get_running_loop()
        self._source = source
        self._sink = sink
        self._splitter = Splitter(limit)
        self._before_writing = before_writing
        self._out = Outlet(sink)
        self._due = False
        self._waiting: set[asyncio.Future[None]] = set()
        self.gone = asyncio.Event()
        """Nobody reads what we write any more."""
        if stat.S_ISFIFO(os.fstat(sink).st_mode):
            # Of a pipe that is only written to, all there is to hear is that its other end was closed.
            self._loop.add_reader(sink, self._heard_of_sink)

    async def frames(self) -> AsyncIterator[bytes]:
        """What the client says, one line each, until it says no more."""
        while chunk := await self._read():
            for frame in self._splitter.feed(chunk):
                yield frame
        last = self._splitter.end()
        if last is not None:
            yield last

    def say(self, line: bytes) -> None:
        """Sends *line*, which ends in a newline, as soon as there is room."""
        self._out.write(line)
        self._soon()

    def reply(self, frame: bytes) -> None:
        """Sends *frame* in answer to something that the client has said itself."""
        self._out.reply(frame)
        self._soon()

    @property
    def full(self) -> bool:
        """Whether more waits for the client than it should."""
        return self._out.full

    async def room(self) -> None:
        """Waits until there is room for more, or nobody left to read it."""
        while self._out.full:
            await self._written()

    async def quiet(self) -> None:
        """The same for our replies: a client that does not read them is not heard further."""
        while self._out.clogged:
            await self._written()

    async def finish(self) -> None:
        """Waits until everything is written."""
        self._push()
        while self._out.waiting:
            await self._written()

    def close(self) -> None:
        """Leaves both descriptors as they were found."""
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
        """Waits until some of what waits is written."""
        written = self._loop.create_future()
        self._waiting.add(written)
        try:
            await written
        finally:
            self._waiting.discard(written)

    def _soon(self) -> None:
        """What comes together is written together."""
        if not self._due:
            self._due = True
            self._loop.call_soon(self._push)

    def _push(self) -> None:
        self._due = False
        # On record first: nothing that was answered is lost.
        self._before_writing()
        self._out.push()
        if self._out.waiting:
            self._loop.add_writer(self._sink, self._has_room)
        self._look()

    def _has_room(self) -> None:
        # What was said since may be among what there is room for.
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
