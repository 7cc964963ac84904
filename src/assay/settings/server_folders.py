"""
The folder of each guarded server: its journals, and below `flights` the last messages of sessions that broke.

Every client starts its servers in a directory of its own choice. So this is in the state directory of the user, where
one folder a server is found again whoever started it.
"""

import errno
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from os.path import dirname, isdir, join
from typing import Final

from assay.base.server_names import folder_of
from assay.settings.state_directory import state_directory

SERVERS: Final = "servers"
"""The directory below the state directory that has the folders."""

FLIGHTS: Final = "flights"
"""The directory below a folder that has its flights."""

UNKNOWN: Final = "there is no state directory: HOME is not set, or not an absolute path"


def servers_directory(environ: Mapping[str, str]) -> str | None:
    """Return the directory that has the folder of every server, whether or not it exists; None if nothing names it."""
    state = state_directory(environ)
    return None if state is None else str(state / SERVERS)


def server_folder(environ: Mapping[str, str], name: str) -> str | None:
    """Return the folder of the server called *name*, whether or not it exists; None if nothing names it."""
    servers = servers_directory(environ)
    return None if servers is None else join(servers, folder_of(name))


def make_folder(folder: str) -> None:
    """
    Create *folder*, and what is missing above it, for this user alone. Raises `OSError`.

    A folder of another user, or a link in its place, is refused: whoever made it could read what is written to it, or
    lead us to write and remove files elsewhere.
    """
    missing = []
    path = folder
    while not isdir(path) and dirname(path) != path:
        missing.append(path)
        path = dirname(path)
    for each in reversed(missing):
        # Another guard may create it at the same time.
        with suppress(FileExistsError):
            os.mkdir(each, 0o700)
    for each in (dirname(folder), folder):
        _check_own(each)


def _check_own(directory: str) -> None:
    status = os.lstat(directory)
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, "it is a symbolic link", directory)
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), directory)
    if os.name == "posix" and status.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "it belongs to another user", directory)
