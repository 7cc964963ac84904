"""
Read journals line by line: a file, all files of a run, standard input; or follow all runs of some directories.

Nothing here waits: a caller that follows polls for new lines.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from io import BufferedReader
from itertools import chain
from time import time_ns
from typing import Final, NamedTuple, Self

from assay.records import run_files
from assay.records.lines import BLOCK, LineBlock, LineSplitter, is_url, numbered_lines, open_url, unpacked
from assay.records.record import Event, Record, read_line
from assay.records.run_files import JournalRun

LONGEST_LINE: Final = 128 << 20
"""Maximal bytes of a line. A line is held in memory, and parsing takes several times its size."""


class Pages:
    """
    The lines of one journal, open for reading.

    A directory, and `.latest` in it, stands for its newest run, and the first file of a run for all of its files; any
    other file is read alone.
    """

    def __init__(self, name: str, *, whole: bool = False, longest: int = LONGEST_LINE) -> None:
        """
        Open the journal called *name*, a path or a URL, ``-`` for standard input. Raises `OSError`.

        With *whole*, *name* is the first remaining file of a run, and all its files are read. A line of more than
        *longest* bytes is replaced by a note, which is not JSON. A file may be compressed.
        """
        self._splitter = LineSplitter(longest)
        self.tick: Callable[[int], None] | None = None
        """Gets the bytes that are read from files from now on, compressed or not."""
        self._ticked = 0
        self._is_over = False
        """Whether this file is complete, and what is left in it is read."""
        if os.path.basename(name) == run_files.LATEST and os.path.islink(name):
            # The link leads to the last file of a run.
            name = os.path.dirname(name) or os.curdir
        is_directory = name != "-" and os.path.isdir(name)
        self._path = "" if name == "-" else run_files.newest_in(name) if is_directory else name
        self._goes_on = whole or is_directory or run_files.begins_run(name)
        self._file = self._opened(self._path)

    @staticmethod
    def _opened(path: str) -> BufferedReader:
        if is_url(path):
            return unpacked(open_url(path))
        # Without a path it is standard input, which stays open.
        return unpacked(open(path or 0, "rb", closefd=bool(path)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files."""
        self._file.close()

    @property
    def too_long(self) -> int:
        """Number of lines that were too long."""
        return self._splitter.too_long

    def __iter__(self) -> Iterator[bytes]:
        """Yield every line; many consecutive blank ones as one item."""
        return chain.from_iterable(self.blocks())

    def blocks(self) -> Iterator[LineBlock]:
        """Yield every line in large blocks, which are read ahead."""
        while True:
            for piece in self.pieces():
                yield from self._splitter.feed(piece)
            if rest := self._splitter.rest():
                yield [rest]
            if not self._turn():
                return

    def pieces(self) -> Iterator[bytes]:
        """Yield everything that is still to be read of one file, in pieces of any size."""
        # What is there is read at once: standard input may be written slowly.
        while piece := self._file.read1(BLOCK):
            self._count()
            yield piece

    def _count(self) -> None:
        """Report what was read of the file since the last time."""
        if self.tick is None or not self._path:
            return
        try:
            now = self._file.raw.tell() if is_url(self._path) else os.lseek(self._file.fileno(), 0, os.SEEK_CUR)
        except OSError:
            return
        if now > self._ticked:
            self.tick(now - self._ticked)
            self._ticked = now

    def followed(self, pause: Callable[[], None]) -> Iterator[bytes]:
        """Yield complete lines as they are written, for ever; call *pause* between reads."""
        while True:
            yield from self.arrived()
            pause()

    def arrived(self) -> Iterator[bytes]:
        """Yield complete lines written since the last call, blank ones as `__iter__` does; a partial one is kept."""
        while True:
            for piece in self.pieces():
                for block in self._splitter.feed(piece):
                    yield from block
            if not self._is_over:
                # What was written to it meanwhile is read first.
                self._is_over = self._following() is not None or self._is_moved()
                if not self._is_over:
                    return
                continue
            if rest := self._splitter.rest():
                yield rest
            if not self._turn() and self._is_moved():
                self._open(self._path)
            self._is_over = False

    def skip(self, keep: int = 0) -> None:
        """Skip everything that was written so far, but the whole lines in the last *keep* bytes."""
        while self._turn():
            pass
        end = self._file.seek(0, os.SEEK_END)
        if 0 < keep < end:
            # With the byte before, so that a line that begins there is whole.
            self._file.seek(end - keep - 1)
            self._file.readline()

    def peek(self) -> bytes:
        """Return the first bytes without consuming them; empty if the journal is."""
        return self._file.peek()

    def _is_moved(self) -> bool:
        """Whether the name belongs to another file now."""
        try:
            there = os.stat(self._path)
        except OSError:
            return False
        here = os.fstat(self._file.fileno())
        return (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino)

    def _following(self) -> str | None:
        """Return the next file of the run."""
        if not self._goes_on:
            return None
        number = run_files.number_of(self._path)
        return next((each for each in run_files.files_of(self._path) if run_files.number_of(each) > number), None)

    def _turn(self) -> bool:
        """Continue with the next file of the run; return whether there is one."""
        while (path := self._following()) is not None:
            try:
                self._open(path)
            except FileNotFoundError:
                # It was removed as one of the oldest.
                self._path = path
                continue
            return True
        return False

    def _open(self, path: str) -> None:
        file = self._opened(path)
        self._file.close()
        self._file, self._path, self._ticked = file, path, 0


