"""
The directory of a journal: one file a run, `.latest` beside them, old runs removed.

A run holds a lock on its file as long as it lives, so that another one does not take it for an old one.
"""

import fcntl
import os
import re
from contextlib import suppress
from os.path import join
from time import gmtime, strftime
from typing import Final

LATEST: Final = ".latest"
"""A symbolic link to the newest run."""

_RUN: Final = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}\.jsonl")


def create(directory: str) -> tuple[int, str]:
    """A file for a new run, open for appending, and its path; raises `OSError`."""
    os.makedirs(directory, mode=0o700, exist_ok=True)
    path = join(directory, f"{strftime('%Y%m%dT%H%M%SZ', gmtime())}-{os.urandom(4).hex()}.jsonl")
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o600)
    # Some file systems have no locks: then an old run that lives may be removed, and writes on unseen.
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return descriptor, path


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


def runs(directory: str) -> list[str]:
    """The paths of all runs, oldest first; raises `OSError`."""
    return [join(directory, name) for name in sorted(os.listdir(directory)) if _RUN.fullmatch(name)]


def prune(newest: str, keep: int) -> None:
    """Removes old runs, so that *keep* are left beside those that are still written. Raises `OSError`."""
    # Names of the same second have no order, but files have: a run that was the newest a moment ago, to which a reader
    # may be on its way, is not taken for an old one.
    others = sorted((path for path in runs(os.path.dirname(newest)) if path != newest), key=_age)
    for path in others[: max(0, len(others) - keep + 1)]:
        # Another process may have removed it already.
        with suppress(FileNotFoundError):
            _remove(path)


def _age(path: str) -> tuple[str, int]:
    """What runs are ordered by: the second in their name, and then when they were last written to."""
    try:
        written = os.stat(path, follow_symlinks=False).st_mtime_ns
    except OSError:
        # Another process has removed it.
        written = 0
    return os.path.basename(path).partition("-")[0], written


def _remove(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        # Somebody writes it, or nobody can tell.
        return
    else:
        os.unlink(path)
    finally:
        os.close(descriptor)
