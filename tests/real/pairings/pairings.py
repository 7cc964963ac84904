"""What is on either side of the guard: a client, and a server to be killed. One class for each pair of transports."""

import os
import select
import signal
import socket
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from assay.spec.revisions import handshake
from kit.front_client import FrontClient
from kit.guard_process import GUARD, SECONDS
from kit.http_client import Log

HTTP_SERVER = Path(__file__).with_name("obedient_http.py")
SERVER = Path(__file__).with_name("obedient_server.py")
FILES = ("script", "received", "pid")


class Pairing(ABC):
    """
    Conversations through a guard, with `obedient_server.py` or the like on the other side.

    `with` ends all of it.
    """

    name: str
    in_order: bool
    """Whether each side has one stream, so that all that is said arrives in its order."""
    answers_all: bool
    """Whether what has no id to be answered by is answered with null."""
    renumbers = False
    """Whether the server sees other ids and progress tokens of stateless requests than the client's."""

    def __init__(self, place: Path, revision: str, mode: str, options: Sequence[str] = ("--journal", "off")) -> None:
        """*place* has `script`, what the server answers; it writes to `received`. *options* are those of the guard."""
        self.place = place
        self.revision = revision
        self.options = ["--mode", mode, "--quiet", "--set", "guard.flights=off", *options]

    @property
    def reopens(self) -> bool:
        """Whether the client itself begins anew after the server was killed."""
        return False

    @property
    def blanks(self) -> bool:
        """Whether the script has to have blanks for ids and progress tokens."""
        return self.renumbers and not handshake(self.revision)

    @abstractmethod
    def guard(self, *server: str) -> None:
        """Starts the guard in front of *server*."""

    @abstractmethod
    def start(self) -> None:
        """Starts both the guard and the server."""

    @abstractmethod
    def converse(self, revision: str) -> None:
        """Begins another conversation, when the client has left the one before."""

    @abstractmethod
    def send(self, lines: list[bytes]) -> bool:
        """Says *lines*, each with its newline; False if they are not taken any more. What comes meanwhile is kept."""

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
    def revive(self) -> bool:
        """After the server was killed: whether there is one again, or will be, and the guard goes on."""

    @abstractmethod
    def end_guard(self) -> int:
        """Ends the guard, and waits for it; its exit status."""

    def stop(self) -> int:
        """Ends everything; the exit status of the guard."""
        return self.end_guard()

    def __enter__(self) -> "Pairing":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Child(Pairing):
    """The server as a child process of the guard."""

    def start(self) -> None:
        """The guard starts the server; over HTTP, with the first request."""
        self.guard("--", sys.executable, "-IS", str(SERVER), *(str(self.place / each) for each in FILES))

    def kill(self) -> None:
        """The one that was started last."""
        with suppress(ProcessLookupError):
            os.kill(int((self.place / "pid").read_text()), signal.SIGKILL)


class AtUrl(Pairing):
    """The server at a port, which is kept for it while there is none."""

    def start(self) -> None:
        """The server comes first."""
        self._port = socket.socket()
        self._port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._port.bind(("127.0.0.1", 0))
        self._serve()
        self.guard("--target", f"http://127.0.0.1:{self._port.getsockname()[1]}/mcp")

    def _serve(self) -> None:
        files = [str(self.place / name) for name in ("script", "received")]
        command = [sys.executable, str(HTTP_SERVER), *files, str(self._port.getsockname()[1])]
        with open(self.place / "server-log", "ab") as log:
            self._server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log)
        assert self._server.stdout is not None
        with self._server.stdout as said:
            assert said.readline() == b"listening\n"

    def kill(self) -> None:
        """At once."""
        self._server.kill()

    def revive(self) -> bool:
        """Another one at the same port, when the first has ended."""
        assert self._server.wait(SECONDS) == -signal.SIGKILL
        self._serve()
        return True

    def stop(self) -> int:
        """The guard, and then the server for good."""
        try:
            return self.end_guard()
        finally:
            self._server.kill()
            self._server.wait(SECONDS)
            self._port.close()


