"""
The stderr of a guard over HTTP, written by a thread, so that a slow reader does not block requests; and the first line
of every guard.

Bytes beyond the limit of the buffer are dropped, and counted.
"""

import os
import select
import threading
from collections import deque
from contextlib import suppress
from typing import Final, Self

from assay.edges.standard_streams import for_stderr
from assay.model.printable import plain

MOST: Final = 1 << 20
"""Maximal bytes in the buffer."""

LAST_LINES: Final = 1.0
"""Seconds to wait at exit until stderr is read."""


class Errors:
    """The destination of our lines and of the servers' stderr. Enter it before the first line."""

    def __init__(self) -> None:
        self._waiting: deque[bytes] = deque()
        self._size = self._lost = 0
        self._over = False
        self._news = threading.Condition()
        # The thread may block in a write for ever, and must not prevent the exit.
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._lost:
            self.say(f"assay: {self._lost:,} bytes for stderr were dropped, because it was not read in time")
        with self._news:
            self._over = True
            self._news.notify()
        self._thread.join(LAST_LINES)

    def say(self, line: str) -> None:
        """Write one line without control characters."""
        self.write(for_stderr(plain(line)) + b"\n")

    def write(self, data: bytes) -> None:
        """Queue *data* for writing."""
        with self._news:
            if self._size + len(data) > MOST:
                self._lost += len(data)
                return
            self._waiting.append(data)
            self._size += len(data)
            self._news.notify()

    def _run(self) -> None:
        while data := self._next():
            with suppress(OSError):
                self._write(data)
            with self._news:
                self._size -= len(data)

    def _next(self) -> bytes:
        """Return the next bytes to write; empty at the end."""
        with self._news:
            self._news.wait_for(lambda: self._waiting or self._over)
            data = b"".join(self._waiting)
            self._waiting.clear()
            return data

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(2, rest) :]
            except BlockingIOError:
                select.select([], [2], [], LAST_LINES)


WAITING: Final = "assay: waiting for an MCP client on standard input; a client starts this command itself"
"""The line for a person who started the guard in a terminal, where nothing else happens."""


def hello(name: str, mode: str, journal: str | None, url: str = "") -> str:
    """
    Return the first line of a guard of the server *name*.

    *journal* is its file, if there is one; *url* is the address of the guard over HTTP. It is last in the line, so that
    a terminal links it correctly.
    """
    place = f"journal {os.path.dirname(os.path.abspath(journal))}" if journal is not None else "no journal"
    return f"assay: guarding {name} ({mode}), {place}{f', at {url}' if url else ''}"
