"""Keys of a terminal, one by one. POSIX."""

import os
import re
import select
import termios
import tty
from collections.abc import Iterator, Sequence
from typing import Any, Final, Self

_NAMES: Final = {
    "\x1b[A": "up", "\x1b[B": "down", "\x1bOA": "up", "\x1bOB": "down", "\x1b[5~": "pageup", "\x1b[6~": "pagedown",
    "\r": "enter", "\n": "enter", "\x7f": "backspace", "\x08": "backspace", "\x1b": "escape", "\x03": "q", "\x04": "q",
}  # fmt: skip

_KEY: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Z]|.", re.DOTALL)


class Keyboard:
    """The keys of the terminal at one descriptor, without waiting for the end of a line."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._before: list[Any] = []
        self.pressed = False
        """Whether there was a key at the last look."""

    def __enter__(self) -> Self:
        self._before = termios.tcgetattr(self._descriptor)
        tty.setcbreak(self._descriptor)
        mode = termios.tcgetattr(self._descriptor)
        # Ctrl-C is a key here, so that the terminal is always restored in order.
        mode[3] &= ~termios.ISIG
        termios.tcsetattr(self._descriptor, termios.TCSANOW, mode)
        return self

    def __exit__(self, *_: object) -> None:
        termios.tcsetattr(self._descriptor, termios.TCSADRAIN, self._before)

    def keys(self, others: Sequence[int], seconds: float) -> Iterator[str]:
        """Wait for a key, or for one of the descriptors *others*, for at most *seconds*; yield the keys."""
        ready, _, _ = select.select([self._descriptor, *others], [], [], seconds)
        self.pressed = self._descriptor in ready
        if self.pressed:
            yield from keys_of(self._read())

    def _read(self) -> bytes:
        try:
            data = os.read(self._descriptor, 1024)
        except OSError:
            data = b""
        # The terminal is gone.
        return data or b"q"


def keys_of(data: bytes) -> Iterator[str]:
    """Yield the keys in *data*: characters, and names of other keys."""
    for found in _KEY.findall(data.decode(errors="replace")):
        if len(found) == 1 or found in _NAMES:
            yield _NAMES.get(found, found)
