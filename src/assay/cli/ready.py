"""Questions to a person, and the file that says that a server is ready."""

import os
import stat
import sys
from typing import Final

from assay.base.atomic_file import replace_file


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


# Some flags do not exist on every platform. With O_NONBLOCK a pipe without a reader is an error, not a wait.
_AS_IT_IS: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def write(path: str, content: bytes) -> None:
    """
    Write *content* to a new file and rename it to *path*. Raises `OSError`.

    A link of that name is replaced, never followed. A device such as `/dev/null`, or a pipe, is written to.
    """
    if _is_file(path):
        replace_file(path, content, lasting=False)
        return
    descriptor = os.open(path, os.O_WRONLY | _AS_IT_IS)
    try:
        os.write(descriptor, content)
    finally:
        os.close(descriptor)


def _is_file(path: str) -> bool:
    """Whether *path* is a file, a link, or does not exist."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return True
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)


def remove(path: str, content: bytes) -> None:
    """Remove the file at *path* if it still has *content*: another server may have replaced it. Raises `OSError`."""
    descriptor = os.open(path, os.O_RDONLY | _AS_IT_IS)
    try:
        ours = stat.S_ISREG(os.fstat(descriptor).st_mode) and os.read(descriptor, len(content) + 1) == content
    finally:
        os.close(descriptor)
    if ours:
        os.unlink(path)
