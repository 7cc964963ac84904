"""Work that waits, beside an event loop."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


async def beside(work: Callable[..., T], *arguments: Any) -> T:
    """
    Return the result of *work*, or raise its exception, in a daemon thread.

    A pool would have few threads, and delay the exit until the work has ended.
    """
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()

    def run() -> None:
        try:
            done.set_result(work(*arguments))
        except Exception as error:
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return await asyncio.wrap_future(done)
