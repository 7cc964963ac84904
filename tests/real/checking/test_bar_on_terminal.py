"""The progress bar on a real terminal: nothing is left of it."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

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


COLUMNS = 100


def on_terminal(delay: float, *arguments: str) -> str:
    """Run a command with standard output and standard error on one terminal; return what it gets."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    command = [sys.executable, "-c", RUN, str(delay), *arguments]
    environment = {**os.environ, "NO_COLOR": "1", "TERM": "xterm"}
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


def test_nothing_is_left_of_a_bar_on_a_terminal(tmp_path: Path) -> None:
    files = [str(archive(tmp_path / f"{seed}.jsonl", seed, conversations=20, is_cut=False)) for seed in range(3)]
    shown = on_terminal(0, "check", "--all", "--jobs", "2", *files)
    plain = on_terminal(1e9, "check", "--all", "--jobs", "1", *files)
    assert (bool(BAR.search(shown)), BAR.search(plain)) == (True, None)
    assert rendered(shown) == rendered(plain)
    # As wide as the terminal.
    assert {len(each) for each in re.findall(r"\r\x1b\[2K([^\r\n]+)\r(?!\n)", shown)} == {COLUMNS - 1}