class JournalEntry(NamedTuple):
    """A line of a journal that is not an event."""

    number: int
    raw: bytes
    """The bytes of the line, without its newline."""
    record: Record | None
    """None for a line that is not a record."""


def entries(lines: Iterable[bytes], before: int = 0) -> Iterator[JournalEntry]:
    """Yield every line that is neither blank nor an event; *before* is the number of lines before the first one."""
    for number, line in numbered_lines(lines, before):
        raw = line.rstrip(b"\r\n")
        found = read_line(raw)
        if not isinstance(found, Event):
            yield JournalEntry(number, raw, found)


_MOST_FOLLOWED: Final = 200
"""Maximal runs to follow, each with an open file. A process may have 256 open files on macOS."""

SETTLED: Final = 10**9
"""Nanoseconds after which another change of a directory has a different time. File system clocks tick every 10 ms."""

_FRESH: Final = 60 * 10**9
"""Nanoseconds after its last record during which a run is followed even if no process holds its lock."""


class Source:
    """A followed run."""

    def __init__(self, run: JournalRun, *, is_new: bool, whole: bool) -> None:
        """Open *run*; unless *whole*, skip what was written so far. Raises `OSError`."""
        self.run = run
        self.is_new = is_new
        """Whether the run started while following."""
        self.pages = Pages(run.path, whole=True)
        self._number = 0
        if not whole:
            self.pages.skip()

    def arrived(self) -> Iterator[JournalEntry]:
        """Yield the lines written since the last call."""
        return entries(self._counted(), self._number)

    def _counted(self) -> Iterator[bytes]:
        for line in self.pages.arrived():
            self._number += line.count(b"\n") or 1
            yield line

    @property
    def is_over(self) -> bool:
        """Whether the run has ended."""
        last = run_files.files_of(self.run.path)[-1]
        try:
            return not _lives(last, os.stat(last).st_mtime_ns)
        except OSError:
            return True


def _lives(path: str, written: int) -> bool:
    """Whether a process has the file open, or it was written a moment ago: some file systems have no locks."""
    return time_ns() - written < _FRESH or run_files.is_written(path)


class News(NamedTuple):
    """A line of one of the runs."""

    source: Source
    entry: JournalEntry


class NewRuns:
    """Finds the runs in some directories, each once."""

    def __init__(self, directories: Callable[[], Iterable[str]]) -> None:
        """*directories* returns the directories that exist when it is called."""
        self._directories = directories
        self._seen: dict[str, int] = {}
        """When the directories were changed last."""
        self.known: set[str] = set()
        """The names of the runs that were found."""

    def found(self) -> list[JournalRun]:
        """Return the new runs, in order of time."""
        found: list[JournalRun] = []
        for directory in self._directories():
            with suppress(OSError):
                changed = os.stat(directory).st_mtime_ns
                # A new name changes the time of the directory, so unchanged directories are not read. One that was
                # changed a moment ago is read again: its time may be that of two changes.
                if self._seen.get(directory) != changed:
                    self._seen[directory] = changed if time_ns() - changed > SETTLED else 0
                    found += [run for run in run_files.runs_in(directory) if run.name not in self.known]
        self.known.update(run.name for run in found)
        return sorted(found, key=run_files.by_age)


class Following:
    """The runs of some directories, from now on."""

    def __init__(self, directories: Callable[[], Iterable[str]], first: JournalRun | None, since: float) -> None:
        """
        *directories* returns the directories that exist when it is called.

        *first* is read from its start, and so is every run that began *since* this time, in seconds since 1970: it may
        have started after the search for the first one.
        """
        self._runs = NewRuns(directories)
        self._sources: list[Source] = []
        if first is not None:
            self._runs.known.add(first.name)
            self._add(first, whole=True)
        for run in self._runs.found():
            if _lives(run.paths[-1], run.written):
                is_new = run.began >= since
                self._add(run, is_new=is_new, whole=is_new)

    def arrived(self) -> Iterator[News]:
        """Yield the lines written since the last call."""
        for source in self._sources:
            with suppress(OSError):
                for entry in source.arrived():
                    yield News(source, entry)

    def look_around(self) -> None:
        """Find new runs, and close those that have ended."""
        for source in [each for each in self._sources if each.is_over]:
            source.pages.close()
            self._sources.remove(source)
        for run in self._runs.found():
            self._add(run, is_new=True, whole=True)

    def close(self) -> None:
        """Close all files."""
        for source in self._sources:
            source.pages.close()

    def _add(self, run: JournalRun, *, is_new: bool = False, whole: bool = False) -> None:
        if len(self._sources) >= _MOST_FOLLOWED:
            self._sources.pop(0).pages.close()
        # Another process may have removed it.
        with suppress(OSError):
            self._sources.append(Source(run, is_new=is_new, whole=whole))
