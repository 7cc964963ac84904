"""
Threads for what a page asks for and what may wait for a minute: calls of tools, exports, the demonstration.

The threads of the event loop are for others: beside a guard they look up names and read keys, which messages wait for.
At the end of the process nothing waits for a thread.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

from assay.console.api_values import ApiError

MOST_ACTIONS: Final = 4
"""Maximal actions at once. A person starts one."""

_ENDS: Final = "the console ends"

_Value = TypeVar("_Value")


class ActionThreads:
    """Runs each action in a thread of its own."""

    def __init__(self, most: int = MOST_ACTIONS) -> None:
        self._most, self._running, self._over = most, 0, False
        self._awaited: set[asyncio.Future[Any]] = set()

    async def run(self, action: Callable[[], _Value]) -> _Value:
        """Return what *action* returns. Raises `ApiError` if too many are running."""
        if self._over:
            raise ApiError(503, "busy", _ENDS)
        if self._running >= self._most:
            raise ApiError(503, "busy", f"at most {self._most} actions at once; wait for one to end")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[_Value] = loop.create_future()

        def settle(settled: Callable[[Any], None], value: Any) -> None:
            self._running -= 1
            if not done.done():
                settled(value)

        def work() -> None:
            try:
                settled, value = done.set_result, action()
            except Exception as error:
                settled, value = done.set_exception, error  # type: ignore[assignment]  # either is handed on
            # The loop may be closed already, and with it the request.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, settled, value)

        self._running += 1
        threading.Thread(target=work, daemon=True).start()
        self._awaited.add(done)
        try:
            return await done
        finally:
            self._awaited.discard(done)

    def end(self) -> None:
        """Wait for no action any more: the console ends."""
        self._over = True
        for each in self._awaited:
            if not each.done():
                each.set_exception(ApiError(503, "busy", _ENDS))
