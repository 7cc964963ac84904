"""A server that runs as a child process: started, heard, and ended so that nothing of it stays behind."""

import errno
import os
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, Self

from assay.base.labels import label
from assay.base.printable import plain

CLOSED: Final = 2.0
TERMINATED: Final = 1.5
"""
Seconds that a server has from the end of its input to SIGTERM, and from there to SIGKILL. The clients of the official
SDKs have the same patience with us, 2 seconds each: after that they kill us, and nobody is left to end the server.
"""

_KILLED: Final = 5.0

TAIL_LINES: Final = 20
TAIL_BYTES: Final = 4096
_LINE: Final = 500
"""Of what a child writes to stderr, for whoever asks why it died: lines, bytes, characters of one line."""


class StartError(Exception):
    """A command that cannot be run, and why."""


def unstartable(command: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: str | None = None) -> str | None:
    """Why *command* cannot be run, as far as that is seen without running it; None if nothing is."""
    program = command[0]
    places = [program] if os.path.dirname(program) else [os.path.join(at, program) for at in os.get_exec_path(env)]
    # Both are looked for from where the child is to be.
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
        """More of the stream."""
        # Of a flood, only the end can ever be told.
        *lines, begun = (self._begun + data)[-2 * TAIL_BYTES :].split(b"\n")
        self._begun = begun[-TAIL_BYTES:]
        self._lines.extend(_shown(each) for each in lines[-TAIL_LINES:] if each.strip())

    def lines(self) -> list[str]:
        """The last lines, oldest first, within the bytes that may be told."""
        every = [*self._lines, *([_shown(self._begun)] if self._begun.strip() else [])]
        told: list[str] = []
        room = TAIL_BYTES
        for line in reversed(every):
            room -= len(line.encode())
            if room < 0:
                break
            told.append(line)
        return told[::-1][-TAIL_LINES:]


class Labelled:
    """
    The stderr of a server among those of others: each line has the server's name before it.

    A server can neither write a line that looks like one of the guard's own nor send a terminal anything to act upon.
    """

    __slots__ = ("_begun", "_label", "_write")

    def __init__(self, name: str, write: Callable[[bytes], None]) -> None:
        """Whole lines go to *write*."""
        self._label = label(name)
        self._write = write
        self._begun = b""

    def add(self, data: bytes) -> None:
        """More of the stream; no bytes are its end. A line that does not end is shown in pieces."""
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

    It leads a group of its own, so that what it starts itself can be ended with it. `with` ends it at the latest.
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
        """Our ends of its streams. Who uses the first closes it."""
        os.set_blocking(self.stdout, False)
        os.set_blocking(self.stderr, False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def status(self) -> int | None:
        """Its exit status, negative for a signal; None while it runs."""
        return self._process.poll()

    def wait(self, seconds: float) -> int | None:
        """Its exit status, for which *seconds* are waited; None if it still runs."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def signal(self, sign: int) -> None:
        """Sends a signal to it, and to all that it has started and that has not gone its own way."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, sign)

    def sweep(self) -> None:
        """Ends what it has left running. Once only, and soon after its end: later its id may be that of others."""
        if not self._swept:
            self._swept = True
            self.signal(signal.SIGKILL)

    def end(self) -> None:
        """Ends it, if it has not ended yet, and all that it has left running. Its input should be closed by now."""
        if self._ended:
            return
        self._ended = True
        for seconds, sign in ((0.0, signal.SIGTERM), (TERMINATED, signal.SIGKILL)):
            if self.wait(seconds) is not None:
                break
            self.signal(sign)
        # Whom not even that ends hangs in the kernel, and will end when that lets go of it.
        self.wait(_KILLED)
        self.sweep()
        for each in (self.stdout, self.stderr):
            os.close(each)


def why(status: int) -> str:
    """How a child ended, in words."""
    if status >= 0:
        return f"it exited with status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    return f"it was ended by {name}"
