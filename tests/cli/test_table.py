"""Tables on a terminal: they fit the window. In a file, nothing is cut."""

import io

from assay.cli.terminal.style import Style, columns
from assay.cli.terminal.table import Column, Row, Table
from kit.rows import rows

RUNS: list[Row] = [
    {"name": "files", "calls": "12", "state": ("writing", "green")},
    {"name": "図書館の検索サーバー", "calls": "3,456", "state": "\x1b[2J"},
]


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        """It is one."""
        return True


def style(width: int = 0, **environment: str) -> Style:
    """The style of a terminal of this *width*, or of a file."""
    return Style(Terminal() if width else io.StringIO(), {"COLUMNS": str(width), **environment})


def table(shown: Style, *, wide: bool = False) -> Table:
    made = Table(shown, [Column("name"), Column("calls", is_number=True), Column("state"), Column("")], RUNS, wide=wide)
    made.fit("name", [(30, ["state"])])
    return made


@rows("shown, wide", [(style(), False), (style(40, NO_COLOR="1"), True)], ids=["file", "wide"])
def test_where_nothing_is_cut_columns_are_as_wide_as_their_cells(shown: Style, *, wide: bool) -> None:
    made = table(shown, wide=wide)
    assert [made.head(), *(line for row in RUNS for line in made.lines(row))] == [
        "name                  calls  state",
        "files                    12  writing",
        "図書館の検索サーバー  3,456  ·[2J",
    ]


def test_a_terminal_has_cut_cells_and_lacks_columns_that_can_be_left_out() -> None:
    """East Asian characters take two columns."""
    made = table(style(40, NO_COLOR="1"))
    assert made.head() == "name                  calls"
    narrow = Table(style(40, NO_COLOR="1"), [Column("name", 9), Column("calls", 5, is_number=True)])
    assert narrow.lines({"name": "図書館の検索サーバー", "calls": "3,456,789"}) == ["図書館の…  3,456,789"]
    assert columns("図書館の…") == 9


def test_a_long_cell_is_wrapped_and_colours_reach_over_the_column() -> None:
    made = Table(style(40, FORCE_COLOR="1"), [Column("who", 6), Column("what", 20, hanging=2)])
    assert made.lines({"who": ("ada", "red"), "what": "a sentence of some words"}) == [
        "\x1b[31mada   \x1b[0m  a sentence of some",
        "          words",
    ]
