"""Tables as wide as their cells, and a line of progress where people look on."""

import sys
from collections.abc import Sequence
from typing import TextIO


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table: the first column to the left, the others to the right."""
    every = [list(heads), *map(list, rows)]
    widths = [max(len(row[column]) for row in every if column < len(row)) for column in range(len(heads))]
    return "\n".join(_line(row, widths) for row in every) + "\n"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first = f"  {cells[0]:<{widths[0]}}"
    return (first + "".join(f"  {cell:>{width}}" for cell, width in zip(cells[1:], widths[1:], strict=False))).rstrip()


class Progress:
    """What is being measured, on one line of standard error, if that is a terminal."""

    def __init__(self, stream: TextIO = sys.stderr) -> None:
        self._stream = stream if stream.isatty() else None

    def show(self, text: str) -> None:
        """Replace the line with *text*; "" removes it."""
        if self._stream is not None:
            self._stream.write(f"\r\x1b[K{text[:79]}")
            self._stream.flush()


PROGRESS = Progress()
