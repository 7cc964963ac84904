"""A server process that is treated badly, and what can be seen of it from outside: files, memory, connections, log."""

import json
import os
import select
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import pytest

from kit import http_client
from kit.http_client import SECONDS, Wire, command, environment, frame_of, until

READY = "mcp:ready mode="
REVISION = "2025-11-25"
MEBIBYTE = 1 << 20


# ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def request(ident: Any, method: str, params: Mapping[str, Any] | None = None) -> bytes:
    """A request, as a frame."""
    return frame_of(http_client.request(ident, method, params))


def call(ident: Any, tool: str = "list_examples", arguments: Mapping[str, Any] | None = None) -> bytes:
    """A call of a tool, as a frame."""
    return frame_of(http_client.call(ident, tool, arguments or {}))


def initialize(ident: Any) -> bytes:
    """What a client of the handshake era says first."""
    return frame_of(http_client.initialize(REVISION, ident))


def head(method: str = "POST", path: str = "/mcp", *lines: str) -> bytes:
    """The head of a request, with *lines* beside what every one has."""
    accept = "Accept: application/json, text/event-stream"
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", accept, *lines, "", ""]).encode()


def post(frame: bytes, *lines: str) -> bytes:
    """*frame* as a request; without a session, and of a revision that has them."""
    version = () if any(line.startswith("Mcp-") for line in lines) else (f"Mcp-Protocol-Version: {REVISION}",)
    every = ("Content-Type: application/json", f"Content-Length: {len(frame)}", *version, *lines)
    return head("POST", "/mcp", *every) + frame


# ── a connection ─────────────────────────────────────────────────────────────────────────────────────────────────────


class Connection(Wire):
    """One connection, whose end is a `ConnectionError`; *window* makes it take little before it is read from."""

    def __init__(self, address: tuple[str, int], window: int = 0) -> None:
        self.socket = socket.socket()
        if window:
            # Before there is a connection: its window is settled then.
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        self.socket.settimeout(SECONDS)
        self.socket.connect(address)
        self.held = b""

    def more(self) -> bool:
        """Reads what has come."""
        if not super().more():
            raise ConnectionError(f"it ended after {self.held[:200]!r}")
        return True

    def offer(self, data: bytes) -> bool:
        """Sends *data*; whether anybody was there to take it."""
        try:
            self.send(data)
        except OSError:
            return False
        return True

    def result(self) -> Any:
        """The next answer, which is good: the id that it is for."""
        answer = self.answer()
        message = json.loads(answer.body)
        assert (answer.status, "result" in message) == (200, True), answer.body[:500]
        return message["id"]

    def ask(self, frame: bytes, *lines: str) -> Any:
        """Sends *frame*, which is answered well."""
        self.send(post(frame, *lines))
        return self.result()

    def finish(self) -> None:
        """Says that there is nothing more to be said."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)

    def first(self) -> bytes:
        """What comes first, or nothing if that is the end."""
        with suppress(ConnectionError):
            self.more()
        return self.held

    def rest(self) -> bytes:
        """All that comes until the other side closes."""
        with suppress(ConnectionError):
            super().rest()
        return self.held


# ── a server ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Server:
    """A process that serves."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self._log = log
        self.address = ("", 0)

    def log(self) -> list[str]:
        """The lines on stderr, as of now."""
        return self._log.read_text("utf-8", errors="replace").splitlines()

    def is_ready(self) -> bool:
        """Whether it has said that it is; it must not have ended."""
        lines = [line for line in self.log() if line.startswith(READY)]
        assert lines or self.process.poll() is None, self.log()
        if lines and "url=" in lines[0]:
            host, _, port = lines[0].partition("url=http://")[2].removesuffix("/mcp").rpartition(":")
            self.address = host, int(port)
        return bool(lines)

    def connect(self, window: int = 0) -> Connection:
        """A new connection."""
        return Connection(self.address, window)

    def metric(self, name: str) -> float:
        """What `/metrics` shows for *name*, which has no labels."""
        with self.connect() as connection:
            connection.send(head("GET", "/metrics", "Connection: close"))
            page = connection.answer().body.decode()
        [shown] = [line for line in page.splitlines() if line.startswith(f"{name} ")]
        return float(shown.split()[1])

    def memory(self, field: str = "VmRSS") -> int:
        """Bytes of memory that it holds, or has held at most (``VmHWM``)."""
        for line in self._proc("status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) << 10
        raise AssertionError(f"no {field}")

    def sockets(self) -> int:
        """How many sockets it has open, the one it listens on among them."""
        count = 0
        for each in self._proc("fd").iterdir():
            try:
                count += os.readlink(each).startswith("socket:")
            except FileNotFoundError:
                continue
        return count

    def kill(self) -> None:
        """As `kill -9` does it."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(SECONDS)

    def _proc(self, name: str) -> Path:
        path = Path(f"/proc/{self.process.pid}/{name}")
        if not path.exists():
            pytest.skip("no /proc here to look at a process with")
        return path


@contextmanager
def serving(
    directory: Path,
    *options: str,
    variables: Mapping[str, str] | None = None,
    wrapper: Sequence[str] = (),
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.DEVNULL,
) -> Iterator[Server]:
    """`assay serve` with *options*, in *directory*, once it is ready; *wrapper* is a command that runs it."""
    path = directory / "stderr"
    with (
        path.open("wb") as log,
        subprocess.Popen(
            [*wrapper, *command(*options)],
            bufsize=0,
            cwd=directory,
            env=environment(directory, **(variables or {})),
            stdin=stdin,
            stdout=stdout,
            stderr=log,
        ) as process,
    ):
        server = Server(process, path)
        try:
            until(server.is_ready)
            yield server
        finally:
            process.kill()
            process.wait(SECONDS)


def http(*settings: str) -> list[str]:
    """The options of a server over HTTP, with *settings* such as ``http.body_seconds=2``."""
    return ["--http", "127.0.0.1:0", *(option for setting in settings for option in ("--set", setting))]


def lines_of(pipe: IO[bytes], number: int) -> bytes:
    """What comes until there are so many lines."""
    said = b""
    while said.count(b"\n") < number:
        assert select.select([pipe], [], [], SECONDS)[0], "nothing comes"
        chunk = pipe.read(1 << 16)
        assert chunk, "it has ended"
        said += chunk
    return said


# ── a journal ────────────────────────────────────────────────────────────────────────────────────────────────────────


def run_in(directory: Path) -> Path:
    """The one journal in *directory*."""
    [path] = directory.glob("*.jsonl")
    return path


def recorded(lines: Sequence[bytes]) -> dict[Any, list[str]]:
    """By id, who is on record with what, in order; every line but an event is a record."""
    found: dict[Any, list[str]] = {}
    for line in lines:
        if "event" in json.loads(line):
            continue
        said = json.loads(line)["metadata"]
        found.setdefault(said["id"], []).append(f"{said['party']} {said['kind']}")
    return found
