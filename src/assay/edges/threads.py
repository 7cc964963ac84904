"""Start threads and processes: signals that they never get, and work that waits beside an event loop."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


async def beside(work: Callable[..., T], *arguments: Any) -> T:
    """
    Return the result of *work*, or raise its exception, in a daemon thread.

    A pool would have few threads, and delay the exit until the work has ended.
    """
    # 30 ms, which commands that only hold signals would take longer to start.
    import asyncio  # noqa: PLC0415
    from concurrent.futures import Future  # noqa: PLC0415

    done: Future[T] = Future()
    done.set_running_or_notify_cancel()

    def run() -> None:
        try:
            done.set_result(work(*arguments))
        except Exception as error:
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return await asyncio.wrap_future(done)


@contextmanager
def signals_held(*names: str) -> Iterator[None]:
    """Keep these signals, or all of them, until the end of this. What is started in the meantime never gets them."""
    if sys.platform == "win32":
        yield
        return
    kept = {getattr(signal, name) for name in names} or signal.valid_signals()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, kept)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
