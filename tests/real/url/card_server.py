"""A server with a card, over HTTP on this machine: what it sends is for the test to choose."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MEDIA_TYPE = "application/mcp-server-card+json"
CARD: dict[str, Any] = {
    "$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
    "name": "com.example/weather",
    "version": "1.4.0",
    "description": "Forecasts and warnings for any place.",
}
ETAG = '"one"'
GOOD_HEADERS: Mapping[str, str] = {
    "Content-Type": MEDIA_TYPE,
    "Access-Control-Allow-Origin": "*",
    "Cache-Control": "public, max-age=3600",
    "ETag": ETAG,
}


class CardServer(ThreadingHTTPServer):
    """The server; its attributes may be changed at any time."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/mcp"
        self.documents: dict[str, bytes] = {}
        """The content at each path."""
        self.headers: dict[str, str] = dict(GOOD_HEADERS)
        self.status = 200
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        """The method, path and headers of each request."""

    def handle_error(self, *_: Any) -> None:
        """Stay silent: a client that goes before the end is for the test to see."""

    def show(self, card: Any, path: str = "/mcp/server-card") -> None:
        """Serve *card*, JSON or bytes, at *path*."""
        self.documents[path] = card if isinstance(card, bytes) else json.dumps(card).encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: CardServer

    def do_GET(self) -> None:
        """Send a document."""
        self._noted()
        server = self.server
        content = server.documents.get(self.path)
        if content is None:
            self._send(404, b"", {})
        elif self.headers.get("If-None-Match") == server.headers.get("ETag", ""):
            self._send(304, b"", server.headers)
        else:
            self._send(server.status, content, server.headers)

    def do_HEAD(self) -> None:
        """Send the head of a document."""
        self.do_GET()

    def _noted(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.asked.append((self.command, self.path, headers))

    def _send(self, status: int, content: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 304:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Stay silent."""


@contextmanager
def card_server(card: Any = CARD) -> Iterator[CardServer]:
    """A server with this *card*."""
    with CardServer() as server:
        server.show(card)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join(10)
