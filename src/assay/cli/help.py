"""The layout of ``--help``: prose fits the terminal, and what is indented stays as it is written."""

import argparse
import re
from collections.abc import Iterator
from typing import Final

_WIDEST: Final = 100
"""Columns of prose at most: longer lines are hard to read."""

_APART: Final = "Exit status"
"""Begins a paragraph of its own."""


_CODE: Final = re.compile("`[^`]*`")
_SPACE: Final = "\0"
"""Stands for a space of code, which is not broken over lines, while a paragraph is wrapped."""


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
    """Lines of prose that follow each other, joined; any other line by itself."""
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
