"""
Pipes that never make anybody wait: bytes that cannot be written yet are kept, and whoever would add to them is not read
from until they are gone. One thread, one loop.
"""

import os
import select
import signal
import stat
import time
from collections import deque
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, Final, Protocol, Self

from assay.edges.hangup import is_heeded

CHUNK: Final = 1 << 16
"""Bytes read at once: what a pipe holds on Linux."""

FULL: Final = 1 << 20
"""Bytes kept for one pipe, from which on nothing is read that could add to them."""

NOBODY: Final = -1
"""The descriptor of an outlet behind which nobody is yet: what it is given is kept."""

_NOTHING: Final = -1
"""What is looked out for where nobody is to be asked at all; 0 asks for nothing but whether it is broken."""

_HANGING_UP: Final = getattr(select, "POLLRDHUP", 0)
"""What tells that a socket has been closed at its other end; of a pipe we are told without asking."""

_STOPPING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_LONGEST_WAIT: Final = 3600.0
"""Seconds; `poll` takes no more than some weeks."""

_NO_REST: Final = memoryview(b"")


class Outlet:
    """
    Where bytes go.

    A pipe or socket of our own does not block. With *shared*, others may have it too, and would notice; then, and for
    terminals and files, bytes are written a little at a time, and only when there is room for them.
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
        With *most*, what comes while so many bytes wait is dropped, and counted as lost.

        *before* is called before anything is written.

        With *heeded* it is noticed at once that nobody reads any more; otherwise when there is something to be written.
        """
        self.descriptor = descriptor
        self.broken = False
        """Whether nobody reads it any more."""
        self.closed = False
        self.idle = 0 if heeded else _NOTHING
        """What the loop looks out for while there is nothing to be written."""
        self.watched = _NOTHING
        """What the loop looks out for."""
        self.whole = True
        """Whether all lines that were begun have an end."""
        self.lost = 0
        self._most = most
        self._before = before
        self._due: list[bytes] = []
        self._rest = _NO_REST
        self.size = 0
        """Bytes that wait."""
        self._taken = self._own = 0
        self._marks: deque[tuple[int, int]] = deque()
        """Where each of our replies ends, counted from the beginning, and how long it is."""
        self._blocking = descriptor == NOBODY or os.get_blocking(descriptor)
        self._piece = CHUNK if descriptor == NOBODY else _piece(descriptor, shared=shared)
        if not self._piece:
            os.set_blocking(descriptor, False)

    @property
    def waiting(self) -> bool:
        """Whether there is something to be written."""
        return self.size > 0

    @property
    def taken(self) -> int:
        """Bytes that were written so far."""
        return self._taken

    @property
    def full(self) -> bool:
        """Whether so much waits that no more should be added."""
        return self.size >= FULL

    @property
    def clogged(self) -> bool:
        """The same of what we reply: whoever brings us to do so should not be heard meanwhile."""
        return self._own >= FULL

    def write(self, data: bytes, ending: bytes = b"") -> None:
        """Sends *data* and its *ending*, as soon as there is room."""
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
        """Sends a whole line of our own, apart from what somebody else may have begun."""
        self.end_line()
        self.write(line, b"\n")

    def end_line(self) -> None:
        """What follows is on a line of its own."""
        if not self.whole:
            self.write(b"\n")

    def reply(self, line: bytes) -> None:
        """The same, to something that came from the very peer which reads it."""
        self.say(line)
        if not self.broken:
            self._own += len(line) + 1
            self._marks.append((self._taken + self.size, len(line) + 1))

    def push(self, *, room: bool = False) -> None:
        """Writes as much as goes; *room* says that there is some."""
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

    def pour(self, other: "Outlet") -> None:
        """Hands over to *other* what waits here."""
        waiting, whole = [bytes(self._rest), *self._due], self.whole
        self._rest = _NO_REST
        self._due, self.size = [], 0
        self._marks.clear()
        self._own = 0
        for each in waiting:
            other.write(each)
        other.whole = whole

    def finish(self, seconds: float) -> None:
        """Writes what is left, for which *seconds* are waited at most."""
        deadline = time.monotonic() + seconds
        poll = select.poll()
        poll.register(self.descriptor, select.POLLOUT)
        while self.waiting and (left := deadline - time.monotonic()) > 0:
            if poll.poll(int(left * 1000) + 1):
                self.push(room=True)

    def give_up(self) -> None:
        """Nobody reads it any more, or nobody is to: what waits is dropped."""
        self.broken = True
        self._due.clear()
        self._marks.clear()
        self._rest = _NO_REST
        self.size = self._own = 0

    def close(self) -> None:
        """Whoever reads it is told that nothing more comes."""
        if not self.closed:
            self.closed = True
            self.give_up()
            if self.descriptor != NOBODY:
                os.close(self.descriptor)

    def restore(self) -> None:
        """Leaves the descriptor as it was found."""
        if not self.closed and not self._piece:
            os.set_blocking(self.descriptor, self._blocking)

    def _forget_marks(self) -> None:
        while self._marks and self._marks[0][0] <= self._taken:
            self._own -= self._marks.popleft()[1]


