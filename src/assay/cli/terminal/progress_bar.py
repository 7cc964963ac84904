"""A bar on standard error with the share of the input that is read, the rate and the time left. Only on a terminal."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import ClassVar, Final, Self, TextIO

DELAY: Final = 0.5
"""Seconds until the bar is shown: a short run has none."""

_INTERVAL: Final = 0.1
"""Seconds between two drawings: people cannot see more."""

_ERASE: Final = "\r\x1b[2K"
"""Removes the line of the cursor. Nothing else is sent to the terminal but text, so a killed run leaves it usable."""

_WIDEST: Final = 60
"""Columns of the bar itself at most."""


class ProgressBar:
    """The progress of one run. It is shown while it is entered, and erased at the end."""

    _shown: "ClassVar[ProgressBar | None]" = None
    """The bar on the terminal, which anything that is printed has to erase first."""

    def __init__(self, title: str, total: int, clock: Callable[[], float] = monotonic) -> None:
        """*total* is the number of bytes to read; 0 if it is not known."""
        self._title, self._total, self._clock = title, total, clock
        self._read = 0
        self._due = clock() + DELAY
        self._began = clock()
        self._is_drawn = False
        self._is_wanted = sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"

    def tick(self, count: int) -> None:
        """Note that *count* more bytes were read."""
        if not self._is_wanted:
            return
        self._read += count
        now = self._clock()
        if now < self._due:
            return
        self._due = now + _INTERVAL
        ProgressBar._shown = self
        self._is_drawn = True
        columns = 80
        with suppress(OSError, ValueError):
            columns = int(os.environ.get("COLUMNS") or 0) or os.get_terminal_size(sys.stderr.fileno()).columns
        # The cursor waits at the beginning of the line: the "^C" of an interrupt must not begin another one.
        sys.stderr.write(f"{_ERASE}{self._line(now - self._began, columns - 1)}\r")
        sys.stderr.flush()

    def _line(self, seconds: float, width: int) -> str:
        """Return the bar after so many *seconds*, in at most *width* columns: only one line is erased."""
        rate = self._read / max(seconds, 1e-6)
        megabytes = f"{self._read / 1e6:.1f}"
        if not self._total:
            return f"{self._title} {megabytes} MB {rate / 1e6:.1f} MB/s {_clock(seconds)}"[:width]
        share = min(1.0, self._read / self._total)
        left = _clock(max(0, self._total - self._read) / max(rate, 1e-6))
        begin, end = self._title, f"{share:4.0%} {megabytes}/{self._total / 1e6:.1f} MB {rate / 1e6:.1f} MB/s {left}"
        room = min(_WIDEST, width - len(begin) - len(end) - 2)
        bar = f"{'#' * round(room * share):.<{room}} " if room > 1 else ""
        return f"{begin} {bar}{end}"[:width]

    def erase(self) -> None:
        """Remove the bar from the terminal; the next progress draws it again."""
        if self._is_drawn:
            sys.stderr.write(_ERASE)
            sys.stderr.flush()
            self._is_drawn = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        ProgressBar._shown = None
        self.erase()
        self._is_wanted = False


def _clock(seconds: float) -> str:
    minutes, left = divmod(min(int(seconds), 359_999), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{left:02}"


@contextmanager
def printing(stream: TextIO) -> Iterator[None]:
    """Print to *stream* without mixing it with a bar on the same terminal."""
    if ProgressBar._shown is None or not stream.isatty():
        yield
        return
    ProgressBar._shown.erase()
    yield
    stream.flush()
