"""
Colours and widths for terminals. Plain text everywhere else, and with NO_COLOR.

Two widths: prose is wrapped to `Style.width` everywhere. A table is cut at `Style.limit`, but only on a terminal: in a
file or a pipe nothing is cut, because a program or an editor can handle long lines.
"""

import os
from collections.abc import Mapping
from textwrap import wrap
from typing import TextIO
from unicodedata import combining, east_asian_width

from assay.model.printable import ERRORS

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "magenta": "35", "cyan": "36"}

NARROWEST = 40
WIDEST = 120
"""Maximal width of prose in columns: longer lines are hard to read."""


class Style:
    """How text is shown on one stream."""

    colours: bool
    """Whether text is coloured."""
    width: int
    """Width of prose in columns."""
    limit: int | None
    """Maximal width of a table in columns: that of the terminal; None if nothing is cut."""

    def __init__(self, stream: TextIO, environment: Mapping[str, str] = os.environ) -> None:
        columns = _columns(stream, environment)
        self.colours = _wants_colours(stream, environment)
        self.width = max(NARROWEST, min(columns, WIDEST))
        self.limit = max(NARROWEST, columns) if stream.isatty() else None
        self._encoding = stream.encoding or "utf-8"
        self._ellipsis = "…"
        try:
            "…".encode(self._encoding)
        except UnicodeEncodeError:
            self._ellipsis = "..."

    def cut(self, text: str, width: int) -> str:
        """Return *text*, on a terminal cut to *width* columns with an ellipsis."""
        if self.limit is None or columns(text) <= width:
            return text
        # A character takes a column or two, so no more than these have to be measured.
        text = text[: max(0, width - len(self._ellipsis))]
        while columns(text) > width - len(self._ellipsis) > 0:
            text = text[:-1]
        return text + self._ellipsis

    def carried(self, text: str) -> str:
        """Return *text* as the stream shows it, which may be longer: what its encoding lacks is escaped."""
        return text if text.isascii() else text.encode(self._encoding, ERRORS).decode(self._encoding)

    def paint(self, text: str, *names: str) -> str:
        """Return *text* in these colours; unchanged if colours are off."""
        if not self.colours or not names:
            return text
        return f"\x1b[{';'.join(_CODES[name] for name in names)}m{text}\x1b[0m"

    def wrapped(self, text: str, indent: int, hanging: int = 0) -> list[str]:
        """
        Return *text* wrapped and indented, all lines but the first by *hanging* more.

        A long word is kept whole, so that it can be copied.
        """
        margin = " " * indent
        return wrap(
            text,
            self.width,
            initial_indent=margin,
            subsequent_indent=margin + " " * hanging,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [margin]


def columns(text: str) -> int:
    """Return the number of columns of printable *text* on a terminal: East Asian characters take two."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(each) else 2 if east_asian_width(each) in "WF" else 1 for each in text)


_UNKNOWN_WIDTH = 100
"""Width in columns if there is no terminal."""


def _columns(stream: TextIO, environment: Mapping[str, str]) -> int:
    """Return the width of *stream*: COLUMNS, else that of its terminal. (`shutil` checks only stdout.)"""
    given = environment.get("COLUMNS", "")
    if given.isascii() and given.isdigit() and int(given[:6]):
        return int(given[:6])
    try:
        return os.get_terminal_size(stream.fileno()).columns or _UNKNOWN_WIDTH
    except (OSError, ValueError):
        return _UNKNOWN_WIDTH


def _wants_colours(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Whether to use colours (no-color.org): NO_COLOR wins, then FORCE_COLOR, else only a terminal that is not dumb."""
    if environment.get("NO_COLOR"):
        return False
    if environment.get("FORCE_COLOR"):
        return True
    return stream.isatty() and environment.get("TERM") != "dumb"
