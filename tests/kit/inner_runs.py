"""Runs of pytest inside a test, on tests that are written for it."""

import os
import subprocess
import sys
from pathlib import Path

from kit.places import TESTS

SECONDS = 60


def ran(directory: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Return what pytest makes of the tests in *directory*, without our settings and without plugins."""
    given = {
        "PYTHONPATH": str(TESTS),
        # Most of the time would go into plugins that are of no matter here.
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        # Without a place of its own for temporary files, pytest ends by deleting those of other runs, however many.
        "PYTEST_DEBUG_TEMPROOT": str(directory),
        **environment,
    }
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", os.devnull, f"--rootdir={directory}"]
    return subprocess.run(
        [*words, *options],
        cwd=directory,
        env={**os.environ, **given},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
