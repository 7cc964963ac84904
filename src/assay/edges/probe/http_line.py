"""What leads to a server over HTTP that is to be asked: one POST a message, its answer as JSON or as a stream."""

import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, Self

import httpx

from assay.contracts.header_arguments import ParamHeaders
from assay.edges.guard.refusals import as_answer
from assay.edges.http.events import Reader
from assay.edges.probe.server_probe import CLIENT, InquiryError, LineError, UnreachableError
from assay.guard.outbound import VERSION, stateless_headers
from assay.ladder import syntax
from assay.spec.revisions import handshake

_GOODBYE: Final = 2.0
"""Seconds that the server has to forget our session."""

_STRANGERS: Final = frozenset({401, 403})


class HttpLine:
    """
    A server at a URL. `with` gives its session back.

    A stream is read as far as somebody hears: within the answer to one request the server may send requests of its
    own, and wait for their answers before it goes on.
    """

    def __init__(
        self,
        url: str,
        limit: int,
        client: Mapping[str, str] = CLIENT,
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        """
        *limit* is how many bytes a message may have, *client* who we say we are, *headers* go with every request.

        Raises `UnreachableError`.
        """
        if not _is_usable(url):
            raise UnreachableError("expected a URL that begins with http:// or https://")
        self._url = url
        self._limit = limit
        own = {"accept-encoding": "identity", "user-agent": f"{client['name']}/{client['version']}"}
        # What follows from the protocol wins over what is given.
        self._client = httpx.Client(headers={name.lower(): value for name, value in headers} | own)
        self._session: str | None = None
        self._revision = ""
        self._frames: deque[bytes] = deque()
        self._streams: list[_Stream] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self._streams:
            self._streams.pop().response.close()
        if self._session is not None:
            with suppress(httpx.HTTPError):
                self._client.delete(self._url, headers=self._headers({}, self._revision), timeout=_GOODBYE)
        self._client.close()

    def say(
        self, frame: bytes, message: dict[str, Any], revision: str, deadline: float, params: ParamHeaders = ()
    ) -> None:
        """Send a message. Its answer is then there to be heard, or the beginning of a stream that has it."""
        self._revision = revision
        left = deadline - time.monotonic()
        if left <= 0:
            raise LineError("no answer came in time")
        headers = self._headers(message, revision, params)
        request = self._client.build_request("POST", self._url, content=frame, headers=headers, timeout=left)
        with _as_line_errors():
            self._take(self._client.send(request, stream=True), message.get("id"), deadline)

    def hear(self, deadline: float) -> bytes:
        """The next frame of the server, of those that came with answers."""
        while not self._frames and self._streams:
            with _as_line_errors():
                self._read(self._streams[-1], deadline)
        if time.monotonic() >= deadline:
            raise LineError("no answer came in time")
        if not self._frames:
            raise LineError("no answer came")
        return self._frames.popleft()

    def _read(self, stream: "_Stream", deadline: float) -> None:
        """Take the next event of *stream*, which is over with the answer that it is for."""
        stream.deadline = deadline
        frame = next(stream.events, None)
        if frame is not None:
            self._frames.append(frame)
        if frame is None or _answers(frame, stream.ident):
            self._streams.remove(stream)
            stream.response.close()

    def _headers(self, message: dict[str, Any], revision: str, params: ParamHeaders = ()) -> dict[bytes, bytes]:
        headers = {b"content-type": b"application/json", b"accept": b"application/json, text/event-stream"}
        if message.get("method") != "initialize":
            headers[VERSION] = revision.encode()
        if "method" in message and not handshake(revision):
            headers.update(stateless_headers(message, params))
        if self._session is not None:
            headers[b"mcp-session-id"] = self._session.encode()
        return headers

    def _take(self, response: httpx.Response, ident: Any, deadline: float) -> None:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        streaming = False
        try:
            status = f"HTTP {response.status_code}"
            if response.status_code in _STRANGERS:
                raise UnreachableError(f"{status}: the server does not let us in")
            if response.headers.get("content-encoding", "identity") != "identity":
                raise LineError(f"{status}, in an encoding that was not asked for")
            if response.status_code < 400:
                self._session = response.headers.get("mcp-session-id", self._session)
            if kind == "text/event-stream":
                streaming = True
                self._streams.append(_Stream(response, ident, self._limit, deadline))
            elif kind == "application/json":
                body = b"".join(_chunks(response, self._limit, lambda: deadline))
                refused = response.status_code >= 400 and ident is not None
                # What is refused by a status often comes without the id that would say what it answers.
                self._frames.append(as_answer(body, ident, syntax.write(ident)) or body if refused else body)
            elif response.status_code >= 300:
                raise LineError(status)
        finally:
            if not streaming:
                response.close()


class _Stream:
    """The events of one response."""

    def __init__(self, response: httpx.Response, ident: Any, limit: int, deadline: float) -> None:
        self.response = response
        self.ident = ident
        """The id of the request that it answers."""
        self.deadline = deadline
        self.events = self._events(limit)

    def _events(self, limit: int) -> Iterator[bytes]:
        """The data of each event."""
        reader = Reader(limit)
        for chunk in _chunks(self.response, limit, lambda: self.deadline):
            for event in reader.feed(chunk):
                if event.data:
                    yield event.data


def _chunks(response: httpx.Response, limit: int, deadline: Callable[[], float]) -> Iterator[bytes]:
    """The body, until there is too much of it, or it takes too long."""
    size = 0
    for chunk in response.iter_raw():
        size += len(chunk)
        if size > limit:
            raise InquiryError(f"an answer of more than {limit:,} bytes")
        if time.monotonic() >= deadline():
            raise LineError("no answer came in time")
        yield chunk


@contextmanager
def _as_line_errors() -> Iterator[None]:
    """Raise errors of HTTP as those of a line."""
    try:
        yield
    except httpx.TimeoutException:
        raise LineError("no answer came in time") from None
    except httpx.ConnectError as error:
        raise UnreachableError(f"cannot connect: {_reason(error)}") from None
    except httpx.HTTPError as error:
        raise LineError(_reason(error)) from None


def _reason(error: httpx.HTTPError) -> str:
    """Return what went wrong, without the number of the system's error."""
    text = str(error) or type(error).__name__
    return re.sub(r"^\[Errno -?[0-9]+\] ", "", text)


def _is_usable(url: str) -> bool:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        return False
    return parsed.scheme in {"http", "https"} and parsed.host != ""


def _answers(frame: bytes, ident: Any) -> bool:
    message = syntax.read(frame)
    return isinstance(message, dict) and "method" not in message and message.get("id") == ident
