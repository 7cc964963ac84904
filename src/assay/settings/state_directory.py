"""The directory for what Assay keeps on this machine, and the folder of each server in it."""

import errno
import os
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from os.path import dirname, isdir, join
from pathlib import Path
from typing import Final

from assay.model.names import folder_of

NAME = "assay"


def state_directory(environ: Mapping[str, str], platform: str = sys.platform) -> Path | None:
    """
    Return the state directory of this user, which need not exist yet; None if the environment does not have it.

    A relative path is ignored (XDG Base Directory Specification): it would be below the working directory, which may
    be untrusted.
    """
    if platform == "win32":
        return _below(environ.get("LOCALAPPDATA"), NAME)
    home = environ.get("HOME")
    if platform == "darwin":
        return _below(home, "Library", "Application Support", NAME)
    return _below(environ.get("XDG_STATE_HOME"), NAME) or _below(home, ".local", "state", NAME)


def _below(base: str | None, *parts: str) -> Path | None:
    return Path(base, *parts) if base and os.path.isabs(base) else None


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
