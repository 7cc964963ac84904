"""The progress bar: what is on its line, how wide it is, and that nothing else is on it."""

import sys
import threading
from contextlib import suppress
from itertools import count

import pytest

from assay.cli.terminal.progress_bar import ProgressBar, printing
from kit.rows import rows


def become_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make standard error a terminal of 60 columns."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")


def test_a_short_run_has_no_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    become_terminal(monkeypatch)
    now = [0.0]
    with ProgressBar("assay check", 1 << 20, lambda: now[0]) as bar:
        bar.tick(1000)
        assert capsys.readouterr().err == ""
        now[0] = 1.0
        bar.tick(1 << 19)
        assert " 50% 0.5/1.0 MB " in capsys.readouterr().err


@rows(("is_terminal", "term"), [(False, "xterm"), (True, "dumb")])
def test_there_is_no_bar_where_it_cannot_be_erased(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_terminal: bool, term: str
) -> None:
    become_terminal(monkeypatch)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal, raising=False)
    monkeypatch.setenv("TERM", term)
    with ProgressBar("assay check", 1 << 20, count().__next__) as bar:
        for _ in range(5):
            bar.tick(1000)
    assert capsys.readouterr().err == ""


def test_the_rate_and_the_time_left(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    become_terminal(monkeypatch)
    now = [0.0]
    with ProgressBar("assay check", 10_000_000, lambda: now[0]) as bar:
        for _ in range(4):
            now[0] += 1.0
            bar.tick(1_000_000)
        shown = capsys.readouterr().err
        assert shown.endswith(" 40% 4.0/10.0 MB 1.0 MB/s 0:00:06\r")
        # More often than people can see it is not drawn.
        bar.tick(1)
        assert capsys.readouterr().err == ""
        with printing(sys.stderr):
            print("a line", file=sys.stderr)
            print("a part", file=sys.stderr, end="")
        with printing(sys.stderr):
            print(" of a line", file=sys.stderr)
        assert capsys.readouterr().err == "\r\x1b[2Ka line\na part of a line\n"
        now[0] += 1.0
        bar.tick(1)
        assert capsys.readouterr().err.startswith("\r\x1b[2Kassay check ")
    assert capsys.readouterr().err == "\r\x1b[2K"
    bar.tick(1)
    assert capsys.readouterr().err == ""


@rows("total", [0, 10_000_000])
def test_the_bar_is_one_line_in_a_terminal_of_any_width(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], total: int
) -> None:
    become_terminal(monkeypatch)
    for columns in range(1, 60):
        monkeypatch.setenv("COLUMNS", str(columns))
        with ProgressBar("assay check", total, count().__next__) as bar:
            for _ in range(3):
                bar.tick(1_000_000)
        (*lines, end) = capsys.readouterr().err.split("\r")
        assert end == "\x1b[2K"
        assert all("\n" not in each and len(each.removeprefix("\x1b[2K")) <= columns for each in lines)


def test_an_input_of_unknown_size_has_no_share(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    become_terminal(monkeypatch)
    now = [0.0]
    with ProgressBar("assay check", 0, lambda: now[0]) as bar:
        for _ in range(3):
            now[0] += 1.0
            bar.tick(1_000_000)
        assert capsys.readouterr().err.endswith("assay check 3.0 MB 1.0 MB/s 0:00:03\r")


def test_an_interrupt_erases_the_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    become_terminal(monkeypatch)
    threads = threading.active_count()
    with suppress(KeyboardInterrupt), ProgressBar("assay check", 100, count().__next__) as bar:
        bar.tick(10)
        assert threading.active_count() == threads
        raise KeyboardInterrupt
    assert capsys.readouterr().err.endswith("\r\x1b[2K")
