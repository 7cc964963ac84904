"""What is on either side of the guard: a client, and a server to be killed. One class for each pair of transports."""

import os
import select
import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path

from guarded import GUARD, SECONDS

SERVER = Path(__file__).with_name("told_server.py")


class Pairing(ABC):
    """
    A conversation through the guard, with `told_server.py` or the like on the other side.

    `with` ends all of it.
    """

    name: str
    in_order: bool
    """Whether all that comes for the client comes in one stream."""

    def __init__(self, place: Path, mode: str) -> None:
        """*place* has `script`, what the server is told to say; it writes to `received`."""
        self.place = place
        self.mode = mode

    @abstractmethod
    def start(self) -> None:
        """Starts both the guard and the server."""

    @abstractmethod
    def send(self, lines: list[bytes]) -> bool:
        """Says *lines*, each with its newline; False if nobody takes them any more. What comes meanwhile is kept."""

    @abstractmethod
    def receive(self) -> list[bytes]:
        """What has come for the client, for which it is waited; nothing if nothing ever comes again."""

    @abstractmethod
    def leave(self) -> None:
        """The client says no more."""

    @abstractmethod
    def kill(self) -> None:
        """Kills the server."""

    @abstractmethod
    def stop(self) -> int:
        """Ends everything, and waits for it; the exit status of the guard."""

    def __enter__(self) -> "Pairing":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class StdioToChild(Pairing):
    """The client on standard input and output, the server a child process."""

    name = "stdio-child"
    in_order = True

    def start(self) -> None:
        """The guard starts the server."""
        files = [str(self.place / name) for name in ("script", "received", "pid")]
        command = [sys.executable, "-IS", str(SERVER), *files]
        options = ["--mode", self.mode, "--quiet", "--journal", "off", "--set", "guard.flights=off"]
        with open(self.place / "log", "wb") as log:
            self._process = subprocess.Popen(
                [*GUARD, *options, "--", *command],
                cwd=self.place,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._sink, self._source = self._process.stdin, self._process.stdout
        os.set_blocking(self._sink.fileno(), False)
        self._rest = b""

    def send(self, lines: list[bytes]) -> bool:
        """Reads what comes meanwhile, so that both sides can go on."""
        rest = memoryview(b"".join(lines))
        reading = [self._source]
        while rest:
            readable, writable, _ = select.select(reading, [self._sink], [], SECONDS)
            assert readable or writable, "nobody reads"
            if writable:
                try:
                    rest = rest[os.write(self._sink.fileno(), rest) :]
                except BlockingIOError:
                    continue
                except BrokenPipeError:
                    return False
            if readable and not self._read():
                reading = []
        return True

    def _read(self) -> bool:
        chunk = os.read(self._source.fileno(), 1 << 16)
        self._rest += chunk
        return chunk != b""

    def receive(self) -> list[bytes]:
        """Whole lines; at the end also what is no whole one."""
        while b"\n" not in self._rest:
            assert select.select([self._source], [], [], SECONDS)[0], f"nothing came after {self._rest[-200:]!r}"
            if not self._read():
                last, self._rest = self._rest, b""
                return [last] if last else []
        whole, _, self._rest = self._rest.rpartition(b"\n")
        return [each + b"\n" for each in whole.split(b"\n")]

    def leave(self) -> None:
        """Closes the input of the guard."""
        self._sink.close()

    def kill(self) -> None:
        """As soon as it has said who it is."""
        with suppress(ProcessLookupError):
            os.kill(int((self.place / "pid").read_text()), signal.SIGKILL)

    def stop(self) -> int:
        """It ends by itself, unless a test has failed."""
        for each in (self._sink, self._source):
            each.close()
        try:
            return self._process.wait(SECONDS)
        finally:
            self._process.kill()


PAIRINGS: list[type[Pairing]] = [StdioToChild]
"""Every pair of transports that there is."""
