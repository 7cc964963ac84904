"""Recorded HTTP requests with their responses, and the messages in the bodies. No I/O."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from assay.ladder import syntax
from assay.ladder.events import Reader
from assay.records.importers.http_facts import Headers, text_of
from assay.records.importers.importer import LARGEST_DOCUMENT, loosely
from assay.records.importers.talks import Shape, shape_of

STREAM: Final = "text/event-stream"

_USUAL_HEADERS: Final = 2000

_CUT_EVENT: Final = "the stream is cut off"
_NO_BODY: Final = "the body of the HTTP response is not in the file"


class HttpExchange(NamedTuple):
    """One HTTP request with its response."""

    line: int
    method: str
    url: str
    sent: Headers
    """The headers of the request."""
    body: bytes
    status: int
    """The HTTP status; 0 without a response."""
    received: Headers
    """The headers of the response."""
    answer: bytes | None
    """The body of the response; None if the file does not have it."""
    begin: float | None
    """The time of the request in seconds; None if it is unknown."""
    end: float | None
    """The time of the response."""


def body_of(value: Any) -> bytes | None:
    """Return a body that a file has as text, or as JSON; None if the file does not have it."""
    if isinstance(value, str):
        return value.encode(errors="replace")
    return syntax.write(value) if isinstance(value, dict | list) else None


def size_of(exchange: HttpExchange) -> int:
    """Return the bytes that an exchange takes in memory, without headers of more than the usual size."""
    return len(exchange.body) + len(exchange.answer or b"") + _USUAL_HEADERS


class Said(NamedTuple):
    """A message of the server in a response."""

    frame: bytes
    shape: Shape
    lacks: str = ""


def messages_of(exchange: HttpExchange, asked: Shape) -> Iterator[Said]:
    """Yield the messages of a response."""
    kind = text_of(exchange.received, "content-type")
    if STREAM in kind:
        yield from _events(exchange, asked)
    elif exchange.method == "POST" and exchange.status:
        yield from _body(exchange, asked, kind)


def _body(exchange: HttpExchange, asked: Shape, kind: str) -> Iterator[Said]:
    """Yield the message of a response that is not a stream."""
    answer = exchange.answer
    if answer is None:
        if asked.kind == "request" and exchange.status < 300:
            yield Said(b"", Shape("answer", asked.id), _NO_BODY)
        return
    is_error = exchange.status >= 300
    if answer.strip() and ("json" in kind or not is_error) and not (is_error and not _is_message(answer)):
        yield Said(answer, shape_of(answer))


def _is_message(answer: bytes) -> bool:
    found = loosely(answer.strip())
    return isinstance(found, dict) and "jsonrpc" in found


def _events(exchange: HttpExchange, asked: Shape) -> Iterator[Said]:
    """Yield the messages of a stream of events."""
    if not exchange.answer:
        if asked.kind == "request":
            yield Said(b"", Shape("answer", asked.id), _NO_BODY)
        return
    reader = Reader(LARGEST_DOCUMENT)
    for each in reader.feed(exchange.answer):
        if each.is_message and each.data is not None:
            yield Said(each.data, shape_of(each.data))
    if reader.rest().strip():
        yield Said(b"", Shape("answer", asked.id) if asked.kind == "request" else Shape(), _CUT_EVENT)
