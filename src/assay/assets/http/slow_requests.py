"""Requests that have no answer at once: a subscription, and a tool that waits for a backend."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from assay.assets.asset_server import WAITING
from assay.base.verdict import Verdict

T = TypeVar("T")


def listens(verdict: Verdict) -> bool:
    """Whether *verdict* is on an accepted subscription."""
    exchange = verdict.exchange
    return exchange is not None and exchange.method == "subscriptions/listen" and verdict.onward is not None


def waits(request: Verdict) -> bool:
    """Whether *request* waits for another service."""
    params = request.value.get("params")
    name = request.value["method"] if request.exchange is None else (params or {}).get("name")
    return bool(name == WAITING)


async def beside(work: Callable[..., T], *arguments: Any) -> T:
    """
    Return the result of *work*, or raise its exception, in a daemon thread.

    A pool would have few threads, and delay the exit until a backend has answered.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        try:
            given = work(*arguments)
        except Exception as error:
            settle = partial(done.set_exception, error)
        else:
            settle = partial(done.set_result, given)
        with suppress(RuntimeError):  # the loop is closed: the result is no longer needed
            loop.call_soon_threadsafe(lambda: None if done.done() else settle())

    threading.Thread(target=run, daemon=True).start()
    return await done
