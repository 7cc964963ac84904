"""
Tables for a terminal. There a table fits the window: cells are cut or wrapped, and columns are left out.

In a file, and with --wide, nothing is cut and every column is there, so that each line is complete.
"""

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Final, NamedTuple

from assay.cli.terminal.style import Style, columns
from assay.model.printable import plain

_GAP: Final = "  "

_READABLE: Final = 20
"""Minimal width of a column in which a long word is kept whole, so that it can be copied."""

Row = Mapping[str, str | tuple[str, str]]
"""The cells of a row by the names of their columns: a text, or a text and its colour."""


class Column(NamedTuple):
    """A column of a table."""

    name: str
    width: int = 0
    """In a file a longer cell shifts the columns after it."""
    is_number: bool = False
    """Whether its cells are aligned to the right, and never cut."""
    hanging: int | None = None
    """A long cell is wrapped, with this indent of its further lines; with None it is cut."""


class Table:
    """The layout of a table, whose rows may come one by one."""

    def __init__(self, style: Style, given: Sequence[Column], rows: Sequence[Row] = (), *, wide: bool = False) -> None:
        """If the *rows* are known, each column is as wide as its name and its cells; one without any is left out."""
        self._style = style
        self._limit = None if wide else style.limit
        self._columns = list(given)
        if rows:
            known = [_head(given), *rows]
            widths = [max(columns(plain(_text(row, each.name))) for row in known) for each in given]
            self._columns = [each._replace(width=width) for each, width in zip(given, widths, strict=True) if width]

    def room(self, name: str) -> int | None:
        """Return the width that the other columns leave for the column *name*; None if nothing is cut."""
        others = sum(each.width + len(_GAP) for each in self._columns if each.name != name)
        return None if self._limit is None else self._limit - others

    def fit(self, name: str, expendable: Sequence[tuple[int, Sequence[str]]]) -> None:
        """
        Narrow the column *name* to the window.

        Each row of *expendable* has a width, and the columns to leave out while there is less room for *name*.
        """
        for least, names in expendable:
            room = self.room(name)
            if room is not None and room < least:
                self._columns = [each for each in self._columns if each.name not in names]
        room = self.room(name)
        if room is not None:
            [(place, column)] = [each for each in enumerate(self._columns) if each[1].name == name]
            self._columns[place] = column._replace(width=min(column.width, max(len(name), room)))

    def head(self, colour: str = "dim") -> str:
        """Return the line with the names of the columns."""
        return self._style.paint(self.lines(_head(self._columns))[0], colour)

    def lines(self, row: Row) -> list[str]:
        """Return the lines of a row, safe for a terminal."""
        shown = [self._shown(plain(_text(row, each.name)), each) for each in self._columns]
        lines = []
        for number in range(max(map(len, shown))):
            cells = []
            for column, texts in zip(self._columns, shown, strict=True):
                text = texts[number] if number < len(texts) else ""
                space = " " * (column.width - columns(text))
                cell = f"{space}{text}" if column.is_number else f"{text}{space}"
                given = row.get(column.name, "")
                cells.append(cell if isinstance(given, str) or not text else self._style.paint(cell, given[1]))
            lines.append(_GAP.join(cells).rstrip())
        return lines

    def _shown(self, text: str, column: Column) -> tuple[str, ...]:
        """Return the lines of a cell."""
        if column.hanging is not None:
            is_narrow, indent = column.width < _READABLE, " " * column.hanging
            return tuple(
                wrap(text, column.width, subsequent_indent=indent, break_long_words=is_narrow, break_on_hyphens=False)
            )
        return (text if self._limit is None or column.is_number else self._style.cut(text, column.width),)


def _text(row: Row, name: str) -> str:
    cell = row.get(name, "")
    return cell if isinstance(cell, str) else cell[0]


def _head(given: Sequence[Column]) -> Row:
    return {each.name: each.name for each in given}
