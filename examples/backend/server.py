"""
A backend for `populate_backend`: takes assets by POST, keeps them in SQLite, answers with their id.

A reference to try things with and to test against. It needs the standard library only; it has no users, no TLS and no
search, and belongs on a loopback address.
"""

import argparse
import json
import signal
import sqlite3
import sys
import threading
import uuid
from collections.abc import Sequence
from contextlib import closing
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ASSETS = "/synesthetic-assets/"

BODY_BYTES = 2 << 20
"""Twice what a request to the asset server may have."""

SECONDS = 10
"""What a client may take to send what it announced."""

TABLE = "CREATE TABLE IF NOT EXISTS assets (id TEXT PRIMARY KEY, asset TEXT NOT NULL)"


class Store:
    """Assets in one SQLite file. A connection for each use: requests come in threads of their own."""

    def __init__(self, path: str | Path) -> None:
        self._path = path
        with closing(self._connected()) as connection, connection:
            connection.execute(TABLE)

    def add(self, asset: dict[str, Any]) -> str:
        """Keeps *asset*, and gives the id to ask for it by."""
        name = str(uuid.uuid4())
        with closing(self._connected()) as connection, connection:
            connection.execute("INSERT INTO assets VALUES (?, ?)", (name, json.dumps(asset)))
        return name

    def get(self, name: str) -> Any:
        """The asset with that id, or None."""
        with closing(self._connected()) as connection:
            row = connection.execute("SELECT asset FROM assets WHERE id = ?", (name,)).fetchone()
        return None if row is None else json.loads(row[0])

    def _connected(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=SECONDS)


class Handler(BaseHTTPRequestHandler):
    """POST /synesthetic-assets/ stores, GET /synesthetic-assets/ID gives back."""

    server: "Server"
    timeout = SECONDS
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Stores the object in the body."""
        if self.path != ASSETS:
            self._say(HTTPStatus.NOT_FOUND, {"detail": f"assets are posted to {ASSETS}"})
            return
        body = self._body()
        if body is None:
            return
        try:
            asset = json.loads(body)
        except (ValueError, RecursionError):
            self._say(HTTPStatus.BAD_REQUEST, {"detail": "the body is no JSON"})
            return
        if not isinstance(asset, dict):
            self._say(HTTPStatus.UNPROCESSABLE_ENTITY, {"detail": "an asset is an object"})
            return
        self._say(HTTPStatus.CREATED, {"id": self.server.store.add(asset)})

    def do_GET(self) -> None:
        """Gives an asset back."""
        asset = self.server.store.get(self.path.removeprefix(ASSETS)) if self.path.startswith(ASSETS) else None
        if asset is None:
            self._say(HTTPStatus.NOT_FOUND, {"detail": "no such asset"})
        else:
            self._say(HTTPStatus.OK, asset)

    def _body(self) -> bytes | None:
        """What was sent; if None, it was answered already."""
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdecimal()):
            self._say(HTTPStatus.LENGTH_REQUIRED, {"detail": "say how long the body is"})
            return None
        if len(length) > 10 or int(length) > BODY_BYTES:
            self._say(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, {"detail": f"at most {BODY_BYTES} bytes"})
            return None
        return self.rfile.read(int(length))

    def _say(self, status: HTTPStatus, answer: dict[str, Any]) -> None:
        body = json.dumps(answer).encode()
        if status >= HTTPStatus.BAD_REQUEST:
            # The body may not have been read: what follows on this connection would be taken for a request.
            self.close_connection = True
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    """The service on one address."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], store: Store) -> None:
        super().__init__(address, Handler)
        self.store = store


def main(arguments: Sequence[str] | None = None) -> int:
    """Serves until it is told to stop; the first line it prints is its address."""
    parser = argparse.ArgumentParser(description="Store posted assets in SQLite.")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8765, help="the port, 0 for a free one (default: %(default)s)")
    parser.add_argument("--db", default="assets.db", metavar="PATH", help="the SQLite file (default: %(default)s)")
    options = parser.parse_args(arguments)
    with Server((options.host, options.port), Store(options.db)) as server:
        for number in (signal.SIGINT, signal.SIGTERM):
            # `shutdown` waits for the loop that runs in this very thread: it has to be asked for from another one.
            signal.signal(number, lambda *_: threading.Thread(target=server.shutdown).start())
        host, port = server.server_address[:2]
        sys.stdout.write(f"http://{host!s}:{port}\n")
        sys.stdout.flush()
        server.serve_forever(poll_interval=0.05)
    return 0


if __name__ == "__main__":
    sys.exit(main())
