"""The journal of one run: its end, and what is appended to it."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from time import time_ns
from typing import Final

from assay.console.servers import ConsoleSource
from assay.records import run_files
from assay.records.record import Event, Record, read_line
from assay.records.run_files import JournalRun

SETTLED: Final = 10**9
"""Nanoseconds after which another change of a directory has a different time."""

_CHUNK: Final = 256 << 10
"""Bytes to read at once. All journals are read side by side, in the order of their records."""

_LONGEST_LINE: Final = 32 << 20
"""Maximal bytes of a line. A frame of 4 MiB, the longest in a record, has up to 24 MiB as JSON."""

_MOST_HEAD: Final = 64 << 10
"""Bytes at the beginning of a file that are searched for the servers of its run."""


class RunTail:
    """The end of the journal of one run, and what is appended to it. Links are not followed."""

    def __init__(self, run: JournalRun, past: int) -> None:
        """Open the last file of *run*, at most *past* bytes before its end. Raises `OSError`."""
        self.source = ConsoleSource(("run", run.name), "journal", run_files.folder_name(run))
        self._path = run.paths[-1]
        self._descriptor = _opened(self._path)
        size = os.fstat(self._descriptor).st_size
        begin = max(0, size - past)
        self._head = _head(os.read(self._descriptor, _MOST_HEAD)) if begin else []
        """What the file says about its servers, if its beginning is not read."""
        os.lseek(self._descriptor, begin, os.SEEK_SET)
        self._rest = b""
        self._skips = begin > 0
        """Whether the first line is cut off."""

    @property
    def grows(self) -> bool:
        """Whether a process still writes it: a file that was created just now may not be locked yet."""
        last = run_files.files_of(self._path)[-1]
        with suppress(OSError):
            return run_files.is_written(last) or time_ns() - os.stat(last).st_mtime_ns < SETTLED
        return False

    def arrived(self) -> Iterator[Record | Event]:
        """Yield the records and events that were written since the last call."""
        head, self._head = self._head, []
        yield from head
        while True:
            while data := os.read(self._descriptor, _CHUNK):
                yield from self._items(data)
            if not self._turn():
                return

    def _items(self, data: bytes) -> Iterator[Record | Event]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _LONGEST_LINE:
            self._rest, self._skips = b"", True
        for line in lines:
            if self._skips:
                self._skips = False
                continue
            item = read_line(line)
            if item is not None:
                yield item

    def _turn(self) -> bool:
        """Continue with the next file of the run, if there is one."""
        number = run_files.number_of(self._path)
        later = next((each for each in run_files.files_of(self._path) if run_files.number_of(each) > number), None)
        with suppress(OSError):
            if later is not None:
                descriptor = _opened(later)
                os.close(self._descriptor)
                self._descriptor, self._path, self._rest = descriptor, later, b""
                return True
        return False

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def _head(data: bytes) -> list[Event]:
    """Return the events that a file begins with."""
    found = []
    for line in data.split(b"\n"):
        item = read_line(line)
        if not isinstance(item, Event):
            break
        found.append(item)
    return found


def _opened(path: str) -> int:
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path}: not a regular file")
    return descriptor