# ── clients ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Stdio(Pairing):
    """The client on standard input and output: each conversation has a guard of its own."""

    answers_all = True

    def guard(self, *server: str) -> None:
        """Starts the guard in front of *server*."""
        self._command = [*GUARD, *self.options, *server]
        self._begin()

    def _begin(self) -> None:
        with open(self.place / "log", "ab") as log:
            self._process = subprocess.Popen(
                self._command, cwd=self.place, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._sink, self._source = self._process.stdin, self._process.stdout
        os.set_blocking(self._sink.fileno(), False)
        self._rest = b""

    def converse(self, revision: str) -> None:
        """Another guard of the same kind."""
        assert self.end_guard() == 0
        (self.place / "pid").unlink(missing_ok=True)
        self.revision = revision
        self._begin()

    def send(self, lines: list[bytes]) -> bool:
        """Reads what comes meanwhile, so that both sides can go on."""
        rest = memoryview(b"".join(lines))
        reading = [self._source]
        while rest:
            readable, writable, _ = select.select(reading, [self._sink], [], SECONDS)
            assert readable or writable, "the guard does not read"
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

    def end_guard(self) -> int:
        """It ends by itself, unless a test has failed."""
        for each in (self._sink, self._source):
            each.close()
        try:
            return self._process.wait(SECONDS)
        finally:
            self._process.kill()


class Http(Pairing):
    """The client over HTTP: all conversations are with one guard."""

    in_order = False
    answers_all = False

    def guard(self, *server: str) -> None:
        """Starts the guard in front of *server*, and a client of it."""
        self._process = subprocess.Popen(
            [*GUARD, "--listen", "127.0.0.1:0", *self.options, *server],
            cwd=self.place,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        assert self._process.stderr is not None
        self._stderr = self._process.stderr
        self._log = Log(self._stderr)
        self._url = self._log.line("assay: guarding ").rpartition(" at ")[2]
        self.client = FrontClient(self._url, self.revision)

    def converse(self, revision: str) -> None:
        """Another client."""
        self.client.close()
        (self.place / "pid").unlink(missing_ok=True)
        self.revision = revision
        self.client = FrontClient(self._url, revision)

    @property
    def reopens(self) -> bool:
        """A session ends with its server."""
        return handshake(self.revision)

    def send(self, lines: list[bytes]) -> bool:
        """They are always taken."""
        self.client.send(lines)
        return True

    def receive(self) -> list[bytes]:
        """From all answers, and from the stream of the session."""
        return self.client.receive()

    def leave(self) -> None:
        """Ends the session."""
        self.client.leave()

    def end_guard(self) -> int:
        """By a signal."""
        if self._process.poll() is None:
            self.client.close()
            self._process.terminate()
        try:
            return self._process.wait(SECONDS)
        finally:
            self._process.kill()
            (self.place / "log").write_text("\n".join(self._log.whole()))
            self._stderr.close()


# ── pairings ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class StdioToChild(Child, Stdio):
    """The client on standard input and output, the server a child process."""

    name = "stdio-child"
    in_order = True

    def revive(self) -> bool:
        """The guard ends with the server."""
        return False


class StdioToHttp(AtUrl, Stdio):
    """The client on standard input and output, the server at a URL."""

    name = "stdio-http"
    in_order = False


class HttpToChild(Child, Http):
    """The client over HTTP, the server a child process: one of the session, or one for all requests without any."""

    name = "http-child"
    renumbers = True

    def revive(self) -> bool:
        """The guard starts another, for the next session or the next request."""
        self.client.forget()
        return True


class HttpToHttp(AtUrl, Http):
    """Client and server over HTTP."""

    name = "http-http"

    def revive(self) -> bool:
        """The session is gone with the server."""
        self.client.forget()
        return super().revive()


PAIRINGS: list[type[Pairing]] = [StdioToChild, StdioToHttp, HttpToChild, HttpToHttp]
"""Every pair of transports that there is."""
