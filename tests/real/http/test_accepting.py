"""How connections are accepted while the server is busy."""

import asyncio
import socket
from contextlib import ExitStack
from typing import Any

import uvicorn

from assay.edges.http.http_server import Connection, HttpServer, listening
from assay.edges.http.replies import HttpReply, Pairs, Receive, Send
from assay.settings.http_section import Http

CLIENTS = 60
TURNS = 20
"""Turns of the event loop in which all of them must be served; with one connection a turn it would be 60."""

REQUEST = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}"


class Counting:
    """An application that notes in which turn of the event loop each request came."""

    def __init__(self) -> None:
        self.turn = 0
        self.came: list[int] = []
        self.server: HttpServer

    def start(self) -> None:
        """Count turns from now on, until every request has come."""
        self.turn += 1
        if len(self.came) < CLIENTS:
            asyncio.get_running_loop().call_soon(self.start)
        else:
            self.server.should_exit = True

    def at_once(self, _: Pairs, __: bytes) -> HttpReply:
        self.came.append(self.turn)
        return HttpReply(200, b"{}", ())

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:  # noqa: ARG002
        raise AssertionError(f"{scope['path']} was not answered at once")

    def flush(self) -> None: ...

    def sweep(self) -> None: ...

    def stop(self) -> None: ...

    async def close(self) -> None: ...


def test_connections_that_wait_are_accepted_together() -> None:
    app = Counting()
    config = uvicorn.Config(app, http=Connection, ws="none", lifespan="off", log_config=None, access_log=False)
    config.proxy_headers = False
    app.server = HttpServer(config, app, Http(), app.start)
    sock = listening("127.0.0.1", 0)
    with ExitStack() as stack:
        for _ in range(CLIENTS):
            client = stack.enter_context(socket.create_connection(sock.getsockname(), timeout=60))
            client.sendall(REQUEST)
        app.server.run(sockets=[sock])
    assert len(app.came) == CLIENTS
    assert app.came[-1] - app.came[0] < TURNS, app.came
