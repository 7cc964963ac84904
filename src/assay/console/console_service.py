"""A console as the only application of an HTTP server on this machine."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from assay.console.console_app import ConsoleApp
from assay.edges.http.replies import AwaitedReply, HttpReply, Pairs, Receive, Send
from assay.guard.internal_errors import log_once

Pump = Callable[[], Coroutine[Any, Any, None]]
"""What feeds a console until it is cancelled."""


class ConsoleService:
    """The application with its pumps, as the HTTP server of the project runs it."""

    def __init__(self, app: ConsoleApp, pumps: list[Pump], ended: Callable[[], None] = lambda: None) -> None:
        """*ended* is called at the end."""
        self._app, self._pumps, self._ended = app, pumps, ended
        self._tasks: list[asyncio.Task[None]] = []

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Handle one HTTP request."""
        await self._app(scope, receive, send)

    def begin(self) -> None:
        """Start the pumps, on the running event loop."""
        self._tasks = [asyncio.get_running_loop().create_task(logged(pump)) for pump in self._pumps]

    def at_once(self, pairs: Pairs, frame: bytes) -> HttpReply | AwaitedReply | None:
        """Return None: every request takes the same way."""
        del pairs, frame
        return None

    def flush(self) -> None:
        """Do nothing: a console has no records of its own."""

    def sweep(self) -> None:
        """Do nothing: everything is bounded."""

    def stop(self) -> None:
        """End the streams and actions."""
        self._app.end()

    async def close(self) -> None:
        """End the pumps."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._ended()


async def logged(pump: Pump) -> None:
    """Run *pump*; an error of ours is logged, and the page stays as it is."""
    try:
        await pump()
    except Exception as error:
        log_once(error, "the console gets no further records")
