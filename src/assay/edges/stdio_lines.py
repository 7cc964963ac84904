"""
Serve standard input and output: one frame a line, requests answered in order.

On SIGINT or SIGTERM the current request is finished and answered, then the service ends; after a second signal, or if
that takes too long, it ends at once.
"""

import os
import select
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import FrameType
from typing import Final, Self

from assay.judge.framing import Splitter, write

_CHUNK: Final = 1 << 16
"""Bytes to read or write at once: the size of a pipe on Linux."""

GRACE: Final = 20.0
"""Maximal seconds from a signal to the end: a backend has 15, a client that does not read has the rest."""

WAITED: Final = 1.0
"""Maximal seconds before pending records are written."""

_STOPPING: Final = (signal.SIGINT, signal.SIGTERM)


class Ended(BaseException):
    """A second signal came: stop at once. Not an `Exception`, so that a tool does not catch it."""


class StandardStreams:
    """
    Reads frames from one descriptor and writes responses to another, until the end of the stream or a signal.

    Frames that arrive together are answered together, in one write: a system call takes about as long as a verdict.
    Pending responses are written before a frame for which *may_take_long* is true.
    *before_writing* is also called within a second while *waiting* is true, and after a signal. *failed* returns the
    responses to a frame for which *hear* raised: an internal error does not end the process.
    """

    def __init__(
        self,
        hear: Callable[[bytes], Iterable[bytes]],
        *,
        limit: int,
        may_take_long: Callable[[bytes], bool] = lambda _: True,
        before_writing: Callable[[], None] = lambda: None,
        waiting: Callable[[], int] = lambda: 0,
        failed: Callable[[bytes, Exception], Iterable[bytes]] = lambda _, __: (),
    ) -> None:
        self.hear = hear
        """Returns the responses to a frame."""
        self._may_take_long = may_take_long
        self._before_writing = before_writing
        self._waiting = waiting
        self._failed = failed
        self._splitter = Splitter(limit)
        self._source, self._sink = 0, 1
        self._due: list[bytes] = []
        self._due_bytes = 0
        self._stopping = False
        self._serving = False

    def __enter__(self) -> Self:
        """Handle signals from now on: they end the service, not the process. Enter before the server is announced."""
        # The interpreter writes signals into this pipe, so that one just before the wait is not missed.
        self._wake, self._waker = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._waker, False)
        self._before_wakeup = signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        for each in (*_STOPPING, signal.SIGALRM):
            signal.signal(each, self._stop)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        # The service has ended: a further signal could only change the exit status.
        for each in (*_STOPPING, signal.SIGALRM):
            signal.signal(each, signal.SIG_IGN)
        signal.set_wakeup_fd(self._before_wakeup)
        os.close(self._wake)
        os.close(self._waker)

    def serve(self) -> None:
        """Serve until the input ends, the reader of the output is gone, or a signal comes."""
        with suppress(Ended, BrokenPipeError):
            self._serving = True
            try:
                self._loop()
                self._flush()
            finally:
                self._serving = False

    def _loop(self) -> None:
        watched = [self._source, self._wake]
        while not self._is_stopping():
            ready, _, _ = select.select(watched, [], [], WAITED if self._waiting() else None)
            if self._wake in ready:
                with suppress(BlockingIOError):
                    os.read(self._wake, _CHUNK)
            if self._source not in ready:
                self._before_writing()
                continue
            if self._is_stopping():
                return
            chunk = os.read(self._source, _CHUNK)
            for frame in self._splitter.feed(chunk):
                self._answer(frame)
                if self._is_stopping():
                    return
            if not chunk:
                last = self._splitter.end()
                if last is not None:
                    self._answer(last)
                return
            self._flush()

    def _answer(self, frame: bytes) -> None:
        if self._due and self._may_take_long(frame):
            self._flush()
        try:
            answers = self.hear(frame)
        except Exception as error:
            answers = self._failed(frame, error)
        for answer in answers:
            self._due.append(write(answer))
            self._due_bytes += len(answer)
        if self._due_bytes >= _CHUNK:
            self._flush()

    def _flush(self) -> None:
        """Write pending responses, after their records."""
        self._before_writing()
        rest = memoryview(b"".join(self._due))
        self._due.clear()
        self._due_bytes = 0
        while rest:
            try:
                rest = rest[os.write(self._sink, rest) :]
            except BlockingIOError:
                # The parent made the pipe non-blocking: wait until there is room.
                select.select([], [self._sink], [])

    def _is_stopping(self) -> bool:
        return self._stopping

    def _stop(self, _: int, __: FrameType | None) -> None:
        if self._stopping:
            if self._serving:
                raise Ended
            return
        self._stopping = True
        signal.setitimer(signal.ITIMER_REAL, GRACE)
