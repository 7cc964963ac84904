"""
The folder of each guarded server: its journals, and below `flights` the last messages of sessions that broke.

Every client starts its servers in another directory. So the folders are in the state directory of the user, where a
server has the same folder for every client.
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
"""The directory of the folders, below the state directory."""

FLIGHTS: Final = "flights"
"""The directory of the flights, below the folder of a server."""

UNKNOWN: Final = "there is no state directory: HOME is not set, or not an absolute path"


def servers_directory(environ: Mapping[str, str]) -> str | None:
    """Return the directory of all server folders, which need not exist; None without a state directory."""
    state = state_directory(environ)
    return None if state is None else str(state / SERVERS)


def server_folder(environ: Mapping[str, str], name: str) -> str | None:
    """Return the folder of the server called *name*, which need not exist; None without a state directory."""
    servers = servers_directory(environ)
    return None if servers is None else join(servers, folder_of(name))


def make_folder(folder: str) -> None:
    """
    Create *folder* and its missing parents, for this user alone. Raises `OSError`.

    A folder of another user, or a link in its place, is refused: its creator could read what is written to it, or
    make us write and remove files elsewhere.
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
