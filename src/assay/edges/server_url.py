"""
A server at a URL, over Streamable HTTP: what is sent to it, and what comes back on responses and streams.

It keeps the session id, resumes streams that break off, and does not judge messages: each one goes to the caller.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Final

from assay.edges.time_slice import Stint
from assay.edges.upstream_answer import Lost, Refused, SessionGone, UpstreamAnswer
from assay.edges.upstream_client import DIRECTLY, ClientSetupError, Pairs, UpstreamClient, url_of
from assay.edges.upstream_errors import NO_POST, BrokenError, addressed, first_line
from assay.guard.backoff import pause
from assay.judge import framing, syntax
from assay.judge.events import Event, Reader
from assay.judge.headers import VERSION, header_text
from assay.model.names import name_of_url
from assay.model.verdict import Exchange
from assay.settings.http_section import UpstreamSettings

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

_NAMED: Final = ((b"user-agent", b"assay"),)
_EVENTS: Final = b"text/event-stream"
_BOTH: Final = b"application/json, text/event-stream"


class Asked:
    """A frame with requests in it, on its way."""

    __slots__ = ("again", "exchanges", "frame", "headers", "method", "sent", "session", "stateless", "task")

    def __init__(
        self, frame: bytes, exchanges: tuple[Exchange, ...], headers: Pairs, *, stateless: bool, again: bool = False
    ) -> None:
        """*again* if the guard repeats it in a new session: the client does not wait for it."""
        self.again = again
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

    @property
    def waits(self) -> bool:
        """Whether an answer is still to come."""
        return any(each.state == "open" for each in self.exchanges)

    def on_its_way(self) -> None:
        """Mark the frame as sent, or as one that never will be."""
        if not self.sent.done():
            self.sent.set_result(None)


class _Place:
    """Where a stream is to be resumed, and when."""

    __slots__ = ("_retry", "event", "failures")

    def __init__(self) -> None:
        self.event: bytes | None = None
        """The id of the last event that had one."""
        self._retry = _RETRY
        self.failures = 0

    def pass_by(self, event: Event) -> None:
        """Note an event that has come."""
        self.failures = 0
        if event.ident is not None:
            self.event = event.ident or None
        if event.retry is not None:
            # A time with more digits is longer than any guard runs.
            self._retry = int(event.retry[:9]) / 1000

    @property
    def headers(self) -> Pairs:
        """The header that asks for what follows."""
        return [] if self.event is None else [(_LAST_EVENT, self.event)]

    @property
    def wait(self) -> float:
        """Seconds until the stream is asked for again."""
        return min(_LONGEST_RETRY, pause(max(self._retry, 0.05), self.failures))


class UrlServer:
    """The server port for a URL."""

    def __init__(
        self,
        url: str,
        headers: Sequence[tuple[str, str]],
        settings: UpstreamSettings = DIRECTLY,
        *,
        hear: Callable[[bytes], Awaitable[None]],
        limit: int,
        patience: float = 0.0,
    ) -> None:
        """
        *headers* go with every request; messages of the server go to *hear*.

        *limit* is how many bytes a message may have, *patience* how many seconds the server has to accept a message
        that has no answer; 0 for no limit. Raises `Lost` if the *settings* cannot be used.
        """
        self._url = url_of(url)
        given = [(name.lower().encode("ascii"), value.encode()) for name, value in headers]
        self._own = [*(_NAMED if all(name != b"user-agent" for name, _ in given) else ()), *given]
        self._take = hear
        self._limit = limit
        self._patience = patience
        self.session: bytes | None = None
        self.revision: bytes | None = None
        """The revision that was agreed on, as the server has spelt it."""
        try:
            # The name has no path, which may hold a secret.
            self._client = UpstreamClient(url, settings, where=name_of_url(url))
        except ClientSetupError as error:
            raise Lost(str(error)) from None

    # ── HTTP ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    @asynccontextmanager
    async def _ask(
        self, method: str, headers: Pairs, frame: bytes | None = None, sent: Callable[[], None] | None = None
    ) -> AsyncIterator[UpstreamAnswer]:
        """Send one request and yield its answer. Raises `Lost`."""
        accept = _BOTH if method == "POST" else _EVENTS
        whole = [*headers, (b"accept", accept)] if method != "DELETE" else list(headers)
        if frame is not None:
            whole.append((b"content-type", b"application/json"))
        named = {name for name, _ in whole}
        pairs = [*(pair for pair in self._own if pair[0] not in named), *whole]
        try:
            answer = await self._client.answer(method, self._url, pairs, frame, sent)
        except BrokenError as error:
            raise Lost(str(error)) from None
        try:
            yield UpstreamAnswer(answer)
        finally:
            answer.close()

    async def close(self) -> None:
        """End all connections."""
        await self._client.close()

    @property
    def headers(self) -> Pairs:
        """What everything in a session has to carry."""
        known = ((SESSION, self.session), (VERSION, self.revision))
        return [(name, value) for name, value in known if value is not None]

    def agreed(self, revision: object) -> None:
        """The server has answered `initialize`."""
        self.revision = header_text(revision) if isinstance(revision, str) else None

    # ── one message ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def ask(self, asked: Asked) -> None:
        """Sends requests and takes what comes, until they are answered. Raises `Lost` if that does not happen."""
        mark = _Place()
        if not asked.stateless and asked.method != "initialize":
            asked.session = self.session
            asked.headers = self.headers
        try:
            async with self._ask("POST", asked.headers, asked.frame, asked.on_its_way) as reply:
                await self._answered(reply, asked, mark)
        except Lost as lost:
            if asked.stateless or mark.event is None:
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
        async with self._ask("POST", headers, frame) as reply:
            if reply.is_events and reply.good:
                # Taken, and there is more to hear.
                limit.reschedule(None)
                await self._events(reply, None, _Place())
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

    async def _answered(self, reply: UpstreamAnswer, asked: Asked, mark: _Place) -> None:
        if asked.method == "initialize" and reply.good:
            self._begun(reply)
        if reply.good and reply.is_events:
            await self._events(reply, asked, mark)
            if asked.waits:
                raise Lost(_NO_ANSWER)
            return
        body = await reply.body(self._limit)
        if reply.status == 404 and asked.session is not None:
            raise SessionGone(asked.session, reply.failure(body))
        if reply.is_json and reply.good:
            await self._whole(body)
        elif not reply.good:
            await self._error(reply, body, asked)
        if asked.waits:
            raise self._unfit(reply, body) if reply.is_json and reply.good else _explained(reply, body, asked)

    async def _whole(self, body: bytes) -> None:
        if not framing.is_blank(body):
            await self._take(body)

    def _unfit(self, reply: UpstreamAnswer, body: bytes) -> Lost:
        """Return why a body is not a response to the request."""
        if len(body) > self._limit:
            why = f"its answer has more than {self._limit:,} bytes"
        elif framing.is_blank(body):
            why = f"it answered {reply.status} with an empty body"
        elif isinstance(syntax.read(body), dict | list):
            why = f"its answer does not belong to this request: {first_line(body)}"
        else:
            why = f"its answer is not JSON: {first_line(body)}"
        return Lost(why, "UPSTREAM_INVALID", status=reply.status)

    async def _error(self, reply: UpstreamAnswer, body: bytes, asked: Asked) -> None:
        """Forward a failure with a JSON-RPC error. Without an id it is the response to the one open request."""
        answer = addressed(body, asked.exchanges[0], reply.barred) if len(asked.exchanges) == 1 else None
        if answer is not None:
            await self._take(answer)

    def _begun(self, reply: UpstreamAnswer) -> None:
        given = reply.header("mcp-session-id")
        self.session = header_text(given[: _LONGEST_SESSION + 1]) if given is not None else None
        if self.session is not None and len(self.session) > _LONGEST_SESSION:
            raise Lost(f"the id of its session has more than {_LONGEST_SESSION:,} bytes", "UPSTREAM_INVALID")

    # ── streams ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _events(self, reply: UpstreamAnswer, asked: Asked | None, mark: _Place) -> None:
        """Takes events until the stream ends, which it is expected to do when what was *asked* is answered."""
        reader = Reader(self._limit)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(None) as patience, aclosing(reply.chunks()) as chunks:
                async for chunk in chunks:
                    await self._each(reader.feed(chunk), mark)
                    if asked is not None and patience.when() is None and not asked.waits:
                        patience.reschedule(loop.time() + LINGER)
        except TimeoutError:
            pass
        except Lost:
            if asked is None or asked.waits:
                raise

    async def _each(self, events: Iterator[Event], mark: _Place) -> None:
        """Takes *events*, of which one chunk can bring thousands, with pauses: the client is heard all the while."""
        stint = Stint()
        for event in events:
            mark.pass_by(event)
            if event.data and event.is_message:
                await self._take(event.data)
            if stint.is_over:
                await asyncio.sleep(0)
                stint = Stint()

    async def _resume(self, asked: Asked, mark: _Place, why: Lost) -> None:
        """Asks for the rest of a stream that broke off, until it has brought the answer."""
        while asked.waits:
            await asyncio.sleep(mark.wait)
            hopeless = False
            try:
                async with self._ask("GET", [*self.headers, *mark.headers]) as reply:
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
        mark = _Place()
        while True:
            try:
                async with self._ask("GET", [*self.headers, *mark.headers]) as reply:
                    if 400 <= reply.status < 500 or (reply.good and not reply.is_events):
                        return
                    if reply.good:
                        await self._events(reply, None, mark)
            except Lost:
                pass
            await asyncio.sleep(mark.wait)
            mark.failures += 1

    async def end(self) -> None:
        """End the session at the server, if there is one. Raises `Lost`."""
        if self.session is not None:
            async with self._ask("DELETE", self.headers):
                pass


def _explained(reply: UpstreamAnswer, body: bytes, asked: Asked) -> Lost:
    """A failure, with what is likely behind it."""
    lost = reply.failure(body)
    if asked.method == "initialize" and reply.status in (404, 405):
        lost.why += f"; {NO_POST}"
    return Refused(lost, body) if 400 <= reply.status < 500 else lost
