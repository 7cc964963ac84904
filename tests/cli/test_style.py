"""Widths and colours: a terminal has an end of line, a file has none."""

import io
import os
import pty
import sys
import termios
from collections.abc import Iterator
from typing import TextIO

import pytest

from assay.cli.terminal.style import Style
from kit.rows import rows

LONG = "expected ping, until notifications/initialized, found tools/call " * 3


@pytest.fixture
def terminal() -> Iterator[TextIO]:
    """A terminal of 80 columns."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (24, 80))
    with open(slave, "w", encoding="utf-8") as stream:
        yield stream
    os.close(master)


@rows("columns, width", [(80, 80), (200, 120)])
def test_a_terminal_has_cut_tables_and_readable_prose(
    terminal: TextIO, monkeypatch: pytest.MonkeyPatch, columns: int, width: int
) -> None:
    """The width is that of the stream, whatever standard output and an odd variable say."""
    monkeypatch.setattr(sys, "__stdout__", io.StringIO())
    termios.tcsetwinsize(terminal, (24, columns))
    for variable in ("", "0", "-5", "many", "²"):
        style = Style(terminal, {"COLUMNS": variable})
        assert (style.limit, style.width) == (columns, width)
    assert style.cut(LONG, 20) == LONG[:19] + "…"
    assert style.cut("short", 20) == "short"
    assert style.cut("図書館の検索", 9) == "図書館の…", "East Asian characters take two columns"
    with open(os.dup(terminal.fileno()), "w", encoding="ascii") as narrow:
        assert Style(narrow, {}).cut(LONG, 20) == LONG[:17] + "..."


def test_nothing_is_cut_in_a_file() -> None:
    style = Style(io.StringIO(), {"COLUMNS": "60"})
    assert (style.limit, style.width) == (None, 60)
    assert style.cut(LONG, 20) == LONG
