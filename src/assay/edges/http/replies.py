"""HTTP responses as ASGI messages: status, headers, body. Knows HTTP, not MCP."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from assay.base.errors import CanonicalError
from assay.core import render

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Route = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]
"""The handler of a path."""
Pairs = Sequence[tuple[bytes, bytes]]

JSON: Final = (b"content-type", b"application/json")
CLOSE: Final = (b"connection", b"close")

SMALL: Final = 64 << 10
"""Bytes that a connection buffers without waiting for the client."""

STREAM: Final[Pairs] = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    # Proxies such as nginx would collect events until a buffer is full.
    (b"x-accel-buffering", b"no"),
)


class HttpReply(NamedTuple):
    """A complete response."""

    status: int
    content: bytes
    headers: Pairs


class ChangingResponse(Protocol):
    """A response that is not whole yet."""

    changed: Callable[[], None] | None
    """Called when there is something to write, or the response has ended."""

    @property
    def is_settled(self) -> bool:
        """Whether it is known how the response is written."""


class AwaitedReply(Protocol):
    """A request whose response is awaited."""

    early: float | None
    """Seconds after which the response becomes a stream; None if only a message does that."""
    release: Callable[[], None] | None
    """Called once at the end."""

    @property
    def response(self) -> ChangingResponse:
        """The response."""

    def reply(self) -> HttpReply | None:
        """Return the whole response; None if it is to be written as a stream."""

    def finish(self) -> None:
        """The response was written, or the client has gone."""

    async def carry_on(self, receive: Receive, send: Send) -> None:
        """Wait for the response and write it, unless the client goes."""


async def reply(send: Send, status: int, body: bytes = b"", headers: Pairs = ()) -> None:
    """Send a complete response; JSON if it has a body."""
    length = (b"content-length", b"%d" % len(body))
    every = [JSON, length, *headers] if body else [length, *headers]
    await send({"type": "http.response.start", "status": status, "headers": every})
    await send({"type": "http.response.body", "body": body})


async def slowly(sending: Awaitable[None], seconds: float) -> None:
    """Send a body that the client may read slowly."""
    try:
        async with asyncio.timeout(seconds):
            await sending
    except TimeoutError:
        # The server closes slow connections.
        return


async def text(send: Send, status: int, body: bytes, kind: bytes = b"text/plain; charset=utf-8") -> None:
    """Send a complete response that is not JSON."""
    headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def refuse(
    send: Send,
    code: str,
    detail: str,
    headers: Pairs = (),
    *,
    status: int | None = None,
    data: Mapping[str, Any] | None = None,
) -> None:
    """Send a canonical error without an id, for a request without a readable message."""
    await reply(send, status or CanonicalError.to_http_status(code), error_body(code, detail, data), headers)


def error_body(code: str, detail: str, data: Mapping[str, Any] | None = None, *, why: str = "") -> bytes:
    """Return a canonical error as JSON-RPC, with a detail and *data*; *why* is in its message."""
    return render.plain_error(None, code, detail, data, why=why)


def shared(headers: Mapping[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    """Return the headers that let a browser pass a response to a page of an allowed origin."""
    origin = headers.get(b"origin")
    if origin is None:
        return []
    return [
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", b"mcp-session-id, mcp-protocol-version, www-authenticate"),
        (b"vary", b"origin"),
    ]


async def not_allowed(send: Send, allowed: str, headers: Pairs = (), remedy: str = "") -> None:
    """Refuse an HTTP method other than those *allowed*; *remedy* is a hint."""
    extra = [(b"allow", allowed.encode()), *headers]
    await refuse(send, "INVALID_ENVELOPE", f"only {allowed} here{remedy}", extra, status=405)


async def reads(scope: Mapping[str, Any], send: Send, headers: Pairs = (), remedy: str = "") -> bool:
    """Whether a request only reads; another one is refused, with the *remedy*."""
    if scope["method"] in {"GET", "HEAD"}:
        return True
    await not_allowed(send, "GET, HEAD", headers, remedy)
    return False
