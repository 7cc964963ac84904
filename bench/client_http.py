"""
The client's side of a server over HTTP, made to cost little: raw sockets, requests made beforehand, no parser.

It takes about ten microseconds a call, most of them in the system, and on a CPU of its own where the system can do
that, so that what is measured is the server.
"""

import os
import re
import select
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import orjson

from client import FIRST_ID, GOOD
from running import PATIENCE, Running

CONNECTIONS: Final = 8
"""Kept open, one request on each at a time: enough that the server always has one to read."""

MODERN: Final = "2026-07-28"

_LENGTH: Final = re.compile(rb"\r\ncontent-length: (\d+)\r\n", re.IGNORECASE)
_SESSION: Final = re.compile(rb"\r\nmcp-session-id: ([^\r]+)\r\n", re.IGNORECASE)


class HttpDoor(NamedTuple):
    """A way to call a tool over HTTP."""

    revision: str
    tool: str
    arguments: dict[str, Any]

    @property
    def handshake(self) -> bool:
        """Whether the revision has one: then the calls are in a session, if the server gives us one."""
        return self.revision < MODERN

    def message(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """A message without an id, as clients of the revision send it."""
        if not self.handshake:
            meta = {
                "io.modelcontextprotocol/protocolVersion": self.revision,
                "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            params = {**params, "_meta": meta}
        return {"jsonrpc": "2.0", "method": method, "params": params}

    @property
    def call(self) -> dict[str, Any]:
        """What is measured."""
        return self.message("tools/call", {"name": self.tool, "arguments": self.arguments})

    def posts(self, messages: Sequence[bytes], host: str, session: bytes | None, method: str) -> list[bytes]:
        """*messages* of one length, with the head that an ordinary client would send."""
        head = {
            "Host": host,
            "Accept": "application/json, text/event-stream",
            "Accept-Encoding": "gzip, deflate",
            "Connection": "keep-alive",
            "User-Agent": "bench",
            "Content-Type": "application/json",
            "MCP-Protocol-Version": self.revision,
            "Content-Length": str(len(messages[0])),
        }
        if session is not None:
            head["Mcp-Session-Id"] = session.decode()
        if not self.handshake:
            head["Mcp-Method"] = method
            if method == "tools/call":
                head["Mcp-Name"] = self.tool
        if method == "initialize":
            del head["MCP-Protocol-Version"]
        lines = "\r\n".join(f"{name}: {value}" for name, value in head.items())
        before = f"POST /mcp HTTP/1.1\r\n{lines}\r\n\r\n".encode()
        return [before + each for each in messages]


class HttpServer(Running):
    """A candidate that runs, and connections to it."""

    def __init__(self, command: list[str], port: int, door: HttpDoor, environment: Mapping[str, str]) -> None:
        with placed(server_cpu()):
            super().__init__(command, environment, piped=False)
        self._door = door
        self._host = f"127.0.0.1:{port}"
        self._address = "127.0.0.1", port
        self._next = FIRST_ID
        self._session: bytes | None = None
        self._sockets: list[socket.socket] = []

    def open(self) -> None:
        """Connects, and shakes hands where the revision wants that."""
        with self._patience():
            self._sockets = [self._connected() for _ in range(CONNECTIONS)]
            if not self._door.handshake:
                return
            hello = {
                "protocolVersion": self._door.revision,
                "capabilities": {},
                "clientInfo": {"name": "bench", "version": "1"},
            }
            answer = self._ask({**self._door.message("initialize", hello), "id": 0})
            found = _SESSION.search(answer)
            self._session = found[1] if found else None
            self._ask({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self) -> dict[str, Any]:
        """The result of one call."""
        return self.ask("tools/call", self._door.call["params"])

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The result of a request."""
        with self._patience():
            raw = self._ask({**self._door.message(method, params), "id": self._next})
        answer = orjson.loads(raw.partition(b"\r\n\r\n")[2])
        assert "result" in answer, raw
        result: dict[str, Any] = answer["result"]
        return result

    def flood(self, count: int) -> tuple[float, float]:
        """Seconds, and the process's CPU seconds, for *count* calls, always one on each connection."""
        requests = iter(self._requests(count))
        self._reconnect()
        poll = select.poll()
        by_number = {each.fileno(): each for each in self._sockets}
        partial: dict[int, bytes] = {}
        done = 0
        with self._patience(), placed(client_cpu()):
            used = self._cpu()
            begin = time.perf_counter()
            for each in self._sockets:
                poll.register(each, select.POLLIN)
                each.send(next(requests))
            while done < count:
                for number, _ in poll.poll():
                    connection = by_number[number]
                    answer = self._more(connection)
                    if number in partial:
                        answer = partial.pop(number) + answer
                    if not whole(answer):
                        partial[number] = answer
                        continue
                    assert GOOD in answer, answer
                    done += 1
                    request = next(requests, None)
                    if request is not None:
                        connection.send(request)
            lasted = time.perf_counter() - begin
            used = self._cpu() - used
        return lasted, used

    def trips(self, most: int, seconds: float) -> list[float]:
        """Microseconds of each round trip on one connection, until there are *most* or the time is up."""
        found: list[float] = []
        requests = self._requests(most)
        self._reconnect()
        connection, now = self._sockets[0], time.perf_counter
        # On the server's CPU: to wake somebody on another one takes longer than what is measured.
        with self._patience(), placed(server_cpu()):
            end = now() + seconds
            for request in requests:
                begin = now()
                connection.send(request)
                answer = self._more(connection)
                while not whole(answer):
                    answer += self._more(connection)
                found.append((now() - begin) * 1e6)
                if begin > end:
                    break
        return found

    def close(self) -> None:
        """Hang up, and end the process."""
        for each in self._sockets:
            each.close()
        self._process.terminate()
        super().close()

    def _requests(self, count: int) -> list[bytes]:
        before, after = orjson.dumps({**self._door.call, "id": 0}).split(b'"id":0', 1)
        messages = [b'%b"id":%d%b' % (before, ident, after) for ident in range(self._next, self._next + count)]
        self._next += count
        return self._door.posts(messages, self._host, self._session, "tools/call")

    def _connected(self) -> socket.socket:
        while True:
            try:
                found = socket.create_connection(self._address, timeout=PATIENCE)
            except ConnectionRefusedError:
                if self._process.poll() is not None:
                    raise self._ended() from None
                time.sleep(0.02)
                continue
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return found

    def _reconnect(self) -> None:
        """Replace the connections that the server has closed: while others are measured they are idle."""
        self._sockets = [self._connected() if _is_closed(each) else each for each in self._sockets]

    def _ask(self, message: dict[str, Any]) -> bytes:
        self._reconnect()
        connection = self._sockets[0]
        method = message["method"]
        connection.sendall(self._door.posts([orjson.dumps(message)], self._host, self._session, method)[0])
        answer = self._more(connection)
        while not whole(answer):
            answer += self._more(connection)
        assert answer.startswith(b"HTTP/1.1 20"), answer
        return answer

    def _more(self, connection: socket.socket) -> bytes:
        chunk = connection.recv(1 << 18)
        if not chunk:
            raise self._ended()
        return chunk


def _is_closed(connection: socket.socket) -> bool:
    """Return whether the other side has closed *connection*; then it is closed here too."""
    if not select.select([connection], [], [], 0)[0]:
        return False
    try:
        closed = not connection.recv(1, socket.MSG_PEEK)
    except ConnectionError:
        closed = True
    if closed:
        connection.close()
    return closed


def whole(answer: bytes) -> bool:
    """Whether all of an answer has arrived."""
    head = answer.find(b"\r\n\r\n")
    if head < 0:
        return False
    found = _LENGTH.search(answer, 0, head + 2)
    # Without a length there is no body, as in what a notification is answered with.
    return len(answer) - head - 4 >= (int(found[1]) if found else 0)


def free_port() -> int:
    """A port that nobody listens at just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


# ── one CPU for each side ────────────────────────────────────────────────────────────────────────────────────────────


_ALLOWED: Final = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set[int]()


def server_cpu() -> int | None:
    """Where servers are; None where that cannot be said."""
    return max(_ALLOWED, default=None)


def client_cpu() -> int | None:
    """Where the client is meanwhile: on another one, if there is another."""
    return min(_ALLOWED, default=None)


@contextmanager
def placed(cpu: int | None) -> Iterator[None]:
    """Our thread on *cpu*, and what is started meanwhile for good."""
    if cpu is None:
        yield
        return
    try:
        os.sched_setaffinity(0, {cpu})
        yield
    finally:
        os.sched_setaffinity(0, _ALLOWED)
