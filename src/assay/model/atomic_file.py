"""
Replace a file atomically.

The new file is written to the disk beside the old one, then renamed. After any failure, such as a full disk, the old
file is unchanged.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os.path import basename, dirname, join
from typing import BinaryIO, Final

# Some flags do not exist on every platform.
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
    Replace the content of the file at *path*, with the owner and permissions of *like*. Raises `OSError`.

    The permissions are *rights*, else those of *like*, else the default. A link at *path* is replaced by a file. Only
    with *lasting* does the call wait for the disk.
    """
    with replacing(path, like, rights=rights, lasting=lasting) as file:
        file.write(content)


@contextmanager
def replacing(
    path: str | os.PathLike[str],
    like: os.stat_result | None = None,
    *,
    rights: int | None = None,
    lasting: bool = True,
) -> Iterator[BinaryIO]:
    """
    Yield a new file that replaces the one at *path* at the end of the block; as `replace_file`, for long content.

    An exception in the block leaves the old file as it is.
    """
    directory = dirname(os.fspath(path))
    # An unpredictable name, because others may write to the directory. Private until it has its permissions: it may
    # contain keys. Not `tempfile`, whose import takes longer than the start of a server.
    beside = join(directory, f".{basename(os.fspath(path))}.{os.urandom(8).hex()}")
    descriptor = os.open(beside, _NEW | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        with open(descriptor, "wb") as file:
            yield file
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
    """Set the owner and permissions of *like*, or the default ones, as far as the platform allows."""
    if not (hasattr(os, "fchmod") and hasattr(os, "fchown")):
        # Windows: a new file gets the access list of its directory.
        return
    if like is None:
        os.fchmod(descriptor, 0o666 & ~_mask() if rights is None else rights)
        return
    # The owner may not exist in this namespace (EINVAL), or changing it may not be allowed (EPERM).
    with suppress(OSError):
        os.fchown(descriptor, like.st_uid, like.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(like.st_mode) if rights is None else rights)


def _mask() -> int:
    """Return the umask. It can be read only by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _settle(directory: str) -> None:
    """Flush the directory entry to the disk, where directories can be opened."""
    with suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
