"""
One child process and an event loop: lines in and out, and its end, however it comes.

It knows neither MCP nor HTTP. Its owner gets every line once, and its end exactly once, after the last line.
"""

import asyncio
import os
import signal
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Final, NamedTuple, Protocol

from assay.edges.child import CLOSED, TERMINATED, Child, why
from assay.edges.time_slice import Stint
from assay.guard.internal_errors import contained, log_once
from assay.guard.own_frames import line
from assay.judge.framing import Rest, Splitter, is_blank
from assay.judge.partial_frame import LOOKED_AT

CHUNK: Final = 64 << 10
ERRORS_CHUNK: Final = 4 << 10
"""Bytes of stderr that are taken at once: each of their lines is written anew, and they may be thousands."""

_MOST_READS: Final = 64
"""Maximal chunks to read from a stream without waiting for its end."""

SLICE: Final = 32
"""Lines that are handed on together; after each such slice it is seen whether others are to have a turn."""

SPARE: Final = 1 << 20
"""Bytes that may wait for a child to read them, beside one message of the longest."""

LAST_WORDS: Final = 0.5
"""Seconds that a process has from its exit to the end of its output, or the other way round: others may hold it."""

KILLED: Final = 5.0

_LOOK: Final = 0.1
"""Seconds between two looks at a process, where the system does not tell of its end."""


class PipeLine(NamedTuple):
    """What a child said on one line; of one that is too long, the beginning and the end."""

    frame: bytes
    rest: bytes = b""


class PipeOwner(Protocol):
    """The owner of a child, which gets its lines and its end."""

    def heard(self, lines: Sequence[PipeLine]) -> None:
        """Some lines that came one after the other, none of them blank."""

    def ended(self, reason: str, last_words: list[str]) -> None:
        """It says no more, and hears no more."""


