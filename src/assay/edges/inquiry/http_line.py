"""What leads to a server over HTTP that is to be asked: one POST a message, its answer as JSON or as a stream."""

import re
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Self

import httpx

from assay.contracts.headers import ParamHeaders
from assay.edges.guard.refusals import as_answer
from assay.edges.http.events import Reader
from assay.edges.inquiry.inquiry import CLIENT, InquiryError, LineError
from assay.guard.outbound import VERSION, stateless_headers
from assay.ladder import syntax
from assay.spec.revisions import handshake

_GOODBYE: Final = 2.0
"""Seconds that the server has to forget our session."""

_STRANGERS: Final = frozenset({401, 403})


class HttpLine:
    """A server at a URL. `with` gives its session back."""

    def __init__(
        self,
        url: str,
        limit: int,
        client: Mapping[str, str] = CLIENT,
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        """
        *limit* is how many bytes a message may have, *client* who we say we are, *headers* go with every request.

        Raises `InquiryError`.
        """
        if not _is_usable(url):
            raise InquiryError("expected a URL that begins with http:// or https://")
        self._url = url
        self._limit = limit
        self._client = httpx.Client(
            headers=[
                ("accept-encoding", "identity"),
                ("user-agent", f"{client['name']}/{client['version']}"),
                *headers,
            ]
        )
        self._session: str | None = None
        self._revision = ""
        self._frames: deque[bytes] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._session is not None:
            with suppress(httpx.HTTPError):
                self._client.delete(self._url, headers=self._headers({}, self._revision), timeout=_GOODBYE)
        self._client.close()

    def say(
        self, frame: bytes, message: dict[str, Any], revision: str, deadline: float, params: ParamHeaders = ()
    ) -> None:
        """Send a message, and take what comes in answer to it."""
        self._revision = revision
        left = deadline - time.monotonic()
        if left <= 0:
            raise LineError("no answer came in time")
        headers = self._headers(message, revision, params)
        try:
            with self._client.stream("POST", self._url, content=frame, headers=headers, timeout=left) as response:
                self._take(response, message.get("id"), deadline)
        except httpx.TimeoutException:
            raise LineError("no answer came in time") from None
        except httpx.ConnectError as error:
            raise InquiryError(f"cannot connect: {_reason(error)}") from None
        except httpx.HTTPError as error:
            raise LineError(_reason(error)) from None

    def hear(self, deadline: float) -> bytes:
        """The next frame of the server: all that it had to say came with the answers."""
        if time.monotonic() >= deadline:
            raise LineError("no answer came in time")
        if not self._frames:
            raise LineError("no answer came")
        return self._frames.popleft()

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
        status = f"HTTP {response.status_code}"
        if response.status_code in _STRANGERS:
            raise InquiryError(f"{status}: the server does not let us in")
        if response.headers.get("content-encoding", "identity") != "identity":
            raise LineError(f"{status}, in an encoding that was not asked for")
        if response.status_code < 400:
            self._session = response.headers.get("mcp-session-id", self._session)
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "text/event-stream":
            for frame in self._events(response, deadline):
                self._frames.append(frame)
                if _answers(frame, ident):
                    return
        elif kind == "application/json":
            body = b"".join(self._chunks(response, deadline))
            refused = response.status_code >= 400 and ident is not None
            # What is refused by a status often comes without the id that would say what it answers.
            self._frames.append(as_answer(body, ident, syntax.write(ident)) or body if refused else body)
        elif response.status_code >= 300:
            raise LineError(status)

    def _chunks(self, response: httpx.Response, deadline: float) -> Iterator[bytes]:
        """The body, until there is too much of it, or it takes too long."""
        size = 0
        for chunk in response.iter_raw():
            size += len(chunk)
            if size > self._limit:
                raise InquiryError(f"an answer of more than {self._limit:,} bytes")
            if time.monotonic() >= deadline:
                raise LineError("no answer came in time")
            yield chunk

    def _events(self, response: httpx.Response, deadline: float) -> Iterator[bytes]:
        """The data of each event of a stream."""
        reader = Reader(self._limit)
        for chunk in self._chunks(response, deadline):
            for event in reader.feed(chunk):
                if event.data:
                    yield event.data


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
