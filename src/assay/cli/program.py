"""How this program was started, for commands in hints."""

import os
import sys


def program() -> str:
    """Return the shortest command that starts this program from here: ``assay``, or ``.venv/bin/assay``."""
    from shutil import which  # noqa: PLC0415 - only where a command is shown

    given = sys.argv[0]
    if os.path.basename(given) != "assay":
        return f"{os.path.basename(sys.executable)} -m assay"
    found = which("assay")
    if found is not None and os.path.realpath(found) == os.path.realpath(given):
        return "assay"
    below = os.path.relpath(given)
    return given if below.startswith("..") else below
