"""
Non-blocking pipes: bytes that cannot be written yet are kept, and the source that would add to them is not read until
they are written. One thread, one loop.
"""

import os
import select
import signal
import stat
import time
from collections import deque
from collections.abc import Callable, Sequence, ValuesView
from types import FrameType
from typing import Any, Final, Protocol, Self

from assay.edges.hangup import is_heeded

CHUNK: Final = 1 << 16
"""Bytes to read at once: the size of a pipe on Linux."""

FULL: Final = 1 << 20
"""Bytes kept for one pipe, from which on its sources are not read."""

_NOTHING: Final = -1
"""The events of an outlet that is not polled at all; 0 would still report that it is broken."""

_HANGING_UP: Final = getattr(select, "POLLRDHUP", 0)
"""The event of a socket that was closed at its other end; for a pipe it is reported without asking."""

_STOPPING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_LONGEST_WAIT: Final = 3600.0
"""Maximal seconds for `poll`, which accepts at most some weeks."""

_NO_REST: Final = memoryview(b"")
_POLLIN: Final = select.POLLIN


class Outlet:
    """
    The writing end of a pipe, with a buffer.

    Our own pipe or socket is set to non-blocking. With *shared*, other processes may use it and would be affected.
    Then, and for terminals and files, bytes are written in small pieces, and only when there is room.
    """

    __slots__ = (
        "_before", "_blocking", "_due", "_marks", "_most", "_own", "_piece", "_rest", "_taken",
        "broken", "closed", "descriptor", "idle", "lost", "size", "watched", "whole",
    )  # fmt: skip

    def __init__(
        self,
        descriptor: int,
        *,
        shared: bool = False,
        most: int = 0,
        heeded: bool = False,
        before: Callable[[], None] | None = None,
    ) -> None:
        """
        With *most*, bytes beyond this limit of the buffer are dropped, and counted as lost.

        *before* is called before anything is written.

        With *heeded*, a closed reader is noticed at once; otherwise with the next write.
        """
        self.descriptor = descriptor
        self.broken = False
        """Whether the reader is gone."""
        self.closed = False
        self.idle = 0 if heeded else _NOTHING
        """The events to poll for while the buffer is empty."""
        self.watched = _NOTHING
        """The events that the loop polls for."""
        self.whole = True
        """Whether the last line is complete."""
        self.lost = 0
        self._most = most
        self._before = before
        self._due: list[bytes] = []
        self._rest = _NO_REST
        self.size = 0
        """Bytes in the buffer."""
        self._taken = self._own = 0
        self._marks: deque[tuple[int, int]] = deque()
        """The end position and length of each of our own replies."""
        self._blocking = os.get_blocking(descriptor)
        self._piece = _piece(descriptor, shared=shared)
        if not self._piece:
            os.set_blocking(descriptor, False)

    @property
    def waiting(self) -> bool:
        """Whether the buffer is not empty."""
        return self.size > 0

    @property
    def taken(self) -> int:
        """The number of bytes written so far."""
        return self._taken

    @property
    def full(self) -> bool:
        """Whether the buffer is full, so that its sources should not be read."""
        return self.size >= FULL

    @property
    def clogged(self) -> bool:
        """Whether our own replies fill the buffer: the peer that causes them is not read meanwhile."""
        return self._own >= FULL

    def write(self, data: bytes, ending: bytes = b"") -> None:
        """Write *data* and its *ending*, as soon as there is room."""
        size = len(data) + len(ending)
        if self.broken or not size:
            return
        if self._most and self.size + size > self._most:
            self.lost += size
            return
        self._due.append(data)
        if ending:
            self._due.append(ending)
            self.whole = True
        else:
            self.whole = data.endswith(b"\n")
        self.size += size

    def say(self, line: bytes) -> None:
        """Write a complete line of our own, separate from an incomplete line before it."""
        self.end_line()
        self.write(line, b"\n")

    def end_line(self) -> None:
        """Complete the current line."""
        if not self.whole:
            self.write(b"\n")

    def reply(self, line: bytes) -> None:
        """Write a reply to the peer that reads this outlet."""
        self.say(line)
        if not self.broken:
            self._own += len(line) + 1
            self._marks.append((self._taken + self.size, len(line) + 1))

    def push(self, *, room: bool = False) -> None:
        """Write as much as possible; with *room* there is space for some."""
        if self._before is not None and self.size:
            self._before()
        while self.size and (room or not self._piece):
            rest: bytes | memoryview = self._rest
            if not rest:
                rest = self._due[0] if len(self._due) == 1 else b"".join(self._due)
                self._due.clear()
            try:
                taken = os.write(self.descriptor, rest[: self._piece] if self._piece else rest)
            except BlockingIOError:
                taken = 0
            except OSError:
                self.give_up()
                return
            room = False
            self.size -= taken
            self._taken += taken
            if self._marks:
                self._forget_marks()
            if taken < len(rest):
                self._rest = memoryview(rest)[taken:]
                return
            self._rest = _NO_REST

    def finish(self, seconds: float) -> None:
        """Write the rest of the buffer, for at most *seconds*."""
        deadline = time.monotonic() + seconds
        poll = select.poll()
        poll.register(self.descriptor, select.POLLOUT)
        while self.waiting and (left := deadline - time.monotonic()) > 0:
            if poll.poll(int(left * 1000) + 1):
                self.push(room=True)

    def give_up(self) -> None:
        """Drop the buffer: the reader is gone, or should get nothing more."""
        self.broken = True
        self._due.clear()
        self._marks.clear()
        self._rest = _NO_REST
        self.size = self._own = 0

    def close(self) -> None:
        """Close the descriptor, so that the reader sees the end."""
        if not self.closed:
            self.closed = True
            self.give_up()
            os.close(self.descriptor)

    def restore(self) -> None:
        """Restore the original mode of the descriptor."""
        if not self.closed and not self._piece:
            os.set_blocking(self.descriptor, self._blocking)

    def _forget_marks(self) -> None:
        while self._marks and self._marks[0][0] <= self._taken:
            self._own -= self._marks.popleft()[1]


