"""
The directories of journals: the files of each run, the link `.latest`, finding runs, and the removal of old ones.

A run starts with one file, and continues in another one each time a file is full: `NAME.jsonl`, `NAME.0002.jsonl`,
`NAME.0003.jsonl`. It locks the file that it writes to, so that another run does not remove it. Links are not followed:
in a directory that others can write they may lead anywhere.
"""

import errno
import os
import re
import stat
from calendar import timegm
from collections.abc import Iterable, Iterator
from contextlib import suppress
from os.path import basename, dirname, isfile, islink, join
from time import gmtime, sleep, strftime, strptime
from typing import Final, NamedTuple

LATEST: Final = ".latest"
"""A symbolic link to the current file of the newest run."""

_FILE: Final = re.compile(r"(?P<run>[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8})(?:\.(?P<part>[0-9]{4,9}))?\.jsonl")

# Links are not followed, and opening a named pipe does not wait: others may be able to write to the directory.
# Windows has none of these flags, nor `fcntl`, which writing imports: there journals can only be read.
_AS_IT_IS: Final = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | _AS_IT_IS


_TRIES: Final = 20
_PAUSE: Final = 0.0005
"""Attempts to get a lock, and the seconds between them: 10 ms in all. A reader holds it for microseconds."""

# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def create(directory: str) -> tuple[int, str]:
    """Create a file for a new run; return its descriptor, open for appending, and its path. Raises `OSError`."""
    os.makedirs(directory, mode=0o700, exist_ok=True)
    path = join(directory, f"{strftime('%Y%m%dT%H%M%SZ', gmtime())}-{os.urandom(4).hex()}.jsonl")
    return _opened(path, os.O_EXCL), path


def go_on(path: str) -> tuple[int, str]:
    """Create the next file of the run of *path*; return its descriptor and its path. Raises `OSError`."""
    number = number_of(path)
    while True:
        number += 1
        following = join(dirname(path), f"{_run_name(path)}.{number:04}.jsonl")
        # A forked process may have created it first.
        with suppress(FileExistsError):
            return _opened(following, os.O_EXCL), following


def reopen(path: str) -> int:
    """Open the file at *path* for appending; create it if it was moved away. Raises `OSError`."""
    os.makedirs(dirname(path) or os.curdir, mode=0o700, exist_ok=True)
    return _opened(path, 0)


def _opened(path: str, exclusively: int) -> int:
    descriptor = os.open(path, _FLAGS | exclusively, 0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", path)
    _lock(descriptor)
    return descriptor


def _lock(descriptor: int) -> None:
    """Lock the file as being written. A process that only checks holds the lock for some microseconds."""
    import fcntl  # noqa: PLC0415 - not there on Windows

    for _ in range(_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            sleep(_PAUSE)
        except OSError:
            # Some file systems have no locks: there an old run may be removed while it is still written.
            return
        else:
            return


def point_at(path: str) -> None:
    """Point `.latest` to *path* atomically, so that a reader finds a run at any time. Raises `OSError`."""
    directory, name = os.path.split(path)
    passing = join(directory, f"{LATEST}.{name}")
    os.symlink(name, passing)
    try:
        os.replace(passing, join(directory, LATEST))
    except OSError:
        os.unlink(passing)
        raise


def point_on(path: str) -> None:
    """Point `.latest` to *path* after `go_on`, unless it leads to a newer run. Raises `OSError`."""
    with suppress(OSError):
        found = _FILE.fullmatch(os.readlink(join(dirname(path), LATEST)))
        if found is not None and found["run"] != _run_name(path):
            return
    point_at(path)


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def newest_in(directory: str) -> str:
    """Return the first remaining file of the newest run. Raises `OSError`."""
    try:
        name = os.readlink(join(directory, LATEST))
    except OSError:
        name = ""
        if os.path.isfile(join(directory, LATEST)):
            # A copy of the directory may have the file itself in place of the link.
            return join(directory, LATEST)
    # A link to another directory is not ours.
    if _FILE.fullmatch(name) and os.path.lexists(join(directory, name)):
        return files_of(join(directory, name))[0]
    runs = _names_by_run(directory)
    if not runs:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), join(directory, LATEST))
    return join(directory, runs[max(runs)][0])


def files_of(path: str) -> list[str]:
    """Return all files of the run of *path*, in order; only *path* if it is not part of a run."""
    names: list[str] = []
    if is_run(path):
        with suppress(OSError):
            names = _names_by_run(dirname(path) or os.curdir).get(_run_name(path), [])
    return [join(dirname(path), name) for name in names] or [path]


