"""A server at a URL that does what its script says: raw sockets, every request is kept, every wait is bounded."""

import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

SECONDS = 60
"""What anything here may take; it takes a fraction of a second."""

REVISION = "2025-11-25"
SESSION = "a-session"
TOOLS: list[dict[str, Any]] = [{"name": "search", "inputSchema": {"type": "object"}}]
OPENED: dict[str, Any] = {
    "protocolVersion": REVISION,
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "scripted", "version": "1"},
}


class Said(NamedTuple):
    """One HTTP request."""

    verb: str
    headers: Mapping[str, str]
    """By name in lower case."""
    body: bytes

    @property
    def json(self) -> Any:
        """The message in it."""
        return json.loads(self.body)

    @property
    def what(self) -> str:
        """The method that it asks for: that of HTTP, or for a POST that of JSON-RPC; "answer" where there is none."""
        if self.verb != "POST":
            return self.verb
        message = self.json
        return str(message.get("method", "answer")) if isinstance(message, dict) else "batch"


class Line:
    """A connection, from the server's side."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._rest = b""
        connection.settimeout(SECONDS)

    def read(self) -> Said | None:
        """The next request; None at the end."""
        while b"\r\n\r\n" not in self._rest:
            if not self._more():
                return None
            if self._rest.startswith(b"\x16"):
                # What servers without TLS say to those who want it.
                self.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                return None
        head, _, self._rest = self._rest.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in lines)}
        length = int(headers.get("content-length", 0))
        while len(self._rest) < length:
            if not self._more():
                return None
        body, self._rest = self._rest[:length], self._rest[length:]
        return Said(first.split(" ")[0], headers, body)

    def _more(self) -> bool:
        chunk = self._connection.recv(1 << 16)
        self._rest += chunk
        return chunk != b""

    def send(self, data: bytes) -> None:
        """Says *data*, whatever it is."""
        self._connection.sendall(data)

    def reply(self, status: int, body: bytes = b"", type_: str = "", **headers: str) -> None:
        """A whole answer."""
        lines = [f"HTTP/1.1 {status} Some Reason", f"Content-Length: {len(body)}"]
        lines += [f"Content-Type: {type_}"] if type_ else []
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    def json(self, value: Any, status: int = 200, **headers: str) -> None:
        """A whole answer that is a message."""
        self.reply(
            status, value if isinstance(value, bytes) else json.dumps(value).encode(), "application/json", **headers
        )

    def result(self, said: Said, value: Any = None, **headers: str) -> None:
        """A result for what was *said*."""
        self.json(result(said, value), 200, **headers)

    def begin(self, *, length: int | None = None, type_: str = "text/event-stream", **headers: str) -> None:
        """The head of an answer that ends with the connection, or that has *length* bytes."""
        lines = ["HTTP/1.1 200 OK", f"Content-Type: {type_}"]
        lines += ["Connection: close"] if length is None else [f"Content-Length: {length}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.send("\r\n".join(lines).encode() + b"\r\n\r\n")

    def event(self, value: Any, ident: str = "") -> None:
        """One event of a stream that was begun."""
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send((f"id: {ident}\n".encode() if ident else b"") + b"data: " + data + b"\n\n")

    def hold(self) -> None:
        """Says nothing until the other side has gone."""
        with suppress(OSError):
            while self._connection.recv(1 << 16):
                pass

    def close(self) -> None:
        """Ends the connection."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    def reset(self) -> None:
        """Breaks it."""
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._connection.close()


def result(said: Said, value: Any = None) -> dict[str, Any]:
    """A result for what was *said*."""
    modern = "io.modelcontextprotocol/protocolVersion" in str(said.json.get("params"))
    whole = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if modern else {}
    return {"jsonrpc": "2.0", "id": said.json["id"], "result": {**whole, **(value or {"tools": TOOLS})}}


Script = Callable[[Line, Said], None]


def opened(line: Line, said: Said) -> None:
    """The answer to `initialize`."""
    line.result(said, OPENED, Mcp_Session_Id=SESSION)


FRIENDLY: dict[str, Script] = {
    "initialize": opened,
    "GET": lambda line, _: line.reply(405),
    "DELETE": lambda line, _: line.reply(200),
    "answer": lambda line, _: line.reply(202),
}
"""What is said in answer to what, unless a test wants something else; notifications are taken, requests answered."""


class ScriptedUrl:
    """The server."""

    def __init__(self, scripts: Mapping[str, Script], tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self._scripts = {**FRIENDLY, **scripts}
        self._heard: list[Said] = []
        self._news = threading.Condition()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lines: list[Line] = []
        self.failures: list[BaseException] = []
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self._listener.getsockname()[1]}/mcp"
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def heard(self, what: str = "", count: int = 1) -> list[Said]:
        """The requests so far that are *what*, or all; at least *count*, which are waited for."""
        with self._news:
            found: list[Said] = []

            def enough() -> bool:
                found[:] = [each for each in self._heard if not what or each.what == what]
                return len(found) >= count

            assert self._news.wait_for(enough, SECONDS), f"{what} was not said: {self._heard}"
            return found

    def on(self, what: str, script: Script) -> None:
        """From now on *script* answers *what*."""
        self._scripts[what] = script

    def order(self) -> list[str]:
        """What was said, in its order."""
        return [each.what for each in self._heard]

    def close(self) -> None:
        """Ends everything."""
        # The thread waits at a descriptor, and would take the clients of the next server that gets its number.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
            self._thread.join(SECONDS)
        self._listener.close()
        for line in self._lines:
            line.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                if self._tls is not None:
                    # The handshake comes with the first read, in the thread of the connection.
                    connection = self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
                line = Line(connection)
                self._lines.append(line)
                threading.Thread(target=self._serve, args=(line,), daemon=True).start()

    def _serve(self, line: Line) -> None:
        try:
            while (said := line.read()) is not None:
                if b'"assay-list-' in said.body and "tools/list" not in self._scripts:
                    # The guard lists the tools itself, before a call of one that it does not know.
                    line.result(said)
                    continue
                with self._news:
                    self._heard.append(said)
                    self._news.notify_all()
                script = self._scripts.get(said.what)
                if script is not None:
                    script(line, said)
                elif said.what.startswith("notifications/"):
                    line.reply(202)
                else:
                    line.result(said)
                if said.what == "GET":
                    break
        except (OSError, ValueError):
            # Closed, by one of us.
            pass
        except BaseException as error:
            self.failures.append(error)
        finally:
            line.close()


@contextmanager
def scripted_url(
    scripts: Mapping[str, Script] | None = None, tls: ssl.SSLContext | None = None
) -> Iterator[ScriptedUrl]:
    """A server that answers by *scripts*, over *tls* if that is given."""
    server = ScriptedUrl(scripts or {}, tls)
    try:
        yield server
    finally:
        server.close()
    assert not server.failures, server.failures
