"""
Accept the connections of a listening socket, all that wait at once.

uvloop accepts one connection in each turn of the event loop, as libuv does. A turn handles every request that has come,
so under load a new connection waited for as many turns as there were connections before it: with 200 sessions, seconds.
"""

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final

MOST: Final = 128
"""Connections that are accepted in one turn, before the requests of others are handled."""

PAUSE: Final = 1.0
"""Seconds until the next try if not even a connection can be closed, as in asyncio."""

_NO_ROOM: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Acceptor:
    """Accepts on one socket until it is closed; to uvicorn, a server of asyncio."""

    def __init__(self, sock: socket.socket, protocol: Callable[[], asyncio.Protocol]) -> None:
        """*protocol* makes the protocol of each connection. Starts in the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._sock = sock
        self._protocol = protocol
        self._beginning: set[asyncio.Task[object]] = set()
        self._retry: asyncio.TimerHandle | None = None
        self._spare: int | None = os.open(os.devnull, os.O_RDONLY)
        """A descriptor to give up for a moment, if the process may not open any more."""
        sock.setblocking(False)
        self._listen()

    def _listen(self) -> None:
        self._loop.add_reader(self._sock, self._accept)

    def _accept(self) -> None:
        for _ in range(MOST):
            try:
                found = self._next()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _NO_ROOM:
                    raise
                # The socket stays readable, and the loop would do nothing else.
                self._loop.remove_reader(self._sock)
                self._retry = self._loop.call_later(PAUSE, self._listen)
                return
            if found is not None:
                found.setblocking(False)
                task = self._loop.create_task(self._begin(found))
                self._beginning.add(task)
                task.add_done_callback(self._beginning.discard)

    def _next(self) -> socket.socket | None:
        """Return the next connection; None for one that was closed, because there is no room. Raises `OSError`."""
        try:
            return self._sock.accept()[0]
        except OSError as error:
            if error.errno not in _NO_ROOM or self._spare is None:
                raise
        # A client that is not served must not wait.
        os.close(self._spare)
        self._spare = None
        try:
            self._sock.accept()[0].close()
        finally:
            with suppress(OSError):
                self._spare = os.open(os.devnull, os.O_RDONLY)
        return None

    async def _begin(self, found: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._protocol, found)
        except OSError:
            # The client has gone already.
            found.close()

    def close(self) -> None:
        """Accept no more; open connections go on."""
        if self._retry is not None:
            self._retry.cancel()
        self._loop.remove_reader(self._sock)
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None

    async def wait_closed(self) -> None:
        """Return at once: nothing is left to wait for."""
