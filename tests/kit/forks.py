"""
Runs our command many times with real descriptors: a process that has loaded it all, or lacks something, forks for each.

`run_all` starts that process, gives it the runs as JSON, and gets what became of each.
"""

import base64
import gc
import io
import json
import os
import subprocess
import sys
from os import fork, waitpid
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Literal, NamedTuple

Kind = Literal["file", "gone", "full"]
"""An output: a file whose content is wanted, a pipe whose reader is gone, or a full disk."""


class Run(NamedTuple):
    """One run of `assay WORDS…`."""

    words: str
    out: Kind = "file"
    err: Kind = "file"
    encoding: str = "utf-8"
    """As in PYTHONIOENCODING."""


class Ended(NamedTuple):
    """A run that has ended."""

    status: int
    out: bytes
    err: bytes


def run_all(directory: Path, runs: list[Run], before: str = "", **environment: str) -> list[Ended]:
    """
    Run all of *runs* in *directory*, with 40 letters on standard input.

    With *before*, these statements take something from the process first, and one run ends before the next begins.
    """
    done = subprocess.run(
        [sys.executable, __file__, before],
        cwd=directory,
        env={**os.environ, **environment},
        input=json.dumps(runs).encode(),
        stdout=subprocess.PIPE,
        check=True,
        timeout=120,
    )
    return [
        Ended(each["status"], base64.b64decode(each["out"]), base64.b64decode(each["err"]))
        for each in json.loads(done.stdout)
    ]


def _opened(kind: Kind) -> tuple[int, IO[bytes] | None]:
    if kind == "full":
        return os.open("/dev/full", os.O_WRONLY), None
    if kind == "gone":
        reader, writer = os.pipe()
        os.close(reader)
        return writer, None
    file = TemporaryFile()  # noqa: SIM115 - the caller reads it
    return os.dup(file.fileno()), file


class _Started(NamedTuple):
    """A run, and the files with its outputs."""

    pid: int
    shown: IO[bytes] | None
    logged: IO[bytes] | None

    def ended(self) -> dict[str, Any]:
        """Wait for its end; return what became of it."""
        _, status = waitpid(self.pid, 0)
        return {"status": os.waitstatus_to_exitcode(status), "out": _content(self.shown), "err": _content(self.logged)}


def _start(run: Run) -> _Started | None:
    """Fork; return None in the process that is to run it."""
    (out, shown), (err, logged) = _opened(run.out), _opened(run.err)
    pid = fork()
    if pid == 0:
        with TemporaryFile() as said:
            said.write(b"k" * 40)
            said.seek(0)
            os.dup2(said.fileno(), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        encoding, _, errors = run.encoding.partition(":")
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - as long as this process
        for name, number, handler in (("stdout", 1, errors or "strict"), ("stderr", 2, "backslashreplace")):
            raw = io.BufferedWriter(io.FileIO(number, "wb", closefd=False))
            setattr(sys, name, io.TextIOWrapper(raw, encoding, handler, line_buffering=number == 2))
        return None
    os.close(out)
    os.close(err)
    return _Started(pid, shown, logged)


def _content(file: IO[bytes] | None) -> str:
    if file is None:
        return ""
    with file:
        file.seek(0)
        return base64.b64encode(file.read()).decode()


AT_ONCE = 4

if __name__ == "__main__":
    exec(before := sys.argv.pop())  # noqa: S102 - what takes from the process

    from assay.cli.main import main, parser

    if not before:
        parser()
    # Otherwise each child would copy all memory when it looks for garbage at its end.
    gc.freeze()
    running, found = list[_Started](), []
    for each in [Run(*row) for row in json.load(sys.stdin)]:
        started = _start(each)
        if started is None:
            # As in `__main__`: the interpreter closes its streams.
            sys.exit(main(each.words.split()))
        running.append(started)
        if len(running) == (1 if before else AT_ONCE):
            found.append(running.pop(0).ended())
    found += [each.ended() for each in running]
    print(json.dumps(found))
