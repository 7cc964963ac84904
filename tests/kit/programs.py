"""Programs that tests start so often that compiling them each time would be a part of the cost."""

import py_compile
from pathlib import Path

from kit.places import TESTS

COMPILED = TESTS.parent / ".cache" / "programs"
"""Has the same folders as `tests`."""

IMPORTED = ("kit/__init__.py", "kit/bare_json.py")
"""What such programs import of ours."""


def compiled(source: Path) -> Path:
    """
    Return a file that `python FILE` runs as it runs *source*, but without compiling it.

    It has the same name, because a guard names a server by that: Python recognizes what it has compiled by its content.
    What the program imports has to be in the usual form.
    """
    for each in IMPORTED:
        _compile(TESTS / each, (COMPILED / each).with_suffix(".pyc"))
    target = COMPILED / source.relative_to(TESTS)
    _compile(source, target)
    return target


def _compile(source: Path, target: Path) -> None:
    """Do it each time: that takes some milliseconds, and another process may run the earlier one meanwhile."""
    py_compile.compile(str(source), str(target), doraise=True)
