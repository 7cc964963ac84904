"""The same over HTTP, with sessions."""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from worst_answers import answer

place = Path(sys.argv[1])


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """One message."""
        body = self.rfile.read(int(self.headers["content-length"]))
        said = answer(body, place)
        self.send_response(202 if said is None else 200)
        if b'"initialize"' in body[:200]:
            self.send_header("mcp-session-id", f"session-{id(self)}")
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(said or b"")))
        self.end_headers()
        self.wfile.write(said or b"")

    def do_DELETE(self) -> None:
        """The end of a session."""
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler)
server.serve_forever()
