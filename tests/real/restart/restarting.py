"""The guard with restarts, as a process, in front of a server that has several lives. Every wait is bounded."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from kit.guard_process import GRACE, Guarded, Lines, Watched, frame_of, hurried

SERVER = Path(__file__).with_name("mortal_server.py")

QUICK = 0.01
"""Seconds of back-off, unless a test says otherwise."""

SLOW = 600.0
"""Seconds of back-off that a test never sees the end of."""

TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("search", "die", "wait")]

GOOD: dict[str, Any] = {"tools": TOOLS}
"""A life without faults."""


def dies(*actions: list[Any], **script: Any) -> dict[str, Any]:
    """A life that ends by *actions* when the tool `die` is called, and never answers `wait`."""
    on = {"tools/call:die": list(actions) or [["exit", 7]], "tools/call:wait": [], **script.pop("on", {})}
    return {"tools": TOOLS, "on": on, **script}


class Mortal(Guarded):
    """A guard in front of a server with several lives."""

    directory: Path

    def pids(self) -> list[int]:
        """Of all lives so far."""
        with suppress(FileNotFoundError):
            return [int(line) for line in (self.directory / "lives").read_text().splitlines()]
        return []

    def until_logged(self, text: str) -> str:
        """The line on stderr that has *text*, which comes."""
        while text not in (line := self.log.next().decode()):
            pass
        return line

    def reopened(self) -> None:
        """The next life is open."""
        assert self.answer() == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}

    def taken(self, last: Any) -> list[bytes]:
        """What the servers receive before *last*."""
        found: list[bytes] = []
        while (line := self.received.next()) != frame_of(last):
            found.append(line)
        return found

    def lines(self) -> list[str]:
        """What is left on stderr."""
        return [line.decode() for line in self.log.rest()]


@contextmanager
def restarting(
    directory: Path, *given: str, mode: str = "enforce", pause: float = QUICK, received: int = -1
) -> Iterator[Mortal]:
    """A guard with these options and what it is in front of; *pause* has the seconds between two lives of that."""
    pauses = {"guard.backoff:FIRST": pause, "guard.backoff:LONGEST": pause}
    line = [*hurried({**GRACE, **pauses}), "--mode", mode, *given]
    pipe = subprocess.PIPE
    with subprocess.Popen(line, cwd=directory, bufsize=0, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            one = Mortal(process, Lines(received))
            one.directory = directory
            yield one
        finally:
            process.kill()
            if process.stdin is not None:
                with suppress(BrokenPipeError):
                    process.stdin.close()


@contextmanager
def mortal(
    directory: Path,
    *scripts: dict[str, Any],
    options: tuple[str, ...] = (),
    policy: str = "always",
    pause: float = QUICK,
) -> Iterator[Mortal]:
    """A guard in front of a server with a life for each of *scripts*; all write what they receive to one pipe."""
    directory.mkdir(exist_ok=True)
    path = directory / "received"
    os.mkfifo(path)
    # Open at both ends: between two lives it must not seem to have ended.
    received = os.open(path, os.O_RDWR)
    command = [sys.executable, "-IS", str(SERVER), str(directory / "lives")]
    command.append(json.dumps([{"received": str(path), **script} for script in scripts]))
    try:
        with restarting(
            directory, "--restart", policy, *options, "--", *command, pause=pause, received=received
        ) as one:
            yield one
    finally:
        os.close(received)


def ends(pid: int) -> bool:
    """Whether that process has ended, or does so."""
    try:
        return Watched(pid).ends()
    except ProcessLookupError:
        return True
