"""Answers as ASGI messages, and the HTTP status of each. Knows HTTP, not MCP."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

import orjson

from assay.judge import render
from assay.model.errors import CanonicalError
from assay.model.verdict import Verdict
from assay.spec.revisions import features_of, handshake, is_known

_BY_STATUS: Final = frozenset({"HEADER_MISMATCH", "UNSUPPORTED_REVISION"})
"""Errors for which the specification sets the status, in revisions without a handshake."""

_IGNORED: Final = frozenset(
    {
        *("protocol/method", "protocol/direction", "protocol/extension", "protocol/capability"),
        *("protocol/cancel", "protocol/cancel-other", "protocol/progress"),
        *("protocol/unsolicited", "protocol/answered-twice"),
    }
)
"""Rules about unknown notifications and late responses, which a receiver ignores (JSON-RPC)."""

_BY_NUMBER: Final = {
    CanonicalError.to_jsonrpc_error(each)["code"]: each
    for each in (
        *("PARSE_ERROR", "INVALID_ENVELOPE", "INVALID_PARAMS", "METHOD_NOT_FOUND"),
        *("HEADER_MISMATCH", "MISSING_CAPABILITY", "UNSUPPORTED_REVISION"),
        *("UPSTREAM_INVALID", "UPSTREAM_FAILURE", "TIMEOUT"),
    )
}
"""The status by error code, in a response of the guard or the server. Any other code has 200."""


def is_ignored(verdict: Verdict) -> bool:
    """
    Whether a stopped message is a notification or a response that its receiver would only ignore.

    The sender gets 202: there is no response, and the official TypeScript client treats any other status as a failure
    of the transport. A malformed message gets 400.
    """
    if verdict.parts:
        return all(each.onward is not None or is_ignored(each) for each in verdict.parts)
    stopping = [each.rule for each in verdict.violations if each.stops]
    readable = verdict.kind in {"notification", "result", "error"}
    return readable and bool(stopping) and verdict.more == 0 and _IGNORED.issuperset(stopping)


def is_patient(version: str | None, *, in_session: bool) -> bool:
    """
    Whether this is a client of the handshake era; *version* is the revision in its header.

    Its libraries treat any status but 200 as a failure of the transport, and do not read the error in the body: so
    every readable request gets 200.
    """
    return in_session or (is_known(version) and handshake(version))


def status_of(code: str | None, verdict: Verdict | None = None, *, patient: bool = False, answered: bool = True) -> int:
    """
    Return the HTTP status of a response with the canonical error *code*; None stands for a result.

    *verdict* is about the client's message; without it *patient* counts for the whole response. A response that is not
    *answered* has no body.
    """
    if verdict is not None:
        if verdict.parts or (code == "INVALID_TOOL_INPUT" and features_of(verdict.revision).failed_results):
            code = None
        patient = patient and answered and verdict.kind == "request"
    if code is None or (patient and code not in _BY_STATUS):
        return 200 if answered else 202
    return CanonicalError.to_http_status(code)


def status_in(answer: bytes) -> int:
    """Return the HTTP status of *answer*, a response of a server in a revision without a handshake."""
    if b'"error"' not in answer:
        return 200
    error = orjson.loads(answer).get("error")
    number = error.get("code") if isinstance(error, dict) else None
    return status_of(_BY_NUMBER.get(number) if isinstance(number, int) else None)


def refusal(verdict: Verdict, answer: bytes | None, code: str | None, *, patient: bool) -> tuple[int, bytes]:
    """
    Return the status and the body for a client's message that is not forwarded.

    *answer* is the frame that its sender gets, and *code* the canonical error in it.
    """
    if verdict.kind == "blank":
        return 400, error_body("PARSE_ERROR", "there is no message in the body")
    if answer is not None:
        return status_of(code, verdict, patient=patient), answer
    if is_ignored(verdict):
        return 202, b""
    # A notification or a response. Never 404, which in a session means that the session is gone.
    status = status_of(code, verdict) if verdict.value is None else 400
    return status, render.refusal(None, verdict.violations, verdict.more, verdict.revision)


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
