"""
A POST to a server at a URL that is answered without a task of its connection, unless it takes long or is a stream.

The exchange runs in one task and writes into a buffer. A whole JSON answer goes to the connection as such; everything
else is written by the task that the connection then makes.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from assay.edges.backend import HttpRequest, failure
from assay.edges.http.replies import CLOSE, JSON, HttpReply, Receive, Send, reply, shared

if TYPE_CHECKING:
    from assay.edges.url_exchange import UrlExchange

_log: Final = logging.getLogger("assay")

SOON: Final = 0.05
"""Seconds after which a request counts as slow: its time is kept, and its client is watched."""

_FIRST: Final = 2
"""Messages of a whole answer: its head and its body."""


class AwaitedExchange:
    """One request, and the response that it waits for."""

    __slots__ = (
        "_attached", "_buffer", "_commit", "_exchange", "_real", "_request", "_work", "changed", "early", "release",
    )  # fmt: skip

    def __init__(self, request: HttpRequest, early: float, commit: Callable[[], None]) -> None:
        """*commit* writes the records of what is sent from then on."""
        self._request = request
        self._commit = commit
        self._exchange: UrlExchange
        self._buffer: list[dict[str, Any]] = []
        self.changed: Callable[[], None] | None = None
        """Called when there is something to write."""
        self._real: Send | None = None
        self._attached: asyncio.Event | None = None
        self._work: asyncio.Task[None]
        self.early: float | None = early
        """Seconds after which a task of the connection takes over."""
        self.release: Callable[[], None] | None = None
        """Called once at the end."""

    def start(self, exchange: "UrlExchange", work: Awaitable[None]) -> None:
        """Begin the *work* of the exchange, which writes by `send`."""
        self._exchange = exchange
        self._work = asyncio.ensure_future(work)
        self._work.add_done_callback(self._ended)

    async def send(self, message: dict[str, Any]) -> None:
        """Take a message of the response; of one that is a stream, wait for the task that writes it."""
        if self._real is None:
            self._buffer.append(message)
            if not message.get("more_body"):
                return
            if self._attached is None:
                self._attached = asyncio.Event()
                self._change()
            await self._attached.wait()
        else:
            # The exchange leaves its records to this object, as for an answer that is buffered.
            self._commit()
            await self._real(message)

    @property
    def response(self) -> "AwaitedExchange":
        """The response, which is this object too."""
        return self

    @property
    def is_settled(self) -> bool:
        """Whether it is known how the response is written."""
        return self._work.done() or self._attached is not None

    def reply(self) -> HttpReply | None:
        """Return the whole response; None if it is to be written message by message."""
        if not self._work.done():
            return None
        if self._work.cancelled() or self._work.exception() is not None:
            return self._failed()
        if len(self._buffer) != _FIRST or self._buffer[1].get("more_body"):
            return None
        start, body = self._buffer
        content: bytes = body["body"]
        kept = [pair for pair in start["headers"] if pair[0] != b"content-length" and pair != JSON]
        if any(name == b"content-type" for name, _ in kept) or (not content and len(kept) + 1 < len(start["headers"])):
            return None
        return HttpReply(start["status"], content, kept)

    def finish(self) -> None:
        """The response was written, or the client has gone."""
        if not self._work.done():
            self._work.cancel()
            self._exchange.abandoned()
        if self.release is not None:
            self.release()
            self.release = None

    async def carry_on(self, receive: Receive, send: Send) -> None:
        """Wait for the response and write it, unless the client goes."""
        watch = asyncio.ensure_future(_until_gone(receive))
        try:
            self._exchange.keep_time()
            self._commit()
            for message in self._buffer:
                await send(message)
            self._buffer.clear()
            self._real = send
            if self._attached is not None:
                self._attached.set()
            await asyncio.wait((self._work, watch), return_when=asyncio.FIRST_COMPLETED)
            if self._work.done() and (self._work.cancelled() or self._work.exception() is not None):
                await reply(send, *self._failed())
        finally:
            watch.cancel()
            self.finish()

    def _failed(self) -> HttpReply:
        """The answer after an internal error, of which only the log has the reason."""
        error = None if self._work.cancelled() else self._work.exception()
        _log.error("a %s request failed", self._request.method, exc_info=error)
        status, content = failure(self._request, "INTERNAL_ERROR", "the guard failed; its log says why")
        return HttpReply(status, content, [CLOSE, *shared(self._request.headers)])

    def _ended(self, _: "asyncio.Task[None]") -> None:
        self._change()

    def _change(self) -> None:
        if self.changed is not None:
            self.changed()


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
