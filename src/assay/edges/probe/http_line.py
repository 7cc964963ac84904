"""
The connection to a probed server over HTTP: one POST for each message, its response as JSON or as a stream.

It blocks: each call runs the event loop until the response is complete, or late.
"""

import asyncio
import re
import time
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Self, TypeVar

from assay.edges.probe.server_probe import CLIENT, REJECTED, InquiryError, LateError, LineError, UnreachableError
from assay.edges.upstream_client import DIRECTLY, ClientSetupError, HttpAnswer, UpstreamClient, objection_to, url_of
from assay.edges.upstream_errors import BrokenError, as_answer
from assay.judge import syntax
from assay.judge.events import Reader
from assay.judge.headers import VERSION, stateless_headers
from assay.model.printable import plain
from assay.schema.header_arguments import ParamHeaders
from assay.settings.http_section import UpstreamSettings
from assay.spec.revisions import handshake


def probe_client(
    url: str, client: Mapping[str, str], headers: Sequence[tuple[str, str]], upstream: UpstreamSettings
) -> tuple[UpstreamClient, dict[bytes, bytes]]:
    """
    Return the client for *url*, and its headers: the given ones, and our name from *client*.

    Raises `UnreachableError`.
    """
    if objection_to(url) is not None:
        raise UnreachableError("expected a URL that begins with http:// or https://")
    own = {b"user-agent": f"{client['name']}/{client['version']}".encode()}
    try:
        made = UpstreamClient(url, upstream)
    except ClientSetupError as error:
        raise UnreachableError(str(error)) from None
    return made, {name.lower().encode("ascii"): value.encode() for name, value in headers} | own


_GOODBYE: Final = 2.0
"""Seconds for the DELETE of our session."""

_STRANGERS: Final = frozenset({401, 403})

_DESCRIPTION: Final = re.compile(r'\berror_description="([^"]{1,200})"')

_LATE: Final = "no response in time"

_Made = TypeVar("_Made")


