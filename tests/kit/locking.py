"""The command, and a server that offers what a test says."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from kit.command import assay_process_text

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


def lock(directory: Path, *options: str, **what: Any) -> subprocess.CompletedProcess[str]:
    """`assay lock` with *options* on a server that offers *what*."""
    return assay(directory, "lock", *options, "--", *offer(directory, **what))


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
