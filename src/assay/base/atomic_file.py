"""
Replaces a file whole or not at all.

The new one is written beside the one it replaces, to the disk, and only then takes its name. Whatever happens before
that, a full disk above all, leaves the old one as it was.
"""

import os
import stat
from contextlib import suppress
from os.path import basename, dirname, join
from typing import Final

# Some of them are not there on every platform.
_NEW: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def replace_file(
    path: str | os.PathLike[str],
    content: bytes,
    like: os.stat_result | None = None,
    *,
    rights: int | None = None,
    lasting: bool = True,
) -> None:
    """
    Gives the file at *path* other content, and the owner and the rights of *like*. Raises `OSError`.

    It has the *rights* that are given, else those of *like*, else those that every new file has here. A link at *path*
    would be replaced by a file. Unless it is to be *lasting*, nothing waits for the disk.
    """
    directory = dirname(os.fspath(path))
    # In a directory that others can write, nobody may know the name beforehand. Readable by nobody else until it has
    # its rights: there may be keys in it. Not `tempfile`, which takes longer to import than a server to say that it is
    # ready.
    beside = join(directory, f".{basename(os.fspath(path))}.{os.urandom(8).hex()}")
    descriptor = os.open(beside, _NEW | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            _admit(descriptor, like, rights)
            if lasting:
                os.fsync(descriptor)
        os.replace(beside, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise
    if lasting:
        _settle(directory or os.curdir)


def _admit(descriptor: int, like: os.stat_result | None, rights: int | None) -> None:
    """Those who may read *like*, or any new file, as far as this platform and our own rights go."""
    if not (hasattr(os, "fchmod") and hasattr(os, "fchown")):
        # Windows: a new file has the access list of its directory.
        return
    if like is None:
        os.fchmod(descriptor, 0o666 & ~_mask() if rights is None else rights)
        return
    # Whose it is may be somebody who cannot be named here (EINVAL), or whom it is not ours to give it to (EPERM).
    with suppress(OSError):
        os.fchown(descriptor, like.st_uid, like.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(like.st_mode) if rights is None else rights)


def _mask() -> int:
    """The rights that new files do not have here; to ask for it is to set it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _settle(directory: str) -> None:
    """Has the new name written to the disk, where directories can be opened for it."""
    with suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
