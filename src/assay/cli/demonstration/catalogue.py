"""The directory of the bundled asset schemas and examples. Reads no file."""

from pathlib import Path


def catalogue() -> Path:
    """Return the directory: in an installed package it is beside this file, in a checkout below ``examples``."""
    here = Path(__file__).parent
    installed = here / "catalogue"
    return installed if installed.is_dir() else here.parents[3] / "examples" / "catalogue"
