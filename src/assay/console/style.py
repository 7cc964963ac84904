"""Colours and wrapping for terminals. Plain text everywhere else, and wherever NO_COLOR asks for it."""

import os
from collections.abc import Mapping
from shutil import get_terminal_size
from textwrap import wrap
from typing import TextIO

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}

NARROWEST = 40
WIDEST = 120


class Style:
    """How text is shown on one stream."""

    def __init__(self, stream: TextIO, environment: Mapping[str, str] = os.environ) -> None:
        self.colours = _wants_colours(stream, environment)
        self.width = max(NARROWEST, min(get_terminal_size((100, 24)).columns, WIDEST))

    def paint(self, text: str, *names: str) -> str:
        """*text* in the colours named, or as it is."""
        if not self.colours or not names:
            return text
        return f"\x1b[{';'.join(_CODES[name] for name in names)}m{text}\x1b[0m"

    def wrapped(self, text: str, indent: int) -> list[str]:
        """*text* in lines that fit, each indented; a long word is kept whole, so that it can be copied."""
        margin = " " * indent
        return wrap(
            text,
            self.width,
            initial_indent=margin,
            subsequent_indent=margin,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [margin]


def _wants_colours(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """By the conventions of no-color.org: NO_COLOR wins, FORCE_COLOR next, else a terminal that is not dumb."""
    if environment.get("NO_COLOR"):
        return False
    if environment.get("FORCE_COLOR"):
        return True
    return stream.isatty() and environment.get("TERM") != "dumb"
