"""What is printed on a terminal of 80 columns, and in a file, which has no end of line."""

import argparse
from collections.abc import Iterator

import pytest

from assay.cli import main
from assay.model.printable import MARKS
from kit.command import assay_text
from kit.places import ROOT
from kit.rows import rows

SAMPLE = str(ROOT / "examples" / "conversation.jsonl")
DIFF = "schemas diff 2025-06-18 2025-11-25"


def on_terminal(command: str) -> list[str]:
    """The lines that a command prints on a terminal, without colours."""
    return assay_text(*command.split(), on_terminal=True, COLUMNS="80", NO_COLOR="1").stdout.splitlines()


@rows("command", ["--help", f"check {SAMPLE}", "rules", "explain contract/schema", DIFF])
def test_lines_fit_a_terminal_of_80_columns(command: str) -> None:
    lines = on_terminal(command)
    assert lines
    assert [line for line in lines if len(line) > 80] == []


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A parser and those of its commands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from parsers(each)


def test_the_help_of_every_command_fits_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for samples of JSON, which is one line as it is printed."""
    monkeypatch.setenv("COLUMNS", "80")
    for each in parsers(main.parser()):
        lines = each.format_help().splitlines()
        assert [line for line in lines if len(line) > 80 and not line.startswith("  {")] == [], each.prog


def test_a_comparison_of_revisions_has_whole_lines_in_a_file() -> None:
    assert "createdAt, lastUpdatedAt, ttl, pollInterval?}" in assay_text(*DIFF.split(), COLUMNS="80").stdout


def test_colours_are_for_terminals_and_respect_no_color() -> None:
    for is_terminal, variables, coloured in (
        (False, {}, False),
        (False, {"FORCE_COLOR": "1"}, True),
        (False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (True, {"TERM": "xterm"}, True),
        (True, {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (True, {"TERM": "dumb"}, False),
    ):
        given = {"NO_COLOR": "", "FORCE_COLOR": "", "COLUMNS": "100", **variables}
        shown = assay_text("rules", on_terminal=is_terminal, **given).stdout
        assert ("\x1b[" in shown) is coloured, variables


@rows("columns", ["", "0", "-5", "many", "²"])
def test_an_odd_width_is_no_width(columns: str) -> None:
    assert assay_text("rules", on_terminal=True, COLUMNS=columns).returncode == 0


def test_every_character_of_our_own_has_a_mark() -> None:
    """Beyond ASCII: in text, not in comments, docstrings and what peers write."""
    ours = set()
    for path in (ROOT / "src" / "assay").rglob("*.py"):
        for line in path.read_text(encoding="utf-8").splitlines():
            if not line.isascii() and not line.lstrip().startswith(("#", '"""')) and '"' in line:
                ours |= {each for each in line.partition("  #")[0] if not each.isascii()}
    assert ours - set(MARKS) <= {"─", "µ", "ſ", "⁷", "°"}
