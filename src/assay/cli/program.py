"""The program itself: its name, its help, and the systems that a command runs on."""

import argparse
import os
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Final

NEED_POSIX: Final = frozenset({"call", "console", "demo", "guard", "lock", "serve", "top"})
"""The commands that need Linux or macOS."""

_USED: Final = (("fcntl", "flock"), ("os", "killpg"), ("select", "poll"), ("signal", "SIGHUP"), ("signal", "SIGKILL"))
"""The parts of POSIX that those commands use: a module, and a name in it."""


def refusal(command: str) -> str | None:
    """The reason why *command* cannot run on this system; None if it can."""
    if command not in NEED_POSIX or all(_has(module, name) for module, name in _USED):
        return None
    return f"assay {command} needs Linux or macOS for now"


def _has(module: str, name: str) -> bool:
    try:
        return hasattr(import_module(module), name)
    except ImportError:
        return False


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


_WIDEST: Final = 100
"""Maximal width of prose in columns: longer lines are hard to read."""

_APART: Final = "Exit status"
"""A line that begins with this starts a new paragraph."""


_CODE: Final = re.compile("`[^`]*`")
_SPACE: Final = "\0"
"""Placeholder for a space inside code while a paragraph is wrapped, so that code is not split over lines."""


class HelpFormatter(argparse.HelpFormatter):
    """Wraps descriptions and epilogs by paragraph."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(indent + line for line in _filled(text, min(width, _WIDEST)))


def _filled(text: str, width: int) -> Iterator[str]:
    from textwrap import fill  # noqa: PLC0415 - every command has this module, and few print their help

    for paragraph in _paragraphs(text.splitlines()):
        if not paragraph or paragraph.startswith(" "):
            yield paragraph
            continue
        whole = _CODE.sub(lambda found: found[0].replace(" ", _SPACE), paragraph)
        yield fill(whole, width, break_long_words=False, break_on_hyphens=False).replace(_SPACE, " ")


def _paragraphs(lines: list[str]) -> Iterator[str]:
    """Yield paragraphs: consecutive lines of prose joined, any other line alone."""
    prose: list[str] = []
    for line in lines:
        joins = line and not line.startswith((" ", _APART))
        if prose and not joins:
            yield " ".join(prose)
            prose = []
        if joins or line.startswith(_APART):
            prose.append(line)
        else:
            yield line
    if prose:
        yield " ".join(prose)