def number_of(path: str) -> int:
    """Return the number of *path* within its run, from 1."""
    found = _FILE.fullmatch(basename(path))
    return int(found["part"] or 1) if found is not None else 1


def is_run(path: str) -> bool:
    """Whether *path* has the name of a file of a run."""
    return _FILE.fullmatch(basename(path)) is not None


def begins_run(path: str) -> bool:
    """Whether *path* has the name of the first file of a run."""
    found = _FILE.fullmatch(basename(path))
    return found is not None and found["part"] is None


def _run_name(path: str) -> str:
    """Return the name of the run of *path*: what all of its files begin with."""
    return basename(path).partition(".")[0]


def _names_by_run(directory: str) -> dict[str, list[str]]:
    """Return the names of the files in *directory* of each run, in order. Raises `OSError`."""
    found: dict[str, list[str]] = {}
    for name in sorted(filter(is_run, os.listdir(directory)), key=number_of):
        found.setdefault(_run_name(name), []).append(name)
    return found


# ── removing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def prune(newest: str, keep: int) -> None:
    """Remove old runs so that *keep* remain, not counting those still being written. Raises `OSError`."""
    # Runs of the same second are ordered by time of writing: the one that was newest a moment ago, which a reader may
    # be about to open, is not removed.
    others = [run for run in runs_in(dirname(newest)) if run.name != _run_name(newest)]
    for run in others[: max(0, len(others) - keep + 1)]:
        # The last file first: while it is being written, the others belong to a live run.
        if _remove(run.paths[-1]):
            for path in run.paths[:-1]:
                _remove(path)


def bound(path: str, room: int, total: int) -> None:
    """
    Remove the oldest files, so that all files have at most *total* bytes when *path* has grown by *room*.

    Files that are being written stay, so the total may be higher. Raises `OSError`.
    """
    directory, every = dirname(path), []
    for name in filter(is_run, os.listdir(directory)):
        # Another process may have removed it.
        with suppress(OSError):
            status = os.lstat(join(directory, name))
            every.append((status.st_mtime_ns, status.st_size, join(directory, name)))
    excess = sum(size for _, size, _ in every) + room - total
    for _, size, other in sorted(every):
        if excess <= 0:
            return
        if other != path and _remove(other):
            excess -= size


def is_written(path: str) -> bool:
    """Whether a process has *path* open for writing; False if that is unknown."""
    try:
        descriptor = os.open(path, os.O_RDONLY | _AS_IT_IS)
    except OSError:
        return False
    try:
        return _is_free(descriptor) is False
    finally:
        os.close(descriptor)


def _is_free(descriptor: int) -> bool | None:
    """Whether no process writes the open file; None if that is unknown."""
    try:
        import fcntl  # noqa: PLC0415 - not there on Windows

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return None
    return True


def _remove(path: str) -> bool:
    """Remove a file that is not being written; return whether it is gone."""
    try:
        descriptor = os.open(path, os.O_RDONLY | _AS_IT_IS)
    except FileNotFoundError:
        # Another process has already removed it.
        return True
    try:
        if not _is_free(descriptor):
            return False
        with suppress(FileNotFoundError):
            os.unlink(path)
        return True
    finally:
        os.close(descriptor)


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
        return is_written(self.paths[-1])


def runs_in(directory: str) -> list[JournalRun]:
    """Return the runs in *directory*, oldest first. Raises `OSError`."""
    runs = []
    for name, files in _names_by_run(directory).items():
        statuses: dict[str, os.stat_result] = {}
        for path in (join(directory, each) for each in files):
            # Another process may have removed it.
            with suppress(OSError):
                status = os.lstat(path)
                if stat.S_ISREG(status.st_mode):
                    statuses[path] = status
        if statuses:
            written = max(each.st_mtime_ns for each in statuses.values())
            runs.append(JournalRun(name, written, tuple(statuses), sum(each.st_size for each in statuses.values())))
    return sorted(runs, key=by_age)


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


def newest_of(directories: Iterable[str]) -> str | None:
    """
    Return the default journal of *directories*: the newest run that is not empty, else the newest.

    None if there are no runs. Unreadable directories are skipped.
    """
    every: list[JournalRun] = []
    for directory in directories:
        with suppress(OSError):
            copy = join(directory, LATEST)
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
    return basename(dirname(os.path.abspath(run.path)))
