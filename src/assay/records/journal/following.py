"""
Follow all runs of some directories: new records of live runs, and every new run from its start.

Nothing here waits: the caller polls for new records.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from time import time_ns
from typing import Final, NamedTuple

from assay.records.journal import run_files, runs
from assay.records.journal.reading import JournalEntry, Pages, entry_of
from assay.records.journal.runs import JournalRun

_MOST_FOLLOWED: Final = 200
"""Maximal runs to follow, each with an open file. A process may have 256 open files on macOS."""

_SETTLED: Final = 10**9
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
        for line in self.pages.arrived():
            self._number += 1
            entry = entry_of(self._number, line)
            if entry is not None:
                yield entry

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


class Following:
    """The runs of some directories, from now on."""

    def __init__(self, directories: Callable[[], Iterable[str]], first: JournalRun | None, since: float) -> None:
        """
        *directories* returns the directories that exist when it is called.

        *first* is read from its start, and so is every run that began *since* this time, in seconds since 1970: it may
        have started after the search for the first one.
        """
        self._directories = directories
        self._seen: dict[str, int] = {}
        self._known: set[str] = set()
        self._sources: list[Source] = []
        if first is not None:
            self._known.add(first.name)
            self._add(first, whole=True)
        for run in self._unknown():
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
        for run in self._unknown():
            self._add(run, is_new=True, whole=True)

    def close(self) -> None:
        """Close all files."""
        for source in self._sources:
            source.pages.close()

    def _unknown(self) -> list[JournalRun]:
        """Return the new runs, in order of time."""
        found: list[JournalRun] = []
        for directory in self._directories():
            with suppress(OSError):
                changed = os.stat(directory).st_mtime_ns
                # A new name changes the time of the directory, so unchanged directories are not read. One that was
                # changed a moment ago is read again: its time may be that of two changes.
                if self._seen.get(directory) != changed:
                    self._seen[directory] = changed if time_ns() - changed > _SETTLED else 0
                    found += [run for run in runs.runs_in(directory) if run.name not in self._known]
        self._known.update(run.name for run in found)
        return sorted(found, key=runs.by_age)

    def _add(self, run: JournalRun, *, is_new: bool = False, whole: bool = False) -> None:
        if len(self._sources) >= _MOST_FOLLOWED:
            self._sources.pop(0).pages.close()
        # Another process may have removed it.
        with suppress(OSError):
            self._sources.append(Source(run, is_new=is_new, whole=whole))
