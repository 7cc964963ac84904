"""
A server that answers HTTP by a script, the guard in front of it as a process, and the messages between them.

Nothing of ours is on the server's side: a test gives the bytes that go over the connection.
"""

import json
import socket
import ssl
import struct
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.edges.auth.api_keys import new_key, written_hash
from kit.http_client import SECONDS, Service, frame_of, started

GUARD = [sys.executable, "-m", "assay", "guard"]
REVISION = "2025-11-25"
SESSION = "5e55-1011"

TOOL = {
    "name": "search",
    "inputSchema": {"type": "object", "properties": {"words": {"type": "string"}}, "required": ["words"]},
    "outputSchema": {"type": "object", "properties": {"found": {"type": "integer"}}, "required": ["found"]},
}

OPENED: dict[str, Any] = {
    "protocolVersion": REVISION,
    "capabilities": {"tools": {}, "logging": {}},
    "serverInfo": {"name": "scripted", "version": "1"},
}
"""The result of `initialize`."""

FOUND: dict[str, Any] = {"content": [], "structuredContent": {"found": 1}}
"""The result of a call."""


# ── the server ───────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Received:
    """A request as it came."""

    method: str
    path: str
    pairs: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        """The value of the header *name*; there must not be two."""
        found = [value for each, value in self.pairs if each.lower() == name]
        assert len(found) < 2, self.pairs
        return found[0] if found else None

    @property
    def message(self) -> Any:
        """What it carries."""
        return json.loads(self.body)

    @property
    def what(self) -> str:
        """The method that it asks for: that of HTTP, or that of its message; `answer` where that has none."""
        if not self.body:
            return self.method
        message = self.message
        return str(message.get("method", "answer")) if isinstance(message, dict) else "batch"


