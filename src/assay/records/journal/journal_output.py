"""
The files that a journal is written to: one after the other, each up to a size, and reopened when that is asked for.

Never in the way of the traffic: what cannot be written is counted, and lost. Knows nothing of what a line says.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from assay.records.journal import run_files

Log = Callable[[str], None]

FILE_BYTES: Final = 64 << 20
"""Bytes of a file, after which a run goes on in a further one."""

TOTAL_BYTES: Final = 1 << 30
"""Bytes of all files in the directory."""


class JournalOutput:
    """The files of one run. One thread writes them."""

    __slots__ = (
        "_closed", "_descriptor", "_file_bytes", "_log", "_most", "_size", "_total_bytes", "failures", "head", "path",
        "reopening", "written",
    )  # fmt: skip

    path: str
    """The file that is written to."""
    written: int
    """Bytes of whole lines in the files."""
    failures: int
    """Lines that could not be written."""
    reopening: bool
    """Whether the file is to be opened anew before the next write."""
    head: bytes
    """Lines that every file begins with."""

    def __init__(
        self, descriptor: int, path: str, log: Log, file_bytes: int = FILE_BYTES, total_bytes: int = TOTAL_BYTES
    ) -> None:
        self.path = path
        self.written = self.failures = self._size = 0
        self._descriptor = descriptor
        self._log = log
        self._most = self._file_bytes = file_bytes
        self._total_bytes = total_bytes
        self._closed = self.reopening = False
        self.head = b""

    @classmethod
    def open(cls, folder: str, keep: int, log: Log, file_bytes: int, total_bytes: int) -> "JournalOutput | None":
        """Create a file below *folder*, and keep the files of *keep* runs; None, and a line to *log*, on failure."""
        try:
            descriptor, path = run_files.create(folder)
        except OSError as error:
            log(f"no journal: {error.filename or folder}: {error.strerror}")
            return None
        try:
            run_files.point_at(path)
            run_files.prune(path, keep)
            run_files.bound(path, file_bytes, total_bytes)
        except OSError as error:
            log(f"journal: {error.filename or folder}: {error.strerror}")
        return cls(descriptor, path, log, file_bytes, total_bytes)

    def write(self, lines: bytes) -> None:
        """
        Append whole *lines* in one write.

        If that fails the journal ends there: one line goes to the log, and later lines are counted.
        """
        if self._size + len(lines) > self._most or self.reopening:
            self.turn(len(lines))
        taken = 0
        try:
            taken = os.write(self._descriptor, lines)
            if taken != len(lines):
                # Most likely the disk is full, and the second try says so.
                taken += os.write(self._descriptor, lines[taken:])
        except OSError as error:
            self._stop(lines, taken, error)
        else:
            if taken == len(lines):
                self.written += taken
                self._size += taken
            else:
                self._stop(lines, taken, None)

    def close(self) -> None:
        """Close the file for good."""
        self._closed = True
        self._let_go()

    def turn(self, coming: int) -> None:
        """Open the file anew if that was asked for, or a further one if *coming* bytes are too many for this one."""
        if self.reopening:
            self.reopening = False
            self._begin_anew()
        if self._size > len(self.head) and self._size + coming > self._most and self._descriptor >= 0:
            self._go_on()

    def _let_go(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _begin_anew(self) -> None:
        if self._closed:
            return
        try:
            descriptor = run_files.reopen(self.path)
        except OSError as error:
            self._log(f"journal: {error.filename or self.path}: {error.strerror}")
            return
        self._take(descriptor, self.path, os.fstat(descriptor).st_size)

    def _go_on(self) -> None:
        try:
            descriptor, path = run_files.go_on(self.path)
        except OSError as error:
            # The file grows on, and a further one is tried when it is as long again.
            self._most = self._size + self._file_bytes
            self._log(f"journal: {error.filename or self.path}: {error.strerror}")
            return
        self._take(descriptor, path, 0)
        try:
            run_files.point_on(path)
            run_files.bound(path, self._file_bytes, self._total_bytes)
        except OSError as error:
            self._log(f"journal: {error.filename or path}: {error.strerror}")

    def _take(self, descriptor: int, path: str, size: int) -> None:
        with suppress(OSError):
            self._let_go()
        self._descriptor, self.path, self._size, self._most = descriptor, path, size, self._file_bytes
        if self.head and not size:
            self._begin()

    def _begin(self) -> None:
        """Write the first lines of a file, whole or not at all: what fails here fails again with the next line."""
        with suppress(OSError):
            taken = os.write(self._descriptor, self.head)
            if taken == len(self.head):
                self._size = taken
            else:
                os.ftruncate(self._descriptor, 0)

    def _stop(self, lines: bytes, taken: int, error: OSError | None) -> None:
        """End the journal with its last whole line."""
        if self._descriptor < 0:
            self.failures += lines.count(b"\n")
            return
        whole = lines.rfind(b"\n", 0, taken) + 1
        if whole < taken:
            with suppress(OSError):
                self._remove_half_a_line(taken, whole)
        self.written += whole
        self._size += whole
        self.failures += lines.count(b"\n", whole)
        reason = error.strerror if error is not None else "only a part was written"
        self._log(f"journal stopped: {self.path}: {reason}")
        with suppress(OSError):
            self._let_go()
        self._descriptor = -1

    def _remove_half_a_line(self, taken: int, whole: int) -> None:
        """
        Cut the file after its last whole line.

        Only if the file holds what we have written and nothing else: a process that was forked from this one may have
        gone on, and its lines would be cut. Then the half line stays, and ends with a newline.
        """
        if os.fstat(self._descriptor).st_size == self._size + taken:
            os.ftruncate(self._descriptor, self._size + whole)
        else:
            os.write(self._descriptor, b"\n")
