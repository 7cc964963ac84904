"""
The HTTP server itself: uvicorn, with an eye on connections that do not move.

uvicorn waits for ever for the head of a request, for a client that takes no bytes, and for streams at the end. None of
that costs a timer here: all connections are looked at once a second.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from assay.edges.http.app import App
from assay.edges.http.section import Http

HEAD_BYTES: Final = 64 << 10
"""Of the head of a request. Names, a token and a trace are below 10 KB; other servers take 8 to 64 KB."""

_TOO_LARGE: Final = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_TOO_SLOW: Final = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class Connection(HttpToolsProtocol):
    """One connection, which knows since when it has been waiting for the client, and for what."""

    head_since: float | None = None
    """When the head of a request began to arrive, while it is arriving."""
    head_bytes = 0
    body_since = 0.0
    """When the head of the last request was whole."""
    stuck_since: float | None = None
    """When bytes that the client does not take were first seen."""
    stuck_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """A client is there; from now on it has to say something."""
        super().connection_made(transport)
        self.head_since = self.loop.time()

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
        if self.cycle is None or self.cycle.response_complete:
            if self.head_since is None:
                self.head_since = self.loop.time()
                self.head_bytes = 0
            self.head_bytes += len(data)
        super().data_received(data)
        if self.head_since is not None and self.head_bytes > HEAD_BYTES and not self.transport.is_closing():
            self.transport.write(_TOO_LARGE)
            self.transport.close()

    def on_headers_complete(self) -> None:
        """The head of a request is there."""
        self.head_since = None
        self.head_bytes = 0
        self.body_since = self.loop.time()
        super().on_headers_complete()

    def watch(self, now: float, http: Http) -> None:
        """Ends a connection that has waited too long."""
        if self.head_since is not None and now - self.head_since > http.header_seconds:
            self.transport.abort()
            return
        cycle = self.cycle
        arriving = cycle is not None and cycle.more_body and not cycle.response_started
        if arriving and now - self.body_since > http.body_seconds and not self.transport.is_closing():
            self.transport.write(_TOO_SLOW)
            self.transport.close()
            return
        waiting = self.transport.get_write_buffer_size()
        if not waiting or waiting != self.stuck_bytes:
            self.stuck_since, self.stuck_bytes = (now, waiting) if waiting else (None, 0)
        elif self.stuck_since is not None and now - self.stuck_since > http.send_seconds:
            self.transport.abort()


class Server(uvicorn.Server):
    """uvicorn, that ends streams before it waits for them, and what does not move before it waits for ever."""

    def __init__(self, config: uvicorn.Config, app: App, http: Http, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._app = app
        self._http = http
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listens, and says so."""
        await super().startup(sockets)
        if self.started:
            self._ready()

    async def on_tick(self, counter: int) -> bool:
        """Once every tenth of a second."""
        if counter % 10 == 0:
            now = asyncio.get_running_loop().time()
            for connection in list(self.server_state.connections):
                if isinstance(connection, Connection):
                    connection.watch(now, self._http)
            self._app.sessions.sweep()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finishes what is in hand, refuses what is new, within the time that is set."""
        self._app.stop()
        await super().shutdown(sockets)
        for connection in list(self.server_state.connections):
            if isinstance(connection, Connection):
                connection.transport.abort()

    def handle_exit(self, sig: int, frame: Any) -> None:
        """A signal: the first ends gracefully, the second at once. It is not raised again at the end, so exit is 0."""
        super().handle_exit(sig, frame)
        self._captured_signals.clear()
        if self.should_exit and self._app.stopping:
            self.force_exit = True


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens; raises `OSError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen(1024)
    except OSError:
        found.close()
        raise
    return found


def serve(app: App, sock: socket.socket, http: Http, ready: Callable[[], None]) -> None:
    """Serve until a signal comes."""
    for name in ("uvicorn.error", "uvicorn.access", "asyncio"):
        logging.getLogger(name).setLevel(logging.ERROR)
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=int(http.idle_seconds) or 1,
        timeout_graceful_shutdown=int(http.grace_seconds) or 1,
        backlog=1024,
    )
    Server(config, app, http, ready).run(sockets=[sock])
