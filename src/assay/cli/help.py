"""The layout of ``--help``: prose is wrapped to the terminal, indented lines stay as written."""

import argparse
import re
from collections.abc import Iterator
from typing import Final

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
