"""Our command as a process that ends by itself: what it prints, and its exit status."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ASSAY = [sys.executable, "-m", "assay"]
SECONDS = 60
"""What a command may take; most take a tenth of a second."""


def assay(
    *arguments: str,
    said: bytes | str = b"",
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
    **variables: str,
) -> subprocess.CompletedProcess[bytes]:
    """Run `assay ARGUMENTS…` with *said* on standard input. *variables* come on top of *env*, or of our own."""
    return subprocess.run(
        [*ASSAY, *arguments],
        input=said.encode() if isinstance(said, str) else said,
        capture_output=True,
        check=False,
        timeout=SECONDS,
        cwd=cwd,
        env={**(os.environ if env is None else env), **variables},
    )


def assay_text(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run `assay ARGUMENTS…` as `assay` does, all in text."""
    done = assay(*arguments, **options)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def variables_but(*prefixes: str) -> dict[str, str]:
    """Return our environment without the variables that begin with one of *prefixes*."""
    return {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
