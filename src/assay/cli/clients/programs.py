"""The ``assay`` that a client starts: its path, and whether the path will last."""

import os
import re
import sys
from collections.abc import Mapping
from shutil import which
from typing import Final

from assay.cli.clients.config_files import FileError
from assay.cli.clients.wrapping import is_program

_CACHES: Final = (
    # uvx and `uv run --with` unpack here; `uv cache clean` and `uv cache prune` remove it.
    (re.compile(r"/(?:archive|environments|builds)-v\d+/"), "uv's cache", "uv tool install"),
    # `pipx run` removes what it has not used for 14 days. PIPX_HOME/.cache in older versions.
    (re.compile(r"/(?:pipx/\.cache|\.cache/pipx|Caches/pipx|pipx/Cache)/"), "the cache of pipx run", "pipx install"),
    (re.compile(r"/_npx/"), "the cache of npx", "npm install --global"),
)
"""Caches that another program may empty: their pattern, their name, and the command for a permanent installation."""


def own_program() -> str:
    """Return the full path of the given command, or of the one that is installed with this module."""
    beside = os.path.join(os.path.dirname(sys.executable), "assay")
    for name in (sys.argv[0] if is_program(sys.argv[0]) else None, beside, "assay"):
        path = which(name) if name else None
        if path is not None:
            return os.path.abspath(path)
    raise FileError("cannot find the assay command; give its path with --program")


def check_lasting(path: str) -> None:
    """Raise `FileError` for a *path* inside a cache: once it is emptied, none of the client's servers would start."""
    for each in (path, os.path.realpath(path)):
        for pattern, cache, install in _CACHES:
            if pattern.search(each.replace("\\", "/")):
                raise FileError(
                    f"nothing was written: {path} is in {cache}, which may be emptied at any time; install assay "
                    f"first ({install} …) and run assay wrap again, or give --program assay if assay is on the "
                    "client's PATH"
                )


def is_ours(command: str, env: Mapping[str, object]) -> bool:
    """
    Whether *command*, started with the variables *env*, is this program.

    False for a relative path, whose directory only the client knows, and for an entry with its own PATH.
    """
    bare = os.path.basename(command) == command
    if not bare and not os.path.isabs(command):
        return False
    if bare and any(name.upper() == "PATH" for name in env):
        return False
    path = which(command)
    return path is not None and os.path.realpath(path) == os.path.realpath(own_program())
