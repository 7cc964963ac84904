"""
What is said to a server over Streamable HTTP, and what comes back: sessions, streams, and streams that break off.

It knows neither the client nor what a message is worth; whoever is given what comes judges it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing
from typing import Any, Final

from assay.base.verdict import Exchange
from assay.edges.guard.refusals import addressed
from assay.edges.guard.stdio_to_http.upstream import Lost, Reply, Upstream
from assay.edges.guard.stint import Stint
from assay.edges.http.events import Event, Reader
from assay.edges.http_client import Pairs
from assay.edges.upstream_errors import NO_POST, first_line, plain
from assay.ladder import framing, syntax
from assay.ladder.header_values import header_text
from assay.ladder.headers import VERSION

SESSION: Final = b"mcp-session-id"
_LAST_EVENT: Final = b"last-event-id"

_LONGEST_SESSION: Final = 4096
"""Bytes of a session's id: web servers take heads of 8 KB or more."""

_RETRY: Final = 1.0
_LONGEST_RETRY: Final = 30.0
"""Seconds until a stream is asked for again, where the server does not say, and at most."""

_RESUMED: Final = 5
"""How often in a row a stream is asked for again in vain before what it owes counts as lost: some 30 seconds."""

LINGER: Final = 1.0
"""Seconds that a stream has to end once it has said what was waited for."""

_NO_ANSWER: Final = "its stream ended without the answer"


class SessionGone(Lost):
    """The server knows the session no more."""

    def __init__(self, session: bytes, failure: Lost) -> None:
        super().__init__(failure.why, failure.code, **failure.data)
        self.session = session


class Refused(Lost):
    """The server has answered with a 4xx status and this *body*: it may, so nobody is to blame for a missing answer."""

    def __init__(self, failure: Lost, body: bytes) -> None:
        super().__init__(failure.why, failure.code, **failure.data)
        self.body = body
        self.status: int = failure.data["status"]


