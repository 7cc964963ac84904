"""
What is sent to a client in one HTTP response: a whole answer, or a stream of events that it may resume.

Nothing here judges; every message that is put in is in the records.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from assay.edges.http.replies import STREAM, Pairs, Receive, Send
from assay.edges.http.sessions import HttpSession
from assay.judge import render
from assay.judge.events import PING, event, primer
from assay.model.verdict import Exchange
from assay.settings.http_section import Http

SLOW_BYTES: Final = 1 << 20
"""Bytes that may wait for a client to read them, until something is done about it."""


class QueuedMessage(NamedTuple):
    """A message that waits for the client to read it."""

    ident: bytes | None
    """The id of its event; None without one."""
    frame: bytes
    answers: tuple[Any, ...] | None = None
    """The keys of the requests that it answers; None if it is not an answer."""
    asked: Exchange | None = None
    """The request of the server that it is."""


class ResponseStream:
    """One response. A stream outlives the connection that carries it."""

    def __init__(
        self,
        session: HttpSession[Any] | None = None,
        *,
        primed: bool = False,
        as_json: bool = False,
        as_stream: bool = True,
        batch: bool = False,
        due: Iterable[Hashable] = (),
        listens: bool = False,
    ) -> None:
        """
        Events of a *session* have ids, and are kept for resumption; *primed* streams begin with an id.

        *due* are the requests that the response answers. A stream on which a client *listens* answers none.
        """
        self._session = session
        self.primed = primed
        """Whether it begins with an id to resume with."""
        self.as_json = as_json
        self.as_stream = as_stream
        self._batch = batch
        self.due: set[Hashable] = set(due)
        """The requests that are not answered yet."""
        self.listens = listens
        """Whether it has no end of its own."""
        self.tokens: list[Any] = []
        """The progress tokens of its requests."""
        self.cancelled: set[Hashable] = set()
        """Those of its requests that need not be answered."""
        self.ended = False
        self.begun = False
        """Whether it is a stream of events, and cannot be one whole answer any more."""
        self.number: int | None = None
        """The number of the stream in its session, once it has begun."""
        self.waiting = 0
        """Bytes that the client has not read yet."""
        self.taken: Callable[[], None] | None = None
        """Called when the client has read everything."""
        self.changed: Callable[[], None] | None = None
        """Called when there is something to write, or the response has ended."""
        self._answers: list[bytes] = []
        self._only_answers = True
        self._queue: deque[QueuedMessage] = deque()
        self._count = self._writer = self._writers = self._last = 0
        self._read = True
        self._news: asyncio.Event | None = None

    @property
    def behind(self) -> int:
        """Bytes that were not read yet when the last message came, however long that is."""
        return self.waiting - self._last

    @property
    def attended(self) -> bool:
        """Whether a connection carries it."""
        return self._writers > 0

    # ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def say(self, frame: bytes, asked: Exchange | None = None) -> None:
        """Add a message that is not an answer; *asked* if it is a request of the server."""
        self._only_answers = False
        self._put(QueuedMessage(None, frame, asked=asked))
        self.wake()

    def answer(self, frame: bytes, *keys: Hashable) -> None:
        """Add the answer to the requests *keys*."""
        if not self.begun:
            self._answers.append(frame)
        self._put(QueuedMessage(None, frame, keys))
        self.due.difference_update(keys)
        if not self.due:
            self.ended = True
        self.wake()

    def drop(self, *keys: Hashable) -> None:
        """Wait for the answers to the requests *keys* no longer."""
        self.due.difference_update(keys)
        if not self.due:
            self.ended = True
        self.wake()

    def end(self) -> None:
        """Nothing more will be added."""
        self.ended = True
        self.wake()

    def cut(self) -> list[Exchange]:
        """
        Drop what a slow client has not read, except answers. It ends with the answers that are still due.

        Return the dropped requests of the server.
        """
        dropped = [each.asked for each in self._queue if each.asked is not None]
        self._queue = deque(each for each in self._queue if each.answers is not None)
        self.waiting = self._last = sum(len(each.frame) for each in self._queue)
        if self.listens:
            self.end()
        return dropped

    def leave(self) -> list[QueuedMessage]:
        """
        Drop what waits for a client that has gone, if it cannot resume because the stream has not begun.

        Return the requests of the server among it.
        """
        if self.begun:
            return []
        dropped = [each for each in self._queue if each.asked is not None]
        self._read = False
        self._queue.clear()
        self._emptied()
        return dropped

    def wake(self) -> None:
        """Have the writer look again."""
        if self._news is not None:
            self._news.set()
        if self.changed is not None:
            self.changed()

    def _put(self, message: QueuedMessage) -> None:
        if self.begun:
            message = self._keep(message)
        if self._read:
            self._queue.append(message)
            self._last = len(message.frame)
            self.waiting += self._last

    def _keep(self, message: QueuedMessage) -> QueuedMessage:
        """Return *message* with the id of its event, which is kept for a client that resumes."""
        if self._session is None or self.number is None:
            return message
        self._count += 1
        answers = tuple(key[1] for key in message.answers or ())
        unread = not self._read
        ident = self._session.keep(
            self.number, self._count, message.frame, answers=answers, asked=message.asked, unread=unread
        )
        return message._replace(ident=ident)

    @property
    def whole(self) -> bytes | None:
        """All of it as one JSON value; None if that is not all, or not only answers."""
        if not self.ended or not self._only_answers or self.begun or not self._answers:
            return None
        if not self._batch or (len(self._answers) == 1 and _is_array(self._answers[0])):
            return self._answers[0]
        return render.array(
            [one for each in self._answers for one in (render.entries(each) if _is_array(each) else (each,))]
        )

    @property
    def is_settled(self) -> bool:
        """Whether it is known how it is written: it has ended, or has become a stream."""
        if self.ended:
            return True
        # It may still become one JSON value: the requests of a batch are answered one by one.
        return bool(self._queue) and self.as_stream and not (self.as_json and self._only_answers)

    # ── how it is written ────────────────────────────────────────────────────────────────────────────────────────────

    async def first(self, seconds: float | None, receive: Receive) -> bool:
        """Wait until it is known how it is written, *seconds* at most for a stream; return whether the client left."""
        gone = asyncio.ensure_future(self._until_gone(receive))
        try:
            if seconds is not None and self.as_stream:
                await self._wait(seconds)
            else:
                while not self.is_settled and not gone.done():
                    await self._pause(None)
            return gone.done()
        finally:
            gone.cancel()

    async def write(
        self,
        http: Http,
        commit: Callable[[], None],
        receive: Receive,
        send: Send,
        headers: Pairs = (),
        *,
        missed: Sequence[tuple[bytes, bytes]] | None = None,
    ) -> None:
        """
        Write it as events until it ends or the client goes; *commit* comes before each write.

        With *missed* the client resumes the stream, and gets these first.
        """
        self._writer += 1
        self._writers += 1
        mine = self._writer
        # A writer before this one has nothing to write any more.
        self.wake()
        first = b"".join(event(data, ident) for ident, data in missed or () if data)
        if missed is None:
            first = self._begin()
        else:
            # All of it is among what was missed.
            self._queue.clear()
            self.waiting = self._last = 0
        self._read = True
        gone = asyncio.ensure_future(self._until_gone(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": [*STREAM, *headers]})
            await self._write(http, commit, send, first, mine, gone)
        finally:
            gone.cancel()
            self._writers -= 1
            if self._writer == mine:
                self._read = self.ended
                self._emptied()

    async def _write(
        self,
        http: Http,
        commit: Callable[[], None],
        send: Send,
        first: bytes,
        mine: int,
        gone: "asyncio.Future[None]",
    ) -> None:
        data = first + self.take()
        while self._writer == mine and not gone.done():
            if data or not self.ended:
                commit()
                # Without a first byte some clients wait for the head of the response.
                await send({"type": "http.response.body", "body": data or PING, "more_body": True})
            if self.ended and not self._queue:
                break
            await self._wait(http.ping_seconds)
            if self._writer != mine:
                # The client has resumed on another connection, and gets there what there is.
                break
            data = self.take()
        if not gone.done():
            await send({"type": "http.response.body", "body": b""})

    def _begin(self) -> bytes:
        """Become a stream of events; return the first of them, if there is one before all messages."""
        self.begun = True
        # It is never one whole answer any more, and an answer may have megabytes.
        self._answers.clear()
        if self._session is None:
            return b""
        self.number = self._session.new_stream()
        first = primer(self._session.keep(self.number, 0, b"")) if self.primed else b""
        self._queue = deque(map(self._keep, self._queue))
        return first

    def take(self) -> bytes:
        """Return what waits, as events."""
        data = b"".join(event(each.frame, each.ident) for each in self._queue)
        self._queue.clear()
        self._emptied()
        return data

    def _emptied(self) -> None:
        self.waiting = self._last = 0
        if self.taken is not None:
            self.taken()

    async def _wait(self, seconds: float | None) -> None:
        """Wait until there is something to write or nothing any more, *seconds* at most."""
        if not self._queue and not self.ended:
            await self._pause(seconds)

    async def _pause(self, seconds: float | None) -> None:
        if self._news is None:
            self._news = asyncio.Event()
        self._news.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return

    async def _until_gone(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.wake()


def _is_array(frame: bytes) -> bool:
    return frame.lstrip()[:1] == b"["
