"""
The directory of a journal: the files of each run, `.latest` beside them, old ones removed.

A run begins with one file, and goes on in a further one each time that a file is long enough: `NAME.jsonl`,
`NAME.0002.jsonl`, `NAME.0003.jsonl`. It holds a lock on the file that it writes to, so that another run does not take
that for an old one.
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
"""A symbolic link to the file that the newest run writes to."""

_FILE: Final = re.compile(r"(?P<run>[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8})(?:\.(?P<part>[0-9]{4,9}))?\.jsonl")

# Never through a link, and never waiting for whoever reads a named pipe: others may be able to write to the directory.
# Windows has none of the three, nor `fcntl`, which writing imports: there journals are only read.
_AS_IT_IS: Final = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | _AS_IT_IS


_TRIES: Final = 20
_PAUSE: Final = 0.0005
"""How often a lock is asked for, and the seconds between: 10 ms in all. Nobody who is honest holds it that long."""


class Part(NamedTuple):
    """One file of a run. They are in order if these are."""

    run: str
    number: int
    path: str


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def create(directory: str) -> tuple[int, str]:
    """A file for a new run, open for appending, and its path; raises `OSError`."""
    os.makedirs(directory, mode=0o700, exist_ok=True)
    path = join(directory, f"{strftime('%Y%m%dT%H%M%SZ', gmtime())}-{os.urandom(4).hex()}.jsonl")
    return _opened(path, os.O_EXCL), path


def go_on(path: str) -> tuple[int, str]:
    """The next file of the run that *path* is of, open for appending, and its path; raises `OSError`."""
    run, number, _ = _part(path)
    while True:
        number += 1
        following = join(dirname(path), f"{run}.{number:04}.jsonl")
        # A process that was forked from this one may have been quicker.
        with suppress(FileExistsError):
            return _opened(following, os.O_EXCL), following


def reopen(path: str) -> int:
    """The file at *path*, open for appending; a new one if somebody has moved it away. Raises `OSError`."""
    os.makedirs(dirname(path) or os.curdir, mode=0o700, exist_ok=True)
    return _opened(path, 0)


def _opened(path: str, exclusively: int) -> int:
    descriptor = os.open(path, _FLAGS | exclusively, 0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no file", path)
    _lock(descriptor)
    return descriptor


def _lock(descriptor: int) -> None:
    """Says that this file is written. Others who look whether it is hold a lock of their own for some microseconds."""
    import fcntl  # noqa: PLC0415 - not there on Windows

    for _ in range(_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            sleep(_PAUSE)
        except OSError:
            # Some file systems have no locks: then an old run that lives may be removed, and writes on unseen.
            return
        else:
            return


def point_at(path: str) -> None:
    """Lets `.latest` lead to *path*, at one stroke: whoever reads it finds a run at any time. Raises `OSError`."""
    directory, name = os.path.split(path)
    passing = join(directory, f"{LATEST}.{name}")
    os.symlink(name, passing)
    try:
        os.replace(passing, join(directory, LATEST))
    except OSError:
        os.unlink(passing)
        raise


def point_on(path: str) -> None:
    """The same after `go_on`, unless `.latest` leads to another run, which is newer. Raises `OSError`."""
    with suppress(OSError):
        found = _FILE.fullmatch(os.readlink(join(dirname(path), LATEST)))
        if found is not None and found["run"] != _part(path).run:
            return
    point_at(path)


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def runs(directory: str) -> list[str]:
    """The paths of all files of all runs, oldest first; raises `OSError`."""
    return [each.path for each in sorted(parts(directory))]


def newest(directory: str) -> str:
    """The first file that is left of the newest run. Raises `OSError`."""
    try:
        name = os.readlink(join(directory, LATEST))
    except OSError:
        name = ""
        if os.path.isfile(join(directory, LATEST)):
            # A copy of the directory may have the file itself in place of the link.
            return join(directory, LATEST)
    # A link that leads anywhere else is not ours.
    if _FILE.fullmatch(name) and os.path.lexists(join(directory, name)):
        return files_of(join(directory, name))[0]
    every = sorted(parts(directory))
    if not every:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), join(directory, LATEST))
    return files_of(every[-1].path)[0]


def files_of(path: str) -> list[str]:
    """All files of the run that *path* is of, in order; *path* alone if that is no run."""
    if not _FILE.fullmatch(basename(path)):
        return [path]
    run = _part(path).run
    try:
        found = sorted(each for each in parts(dirname(path) or os.curdir) if each.run == run)
    except OSError:
        found = []
    return [join(dirname(path), basename(each.path)) for each in found] or [path]


def number_of(path: str) -> int:
    """Which file of its run *path* is, counted from 1."""
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
    """Removes old runs, so that *keep* are left beside those that are still written. Raises `OSError`."""
    others: dict[str, list[Part]] = {}
    for part in sorted(parts(dirname(newest))):
        if part.run != _part(newest).run:
            others.setdefault(part.run, []).append(part)
    # Names of the same second have no order, but files have: a run that was the newest a moment ago, to which a reader
    # may be on its way, is not taken for an old one.
    oldest_first = sorted(others.values(), key=lambda run: _age(run[-1].path))
    for run in oldest_first[: max(0, len(oldest_first) - keep + 1)]:
        # The last file first: while that is written, the others are of a run that lives.
        if _remove(run[-1].path):
            for part in run[:-1]:
                _remove(part.path)


def bound(path: str, room: int, total: int) -> None:
    """
    Removes the oldest files, so that all files take *total* bytes at most when *path* has grown by *room*.

    What somebody writes to stays, so that there may be more. Raises `OSError`.
    """
    every = sorted(_weighed(runs(dirname(path))))
    excess = sum(size for _, size, _ in every) + room - total
    for _, size, other in every:
        if excess <= 0:
            return
        if other != path and _remove(other):
            excess -= size


def _weighed(paths: list[str]) -> Iterator[tuple[int, int, str]]:
    """When each file was last written to, and how long it is."""
    for path in paths:
        # Another process may have removed it.
        with suppress(OSError):
            found = os.stat(path, follow_symlinks=False)
            yield found.st_mtime_ns, found.st_size, path


def _age(path: str) -> tuple[str, int]:
    """What runs are ordered by: the second in their name, and then when they were last written to."""
    return basename(path).partition("-")[0], _written(path)


def _written(path: str) -> int:
    """When a file was last written to; 0 if another process has removed it."""
    try:
        return os.stat(path, follow_symlinks=False).st_mtime_ns
    except OSError:
        return 0


def is_written(path: str) -> bool:
    """Whether a process has *path* open for writing; False where nothing can tell."""
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
    """Removes a file that nobody writes to; whether it is gone."""
    import fcntl  # noqa: PLC0415 - not there on Windows

    try:
        descriptor = os.open(path, os.O_RDONLY | _AS_IT_IS)
    except FileNotFoundError:
        # Another process has removed it already.
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        # Somebody writes it, or nobody can tell.
        return False
    else:
        with suppress(FileNotFoundError):
            os.unlink(path)
        return True
    finally:
        os.close(descriptor)
