"""The progress bar: on a terminal only, and never on the same line as anything else."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from assay.cli.terminal.progress_bar import ProgressBar, printing
from kit.archives import archive

RUN = """# warm start
import sys
from assay.cli.checking import work
from assay.cli.terminal import progress_bar
if __name__ == "__main__":
    progress_bar.DELAY = float(sys.argv.pop(1))
    work.SMALL_INPUT = 0
    from assay.cli.main import main
    sys.exit(main(sys.argv[1:]))
"""


def on_terminal(delay: float, *arguments: str, columns: int = 100, term: str = "xterm") -> str:
    """Run a command with standard output and standard error on one terminal; return what it gets."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    command = [sys.executable, "-c", RUN, str(delay), *arguments]
    environment = {**os.environ, "NO_COLOR": "1", "TERM": term}
    environment.pop("COLUMNS", None)
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        parts = []
        while True:
            try:
                parts.append(os.read(ours, 65536))
            except OSError:
                break
            if not parts[-1]:
                break
        process.wait(60)
    os.close(ours)
    return b"".join(parts).decode()


BAR = re.compile(r"assay check [#.]+ +\d+% [\d.]+/[\d.]+ MB [\d.]+ MB/s \d+:\d{2}:\d{2}\r")


def rendered(text: str) -> list[str]:
    """Return the lines that a terminal shows."""
    screen, row, column = [""], 0, 0
    for part in re.findall(r"\x1b\[[0-9;]*[A-Za-z]|.|\n", text, re.DOTALL):
        if part == "\n":
            row += 1
            if row == len(screen):
                screen.append("")
        elif part == "\r":
            column = 0
        elif part.startswith("\x1b"):
            # The cursor is never hidden, so that a run that is killed does not leave the terminal without one.
            assert part == "\x1b[2K", part
            screen[row] = ""
        else:
            screen[row] = screen[row][:column].ljust(column) + part + screen[row][column + 1 :]
            column += 1
    return [line.rstrip() for line in screen]


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_nothing_is_left_of_the_bar(tmp_path: Path, jobs: str) -> None:
    files = [str(archive(tmp_path / f"{seed}.jsonl", seed, conversations=40, is_cut=False)) for seed in range(3)]
    shown = on_terminal(0, "check", "--all", "--jobs", jobs, *files)
    plain = on_terminal(1e9, "check", "--all", "--jobs", jobs, *files)
    assert BAR.search(shown)
    assert not BAR.search(plain)
    assert rendered(shown) == rendered(plain)


def test_the_bar_fits_the_terminal(tmp_path: Path) -> None:
    files = [str(archive(tmp_path / f"{seed}.jsonl", seed, conversations=40)) for seed in range(3)]
    bars = re.findall(r"\r\x1b\[2K([^\r\n]+)\r(?!\n)", on_terminal(0, "check", *files, columns=45))
    assert bars
    assert {len(each) for each in bars} == {44}


def test_there_is_no_bar_on_a_terminal_that_cannot_erase_it(tmp_path: Path) -> None:
    files = [str(archive(tmp_path / f"{seed}.jsonl", seed, conversations=40)) for seed in range(3)]
    shown = on_terminal(0, "check", *files, term="dumb")
    assert not BAR.search(shown)
    assert "\x1b" not in shown


def test_there_is_no_bar_elsewhere(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.jsonl", 1)
    done = subprocess.run(
        [sys.executable, "-c", RUN, "0", "check", str(path)], capture_output=True, text=True, check=False
    )
    assert not BAR.search(done.stderr + done.stdout)
    assert "\x1b" not in done.stderr + done.stdout


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


@pytest.mark.parametrize("total", [0, 10_000_000])
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
    assert rendered(capsys.readouterr().err) == [""]