def result(message: Any, value: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a request."""
    return {"jsonrpc": "2.0", "id": message["id"], "result": dict(value)}


def whole(message: Any, value: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a request, with what 2026-07-28 wants in every result if the request is of that revision."""
    modern = "io.modelcontextprotocol/protocolVersion" in message.get("params", {}).get("_meta", {})
    hints = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if modern else {}
    return result(message, {**hints, **value})


class Peer:
    """The server's end of a connection, for one request: how an answer is written. Where to, `send` knows."""

    def send(self, data: bytes) -> None:
        """Send *data*, all of it."""
        raise NotImplementedError

    def head(self, status: int = 200, **headers: str) -> None:
        """The head of an answer whose end is the end of the connection; `_` stands for `-`."""
        lines = [f"HTTP/1.1 {status} Something", "connection: close"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.send("\r\n".join([*lines, "", ""]).encode())

    def reply(self, status: int, body: bytes = b"", **headers: str) -> None:
        """A whole answer."""
        self.head(status, content_length=str(len(body)), **headers)
        if body:
            self.send(body)

    def json(self, message: Any, status: int = 200, **headers: str) -> None:
        """A whole answer that is a message."""
        self.reply(status, frame_of(message), content_type="application/json", **headers)

    def answer(self, received: Received, value: Mapping[str, Any], **headers: str) -> None:
        """A whole answer: the result of what was *received*."""
        self.json(whole(received.message, value), 200, **headers)

    def events(self, *messages: Any, **headers: str) -> None:
        """A stream, with these messages as the first events; bytes are events already."""
        self.head(200, content_type="text/event-stream", **headers)
        for each in messages:
            self.event(each)

    def event(self, message: Any) -> None:
        """One event."""
        self.send(message if isinstance(message, bytes) else b"data: " + frame_of(message) + b"\n\n")


class WirePeer(Peer):
    """One with a socket."""

    def __init__(self, sock: socket.socket, released: threading.Event) -> None:
        self.socket = sock
        self._released = released

    def send(self, data: bytes) -> None:
        """Send *data*, all of it."""
        self.socket.sendall(data)

    def gone(self) -> bool:
        """Whether the other end closes, before the test is over."""
        self.socket.settimeout(SECONDS)
        with suppress(OSError):
            return self.socket.recv(1) == b""
        return True

    def wait(self) -> None:
        """Until the test is over, or lets go."""
        self._released.wait(SECONDS)

    def reset(self) -> None:
        """Break the connection."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


Script = Callable[[Received, WirePeer], object]


def good(received: Received, peer: Peer) -> None:
    """What a server of the handshake era does: sessions, a tool, and no streams of its own."""
    if received.method != "POST":
        peer.head(405 if received.method == "GET" else 200, content_length="0")
        return
    message = received.message
    method = message.get("method")
    if "id" not in message or method is None:
        peer.head(202, content_length="0")
    elif method == "initialize":
        peer.json(result(message, OPENED), mcp_session_id=SESSION)
    elif method == "tools/list":
        peer.answer(received, {"tools": [TOOL]})
    elif method == "tools/call":
        peer.json(result(message, FOUND))
    else:
        peer.json(result(message, {}))


AnyScript = Callable[[Received, Any], Any]


def by_method(scripts: Mapping[str, AnyScript], otherwise: AnyScript = good) -> AnyScript:
    """A good server, or one that does *otherwise*, but for what *scripts* answer, by what is asked for."""
    return lambda received, peer: scripts.get(received.what, otherwise)(received, peer)


def answering(script: AnyScript, method: str = "tools/call", otherwise: AnyScript = good) -> AnyScript:
    """The same with one script."""
    return by_method({method: script}, otherwise)


def is_own_listing(received: Received) -> bool:
    """Whether the guard itself lists the tools, as it does before a call of one that it does not know."""
    return b'"assay-list-' in received.body and b'"tools/list"' in received.body


def answer_own_listing(received: Received, peer: Peer) -> None:
    """The list of the one tool."""
    peer.answer(received, {"tools": [TOOL]})


@dataclass
class ScriptedServer:
    """A server, and what it has been asked."""

    url: str
    script: Script = good
    seen: list[Received] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    failures: list[BaseException] = field(default_factory=list)
    _news: threading.Condition = field(default_factory=threading.Condition)
    _next: int = 0

    def take(self, received: Received) -> None:
        """A request has come."""
        with self._news:
            self.seen.append(received)
            self._news.notify_all()

    def heard(self, what: str = "", count: int = 1) -> list[Received]:
        """The requests so far that ask for *what*, or all; at least *count*, which are waited for."""

        def found() -> list[Received]:
            return [each for each in self.seen if not what or each.what == what]

        with self._news:
            assert self._news.wait_for(lambda: len(found()) >= count, SECONDS), f"no {what} in {self.asked()}"
            return found()

    def next(self, method: str | None = None) -> Received:
        """The next request, or the next that carries *method*."""
        with self._news:
            while True:
                assert self._news.wait_for(lambda: len(self.seen) > self._next, SECONDS), f"no {method or 'request'}"
                self._next += 1
                found = self.seen[self._next - 1]
                if method in (None, found.what):
                    return found

    def asked(self) -> list[str]:
        """What all requests so far ask for."""
        return [each.what for each in self.seen]

    def forget(self) -> None:
        """A new test begins."""
        self.released.set()
        self.script = good
        self.seen = []
        self.failures = []
        self.released = threading.Event()
        self._next = 0


def _read(stream: Any) -> Received | None:
    first = stream.readline().decode("latin-1").split()
    if len(first) != 3:
        return None
    pairs = []
    while line := stream.readline().decode("latin-1").strip("\r\n"):
        name, _, value = line.partition(":")
        pairs.append((name.lower(), value.strip()))
    length = int(dict(pairs).get("content-length", "0"))
    return Received(first[0], first[1], pairs, stream.read(length) if length else b"")


def _served(server: ScriptedServer, sock: socket.socket) -> None:
    with sock, suppress(ConnectionError, BrokenPipeError, ssl.SSLError):
        with sock.makefile("rb") as stream:
            if stream.peek(1)[:1] == b"\x16":
                # What servers without TLS say to those who want it.
                sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                return
            received = _read(stream)
        if received is None:
            return
        peer = WirePeer(sock, server.released)
        if is_own_listing(received):
            answer_own_listing(received, peer)
            return
        server.take(received)
        try:
            server.script(received, peer)
        except (ConnectionError, TimeoutError):
            return
        except BaseException as error:
            server.failures.append(error)
            raise


@contextmanager
def scripted(script: Script = good, tls: ssl.SSLContext | None = None) -> Iterator[ScriptedServer]:
    """A server that answers each connection by *script*, one request each, over *tls* if that is given."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listening:
        scheme = "http" if tls is None else "https"
        server = ScriptedServer(f"{scheme}://127.0.0.1:{listening.getsockname()[1]}/mcp", script)

        def serve() -> None:
            with suppress(OSError):
                while True:
                    sock, _ = listening.accept()
                    if tls is not None:
                        sock = tls.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
                    threading.Thread(target=_served, args=(server, sock), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield server
        finally:
            server.released.set()
            listening.shutdown(socket.SHUT_RDWR)
    assert server.failures == []


# ── the guard ────────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def listening(
    directory: Path, *options: str, env: Mapping[str, str] | None = None, guard: Sequence[str] = GUARD
) -> Iterator[Service]:
    """A *guard* that is ready, with these *options*, at a port of its own."""
    line = [*guard, "--listen", "127.0.0.1:0", *options]
    with started(line, directory, "assay: guarding ", env) as service:
        yield service


@contextmanager
def guarding(directory: Path, url: str, *options: str, env: Mapping[str, str] | None = None) -> Iterator[Service]:
    """A guard in front of *url*."""
    with listening(directory, "--target", url, *options, env=env) as service:
        yield service


def with_keys(directory: Path, settings: str = "") -> tuple[str, dict[str, dict[str, str]]]:
    """A settings file with keys of two principals behind *settings*, and the header that each sends."""
    keys = {name: new_key() for name in ("alice", "bob")}
    tables = "".join(f'[auth.keys.{name}]\nhash = "{written_hash(key.encode())}"\n' for name, key in keys.items())
    file = directory / "settings.toml"
    file.write_text(f"{settings}\n{tables}")
    return str(file), {name: {"authorization": f"Bearer {key}"} for name, key in keys.items()}