class ChildPipe:
    """One run of a child. To be made in an event loop; raises `StartError`."""

    def __init__(
        self,
        command: Sequence[str],
        owner: PipeOwner,
        *,
        limit: int,
        errors: Callable[[bytes], None],
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> None:
        """Lines longer than *limit* are cut; what the child writes to stderr goes to *errors*, no bytes at its end."""
        self._child = Child(command, env=env, cwd=cwd)
        self._owner = owner
        self._limit = limit
        self._errors = errors
        self._loop = asyncio.get_running_loop()
        self._splitter = Splitter(limit, passing=True)
        self._long: bytes | None = None
        self._rest = b""
        self._out: deque[memoryview] = deque()
        self._waiting = 0
        self._held = False
        self._left: Iterator[PipeLine] = iter(())
        self._busy = False
        """Whether lines are left that the owner has not heard yet. Meanwhile nothing is read, so they stay few."""
        self._draining = False
        self._writable = True
        self._eof = self._exited = self._deaf = False
        self._told_to_end = False
        self.lost_for = ""
        """Why it ended by itself; empty while it runs, or if it was asked to end."""
        self._news = asyncio.Event()
        os.set_blocking(self._child.stdin, False)
        self._loop.add_reader(self._child.stdout, self._read)
        self._loop.add_reader(self._child.stderr, self._read_errors)
        self._watch_exit()
        self._life = asyncio.ensure_future(self._live())

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._child.pid

    def when_over(self, done: Callable[[], None]) -> None:
        """Call *done* when it has ended."""
        self._life.add_done_callback(lambda _: done())

    async def over(self) -> None:
        """Waits until nothing of it is left."""
        await asyncio.wait((self._life,))

    # ── what it hears ────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def last_line(self) -> str:
        """The last line that it wrote to stderr; empty without one."""
        return "".join(self._child.tail.lines()[-1:])

    def has_room(self, size: int) -> bool:
        """Whether *size* bytes more may wait for it."""
        return self._waiting + size <= self._limit + SPARE

    def send(self, frame: bytes) -> None:
        """Send one message as a line, as soon as the child reads."""
        if self._writable:
            data = frame + b"\n" if b"\n" not in frame and b"\r" not in frame else line(frame)
            self._out.append(memoryview(data))
            self._waiting += len(data)
            if len(self._out) == 1:
                self._push()

    def _push(self) -> None:
        while self._out:
            try:
                count = os.write(self._child.stdin, self._out[0])
            except BlockingIOError:
                self._loop.add_writer(self._child.stdin, self._push)
                return
            except OSError:
                self._deaf = True
                self._close_input()
                return
            self._waiting -= count
            self._out[0] = self._out[0][count:]
            if not self._out[0]:
                self._out.popleft()
        self._loop.remove_writer(self._child.stdin)

    def _close_input(self) -> None:
        if self._writable:
            self._writable = False
            self._loop.remove_writer(self._child.stdin)
            os.close(self._child.stdin)
            self._out.clear()
            self._waiting = 0
            self._news.set()

    # ── what it says ─────────────────────────────────────────────────────────────────────────────────────────────────

    def hold(self) -> None:
        """Takes nothing more from it, until `go_on`: then it waits, and not our memory fills."""
        if not self._held and not self._eof:
            self._held = True
            self._attend()

    def go_on(self) -> None:
        """Takes again what it says."""
        if self._held:
            self._held = False
            self._attend()

    def _attend(self) -> None:
        """Listens to what it says, or stops listening, whichever is right by now."""
        if self._eof:
            # The reader is gone, and the descriptor may be reused by now.
            return
        if self._held or self._busy or self._draining:
            self._loop.remove_reader(self._child.stdout)
        else:
            self._loop.add_reader(self._child.stdout, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._child.stdout, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._feed(data)
        else:
            self._eof = True
            self._loop.remove_reader(self._child.stdout)
            self._news.set()

    def _feed(self, data: bytes) -> None:
        self._left = self._lines(data)
        if not self._handed_on():
            self._busy = True
            self._attend()
            self._loop.call_soon(self._go_through)

    def _go_through(self) -> None:
        """Goes on with the lines that are left."""
        if not self._handed_on():
            self._loop.call_soon(self._go_through)
            return
        self._busy = False
        self._attend()
        self._news.set()

    def _handed_on(self) -> bool:
        """Hands on lines until none is left, or others are to have a turn; whether none is left."""
        stint = None
        while lines := list(islice(self._left, SLICE)):
            if len(lines) < SLICE:
                self._tell(lines)
                break
            stint = stint or Stint()
            self._tell(lines)
            if stint.is_over:
                return False
        return True

    def _lines(self, data: bytes) -> Iterator[PipeLine]:
        """The lines that *data* completes. Blank ones mean nothing over HTTP, and are left out."""
        for each in self._splitter.feed(data):
            if type(each) is Rest:
                self._rest = (self._rest + each)[-LOOKED_AT:]
                if each.endswith(b"\n") and self._long is not None:
                    long, self._long = self._long, None
                    yield PipeLine(long, self._rest[:-1])
            elif len(each) > self._limit:
                self._long, self._rest = each, b""
            elif not is_blank(each):
                yield PipeLine(each)

    def _tell(self, lines: Sequence[PipeLine]) -> None:
        # The child did nothing wrong, and others may depend on it: our own mistake must not end it.
        try:
            self._owner.heard(lines)
        except Exception as error:
            log_once(error, "the output of a server could not be handled")

    def _read_errors(self) -> None:
        data = _taken(self._child.stderr, ERRORS_CHUNK)
        if data is None:
            return
        if data:
            self._child.tail.add(data)
            self._errors(data)
        else:
            self._errors(b"")
            self._loop.remove_reader(self._child.stderr)

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def end(self, *, at_once: bool = False) -> None:
        """Ends it: its input, SIGTERM, SIGKILL; with *at_once* the first two together."""
        self._told_to_end = True
        await self._wind_up(at_once=at_once)
        await self.over()

    async def _wind_up(self, *, at_once: bool) -> None:
        self._close_input()
        if at_once or not await self._until(lambda: self._exited, CLOSED):
            self._child.signal(signal.SIGTERM)
        if not await self._until(lambda: self._exited, TERMINATED):
            self._child.signal(signal.SIGKILL)
            await self._until(lambda: self._exited, KILLED)

    async def _live(self) -> None:
        await self._until(lambda: self._eof or self._exited or self._deaf, None)
        # A child that no longer reads may still write.
        await self._until(lambda: self._eof or self._exited, CLOSED)
        await self._until(lambda: self._exited, LAST_WORDS)
        await self._until(lambda: self._eof, LAST_WORDS)
        with contained("the last words of a server could not be taken"):
            await self._drain()
        self.lost_for = "" if self._told_to_end else self._reason()
        with contained("the end of a server could not be dealt with"):
            self._owner.ended(self._reason(), self._child.tail.lines())
        await self._wind_up(at_once=False)
        self._loop.remove_reader(self._child.stdout)
        self._loop.remove_reader(self._child.stderr)
        self._child.end()

    def _reason(self) -> str:
        status = self._child.status
        if status is not None:
            return why(status)
        return "it closed its output" if self._eof else "it closed its input"

    async def _drain(self) -> None:
        """Takes what it had said by now, also a last line without an end."""
        self._draining = True
        self._attend()
        await self._until(lambda: not self._busy, None)
        for _ in range(_MOST_READS):
            if self._eof or not (data := _taken(self._child.stdout)):
                break
            self._feed(data)
            await self._until(lambda: not self._busy, None)
        self._eof = True
        last = self._splitter.end()
        if self._long is not None:
            self._tell([PipeLine(self._long, self._rest)])
        elif last is not None and not is_blank(last):
            self._tell([PipeLine(last)])
        for _ in range(_MOST_READS * CHUNK // ERRORS_CHUNK):
            if not (data := _taken(self._child.stderr, ERRORS_CHUNK)):
                break
            self._child.tail.add(data)
            self._errors(data)
            await asyncio.sleep(0)
        self._errors(b"")

    async def _until(self, holds: Callable[[], bool], seconds: float | None) -> bool:
        """Waits until something *holds*, *seconds* at most; whether it does."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not holds():
                    self._news.clear()
                    await self._news.wait()
        return holds()

    def _watch_exit(self) -> None:
        try:
            descriptor = os.pidfd_open(self._child.pid)
        except (AttributeError, OSError):
            self._look()
            return

        def exited() -> None:
            self._loop.remove_reader(descriptor)
            os.close(descriptor)
            self._exited = self._child.status is not None
            self._news.set()

        self._loop.add_reader(descriptor, exited)

    def _look(self) -> None:
        self._exited = self._child.status is not None
        if self._exited:
            self._news.set()
        else:
            self._loop.call_later(_LOOK, self._look)


def _taken(descriptor: int, size: int = CHUNK) -> bytes | None:
    """What has come, *size* bytes of it at most; empty at the end, None if nothing has."""
    try:
        return os.read(descriptor, size)
    except BlockingIOError:
        return None
    except OSError:
        return b""
