"""
What is said to a client in one response: a whole answer, or a stream of events that it may come back for.

A stream outlives the connection that carries it. Nothing here judges; whoever puts a message in has put it on record.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final

from assay.core.render import array, entries
from assay.edges.http.events import PING, event, primer
from assay.edges.http.replies import STREAM, Pairs, Receive, Send
from assay.edges.http.sessions import HttpSession
from assay.settings.http_section import Http

SLOW_BYTES: Final = 1 << 20
"""Bytes that may wait for a client to take them, until something is done about it."""

SLOW: Final = "the client did not take what it was sent"
"""Why a request fails that nobody else can be made to wait for."""


class Stream:
    """One response, as far as it is not taken yet."""

    def __init__(self, session: HttpSession[Any] | None = None, *, primed: bool = False) -> None:
        """Events of a *session* have ids, and are kept for those who ask again; *primed* begins with one."""
        self._session = session
        self._primed = primed
        self._number: int | None = None
        self._count = 0
        self._queue: deque[tuple[bytes | None, bytes]] = deque()
        self._writer = 0
        self._writers = 0
        self._read = True
        self._last = 0
        self.waiting = 0
        """Bytes that nobody has taken yet."""
        self.ended = False
        self.begun = False
        """Whether it is a stream of events, and no whole answer any more."""
        self.taken: Callable[[], None] = lambda: None
        """Called when everything is taken."""
        self._news = asyncio.Event()

    @property
    def behind(self) -> int:
        """Bytes that nobody had taken yet when the last message came, however long that is."""
        return self.waiting - self._last

    @property
    def attended(self) -> bool:
        """Whether a connection carries it."""
        return self._writers > 0

    @property
    def number(self) -> int | None:
        """What its session knows it by, once it has begun."""
        return self._number

    def say(self, frame: bytes) -> None:
        """One more message."""
        ident = self._keep(frame) if self.begun else None
        if self._read:
            self._queue.append((ident, frame))
            self._last = len(frame)
            self.waiting += self._last
            self._news.set()

    def end(self) -> None:
        """Nothing more will be said."""
        self.ended = True
        self._news.set()

    def cut(self) -> None:
        """The client is too slow: what waits is dropped, and the stream ends."""
        self._queue.clear()
        self.waiting = self._last = 0
        self.end()

    def leave(self) -> None:
        """Nobody reads it, and nobody can come back to it, since it has not begun: nothing waits for anybody."""
        if not self.begun:
            self._read = False
            self._queue.clear()
            self.waiting = self._last = 0
            self.taken()

    def _keep(self, frame: bytes) -> bytes | None:
        if self._session is None or self._number is None:
            return None
        self._count += 1
        return self._session.keep(self._number, self._count, frame)

    def _begin(self) -> bytes:
        """From now on it is a stream of events; the first of them, if there is one before all messages."""
        self.begun = True
        if self._session is None:
            return b""
        self._number = self._session.new_stream()
        first = primer(self._session.keep(self._number, 0, b"")) if self._primed else b""
        self._queue = deque((self._keep(frame), frame) for _, frame in self._queue)
        return first

    async def wait(self, seconds: float | None) -> None:
        """Until there is something to say or nothing any more, *seconds* at most."""
        if not self._queue and not self.ended:
            self._news.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._news.wait()
            except TimeoutError:
                return

    def take(self) -> bytes:
        """What waits, as events."""
        data = b"".join(event(frame, ident) for ident, frame in self._queue)
        self._queue.clear()
        self.waiting = self._last = 0
        self.taken()
        return data

    def wake(self) -> None:
        """Has whoever waits look again."""
        self._news.set()

    async def write(
        self,
        http: Http,
        receive: Receive,
        send: Send,
        headers: Pairs = (),
        *,
        missed: Sequence[tuple[bytes, bytes]] | None = None,
    ) -> bool:
        """
        Writes it as events until it ends or the client goes; whether the client has gone.

        With *missed* the client has come back, and gets these first.
        """
        self._writer += 1
        self._writers += 1
        mine = self._writer
        # Whoever has written so far has nothing to write any more.
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
            await self._write(http, send, first, mine, gone)
        finally:
            here = not gone.done()
            gone.cancel()
            self._writers -= 1
            if self._writer == mine:
                self._read = self.ended
                self.waiting = self._last = 0
                self.taken()
        return not here

    async def _write(self, http: Http, send: Send, first: bytes, mine: int, gone: "asyncio.Future[None]") -> None:
        data = first + self.take()
        while self._writer == mine and not gone.done():
            if data or not self.ended:
                # Without a first byte some clients wait for the head of the answer.
                await send({"type": "http.response.body", "body": data or PING, "more_body": True})
            if self.ended and not self._queue:
                break
            await self.wait(http.ping_seconds)
            if self._writer != mine:
                # The client has come back on another connection, and gets there what there is.
                break
            data = self.take()
        if not gone.done():
            await send({"type": "http.response.body", "body": b""})

    async def _until_gone(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.wake()


class Post(Stream):
    """What is said in answer to one message, or to a batch."""

    def __init__(
        self,
        session: HttpSession[Any] | None = None,
        *,
        primed: bool = False,
        as_json: bool,
        as_stream: bool,
        batch: bool = False,
    ) -> None:
        super().__init__(session, primed=primed)
        self.as_json = as_json
        self.as_stream = as_stream
        self._batch = batch
        self._answers: list[bytes] = []
        self._only_answers = True
        self.due: set[Hashable] = set()
        """The requests that are not answered yet."""
        self.tokens: list[Any] = []
        """The progress tokens of its requests."""
        self.cancelled: set[Hashable] = set()
        """Those of them that need not be answered."""

    def say(self, frame: bytes) -> None:
        """Something beside the answer."""
        self._only_answers = False
        super().say(frame)

    def answer(self, frame: bytes, *idents: Hashable) -> None:
        """The answer to *idents*."""
        self._answers.append(frame)
        super().say(frame)
        self.drop(*idents)

    def cut(self) -> None:
        """
        The client is too slow: what waits is dropped, but for answers.

        It ends with the answers that are still due, which are for whoever cuts it to give.
        """
        answers = [each for each in self._queue if any(each[1] is answer for answer in self._answers)]
        self._queue.clear()
        self._queue.extend(answers)
        self.waiting = self._last = sum(len(frame) for _, frame in answers)

    def drop(self, *idents: Hashable) -> None:
        """Those are not waited for any more."""
        self.due.difference_update(idents)
        if not self.due:
            self.end()

    @property
    def whole(self) -> bytes | None:
        """All of it as one JSON value; None if that is not all, or not only answers."""
        if not self.ended or not self._only_answers or self.begun or not self._answers:
            return None
        if not self._batch or (len(self._answers) == 1 and _is_array(self._answers[0])):
            return self._answers[0]
        return array([one for each in self._answers for one in (entries(each) if _is_array(each) else (each,))])

    async def first(self, seconds: float | None, receive: Receive) -> bool:
        """Waits until it is known how it is answered, *seconds* at most for a stream; whether the client has gone."""
        gone = asyncio.ensure_future(self._until_gone(receive))
        try:
            if seconds is not None and self.as_stream and not self.ended:
                await self.wait(seconds)
                return gone.done()
            while not self.ended and not gone.done() and (not self._queue or not self.as_stream or self._waits):
                self._news.clear()
                await self._news.wait()
            return gone.done()
        finally:
            gone.cancel()

    @property
    def _waits(self) -> bool:
        """Whether it may still become one JSON value: a batch is answered one by one."""
        return self.as_json and self._only_answers and not self.ended


def _is_array(frame: bytes) -> bool:
    return frame.lstrip()[:1] == b"["
