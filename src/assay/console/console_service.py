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
    """The application with its pump, as the HTTP server of the project runs it."""

    def __init__(self, app: ConsoleApp, pump: Pump) -> None:
        self._app, self._pump = app, pump
        self._task: asyncio.Task[None] | None = None

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Handle one HTTP request."""
        await self._app(scope, receive, send)

    def begin(self) -> None:
        """Start the pump, on the running event loop."""
        self._task = asyncio.get_running_loop().create_task(_logged(self._pump))

    def at_once(self, pairs: Pairs, frame: bytes) -> HttpReply | AwaitedReply | None:
        """Return None: every request takes the same way."""
        del pairs, frame
        return None

    def flush(self) -> None:
        """Do nothing: a console has no records of its own."""

    def sweep(self) -> None:
        """Do nothing: everything is bounded."""

    def stop(self) -> None:
        """End the streams."""
        self._app.end()

    async def close(self) -> None:
        """End the pump."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


async def _logged(pump: Pump) -> None:
    """Run *pump*; an error of ours is logged, and the page stays as it is."""
    try:
        await pump()
    except Exception as error:
        log_once(error, "the console gets no further records")