class Asked:
    """A frame with requests in it, on its way."""

    __slots__ = ("exchanges", "frame", "headers", "method", "sent", "session", "stateless", "task")

    def __init__(self, frame: bytes, exchanges: tuple[Exchange, ...], headers: Pairs, *, stateless: bool) -> None:
        self.frame = frame
        self.exchanges = exchanges
        self.headers = headers
        self.stateless = stateless
        self.method = exchanges[0].method if len(exchanges) == 1 else ""
        self.session: bytes | None = None
        """The session that it was said in."""
        self.sent: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when it is on its way, or never will be."""
        self.task: asyncio.Task[None] | None = None

    def on_its_way(self) -> None:
        """It is."""
        if not self.sent.done():
            self.sent.set_result(None)


class _Mark:
    """Where a stream is to go on, and when."""

    def __init__(self) -> None:
        self.id: bytes | None = None
        self._retry = _RETRY
        self.failures = 0

    def take(self, event: Event) -> None:
        self.failures = 0
        if event.ident is not None:
            self.id = event.ident or None
        if event.retry is not None:
            # What has more digits is no time that anybody waits.
            self._retry = int(event.retry[:9]) / 1000

    @property
    def headers(self) -> Pairs:
        return [] if self.id is None else [(_LAST_EVENT, self.id)]

    @property
    def wait(self) -> float:
        return min(_LONGEST_RETRY, max(self._retry, 0.05) * (1 << min(self.failures, 10)))


class Dialogue:
    """Everything that is said to one server."""

    def __init__(
        self,
        upstream: Upstream,
        take: Callable[[bytes], Awaitable[None]],
        is_open: Callable[[Exchange], bool],
        *,
        limit: int,
        patience: float = 0.0,
    ) -> None:
        """
        Messages go to *take*; *is_open* says whether a request still waits for its answer.

        *patience* is how many seconds the server has to take what is not answered; 0 for ever.
        """
        self._upstream = upstream
        self._take = take
        self._is_open = is_open
        self._limit = limit
        self._patience = patience
        self.session: bytes | None = None
        self.revision: bytes | None = None
        """The revision that was agreed on, as the server has spelt it."""

    @property
    def headers(self) -> Pairs:
        """What everything in a session has to carry."""
        told = ((SESSION, self.session), (VERSION, self.revision))
        return [(name, value) for name, value in told if value is not None]

    def agreed(self, revision: object) -> None:
        """The server has answered `initialize`."""
        self.revision = header_text(revision) if isinstance(revision, str) else None

    # ── one message ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def ask(self, asked: Asked) -> None:
        """Sends requests and takes what comes, until they are answered. Raises `Lost` if that does not happen."""
        mark = _Mark()
        if not asked.stateless and asked.method != "initialize":
            asked.session = self.session
            asked.headers = self.headers
        try:
            async with self._upstream.post(asked.frame, asked.headers, asked.on_its_way) as reply:
                await self._answered(reply, asked, mark)
        except Lost as lost:
            if asked.stateless or mark.id is None:
                raise
            await self._resume(asked, mark, lost)

    async def tell(self, frame: bytes, headers: Pairs | None = None) -> None:
        """
        Sends what is not answered, and waits until it was taken; *headers*, if not those of a session.

        Raises `Lost` if it is not, or not in time.
        """
        given = self.headers if headers is None else headers
        try:
            async with asyncio.timeout(self._patience or None) as limit:
                await self._tell(frame, given, limit, None if headers is not None else self.session)
        except TimeoutError:
            raise Lost(f"not within {self._patience:g} s") from None

    async def _tell(self, frame: bytes, headers: Pairs, limit: asyncio.Timeout, session: bytes | None) -> None:
        async with self._upstream.post(frame, headers, lambda: None) as reply:
            if reply.is_events and reply.good:
                # Taken, and there is more to hear.
                limit.reschedule(None)
                await self._events(reply, None, _Mark())
                return
            body = await reply.body(self._limit)
            # From now on only our client is waited for.
            limit.reschedule(None)
            if reply.status == 404 and session is not None:
                raise SessionGone(session, reply.failure(body))
            if not reply.good:
                raise reply.failure(body)
            value = syntax.read(body) if reply.is_json else None
            if isinstance(value, dict) and "jsonrpc" in value:
                await self._take(body)

    async def _answered(self, reply: Reply, asked: Asked, mark: _Mark) -> None:
        if asked.method == "initialize" and reply.good:
            self._begun(reply)
        if reply.good and reply.is_events:
            await self._events(reply, asked, mark)
            if self._waits(asked):
                raise Lost(_NO_ANSWER)
            return
        body = await reply.body(self._limit)
        if reply.status == 404 and asked.session is not None:
            raise SessionGone(asked.session, reply.failure(body))
        if reply.is_json and reply.good:
            await self._whole(body)
        elif not reply.good:
            await self._error(reply, body, asked)
        if self._waits(asked):
            raise self._unfit(reply, body) if reply.is_json and reply.good else _explained(reply, body, asked)

    async def _whole(self, body: bytes) -> None:
        if not framing.is_blank(body):
            await self._take(body)

    def _unfit(self, reply: Reply, body: bytes) -> Lost:
        """Why a body that should be the answer is none."""
        if len(body) > self._limit:
            why = f"its answer has more than {self._limit:,} bytes"
        elif framing.is_blank(body):
            why = f"it answered {reply.status} with an empty body"
        elif isinstance(syntax.read(body), dict | list):
            why = f"its answer is none to this request: {first_line(body)}"
        else:
            why = f"its answer is no JSON: {first_line(body)}"
        return Lost(why, "UPSTREAM_INVALID", status=reply.status)

    async def _error(self, reply: Reply, body: bytes, asked: Asked) -> None:
        """A failure that is told as JSON-RPC tells it. One without the id is still the answer to what was sent."""
        answer = addressed(body, asked.exchanges[0], reply.barred) if len(asked.exchanges) == 1 else None
        if answer is not None:
            await self._take(answer)

    def _waits(self, asked: Asked) -> bool:
        return any(self._is_open(each) for each in asked.exchanges)

    def _begun(self, reply: Reply) -> None:
        given = reply.header("mcp-session-id")
        self.session = header_text(given[: _LONGEST_SESSION + 1]) if given is not None else None
        if self.session is not None and len(self.session) > _LONGEST_SESSION:
            raise Lost(f"the id of its session has more than {_LONGEST_SESSION:,} bytes", "UPSTREAM_INVALID")

    # ── streams ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _events(self, reply: Reply, asked: Asked | None, mark: _Mark) -> None:
        """Takes events until the stream ends, which it is expected to do when what was *asked* is answered."""
        reader = Reader(self._limit)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(None) as patience, aclosing(reply.chunks()) as chunks:
                async for chunk in chunks:
                    await self._each(reader.feed(chunk), mark)
                    if asked is not None and patience.when() is None and not self._waits(asked):
                        patience.reschedule(loop.time() + LINGER)
        except TimeoutError:
            pass
        except Lost:
            if asked is None or self._waits(asked):
                raise

    async def _each(self, events: Iterator[Event], mark: _Mark) -> None:
        """Takes *events*, of which one chunk can bring thousands, with pauses: the client is heard all the while."""
        stint = Stint()
        for event in events:
            mark.take(event)
            if event.data and event.is_message:
                await self._take(event.data)
            if stint.is_over:
                await asyncio.sleep(0)
                stint = Stint()

    async def _resume(self, asked: Asked, mark: _Mark, why: Lost) -> None:
        """Asks for the rest of a stream that broke off, until it has brought the answer."""
        while self._waits(asked):
            await asyncio.sleep(mark.wait)
            hopeless = False
            try:
                async with self._upstream.get([*self.headers, *mark.headers]) as reply:
                    if reply.good and reply.is_events:
                        await self._events(reply, asked, mark)
                        mark.failures = 0
                        continue
                    failure = reply.failure(await reply.body(self._limit))
                    hopeless = reply.status < 500
            except Lost as lost:
                failure = lost
            mark.failures += 1
            if hopeless or mark.failures >= _RESUMED:
                raise Lost(f"{why.why}, and could not be resumed: {failure.why}")

    async def listen(self) -> None:
        """
        Takes what the server says unasked, for as long as it lets us: without such a stream, this ends at once.

        A stream that breaks off is asked for again, less and less often.
        """
        mark = _Mark()
        while True:
            try:
                async with self._upstream.get([*self.headers, *mark.headers]) as reply:
                    if 400 <= reply.status < 500 or (reply.good and not reply.is_events):
                        return
                    if reply.good:
                        await self._events(reply, None, mark)
            except Lost:
                pass
            await asyncio.sleep(mark.wait)
            mark.failures += 1

    # ── sessions ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def open_again(self, initialize: bytes, ident: object, initialized: bytes | None) -> dict[str, Any]:
        """Begins a new session with what the client has said to begin the last; what the server answers. Or `Lost`."""
        self.session = self.revision = None
        async with self._upstream.post(initialize, [], lambda: None) as reply:
            if not reply.good:
                raise reply.failure(await reply.body(self._limit))
            self._begun(reply)
            result = await self._opening(reply, ident)
        self.agreed(result.get("protocolVersion"))
        if initialized is not None:
            await self.tell(initialized)
        return result

    async def _opening(self, reply: Reply, ident: object) -> dict[str, Any]:
        """The result of `initialize`, in whichever form it comes."""
        if not reply.is_events:
            return _result(syntax.read(await reply.body(self._limit)), ident)
        reader = Reader(self._limit)
        async with aclosing(reply.chunks()) as chunks:
            async for chunk in chunks:
                for event in reader.feed(chunk):
                    value = syntax.read(event.data) if event.data else None
                    if isinstance(value, dict) and "method" not in value:
                        return _result(value, ident)
        raise Lost(_NO_ANSWER)

    async def end(self) -> None:
        """Tells the server that its session is over. Raises `Lost`."""
        if self.session is not None:
            await self._upstream.delete(self.headers)


def _is(given: object, ident: object) -> bool:
    """Whether *given* is the id *ident*: to Python, `true` is 1."""
    return type(given) is type(ident) and given == ident


def _result(value: object, ident: object) -> dict[str, Any]:
    result = value.get("result") if isinstance(value, dict) and _is(value.get("id"), ident) else None
    if isinstance(result, dict):
        return result
    error = value.get("error") if isinstance(value, dict) else None
    said = error.get("message") if isinstance(error, dict) else None
    raise Lost(f"it refused initialize: {plain(said)}" if isinstance(said, str) else "it did not answer initialize")


def _explained(reply: Reply, body: bytes, asked: Asked) -> Lost:
    """A failure, with what is likely behind it."""
    lost = reply.failure(body)
    if asked.method == "initialize" and reply.status in (404, 405):
        lost.why += f"; {NO_POST}"
    return Refused(lost, body) if 400 <= reply.status < 500 else lost
