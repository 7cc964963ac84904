"""A server with a card, over HTTP on this machine: what it sends of each is for the test to choose."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from assay.core.extensions.card_rules import MEDIA_TYPE
from assay.spec.revisions import LATEST, LATEST_HANDSHAKE

SCHEMA = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
CARD: dict[str, Any] = {
    "$schema": SCHEMA,
    "name": "com.example/weather",
    "version": "1.4.0",
    "description": "Forecasts and warnings for any place.",
}
INFO: dict[str, Any] = {"name": "weather", "version": "1.4.0"}
ETAG = '"one"'
GOOD_HEADERS: Mapping[str, str] = {
    "Content-Type": MEDIA_TYPE,
    "Access-Control-Allow-Origin": "*",
    "Cache-Control": "public, max-age=3600",
    "ETag": ETAG,
}


def stateless_server(message: Any, info: Mapping[str, Any]) -> dict[str, Any] | None:
    """The answers of a server without a handshake."""
    if message["method"] != "server/discover":
        return None
    meta = {"io.modelcontextprotocol/serverInfo": dict(info)}
    known = {"supportedVersions": [LATEST], "capabilities": {}, "ttlMs": 0, "cacheScope": "public", "_meta": meta}
    return {"resultType": "complete", **known}


def older_server(message: Any, info: Mapping[str, Any]) -> dict[str, Any] | None:
    """The answers of a server with a handshake."""
    if message["method"] != "initialize":
        return None
    return {"protocolVersion": LATEST_HANDSHAKE, "capabilities": {}, "serverInfo": dict(info)}


class CardServer(ThreadingHTTPServer):
    """The server; its attributes may be changed at any time."""

    daemon_threads = True

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.origin = f"{'https' if tls else 'http'}://127.0.0.1:{self.server_address[1]}"
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"{self.origin}/mcp"
        self.documents: dict[str, bytes] = {}
        """The content at each path."""
        self.headers: dict[str, str] = dict(GOOD_HEADERS)
        self.status = 200
        self.info = dict(INFO)
        self.speaks: Callable[[Any, Mapping[str, Any]], dict[str, Any] | None] = stateless_server
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        """The method, path and headers of each request."""
        self.slow = threading.Event()
        """Set when a slow document may end."""
        self.is_slow = False

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
            self._send(404 if self.path != "/mcp" else 405, b"", {})
        elif self.headers.get("If-None-Match") == server.headers.get("ETag", ""):
            self._send(304, b"", server.headers)
        elif server.is_slow:
            self._send(200, content, server.headers, only=1)
            server.slow.wait(30)
        else:
            self._send(server.status, content, server.headers)

    def do_HEAD(self) -> None:
        """Send the head of a document."""
        self.do_GET()

    def do_POST(self) -> None:
        """Answer a message."""
        self._noted()
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "id" not in message:
            self._send(202, b"", {})
            return
        result = self.server.speaks(message, self.server.info)
        error = {"code": -32601, "message": "Method not found"}
        body = {"jsonrpc": "2.0", "id": message["id"], **({"error": error} if result is None else {"result": result})}
        self._send(200, json.dumps(body).encode(), {"Content-Type": "application/json"})

    def do_DELETE(self) -> None:
        """End a session."""
        self._send(200, b"", {})

    def _noted(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.asked.append((self.command, self.path, headers))

    def _send(self, status: int, content: bytes, headers: Mapping[str, str], only: int | None = None) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 304:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content[:only])

    def log_message(self, *_: Any) -> None:
        """Stay silent."""


@contextmanager
def card_server(card: Any = CARD, tls: ssl.SSLContext | None = None) -> Iterator[CardServer]:
    """A server with this *card*, over *tls* if that is given."""
    with CardServer(tls) as server:
        server.show(card)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.slow.set()
            server.shutdown()
            thread.join(10)
