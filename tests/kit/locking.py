"""A server that offers what a test says: as a process, or behind a line in this process; and `assay lock` on it."""

import json
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Self

import pytest

from assay.edges.probe.server_probe import LateError, LineError
from kit.command import assay_process_text, assay_text
from kit.offering_server import Server

SERVER = Path(__file__).with_name("offering_server.py")

SECONDS = 60

FIND: dict[str, Any] = {
    "name": "find_books",
    "description": "Finds books by words.",
    "inputSchema": {"type": "object", "properties": {"words": {"type": "string"}}, "required": ["words"]},
}
LEND: dict[str, Any] = {
    "name": "lend_book",
    "description": "Lends a book.",
    "inputSchema": {"type": "object"},
    "annotations": {"destructiveHint": True},
}
ALL: dict[str, Any] = {
    "tools": [FIND, LEND],
    "prompts": [{"name": "review", "arguments": [{"name": "book", "required": True}]}],
    "resourceTemplates": [{"name": "book", "uriTemplate": "book://{isbn}", "mimeType": "text/plain"}],
}


def offer(directory: Path, **what: Any) -> list[str]:
    """The command of a server that offers *what* from now on: always the same one."""
    path = directory / "offer.json"
    path.write_text(json.dumps(what or ALL), encoding="utf-8")
    return [sys.executable, "-IS", str(SERVER), "offer.json"]


def linked(directory: Path) -> str:
    """Return another path of the server, in *directory*."""
    path = directory / SERVER.name
    path.symlink_to(SERVER)
    return str(path)


def assay(
    directory: Path, *arguments: str, said: bytes | str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the command line in *directory*."""
    return assay_process_text(*arguments, cwd=directory, said=said, **{"COLUMNS": "100", "NO_COLOR": "1", **variables})


# ── without a process ────────────────────────────────────────────────────────────────────────────────────────────────


class OfferingLine:
    """A line to the server that its command names, in this process: takes the place of `ChildLine`."""

    def __init__(
        self,
        command: Sequence[str],
        _signals: object,
        _limit: int,
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> None:
        assert str(SERVER) in command or Path(command[2]).name == SERVER.name, command
        self.env = env
        self._place = Path(cwd or ".")
        [offer, *_] = (word for word in command if word.endswith(".json"))
        self._frames: deque[bytes] = deque()
        self._server = Server(
            json.loads((self._place / offer).read_text(encoding="utf-8")),
            lambda line: self._frames.append(line.encode()),
        )
        self._has_ended = False
        self.status: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is left behind."""

    def say(self, frame: bytes, message: dict[str, Any], *_: Any) -> None:
        """Have the server take a message; it answers at once."""
        record, unusual = self._server.offer.get("record"), self._server.offer.get("on", {})
        if record is not None:
            with (self._place / record).open("ab") as file:
                file.write(frame.rstrip(b"\n") + b"\n")
        if self._has_ended or unusual.get(message.get("method")) == "exit":
            self._has_ended = True
        else:
            self._server.take(json.loads(frame))

    def hear(self, _: float) -> bytes:
        """Return the next line; a server that has none now never has one."""
        if self._frames:
            return self._frames.popleft()
        if self._has_ended:
            raise LineError("the server ended: it exited with status 3", ["cannot go on"])
        raise LateError("no response in time")

    def close(self) -> Iterator[bytes]:
        """End its input; yield what it still says."""
        self.status = self._server.offer.get("status", 0)
        yield from self._frames
        yield from (line.encode() for line in self._server.offer.get("last", ()))


@pytest.fixture
def offering(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have `assay lock` and `assay call` ask servers in this process, where a test imports this name."""
    monkeypatch.setattr("assay.cli.call.ChildLine", OfferingLine)


def lock_here(directory: Path, *options: str, **what: Any) -> subprocess.CompletedProcess[str]:
    """`assay lock` in this process, with *options* on a server that offers *what*."""
    return assay_here(directory, "lock", *options, "--", *offer(directory, **what))


def assay_here(directory: Path, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the command line in this process, in *directory*; *options* are those of `kit.command.assay`."""
    return assay_text(*arguments, cwd=directory, **{"COLUMNS": "100", "NO_COLOR": "1", **options})


# ── over HTTP ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Strange(BaseHTTPRequestHandler):
    """A server over HTTP whose answer to anything is that of its class."""

    status, kind, body = 200, "text/html", b"hello"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(self.status)
        self.send_header("content-type", self.kind)
        self.send_header("content-length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


@contextmanager
def answering(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """The address of a server of that class."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/mcp"
        finally:
            server.shutdown()
            thread.join(SECONDS)