class HttpLine:
    """
    A server at a URL. `with` ends its session.

    A stream is read only as far as needed: within the response to one request the server may send requests, and wait
    for their responses before it continues.
    """

    def __init__(
        self,
        url: str,
        limit: int,
        client: Mapping[str, str] = CLIENT,
        headers: Sequence[tuple[str, str]] = (),
        upstream: UpstreamSettings = DIRECTLY,
    ) -> None:
        """
        *limit* is the maximal length of a message in bytes, *client* our name, *headers* are added to every request.

        *upstream* has the settings of the connection. Raises `UnreachableError`.
        """
        # Headers of the protocol win over these.
        self._client, self._own = probe_client(url, client, headers, upstream)
        self._url = url_of(url)
        self._limit = limit
        self._loop = asyncio.new_event_loop()
        self._session: bytes | None = None
        self._revision = ""
        self._frames: deque[bytes] = deque()
        self._streams: list[_Stream] = []
        self._answered: _Stream | None = None
        """The stream of the last response, which the server may not have ended yet."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._loop.run_until_complete(self._end())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()

    def say(
        self, frame: bytes, message: dict[str, Any], revision: str, deadline: float, params: ParamHeaders = ()
    ) -> None:
        """Send a message. Its response, or the start of a stream, can then be read."""
        self._revision = revision
        self._run(self._post(frame, message, self._headers(message, revision, params)), deadline)

    def hear(self, deadline: float) -> bytes:
        """Return the next frame of the server, from the responses."""
        while not self._frames and (stream := self._streams[-1] if self._streams else self._answered) is not None:
            self._run(self._read(stream), deadline)
        if time.monotonic() >= deadline:
            raise LateError(_LATE)
        if not self._frames:
            raise LineError("no answer came")
        return self._frames.popleft()

    def close(self) -> Sequence[bytes]:
        """Nothing: a server over HTTP does not end with its client."""
        return ()

    @property
    def status(self) -> None:
        """The server runs elsewhere."""

    def _run(self, work: Coroutine[Any, Any, _Made], deadline: float) -> _Made:
        """Wait for *work* until *deadline*; HTTP errors become `LineError`."""

        async def bounded() -> _Made:
            async with asyncio.timeout(deadline - time.monotonic()):
                return await work

        try:
            return self._loop.run_until_complete(bounded())
        except TimeoutError:
            raise LateError(_LATE) from None
        except BrokenError as error:
            raise (UnreachableError if error.kind == "unreached" else LineError)(str(error)) from None

    async def _end(self) -> None:
        """End the session, and close the connections."""
        for stream in (*self._streams, *filter(None, (self._answered,))):
            await stream.close()
        if self._session is not None:
            with suppress(BrokenError, TimeoutError):
                async with asyncio.timeout(_GOODBYE):
                    pairs = list(self._headers({}, self._revision).items())
                    (await self._client.answer("DELETE", self._url, pairs)).close()
        await self._client.close()

    async def _post(self, frame: bytes, message: dict[str, Any], headers: Mapping[bytes, bytes]) -> None:
        answer = await self._client.answer("POST", self._url, list(headers.items()), frame)
        try:
            streaming = await self._take(answer, message.get("id"))
        except BaseException:
            answer.close()
            raise
        if not streaming:
            answer.close()

    async def _read(self, stream: "_Stream") -> None:
        """Read the next event of *stream*, which should end with the response to its request."""
        frame = await anext(stream.events, None)
        if frame is not None:
            self._frames.append(frame)
        if frame is None:
            await self._leave(stream)
        elif stream is not self._answered and _answers(frame, stream.ident):
            if self._answered is not None:
                await self._leave(self._answered)
            self._streams.remove(stream)
            self._answered = stream

    async def _leave(self, stream: "_Stream") -> None:
        if stream is self._answered:
            self._answered = None
        else:
            self._streams.remove(stream)
        await stream.close()

    def _headers(self, message: dict[str, Any], revision: str, params: ParamHeaders = ()) -> dict[bytes, bytes]:
        headers = {
            **self._own,
            b"content-type": b"application/json",
            b"accept": b"application/json, text/event-stream",
        }
        if message.get("method") != "initialize":
            headers[VERSION] = revision.encode()
        if "method" in message and not handshake(revision):
            headers.update(stateless_headers(message, params))
        if self._session is not None:
            headers[b"mcp-session-id"] = self._session
        return headers

    async def _take(self, answer: HttpAnswer, ident: Any) -> bool:
        """Read the response or its error; return whether a stream follows."""
        kind = (answer.header(b"content-type") or b"").partition(b";")[0].strip().lower()
        status = f"HTTP {answer.status}"
        if answer.status in _STRANGERS:
            raise UnreachableError(f"{status}: {_refusal(answer) or REJECTED}")
        if (answer.header(b"content-encoding") or b"identity").strip().lower() != b"identity":
            raise LineError(f"{status}, with an encoding that was not requested")
        if answer.status < 400:
            self._session = answer.header(b"mcp-session-id") or self._session
        if kind == b"text/event-stream":
            self._streams.append(_Stream(answer, ident, self._limit))
            return True
        if kind == b"application/json":
            body = b"".join([chunk async for chunk in _bounded(answer, self._limit)])
            refused = answer.status >= 400 and ident is not None
            # An error with a 4xx status often has no id.
            self._frames.append(as_answer(body, ident, syntax.write(ident)) or body if refused else body)
        elif answer.status >= 300:
            raise LineError(status)
        return False


class _Stream:
    """The events of one response."""

    def __init__(self, answer: HttpAnswer, ident: Any, limit: int) -> None:
        self._answer = answer
        self.ident = ident
        """The id of its request."""
        self.events = self._events(limit)

    async def _events(self, limit: int) -> AsyncIterator[bytes]:
        """Yield the data of each event."""
        reader = Reader(limit)
        async for chunk in _bounded(self._answer, limit):
            for event in reader.feed(chunk):
                if event.data:
                    yield event.data

    async def close(self) -> None:
        """End the stream."""
        self._answer.close()


def _refusal(answer: HttpAnswer) -> str:
    """Return the reason that a server gives for rejecting our token (RFC 6750 §3); empty without one."""
    found = _DESCRIPTION.search((answer.header(b"www-authenticate") or b"").decode("latin-1"))
    return plain(found[1]) if found is not None else ""


async def _bounded(answer: HttpAnswer, limit: int) -> AsyncIterator[bytes]:
    """Yield the body, up to the limit."""
    size = 0
    async for chunk in answer.chunks():
        size += len(chunk)
        if size > limit:
            raise InquiryError(f"a response of more than {limit:,} bytes")
        yield chunk


def _answers(frame: bytes, ident: Any) -> bool:
    message = syntax.read(frame)
    return isinstance(message, dict) and "method" not in message and message.get("id") == ident
