"""
The directory of a journal: the files of each run, the link `.latest`, and the removal of old runs.

A run starts with one file, and continues in another one each time a file is full: `NAME.jsonl`, `NAME.0002.jsonl`,
`NAME.0003.jsonl`. It locks the file that it writes to, so that another run does not remove it.
"""

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from os.path import basename, dirname, join
from time import gmtime, sleep, strftime
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


class Part(NamedTuple):
    """One file of a run. Sorting them gives the order of the files."""

    run: str
    number: int
    path: str


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def create(directory: str) -> tuple[int, str]:
    """Create a file for a new run; return its descriptor, open for appending, and its path. Raises `OSError`."""
    os.makedirs(directory, mode=0o700, exist_ok=True)
    path = join(directory, f"{strftime('%Y%m%dT%H%M%SZ', gmtime())}-{os.urandom(4).hex()}.jsonl")
    return _opened(path, os.O_EXCL), path


def go_on(path: str) -> tuple[int, str]:
    """Create the next file of the run of *path*; return its descriptor and its path. Raises `OSError`."""
    run, number, _ = _part(path)
    while True:
        number += 1
        following = join(dirname(path), f"{run}.{number:04}.jsonl")
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
        if found is not None and found["run"] != _part(path).run:
            return
    point_at(path)


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def runs(directory: str) -> list[str]:
    """Return the paths of all files of all runs, oldest first. Raises `OSError`."""
    return [each.path for each in sorted(parts(directory))]


def newest(directory: str) -> str:
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
    every = sorted(parts(directory))
    if not every:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), join(directory, LATEST))
    return files_of(every[-1].path)[0]


def files_of(path: str) -> list[str]:
    """Return all files of the run of *path*, in order; only *path* if it is not part of a run."""
    if not _FILE.fullmatch(basename(path)):
        return [path]
    run = _part(path).run
    try:
        found = sorted(each for each in parts(dirname(path) or os.curdir) if each.run == run)
    except OSError:
        found = []
    return [join(dirname(path), basename(each.path)) for each in found] or [path]


def number_of(path: str) -> int:
    """Return the number of *path* within its run, from 1."""
    return _part(path).number


def is_run(path: str) -> bool:
    """Whether *path* has the name of a file of a run."""
    return _FILE.fullmatch(basename(path)) is not None


def begins_run(path: str) -> bool:
    """Whether *path* has the name of the first file of a run."""
    found = _FILE.fullmatch(basename(path))
    return found is not None and found["part"] is None


def parts(directory: str) -> Iterator[Part]:
    """Yield all files of all runs in *directory*, in no order. Raises `OSError`."""
    for name in os.listdir(directory):
        if _FILE.fullmatch(name):
            yield _part(join(directory, name))


def _part(path: str) -> Part:
    found = _FILE.fullmatch(basename(path))
    return Part(found["run"], int(found["part"] or 1), path) if found is not None else Part(basename(path), 1, path)


# ── removing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def prune(newest: str, keep: int) -> None:
    """Remove old runs so that *keep* remain, not counting those still being written. Raises `OSError`."""
    others: dict[str, list[Part]] = {}
    for part in sorted(parts(dirname(newest))):
        if part.run != _part(newest).run:
            others.setdefault(part.run, []).append(part)
    # Names with the same second are ordered by time of writing: the run that was newest a moment ago, which a reader
    # may be about to open, is not removed.
    oldest_first = sorted(others.values(), key=lambda run: _age(run[-1].path))
    for run in oldest_first[: max(0, len(oldest_first) - keep + 1)]:
        # The last file first: while it is being written, the others belong to a live run.
        if _remove(run[-1].path):
            for part in run[:-1]:
                _remove(part.path)


def bound(path: str, room: int, total: int) -> None:
    """
    Remove the oldest files, so that all files have at most *total* bytes when *path* has grown by *room*.

    Files that are being written stay, so the total may be higher. Raises `OSError`.
    """
    every = sorted(_weighed(runs(dirname(path))))
    excess = sum(size for _, size, _ in every) + room - total
    for _, size, other in every:
        if excess <= 0:
            return
        if other != path and _remove(other):
            excess -= size


def _weighed(paths: list[str]) -> Iterator[tuple[int, int, str]]:
    """Return the time of the last write and the size of each file."""
    for path in paths:
        # Another process may have removed it.
        with suppress(OSError):
            found = os.stat(path, follow_symlinks=False)
            yield found.st_mtime_ns, found.st_size, path


def _age(path: str) -> tuple[str, int]:
    """Return the sort key of a run: the second in its name, then the time of the last write."""
    return basename(path).partition("-")[0], _written(path)


def _written(path: str) -> int:
    """Return the time of the last write; 0 if another process has removed the file."""
    try:
        return os.stat(path, follow_symlinks=False).st_mtime_ns
    except OSError:
        return 0


def is_written(path: str) -> bool:
    """Whether a process has *path* open for writing; False if that is unknown."""
    try:
        import fcntl  # noqa: PLC0415 - not there on Windows

        descriptor = os.open(path, os.O_RDONLY | _AS_IT_IS)
    except (ImportError, OSError):
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    else:
        return False
    finally:
        os.close(descriptor)


def _remove(path: str) -> bool:
    """Remove a file that is not being written; return whether it is gone."""
    import fcntl  # noqa: PLC0415 - not there on Windows

    try:
        descriptor = os.open(path, os.O_RDONLY | _AS_IT_IS)
    except FileNotFoundError:
        # Another process has already removed it.
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        # It is being written, or that is unknown.
        return False
    else:
        with suppress(FileNotFoundError):
            os.unlink(path)
        return True
    finally:
        os.close(descriptor)
