"""
Standard input and output: one frame a line, requests answered one after the other, in order.

The only code that waits for them. On SIGINT or SIGTERM the request in hand is finished and answered, then it is over.
"""

import os
import select
import signal
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Final

from assay.ladder.framing import Splitter, write

_CHUNK: Final = 1 << 16
"""Bytes read at once: what a pipe holds on Linux."""

_STOPPING: Final = (signal.SIGINT, signal.SIGTERM)


class Stopped(Exception):  # noqa: N818 - not an error: somebody wants us to end
    """A signal has come."""


class StandardStreams:
    """Reads frames from one descriptor and writes answers to another, until the end of the stream or a signal."""

    def __init__(self, hear: Callable[[bytes], Iterable[bytes]], *, limit: int, source: int = 0, sink: int = 1) -> None:
        self._hear = hear
        self._splitter = Splitter(limit)
        self._source = source
        self._sink = sink
        self._stopping = False

    def serve(self) -> None:
        """Returns when the input ends, when nobody reads the output any more, or after a signal."""
        # A signal that comes just before we wait must not be missed: the interpreter writes it into this pipe.
        wake, waker = os.pipe()
        os.set_blocking(waker, False)
        before = [(each, signal.signal(each, self._stop)) for each in _STOPPING]
        previous = signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        try:
            self._loop(wake)
        except (Stopped, BrokenPipeError):
            pass
        finally:
            signal.set_wakeup_fd(previous)
            for each, handler in before:
                signal.signal(each, handler)
            os.close(wake)
            os.close(waker)

    def _loop(self, wake: int) -> None:
        while True:
            ready, _, _ = select.select([self._source, wake], [], [])
            if wake in ready or self._stopping:
                return
            chunk = os.read(self._source, _CHUNK)
            for frame in self._splitter.feed(chunk):
                self._answer(frame)
            if not chunk:
                last = self._splitter.end()
                if last is not None:
                    self._answer(last)
                return

    def _answer(self, frame: bytes) -> None:
        for answer in self._hear(frame):
            self._write(write(answer))
        if self._stopping:
            raise Stopped

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._sink, rest) :]

    def _stop(self, _: int, __: FrameType | None) -> None:
        self._stopping = True
