"""
The fixture server behind the guard, both over HTTP, as one process to whoever starts it.

    guarded_server.py PYTHON [OPTION…]    PYTHON has the official SDK; options are those of `assay guard`

Where the guard is, it says on stderr: url=…. It ends both when it is told to end.
"""

import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from typing import IO

FIXTURE = Path(__file__).with_name("fixture_server.py")


def announced(process: "subprocess.Popen[str]", pattern: str) -> str:
    """What the first line on its stderr says that fits; the rest goes to ours."""
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(pattern, line):
            Thread(target=passed_on, args=(process.stderr,), daemon=True).start()
            return found[1]
        sys.stderr.write(line)
    sys.exit(f"{process.args!r} does not start")


def passed_on(stream: IO[str]) -> None:
    """To the end."""
    for line in stream:
        sys.stderr.write(line)


def started(command: Sequence[str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8")


def main(python: str, options: Sequence[str]) -> None:
    """Serve until it is told to end."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    fixture = started([python, str(FIXTURE), "--http", "127.0.0.1:0"])
    guard = None
    try:
        target = announced(fixture, r"\burl=(\S+)")
        listen = ["--target", target, "--listen", "127.0.0.1:0"]
        guard = started([sys.executable, "-m", "assay", "guard", "--journal", "off", *options, *listen])
        print("url=" + announced(guard, r"guarding .* at (\S+)$"), file=sys.stderr, flush=True)
        guard.wait()
    finally:
        for process in (guard, fixture):
            if process is not None:
                process.terminate()
                process.wait(30)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
