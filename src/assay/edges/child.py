"""A server that runs as a child process: start it, read its stderr, and end it with all its processes."""

import errno
import os
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, Self

from assay.model.printable import label, plain

CLOSED: Final = 2.0
TERMINATED: Final = 1.5
"""
Seconds from the end of a server's input to SIGTERM, and from there to SIGKILL. The clients of the official SDKs give us
2 seconds for each: after that they kill the guard, and the server would be left running.
"""

_KILLED: Final = 5.0

TAIL_LINES: Final = 20
TAIL_BYTES: Final = 4096
_LINE: Final = 500
"""Limits of the stderr that is kept for error messages: lines, bytes, characters of one line."""


class StartError(Exception):
    """A command cannot be run; the message has the reason."""


def unstartable(command: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: str | None = None) -> str | None:
    """Return why *command* certainly cannot be run, without running it; None if nothing is wrong."""
    program = command[0]
    places = [program] if os.path.dirname(program) else [os.path.join(at, program) for at in os.get_exec_path(env)]
    # Both are searched from the working directory of the child.
    found = [each for each in (os.path.join(cwd or "", place) for place in places) if os.path.exists(each)]
    if any(os.path.isfile(each) and os.access(each, os.X_OK) for each in found):
        return None
    return f"cannot start {program}: {os.strerror(errno.EACCES if found else errno.ENOENT)}"


class Tail:
    """The last lines of a stream, bounded."""

    __slots__ = ("_begun", "_lines")

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=TAIL_LINES)
        self._begun = b""

    def add(self, data: bytes) -> None:
        """Add a chunk of the stream."""
        # Only the end of a long chunk is kept.
        *lines, begun = (self._begun + data)[-2 * TAIL_BYTES :].split(b"\n")
        self._begun = begun[-TAIL_BYTES:]
        self._lines.extend(_shown(each) for each in lines[-TAIL_LINES:] if each.strip())

    def lines(self) -> list[str]:
        """Return the last lines, oldest first, within the limit of bytes."""
        every = [*self._lines, *([_shown(self._begun)] if self._begun.strip() else [])]
        last: list[str] = []
        room = TAIL_BYTES
        for line in reversed(every):
            room -= len(line.encode())
            if room < 0:
                break
            last.append(line)
        return last[::-1][-TAIL_LINES:]


class Labelled:
    """
    The stderr of one of several servers: each line is prefixed with the server's name.

    A server cannot write a line that looks like one of the guard's, nor send control characters to a terminal.
    """

    __slots__ = ("_begun", "_label", "_write")

    def __init__(self, name: str, write: Callable[[bytes], None]) -> None:
        """Complete lines go to *write*."""
        self._label = label(name)
        self._write = write
        self._begun = b""

    def add(self, data: bytes) -> None:
        """Add a chunk of the stream; an empty chunk is its end. A very long line is written in pieces."""
        *lines, self._begun = (self._begun + data).split(b"\n")
        if self._begun and (not data or len(self._begun) > TAIL_BYTES):
            lines.append(self._begun)
            self._begun = b""
        if lines:
            self._write("".join(map(self._shown, lines)).encode(errors="replace"))

    def _shown(self, line: bytes) -> str:
        text = line.decode(errors="replace").rstrip("\r").replace("\t", "    ")
        return f"{self._label}{plain(text)}\n"


def _shown(line: bytes) -> str:
    text = line[: 4 * _LINE].decode(errors="replace").rstrip("\r")[:_LINE]
    return "".join(each if each.isprintable() or each == "\t" else "\N{REPLACEMENT CHARACTER}" for each in text)


class Child:
    """
    One run of a server.

    It leads a process group, so that its own child processes are ended with it. `with` ends it at the latest.
    """

    def __init__(self, command: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: str | None = None) -> None:
        """Raises `StartError`."""
        self.tail = Tail()
        self._swept = self._ended = False
        theirs: list[int] = []
        ours: list[int] = []
        try:
            for _ in range(3):
                reader, writer = os.pipe()
                theirs.append(writer if ours else reader)
                ours.append(reader if ours else writer)
            self._process = subprocess.Popen(
                command,
                stdin=theirs[0],
                stdout=theirs[1],
                stderr=theirs[2],
                env=env,
                cwd=cwd,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            for each in ours:
                os.close(each)
            raise StartError(f"cannot start {command[0]}: {getattr(error, 'strerror', None) or error}") from None
        finally:
            for each in theirs:
                os.close(each)
        self.stdin, self.stdout, self.stderr = ours
        """Our ends of its streams. The user of stdin closes it."""
        os.set_blocking(self.stdout, False)
        os.set_blocking(self.stderr, False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def status(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        return self._process.poll()

    def wait(self, seconds: float) -> int | None:
        """Return the exit status after at most *seconds*; None if it still runs."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def signal(self, sign: int) -> None:
        """Send a signal to the process and its group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, sign)

    def sweep(self) -> None:
        """Kill what the process left running. Call it once, soon after its end: later the id may be reused."""
        if not self._swept:
            self._swept = True
            self.signal(signal.SIGKILL)

    def end(self) -> None:
        """End the process, if it is still running, and its group. Its input should be closed by now."""
        if self._ended:
            return
        self._ended = True
        for seconds, sign in ((0.0, signal.SIGTERM), (TERMINATED, signal.SIGKILL)):
            if self.wait(seconds) is not None:
                break
            self.signal(sign)
        # A process that survives SIGKILL hangs in the kernel, and ends later.
        self.wait(_KILLED)
        self.sweep()
        for each in (self.stdout, self.stderr):
            os.close(each)


def why(status: int) -> str:
    """Return how a child ended, as text."""
    if status >= 0:
        return f"it exited with status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    return f"it was ended by {name}"
