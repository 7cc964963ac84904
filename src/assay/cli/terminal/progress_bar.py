"""A bar on standard error with the share of the input that is read, the rate and the time left. Only on a terminal."""

# ruff: noqa: PLC0415  tqdm is imported for a bar only, which most runs never show

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Self, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable

DELAY: Final = 0.5
"""Seconds until the bar is shown: a short run has none."""

_LOCK: Final = RLock()
"""Held while something is drawn or printed: several threads report what they have read."""


class ProgressBar:
    """The progress of one run. It is shown while it is entered, and erased at the end."""

    _shown: ProgressBar | None = None
    """The bar on the terminal, which anything that is printed has to erase first."""

    def __init__(self, title: str, total: int, clock: Callable[[], float] = monotonic) -> None:
        """*total* is the number of bytes to read; 0 if it is not known."""
        self._title, self._total, self._clock = title, total, clock
        self._read = 0
        self._due = clock() + DELAY
        self._bar: Any = None
        self._is_wanted = sys.stderr.isatty()

    def tick(self, count: int) -> None:
        """Note that *count* more bytes were read."""
        if not self._is_wanted:
            return
        with _LOCK:
            self._read += count
            if self._bar is not None:
                self._bar.update(count)
            elif self._clock() >= self._due:
                self._begin()

    def _begin(self) -> None:
        try:
            from tqdm import tqdm  # type: ignore[import-untyped]
        except ImportError:
            self._is_wanted = False
            return
        # Without its thread, which only looks for bars that have stopped.
        tqdm.monitor_interval = 0
        self._bar = tqdm(
            desc=self._title,
            total=self._total or None,
            initial=self._read,
            unit="B",
            unit_scale=True,
            unit_divisor=1024,
            dynamic_ncols=True,
            leave=False,
            file=sys.stderr,
        )
        ProgressBar._shown = self

    def erase(self) -> None:
        """Remove the bar from the terminal; the next progress draws it again."""
        self._bar.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with _LOCK:
            ProgressBar._shown = None
            if self._bar is not None:
                self._bar.close()
            self._bar, self._is_wanted = None, False


@contextmanager
def printing(stream: TextIO) -> Iterator[None]:
    """Print to *stream* without mixing it with a bar on the same terminal."""
    if ProgressBar._shown is None or not stream.isatty():
        yield
        return
    with _LOCK:
        if ProgressBar._shown is not None:
            ProgressBar._shown.erase()
        yield
        stream.flush()
