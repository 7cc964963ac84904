"""Recognize requests without an immediate response: subscriptions, tools that wait for a service, large frames."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

from assay.assets.asset_server import WAITING
from assay.base.verdict import Verdict
from assay.edges.http.replies import SMALL
from assay.edges.http.request_headers import Headers
from assay.spec.revisions import REVISIONS, handshake

_LISTEN: Final = b"subscriptions/listen"
_WAITING: Final = WAITING.encode()
"""Words in a frame that may mean a slow request."""

_STATELESS: Final = frozenset(each.encode() for each in REVISIONS if not handshake(each))

T = TypeVar("T")


def may_take_long(frame: bytes, headers: Headers) -> bool:
    """Whether *frame* could open a stream, wait for another service, or block other requests."""
    if len(frame) > SMALL:
        return True
    if headers.get(b"mcp-protocol-version") in _STATELESS:
        # Headers must match the frame, or it is refused.
        name = headers.get(b"mcp-name", b"")
        return headers.get(b"mcp-method") == _LISTEN or name == _WAITING or name.startswith(b"=?")
    return _LISTEN in frame or _WAITING in frame


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