def _piece(descriptor: int, *, shared: bool) -> int:
    """How many bytes can be written without waiting where there is room at all; 0 where nothing is ever waited for."""
    kind = os.fstat(descriptor).st_mode
    if stat.S_ISREG(kind):
        return CHUNK
    return select.PIPE_BUF if shared or not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)) else 0


class Bounded(Protocol):
    """Where bytes of a peer are kept until somebody takes them."""

    @property
    def full(self) -> bool:
        """Whether so much waits that no more should be added."""


class Inlet:
    """Where bytes come from, and what becomes of them; no bytes are its end."""

    __slots__ = ("descriptor", "ended", "feeds", "hung_up", "take", "tells", "watched")

    def __init__(
        self,
        descriptor: int,
        take: Callable[[bytes], None],
        *,
        feeds: Bounded | None = None,
        tells: Outlet | None = None,
    ) -> None:
        """
        What comes goes to *feeds*, and our replies to it go to *tells*: both bound what is read.

        The second by our replies only: if a server were not read from because it does not read, it could be waiting
        for us to read first.
        """
        self.descriptor = descriptor
        self.take = take
        self.feeds = feeds
        self.tells = tells
        self.ended = False
        self.hung_up = False
        """Whether nobody writes any more: noticed also while it may not be read from."""
        self.watched = _NOTHING

    @property
    def ready(self) -> bool:
        """Whether it may be read from."""
        if self.ended or (self.feeds is not None and self.feeds.full):
            return False
        return self.tells is None or not self.tells.clogged

    def read(self) -> None:
        """Takes what is there."""
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
    """Waits for all pipes at once. Each descriptor is that of one of them."""

    def __init__(self, inlets: Sequence[Inlet], outlets: Sequence[Outlet]) -> None:
        self._inlets: dict[int, Inlet] = {}
        self._outlets: dict[int, Outlet] = {}
        self._poll = select.poll()
        self._settled = False
        """Whether all that is looked out for is what it was when nothing waited to be written."""
        self.add(*inlets, *outlets)

    def add(self, *pipes: Inlet | Outlet) -> None:
        """Looks out for these, too."""
        self._settled = False
        for pipe in pipes:
            if isinstance(pipe, Inlet):
                self._inlets[pipe.descriptor] = pipe
            else:
                self._outlets[pipe.descriptor] = pipe

    def drop(self, *pipes: Inlet | Outlet) -> None:
        """Looks out for these no more. To be called before others can get their descriptors."""
        self._settled = False
        for pipe in pipes:
            if pipe.watched != _NOTHING:
                self._look_out(pipe, _NOTHING)
            of_its_kind: dict[int, Any] = self._inlets if isinstance(pipe, Inlet) else self._outlets
            of_its_kind.pop(pipe.descriptor, None)

    def wait(self, seconds: float | None, *, calm: bool = False) -> bool:
        """
        Reads what there is, and writes what was waiting, as soon as there is anything; whether there was.

        *calm* says that nothing has ended, and that nothing waits but in the outlets of this loop. Then there is
        nothing to reconsider as long as these are empty, as they nearly always are.
        """
        if not (calm and self._settled) or self._has_waiting():
            self._reconsider()
        patience = None if seconds is None else int(min(max(0.0, seconds), _LONGEST_WAIT) * 1000) + 1
        happened = self._poll.poll(patience)
        if len(happened) > 1:
            # What waits is recorded and may go; what is read now is not yet.
            happened.sort(key=lambda each: each[0] in self._inlets)
        for descriptor, events in happened:
            source = self._inlets.get(descriptor)
            if source is not None:
                if source.watched == select.POLLIN:
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

    def _has_waiting(self) -> bool:
        for outlet in self._outlets.values():  # noqa: SIM110 - `any` takes three times as long, for every message
            if outlet.size:
                return True
        return False

    def _reconsider(self) -> None:
        """Looks out for what there is to look out for by now."""
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

    def push(self) -> None:
        """Writes what has come to be due: most of the time there is room, and nobody has to be asked."""
        for outlet in self._outlets.values():
            if outlet.size:
                outlet.push()

    def has_more(self, inlet: Inlet) -> bool:
        """Whether *inlet* has something to read by now."""
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


class Signals:
    """
    While it is entered, signals that would end this process only ask it to stop, and a child that ends is noticed.

    To be entered before there is anything that must not be left behind.
    """

    def __init__(self) -> None:
        self.stopping = False
        """Whether we were asked to stop."""
        self.child_ended = False
        """Whether a child has ended."""
        self._before: list[tuple[int, Any]] = []

    def __enter__(self) -> Self:
        # What comes just before we wait must not be missed: the interpreter writes it into this pipe.
        self._wake, self._waker = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._waker, False)
        self._before_wakeup = signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        # Whoever started us may want some of them to be ignored, as nohup does.
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
        """Where a loop is told that one has come."""
        return Inlet(self._wake, lambda _: None)

    def _came(self, sign: int, _: FrameType | None) -> None:
        if sign == signal.SIGCHLD:
            self.child_ended = True
        else:
            self.stopping = True
