"""
The sockets of running guards: one for each process, in a directory that only this user can enter.

A socket of a killed process is removed by the next guard or reader that finds it: only a socket of this user, in this
directory, with a name of this kind, at which no process listens.
"""

import os
import re
import socket
import stat
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import ECONNREFUSED, ENAMETOOLONG, EPERM
from os.path import join
from typing import Final

from assay.settings.state_directory import make_folder

LONGEST_PATH: Final = 107 if sys.platform == "linux" else 103
"""Maximal bytes of the path of a socket: `sun_path` has 108 on Linux and 104 elsewhere, with the zero at its end."""

SUPPORTED: Final = hasattr(socket, "AF_UNIX") and os.name == "posix"
"""Whether this system has Unix sockets that a guard can use."""

_NAME: Final = re.compile(r"(?P<pid>[0-9]{1,10})-[0-9a-f]{8}\.sock")

_OPEN_FILES: Final = "/proc/self/fd"
"""The open files of this process, on Linux."""

_BACKLOG: Final = 16
"""Connections that may wait until the guard accepts them."""

_MACOS_LEVEL: Final = 0
_MACOS_PEER: Final = 1
"""`SOL_LOCAL` and `LOCAL_PEERCRED`, which Python has no names for."""


def listening(directory: str) -> tuple[socket.socket, str]:
    """
    Return a listening socket with a new name in *directory*, which is created if needed, and its path.

    Raises `OSError`.
    """
    path = join(directory, f"{os.getpid()}-{os.urandom(4).hex()}.sock")
    make_folder(directory)
    if os.stat(directory).st_mode & 0o077:
        os.chmod(directory, 0o700)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.setblocking(False)
        # Until its mode is set, the mode of the directory keeps other users out.
        with _short(path) as short:
            made.bind(short)
        os.chmod(path, 0o600)
        made.listen(_BACKLOG)
    except OSError as error:
        made.close()
        with suppress(OSError):
            os.unlink(path)
        raise OSError(error.errno, error.strerror, path) from None
    return made, path


@contextmanager
def _short(path: str) -> Iterator[str]:
    """
    Return a path to the same socket that fits an address. Raises `OSError` if that is not possible.

    On Linux a long path is replaced by one through an open directory.
    """
    if len(os.fsencode(path)) <= LONGEST_PATH:
        yield path
        return
    directory, name = os.path.split(path)
    if not os.path.isdir(_OPEN_FILES):
        raise OSError(ENAMETOOLONG, f"the path of a socket may have {LONGEST_PATH} bytes", path)
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"{_OPEN_FILES}/{descriptor}/{name}"
    finally:
        os.close(descriptor)


def sockets_in(directory: str) -> Iterator[tuple[str, int]]:
    """Yield the path of each socket of this user in *directory*, and the process that made it, oldest name first."""
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return
    for name in names:
        found = _NAME.fullmatch(name)
        if found is not None and _is_ours(join(directory, name)):
            yield join(directory, name), int(found["pid"])


def connected(path: str) -> socket.socket:
    """
    Return a non-blocking connection to the socket at *path*, to a process of this user.

    A socket at which no process listens is removed. Raises `OSError`.
    """
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.setblocking(False)
        with _short(path) as short:
            made.connect(short)
        if not is_own_peer(made):
            raise PermissionError(EPERM, "another user listens there", path)
    except OSError as error:
        made.close()
        if error.errno == ECONNREFUSED and _NAME.fullmatch(os.path.basename(path)) and _is_ours(path):
            with suppress(OSError):
                os.unlink(path)
        raise
    return made


def remove_stale(directory: str) -> None:
    """Remove the sockets of processes that have ended. Running guards are not disturbed."""
    for path, pid in sockets_in(directory):
        if not _runs(pid):
            # In another container the number may belong to a running guard: then the connection is accepted.
            with suppress(OSError):
                connected(path).close()


def is_own_peer(connection: socket.socket) -> bool:
    """Whether the process at the other end has our user id; true where the system does not say."""
    uid = _peer_uid(connection)
    return uid is None or uid == os.geteuid()


def _peer_uid(connection: socket.socket) -> int | None:
    with suppress(OSError, struct.error):
        if hasattr(socket, "SO_PEERCRED"):
            found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            return int(struct.unpack("3i", found)[1])
        if sys.platform == "darwin":
            # struct xucred: a version, then the user id.
            return int(struct.unpack_from("2I", connection.getsockopt(_MACOS_LEVEL, _MACOS_PEER, 76))[1])
    return None


def _is_ours(path: str) -> bool:
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISSOCK(status.st_mode) and status.st_uid == os.geteuid()


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
