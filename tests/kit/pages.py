"""The pages of the documentation: their fenced blocks, their prose, and the commands that they show."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from kit.places import ROOT

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]

ELIDED = "…"
"""Alone on a line of a sample's output, it stands for any lines."""


def name_of(page: Path) -> str:
    """Return the path of *page* in the checkout."""
    return str(page.relative_to(ROOT))


class Block(NamedTuple):
    """A fenced block: its language, the number of its first line in the page, and its lines."""

    language: str
    start: int
    lines: tuple[str, ...]


class Sample(NamedTuple):
    """A command, and what the page says it prints."""

    start: int
    command: str
    printed: tuple[str, ...]


@cache
def text_of(page: Path) -> str:
    """Return the text of *page*."""
    return page.read_text(encoding="utf-8")


@cache
def parts(page: Path) -> tuple[tuple[Block, ...], tuple[str, ...]]:
    """Return the fenced blocks of *page*, and the lines outside of them."""
    blocks: list[Block] = []
    prose: list[str] = []
    held: list[str] = []
    fence, language, start = "", "", 0
    for number, line in enumerate(text_of(page).splitlines(), 1):
        opening = re.match(r"\s*(`{3,})\s*(\S*)", line)
        if fence and line.strip() == fence:
            blocks.append(Block(language, start, tuple(held)))
            fence = ""
        elif fence:
            held.append(line)
        elif opening:
            fence, language, start, held = opening[1], opening[2], number + 1, []
        else:
            prose.append(line)
    assert not fence, f"{name_of(page)}:{start}: a fence that is not closed"
    return tuple(blocks), tuple(prose)


def blocks_of(page: Path, language: str) -> list[Block]:
    """Return the blocks of *page* in this language."""
    return [block for block in parts(page)[0] if block.language == language]


def samples_of(page: Path) -> Iterator[Sample]:
    """Yield the commands of *page*: lines after `$`, those that end in a backslash with what follows."""
    for block in blocks_of(page, "console"):
        waiting = list(enumerate(block.lines, block.start))
        while waiting:
            number, line = waiting.pop(0)
            assert line.startswith("$ "), f"{name_of(page)}:{number}: output without a command"
            command = line.removeprefix("$ ")
            while command.endswith("\\"):
                command += "\n" + waiting.pop(0)[1]
            printed: list[str] = []
            while waiting and not waiting[0][1].startswith("$ "):
                printed.append(waiting.pop(0)[1].rstrip())
            yield Sample(number, command, tuple(without_blank_end(printed)))


def without_blank_end(lines: list[str]) -> list[str]:
    """Return *lines* but for empty ones at the end."""
    while lines and not lines[-1]:
        lines = lines[:-1]
    return lines


def matches(printed: tuple[str, ...], actual: tuple[str, ...]) -> bool:
    """Return whether *actual* is what was printed, `…` standing for any lines."""
    pattern = "".join("(?:.*\n)*?" if line == ELIDED else re.escape(line) + "\n" for line in printed)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in actual)) is not None
