"""
Find the runs in journal directories: all, the newest, and those still being written.

Reads only names and sizes. Links are not followed: in a directory that others can write they may lead anywhere.
"""

import os
import stat
from calendar import timegm
from collections.abc import Iterable, Iterator
from contextlib import suppress
from os.path import basename, isfile, islink, join
from time import strptime
from typing import NamedTuple

from assay.records.journal import run_files


class JournalRun(NamedTuple):
    """One run: its files with their names and sizes."""

    name: str
    """The start time and the id: ``20261115T223904Z-1f0c9a3e``."""
    written: int
    """The time of the last write, in nanoseconds since 1970."""
    paths: tuple[str, ...]
    """The files in order; the oldest may have been removed."""
    size: int
    """The bytes of all files."""

    @property
    def id(self) -> str:
        """The short part of its name: eight hexadecimal digits."""
        return self.name.partition("-")[2]

    @property
    def began(self) -> int:
        """The start time, in seconds since 1970."""
        try:
            return timegm(strptime(self.name.partition("-")[0], "%Y%m%dT%H%M%SZ"))
        except ValueError:
            # The digits are not a date: the file is not ours.
            return 0

    @property
    def age(self) -> tuple[str, int]:
        """The sort key: the second in the name, then the time of the last write."""
        return self.name.partition("-")[0], self.written

    @property
    def path(self) -> str:
        """The first file, which stands for all of them."""
        return self.paths[0]

    @property
    def is_written(self) -> bool:
        """Whether a process is writing it."""
        return run_files.is_written(self.paths[-1])


def runs_in(directory: str) -> list[JournalRun]:
    """Return the runs in *directory*, oldest first. Raises `OSError`."""
    found: dict[str, list[tuple[run_files.Part, os.stat_result]]] = {}
    for part in run_files.parts(directory):
        # Another process may have removed it.
        with suppress(OSError):
            status = os.lstat(part.path)
            if stat.S_ISREG(status.st_mode):
                found.setdefault(part.run, []).append((part, status))
    return sorted((_run(name, sorted(parts)) for name, parts in found.items()), key=by_age)


def _run(name: str, parts: list[tuple[run_files.Part, os.stat_result]]) -> JournalRun:
    return JournalRun(
        name,
        max(status.st_mtime_ns for _, status in parts),
        tuple(part.path for part, _ in parts),
        sum(status.st_size for _, status in parts),
    )


def directories_below(directory: str) -> Iterator[str]:
    """
    Yield *directory*, and those up to two levels below it that can have runs. Raises `OSError` if it cannot be read.

    The state directory contains ``servers``, with a folder for each server.
    """
    yield directory
    for one in _subdirectories(directory):
        yield one
        # An unreadable directory has nothing for this user.
        with suppress(OSError):
            yield from _subdirectories(one)


def _subdirectories(directory: str) -> list[str]:
    with os.scandir(directory) as found:
        return sorted(each.path for each in found if each.is_dir(follow_symlinks=False))


def newest(directories: Iterable[str]) -> str | None:
    """
    Return the default journal of *directories*: the newest run that is not empty, else the newest.

    None if there are no runs. Unreadable directories are skipped.
    """
    every: list[JournalRun] = []
    for directory in directories:
        with suppress(OSError):
            copy = join(directory, run_files.LATEST)
            if isfile(copy) and not islink(copy):
                # A copy of a directory may have the file itself in place of the link.
                return copy
            every += runs_in(directory)
    filled = [run for run in every if run.size]
    chosen = max(filled or every, default=None, key=by_age)
    return None if chosen is None else chosen.path


def by_age(run: JournalRun) -> tuple[str, int]:
    """Sort key for runs, oldest first."""
    return run.age


def find(directories: Iterable[str], name: str) -> str | None:
    """Return the first file of the run with this name or id; otherwise None."""
    for directory in directories:
        with suppress(OSError):
            for run in runs_in(directory):
                if name in (run.name, run.id):
                    return run.path
    return None


def folder_name(run: JournalRun) -> str:
    """Return the name of the directory that has *run*."""
    return basename(os.path.dirname(os.path.abspath(run.path)))
