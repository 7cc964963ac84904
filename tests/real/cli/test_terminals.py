"""Questions on a real terminal: what is typed is not shown, and ^C ends the command where it is."""

import os
import pty
import select
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from assay.edges.auth.api_keys import written_hash
from kit.client_files import PROGRAM

SECONDS = 60

CONTROLLED = (
    "import fcntl, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "from assay.cli.main import main; sys.exit(main())"
)
"""Only a terminal that controls the session makes ^C a signal."""


def on_terminal(*arguments: str, env: Mapping[str, str], question: bytes, answers: tuple[str, ...]) -> tuple[int, str]:
    """Return the status, and what a terminal shows; each question is answered with the next of *answers*."""
    typed = iter(answers)
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", CONTROLLED, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=env,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        shown = b""
        while more := _read(ours, process):
            shown += more
            if shown.endswith(question):
                os.write(ours, next(typed).encode())
        status = process.wait(timeout=SECONDS)
    os.close(ours)
    return status, shown.decode().replace("\r\n", "\n")


def _read(terminal: int, process: subprocess.Popen[bytes]) -> bytes:
    if not select.select([terminal], [], [], SECONDS)[0]:
        process.kill()
    try:
        return os.read(terminal, 4096)
    except OSError:
        # Linux says so once the last process has closed the other side.
        return b""


def test_a_key_that_is_typed_is_not_shown() -> None:
    key = "assay_mfrggzdfmztwq2lknnwg23tpobyxe43u"
    status, shown = on_terminal("keys", "hash", env=os.environ, question=b"key: ", answers=(f"{key}\n",))
    assert status == 0
    assert shown.rstrip().endswith(written_hash(key.encode()))
    assert key not in shown


def test_an_interrupted_run_says_what_was_written(tmp_path: Path) -> None:
    """Answers are taken one by one; the shell goes on below the question."""
    for name, path in (("a", ".claude.json"), ("b", ".cursor/mcp.json")):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(f'{{"mcpServers": {{"{name}": {{"command": "{name}"}}}}}}')
    env = {**os.environ, "HOME": str(tmp_path), "NO_COLOR": "1", "COLUMNS": "200"}
    status, shown = on_terminal(
        "wrap", "--all", "--program", PROGRAM, env=env, question=b"[y/N] ", answers=("y\n", "\x03")
    )
    assert status == 130
    assert "\nassay wrap: beside each file, FILE.assay-backup has the original servers; assay unwrap uses" in shown
    assert shown.endswith("assay wrap: 1 file, 1 server behind the guard. Undo: assay unwrap --all\n")
    assert PROGRAM in (tmp_path / ".claude.json").read_text()
    assert PROGRAM not in (tmp_path / ".cursor/mcp.json").read_text()
