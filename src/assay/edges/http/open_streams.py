"""The open streams. A future ends each of them, once, for whichever side is first."""

import asyncio
from asyncio import Future
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from assay.edges.http.quotas import Full, Quota
from assay.edges.http.replies import STREAM, Pairs, Receive, Send, slowly
from assay.edges.http.sessions import HttpSession
from assay.ladder.events import PING
from assay.settings.http_section import Http


async def until_gone(receive: Receive, closing: "Future[None]") -> None:
    """Wait until the client disconnects, then set the future."""
    while (await receive())["type"] != "http.disconnect":
        pass
    close(closing)


def close(closing: "Future[None]") -> None:
    """Set the future."""
    if not closing.done():
        closing.set_result(None)


class Streams:
    """All streams of one server, without their content."""

    __slots__ = ("_http", "_open", "_quota")

    def __init__(self, http: Http, *, gated: bool = False) -> None:
        """With *gated*, each principal has a share."""
        self._http = http
        self._open: set[Future[None]] = set()
        self._quota = Quota("streams", http.streams, each=http.streams_each if gated else None)

    def __len__(self) -> int:
        return len(self._open)

    def full(self, principal: str) -> Full | None:
        """Return why *principal* gets no stream; None if it does."""
        return self._quota.full(principal)

    def end(self) -> None:
        """End all streams, after their last messages."""
        for closing in list(self._open):
            close(closing)

    async def run(
        self,
        principal: str,
        first: Sequence[bytes],
        headers: Pairs,
        receive: Receive,
        send: Send,
        last: Callable[[], Iterable[bytes]],
        session: HttpSession[Any] | None = None,
        *,
        once: bool = False,
    ) -> None:
        """Send *first* to *principal*, then keep-alives until either side ends the stream, then *last*."""
        closing: Future[None] = asyncio.get_running_loop().create_future()

        def end() -> None:
            close(closing)

        self._open.add(closing)
        self._quota.take(principal)
        if session is not None:
            session.open_streams.add(end)
        watch = asyncio.ensure_future(until_gone(receive, closing))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": [*STREAM, *headers]})
            # Without a first byte some clients wait for the head of the response.
            await send({"type": "http.response.body", "body": b"".join(first) or PING, "more_body": True})
            while not once and not closing.done():
                await asyncio.wait((closing,), timeout=self._http.ping_seconds)
                if not closing.done():
                    async with asyncio.timeout(self._http.send_seconds):
                        await send({"type": "http.response.body", "body": PING, "more_body": True})
            gone = watch.done()
            ending = b"" if gone else b"".join(last())
            await slowly(send({"type": "http.response.body", "body": ending}), self._http.send_seconds)
        except TimeoutError:
            return
        finally:
            watch.cancel()
            self._open.discard(closing)
            self._quota.give_back(principal)
            if session is not None:
                session.open_streams.discard(end)
