"""The program itself: its name, its help, the systems that a command runs on, and what commands share."""

import argparse
import gc
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from shutil import which
from textwrap import fill
from typing import Final

from assay.cli.terminal.progress_bar import printing
from assay.model.printable import plain

NEED_POSIX: Final = frozenset({"call", "console", "demo", "guard", "lock", "serve"})
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
    given = sys.argv[0]
    if os.path.basename(given) != "assay":
        return f"{os.path.basename(sys.executable)} -m assay"
    found = which("assay")
    if found is not None and os.path.realpath(found) == os.path.realpath(given):
        return "assay"
    below = os.path.relpath(given)
    return given if below.startswith("..") else below


def open_standard_streams() -> None:
    """Open closed standard streams on /dev/null. Otherwise the next opened file would become one of them."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def leave_what_lasts() -> None:
    """
    Exclude permanent objects from garbage collection, and run it less often.

    Messages have no reference cycles, so they are freed without it; the search took a tenth of the CPU time.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    gc.enable()


def say(line: str, command: str = "", shown: Callable[[str], str] = plain) -> None:
    """
    Print one line to stderr after buffered output, without control characters; a progress bar is erased first.

    The line begins with *command*, if it is given. A failed write is ignored; a service goes on.
    """
    if sys.stderr is None:
        return
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    text = shown(f"assay {command}: {line}" if command else line)
    with suppress(OSError, ValueError), printing(sys.stderr):
        # In one write: a guard shares this stderr, and its own line could come before the end of ours.
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def speaker(command: str, shown: Callable[[str], str] = plain) -> Callable[[str], None]:
    """Return what prints the lines of *command* on stderr."""
    return lambda line: say(line, command, shown)


def has_terminal() -> bool:
    """Whether there is a terminal to ask on."""
    return sys.stdin is not None and sys.stdin.isatty()


def agreed(question: str) -> bool:
    """Ask *question* on the terminal; return whether the answer is yes. Buffered output is printed first."""
    sys.stdout.flush()
    try:
        print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
        answer = sys.stdin.readline()
    except KeyboardInterrupt:
        # The terminal shows ^C after the question and stays on that line.
        print(file=sys.stderr)
        raise
    return answer.strip().lower() in {"y", "yes"}


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
