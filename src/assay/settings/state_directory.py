"""The directory for Assay's own files on this machine. Reads no file."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

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
