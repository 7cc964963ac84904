"""A server process that is treated badly, and what can be seen of it from outside: files, memory, connections, log."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Self

import pytest

from assay.records.journal.reading import is_event
from kit.places import ROOT

CATALOGUE = ROOT / "examples" / "catalogue"

SECONDS = 60
"""What any one wait here may take, on a busy machine too; most take a fraction of a second."""

READY = "mcp:ready mode="
REVISION = "2025-11-25"
MEBIBYTE = 1 << 20


# ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def request(ident: Any, method: str, params: Mapping[str, Any] | None = None) -> bytes:
    """A request, as a frame."""
    return json.dumps({"jsonrpc": "2.0", "id": ident, "method": method, "params": params or {}}).encode()


def call(ident: Any, tool: str = "list_examples", arguments: Mapping[str, Any] | None = None) -> bytes:
    """A call of a tool, as a frame."""
    return request(ident, "tools/call", {"name": tool, "arguments": arguments or {}})


def initialize(ident: Any) -> bytes:
    """What a client of the handshake era says first."""
    client = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    return request(ident, "initialize", client)


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


class Connection:
    """One connection. Everything on it has a deadline; *window* makes it take little before it is read from."""

    def __init__(self, address: tuple[str, int], window: int = 0) -> None:
        self.socket = socket.socket()
        if window:
            # Before there is a connection: its window is settled then.
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        self.socket.settimeout(SECONDS)
        self.socket.connect(address)
        self._held = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Sends *data*, all of it."""
        self.socket.sendall(data)

    def offer(self, data: bytes) -> bool:
        """Sends *data*; whether anybody was there to take it."""
        try:
            self.socket.sendall(data)
        except OSError:
            return False
        return True

    def answer(self) -> tuple[int, dict[str, str], bytes]:
        """The next answer: status, headers, body. `ConnectionError` if the connection ends before it is whole."""
        while b"\r\n\r\n" not in self._held:
            self._more()
        text, _, self._held = self._held.partition(b"\r\n\r\n")
        first, *lines = text.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", 0))
        while len(self._held) < length:
            self._more()
        body, self._held = self._held[:length], self._held[length:]
        return int(first.split(" ")[1]), headers, body

    def result(self) -> Any:
        """The next answer, which is good: the id that it is for."""
        status, _, body = self.answer()
        message = json.loads(body)
        assert (status, "result" in message) == (200, True), body[:500]
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
            self._more()
        return self._held

    def rest(self) -> bytes:
        """All that comes until the other side closes."""
        with suppress(ConnectionError):
            while True:
                self._more()
        return self._held

    def _more(self) -> None:
        chunk = self.socket.recv(1 << 18)
        if not chunk:
            raise ConnectionError(f"it ended after {self._held[:200]!r}")
        self._held += chunk


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
            page = connection.answer()[2].decode()
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
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("ASSAY_", "SYN_"))}
    environment = {
        **inherited,
        "SYN_SCHEMAS_DIR": str(CATALOGUE / "jsonschema"),
        "SYN_EXAMPLES_DIR": str(CATALOGUE / "examples"),
        "MCP_READY_FILE": str(directory / "ready"),
        "ASSAY_JOURNAL": "off",
        **(variables or {}),
    }
    command = [*wrapper, sys.executable, "-m", "assay", "serve", *options]
    path = directory / "stderr"
    with (
        path.open("wb") as log,
        subprocess.Popen(
            command, bufsize=0, cwd=directory, env=environment, stdin=stdin, stdout=stdout, stderr=log
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


def until(holds: Callable[[], bool], seconds: float = SECONDS) -> None:
    """Waits until something *holds* that nobody tells of."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never did"
        select.select([], [], [], 0.01)


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
        if is_event(json.loads(line)):
            continue
        said = json.loads(line)["metadata"]
        found.setdefault(said["id"], []).append(f"{said['party']} {said['kind']}")
    return found
