"""
The file that says that a server is ready.

By default it is in the common temporary directory, where anybody may have put a link or a pipe of that name.
"""

import os
import stat
from typing import Final

from assay.base.atomic_file import replace_file

# Some of them are not there on every platform. A pipe that nobody reads is an error at once, and no wait.
_AS_IT_IS: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def write(path: str, content: bytes) -> None:
    """
    Put *content* into a new file that takes the name *path*. Raises `OSError`.

    A link of that name is replaced, never followed. A device such as `/dev/null`, or a pipe, is written to.
    """
    if _is_file(path):
        replace_file(path, content, lasting=False)
        return
    descriptor = os.open(path, os.O_WRONLY | _AS_IT_IS)
    try:
        os.write(descriptor, content)
    finally:
        os.close(descriptor)


def _is_file(path: str) -> bool:
    """Whether *path* is a file, a link, or nothing yet."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return True
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)


def remove(path: str, content: bytes) -> None:
    """Remove the file at *path* if it has *content*: another server may have written its own. Raises `OSError`."""
    descriptor = os.open(path, os.O_RDONLY | _AS_IT_IS)
    try:
        ours = stat.S_ISREG(os.fstat(descriptor).st_mode) and os.read(descriptor, len(content) + 1) == content
    finally:
        os.close(descriptor)
    if ours:
        os.unlink(path)
