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


def test_a_table_is_cut_on_a_terminal(terminal: TextIO) -> None:
    style = Style(terminal, {})
    assert style.limit == 80
    assert style.cut(LONG, 20) == LONG[:19] + "…"
    assert style.cut("short", 20) == "short"


def test_nothing_is_cut_in_a_file() -> None:
    with open(os.devnull, "w", encoding="utf-8") as file:
        style = Style(file, {"COLUMNS": "60"})
    assert style.limit is None
    assert style.cut(LONG, 20) == LONG
    assert style.width == 60


def test_a_wide_terminal_has_wide_tables_and_readable_prose(terminal: TextIO) -> None:
    termios.tcsetwinsize(terminal, (24, 200))
    style = Style(terminal, {})
    assert (style.limit, style.width) == (200, 120)


def test_the_width_is_that_of_the_stream_not_of_stdout(terminal: TextIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "__stdout__", io.StringIO())
    assert Style(terminal, {}).width == 80


def test_a_terminal_without_an_ellipsis_gets_dots(terminal: TextIO) -> None:
    with open(os.dup(terminal.fileno()), "w", encoding="ascii") as narrow:
        assert Style(narrow, {}).cut(LONG, 20) == LONG[:17] + "..."


@rows("columns", ["", "0", "-5", "many", "²"])
def test_an_odd_columns_variable_is_ignored(terminal: TextIO, columns: str) -> None:
    assert Style(terminal, {"COLUMNS": columns}).width == 80
