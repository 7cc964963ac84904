"""
`scripted_server.py` over Streamable HTTP.

Its arguments: the file with the script, which is read anew for each session, at the start, and for a request without
a session if it is another file; and one that the port is written to. What is said in answer to a request is the body
if it is one line, and events if it is more; an answer to another request goes there. A request that nothing is said to
waits.
"""

import json
import os
import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue
from threading import Lock
from typing import Any

from kit.scripted_server import LIFETIME, Server, write

SAID = bytearray()
"""What is being said to the one message that is judged at a time."""


class Spoken(Server):
    """The server, without standard output."""

    def out(self, data: bytes) -> None:
        """Keep *data*."""
        SAID.extend(data)
        if self.sent >= 0:
            write(self.sent, data)


class ScriptedHttp(ThreadingHTTPServer):
    """The server."""

    daemon_threads = True

    def __init__(self, script: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = script
        self.lock = Lock()
        self.sessions: set[str] = set()
        self.waiting: dict[str, SimpleQueue[bytes]] = {}
        self.begin()

    def begin(self) -> None:
        """Reads the script."""
        with open(self.script, "rb") as file:
            self.scripted = Spoken(json.load(file))
            self.read = os.fstat(file.fileno())

    def is_outdated(self) -> bool:
        """Whether there is another script by now."""
        return not os.path.samestat(os.stat(self.script), self.read)

    def react(self, body: bytes, idents: set[str]) -> list[bytes]:
        """What is said to a message; what answers another goes its own way."""
        with self.lock:
            SAID.clear()
            self.scripted.take(body, b"\n")
            own = []
            for line in bytes(SAID).split(b"\n"):
                ident = answered(line)
                if ident in self.waiting and ident not in idents:
                    self.waiting.pop(ident).put(line)
                elif line.strip():
                    own.append(line)
            if not own:
                self.waiting.update({ident: SimpleQueue() for ident in idents})
            return own


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    server: ScriptedHttp

    def log_message(self, *_: Any) -> None:
        """Says nothing."""

    def reply(self, status: int, body: bytes = b"", kind: str = "", session: str = "") -> None:
        """A whole answer."""
        self.send_response(status)
        for name, value in (("content-type", kind), ("mcp-session-id", session)):
            if value:
                self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        """It has nothing to say by itself."""
        self.reply(405)

    def do_DELETE(self) -> None:
        """The end of a session."""
        self.server.sessions.discard(self.headers.get("mcp-session-id", ""))
        self.reply(200)

    def do_POST(self) -> None:
        """A message."""
        body = self.rfile.read(int(self.headers["content-length"]))
        session = self.headers.get("mcp-session-id")
        if session is not None and session not in self.server.sessions:
            self.reply(404)
            return
        opens = ""
        if session is None and b'"initialize"' in body:
            opens = os.urandom(16).hex()
            self.server.sessions.add(opens)
            self.server.begin()
        elif session is None and self.server.is_outdated():
            self.server.begin()
        idents = asked(body)
        lines = self.server.react(body, idents)
        if not idents:
            self.reply(202)
            return
        if not lines:
            waiting = [self.server.waiting.get(ident) for ident in idents]
            lines = [each.get() for each in waiting if each is not None]
        if len(lines) == 1:
            self.reply(200, lines[0], "application/json", opens)
        else:
            self.reply(200, b"".join(b"data: " + line + b"\n\n" for line in lines), "text/event-stream", opens)


def read(line: bytes) -> list[dict[str, Any]]:
    """The messages in it, if there are any."""
    try:
        value = json.loads(line)
    except ValueError:
        return []
    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict)]


def answered(line: bytes) -> str:
    """The id of what it answers, as JSON."""
    return next((json.dumps(each.get("id")) for each in read(line) if "method" not in each), "")


def asked(body: bytes) -> set[str]:
    """The ids of the requests in it."""
    return {json.dumps(each["id"]) for each in read(body) if "method" in each and "id" in each}


if __name__ == "__main__":
    signal.alarm(10 * LIFETIME)
    server = ScriptedHttp(sys.argv[1])
    with open(f"{sys.argv[2]}.new", "w") as told:
        told.write(str(server.server_port))
    os.replace(f"{sys.argv[2]}.new", sys.argv[2])
    server.serve_forever()