def _piece(descriptor: int, *, shared: bool) -> int:
    """Return how many bytes can be written without blocking if there is room; 0 for a non-blocking descriptor."""
    kind = os.fstat(descriptor).st_mode
    if stat.S_ISREG(kind):
        return CHUNK
    return select.PIPE_BUF if shared or not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)) else 0


class Buffer(Protocol):
    """A buffer for bytes of a peer."""

    @property
    def full(self) -> bool:
        """Whether the buffer is full, so that its sources should not be read."""


class Inlet:
    """The reading end of a pipe and its handler; an empty chunk is its end."""

    __slots__ = ("descriptor", "ended", "feeds", "hung_up", "take", "tells", "watched")

    def __init__(
        self,
        descriptor: int,
        take: Callable[[bytes], None],
        *,
        feeds: Buffer | None = None,
        tells: Outlet | None = None,
    ) -> None:
        """
        Bytes go to *feeds*, and our replies to *tells*: reading stops while one of them is full.

        The second counts only for our replies: a server that does not read may be waiting until its own output is read.
        """
        self.descriptor = descriptor
        self.take = take
        self.feeds = feeds
        self.tells = tells
        self.ended = False
        self.hung_up = False
        """Whether the writer is gone; noticed even while reading is paused."""
        self.watched = _NOTHING

    @property
    def ready(self) -> bool:
        """Whether it may be read."""
        if self.ended or (self.feeds is not None and self.feeds.full):
            return False
        return self.tells is None or not self.tells.clogged

    def read(self) -> None:
        """Read the available bytes."""
        try:
            data = os.read(self.descriptor, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.ended = True
        self.take(data)


class Loop:
    """Polls all pipes. Each descriptor belongs to one of them."""

    def __init__(self, inlets: Sequence[Inlet], outlets: Sequence[Outlet]) -> None:
        self._inlets: dict[int, Inlet] = {}
        self._outlets: dict[int, Outlet] = {}
        self._poll = select.poll()
        self._settled = False
        """Whether the polled events are those of empty buffers."""
        self.add(*inlets, *outlets)

    def add(self, *pipes: Inlet | Outlet) -> None:
        """Poll these, too."""
        self._settled = False
        for pipe in pipes:
            if isinstance(pipe, Inlet):
                self._inlets[pipe.descriptor] = pipe
            else:
                self._outlets[pipe.descriptor] = pipe

    def drop(self, *pipes: Inlet | Outlet) -> None:
        """Stop polling these. Call it before their descriptors can be reused."""
        self._settled = False
        for pipe in pipes:
            if pipe.watched != _NOTHING:
                self._look_out(pipe, _NOTHING)
            of_its_kind: dict[int, Any] = self._inlets if isinstance(pipe, Inlet) else self._outlets
            of_its_kind.pop(pipe.descriptor, None)

    def wait(self, seconds: float | None, *, calm: bool = False) -> bool:
        """
        Wait for an event, then read and write what is possible; return whether there was an event.

        *calm* means that nothing has ended and that no outlet has a buffer, as nearly always. Then the polled events
        stay the same.
        """
        if not (calm and self._settled):
            self._reconsider()
        if seconds is not None:
            # Milliseconds, rounded up: an early wake-up would find nothing to do.
            seconds = int(seconds * 1000) + 1 if 0.0 < seconds < _LONGEST_WAIT else _whole_wait(seconds)
        happened = self._poll.poll(seconds)
        if len(happened) == 1:
            source = self._inlets.get(happened[0][0])
            if source is not None and source.watched == _POLLIN:
                source.read()
                if source.ended:
                    self._settled = False
                return True
        else:
            # Buffered bytes are recorded and may be written; bytes read now are not recorded yet.
            happened.sort(key=lambda each: each[0] in self._inlets)
        for descriptor, events in happened:
            source = self._inlets.get(descriptor)
            if source is not None:
                if source.watched == _POLLIN:
                    source.read()
                else:
                    source.hung_up = True
                self._settled = self._settled and not (source.ended or source.hung_up)
                continue
            sink = self._outlets[descriptor]
            if events & select.POLLOUT:
                sink.push(room=True)
            else:
                sink.give_up()
                self._settled = False
        return bool(happened)

    def _reconsider(self) -> None:
        """Update the polled events."""
        for inlet in self._inlets.values():
            wanted = select.POLLIN if inlet.ready else _NOTHING if inlet.ended or inlet.hung_up else _HANGING_UP
            if inlet.watched != wanted:
                self._look_out(inlet, wanted)
        self._settled = True
        for outlet in self._outlets.values():
            if outlet.size:
                self._settled = False
            wanted = select.POLLOUT if outlet.size else _NOTHING if outlet.broken else outlet.idle
            if outlet.watched != wanted:
                self._look_out(outlet, wanted)

    @property
    def outlets(self) -> ValuesView[Outlet]:
        """All that is written to; the view changes with `add` and `drop`."""
        return self._outlets.values()

    def push(self) -> None:
        """Write the buffers: most of the time there is room, and no poll is needed."""
        for outlet in self._outlets.values():
            if outlet.size:
                outlet.push()

    def has_more(self, inlet: Inlet) -> bool:
        """Whether *inlet* has bytes to read now."""
        if inlet.ended:
            return False
        poll = select.poll()
        poll.register(inlet.descriptor, select.POLLIN)
        return bool(poll.poll(0))

    def _look_out(self, pipe: Inlet | Outlet, wanted: int) -> None:
        if wanted == _NOTHING:
            self._poll.unregister(pipe.descriptor)
        else:
            self._poll.register(pipe.descriptor, wanted)
        pipe.watched = wanted


def _whole_wait(seconds: float) -> int:
    """Return milliseconds for `poll`, at least 1 and at most an hour."""
    return int(min(max(0.0, seconds), _LONGEST_WAIT) * 1000) + 1


class Signals:
    """
    Within this context, signals that would end the process only set a flag, and the end of a child is noticed.

    Enter it before anything exists that must not be left behind.
    """

    def __init__(self) -> None:
        self.stopping = False
        """Whether a signal asked to stop."""
        self.child_ended = False
        """Whether a child has ended."""
        self._before: list[tuple[int, Any]] = []

    def __enter__(self) -> Self:
        # The interpreter writes signals into this pipe, so that one just before the wait is not missed.
        self._wake, self._waker = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._waker, False)
        self._before_wakeup = signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        # A signal that was ignored at the start, as with nohup, stays ignored.
        wanted = [each for each in _STOPPING if signal.getsignal(each) is not signal.SIG_IGN]
        if is_heeded():
            wanted.remove(signal.SIGHUP)
        self._before = [(each, signal.signal(each, self._came)) for each in (*wanted, signal.SIGCHLD)]
        return self

    def __exit__(self, *_: object) -> None:
        for each, handler in self._before:
            signal.signal(each, handler)
        signal.set_wakeup_fd(self._before_wakeup)
        os.close(self._wake)
        os.close(self._waker)

    def inlet(self) -> Inlet:
        """The inlet that wakes the loop for a signal."""
        return Inlet(self._wake, lambda _: None)

    def _came(self, sign: int, _: FrameType | None) -> None:
        if sign == signal.SIGCHLD:
            self.child_ended = True
        else:
            self.stopping = True
