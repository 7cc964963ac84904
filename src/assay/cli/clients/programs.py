"""The ``assay`` that a client is to start: where it is, and whether it will still be there tomorrow."""

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
"""Directories that another program empties without asking: their pattern, their name, and how to install for good."""


def own_program() -> str:
    """Return the whole path of the command that was given, or of the one that is installed with this module."""
    beside = os.path.join(os.path.dirname(sys.executable), "assay")
    for name in (sys.argv[0] if is_program(sys.argv[0]) else None, beside, "assay"):
        path = which(name) if name else None
        if path is not None:
            return os.path.abspath(path)
    raise FileError("the command assay is not installed where it can be found; name it with --program")


def check_lasting(path: str) -> None:
    """Refuse a *path* inside a cache: once that is emptied, none of the client's servers starts. Raises `FileError`."""
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
    Whether a client that starts *command* with the variables *env* starts this very program.

    A relative path is looked for in a directory that only the client knows, and a PATH of its own leads anywhere.
    """
    bare = os.path.basename(command) == command
    if not bare and not os.path.isabs(command):
        return False
    if bare and any(name.upper() == "PATH" for name in env):
        return False
    path = which(command)
    return path is not None and os.path.realpath(path) == os.path.realpath(own_program())
