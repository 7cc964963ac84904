"""The progress bar: on a terminal only, and never on the same line as anything else."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from assay.cli.terminal import progress_bar
from assay.cli.terminal.progress_bar import ProgressBar, printing
from kit.archives import archive

RUN = """# warm start
import sys
from assay.cli.checking import work_plan
from assay.cli.terminal import progress_bar
if __name__ == "__main__":
    progress_bar.DELAY = float(sys.argv.pop(1))
    work_plan.SMALL_INPUT = 0
    from assay.cli.main import main
    sys.exit(main(sys.argv[1:]))
"""


def on_terminal(delay: float, *arguments: str) -> str:
    """Run a command with standard output and standard error on one terminal of 100 columns; return what it gets."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 100, 0, 0))
    command = [sys.executable, "-c", RUN, str(delay), *arguments]
    environment = {**os.environ, "NO_COLOR": "1", "TERM": "xterm"}
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
        elif part == "\x1b[A":
            row = max(0, row - 1)
        elif part.startswith("\x1b"):
            assert part == "\x1b[K", part
            screen[row] = screen[row][:column]
        else:
            screen[row] = screen[row][:column].ljust(column) + part + screen[row][column + 1 :]
            column += 1
    return [line.rstrip() for line in screen]


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_nothing_is_left_of_the_bar(tmp_path: Path, jobs: str) -> None:
    files = [str(archive(tmp_path / f"{seed}.jsonl", seed, conversations=40, is_cut=False)) for seed in range(3)]
    shown = on_terminal(0, "check", "--all", "--jobs", jobs, *files)
    plain = on_terminal(1e9, "check", "--all", "--jobs", jobs, *files)
    # At its first appearance the bar has no rate yet.
    assert re.search(r"assay check: +\d+%\|.*\| [\d.]+[kM]?/[\d.]+[kM] \[\d\d:\d\d<\S+, +(\?|[\d.]+[kM]?)B/s\]", shown)
    assert "%|" not in plain
    assert rendered(shown) == rendered(plain)


def test_there_is_no_bar_elsewhere(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.jsonl", 1)
    done = subprocess.run(
        [sys.executable, "-c", RUN, "0", "check", str(path)], capture_output=True, text=True, check=False
    )
    assert "%|" not in done.stderr + done.stdout
    code = (
        f"import sys; sys.argv = ['x', '0', 'check', {str(path)!r}]\ntry: exec({RUN!r})\nfinally: print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "assay.cli.check" in done.stdout
    assert "tqdm" not in done.stdout.splitlines()[-1].split()


def test_without_the_library_there_is_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(progress_bar, "DELAY", 0)
    with ProgressBar("assay check", 100) as bar:
        bar.tick(10)
        bar.tick(10)
        with printing(sys.stderr):
            pass


def test_a_short_run_has_no_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    now = [0.0]
    with ProgressBar("assay check", 1 << 20, lambda: now[0]) as bar:
        bar.tick(1000)
        assert capsys.readouterr().err == ""
        now[0] = 1.0
        bar.tick(1 << 19)
        assert "assay check:  50%" in capsys.readouterr().err
