"""The directory for what Assay remembers on this machine from one run to the next. Reads no file."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

NAME = "assay"


def state_directory(environ: Mapping[str, str], platform: str = sys.platform) -> Path | None:
    """
    The directory of this user, whether or not it exists yet; None if the environment does not tell.

    A relative path does not count (XDG Base Directory Specification): it would be below the working directory, and
    that may be a stranger's.
    """
    if platform == "win32":
        return _below(environ.get("LOCALAPPDATA"), NAME)
    home = environ.get("HOME")
    if platform == "darwin":
        return _below(home, "Library", "Application Support", NAME)
    return _below(environ.get("XDG_STATE_HOME"), NAME) or _below(home, ".local", "state", NAME)


def _below(base: str | None, *parts: str) -> Path | None:
    return Path(base, *parts) if base and os.path.isabs(base) else None
