"""
Recorded HTTP requests and responses as messages in the order of the conversation. No I/O.

A file has one time for a request, and at most one for its response: the events of a stream have none. They are put
where they prove the most, and an answer never comes before its question.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urljoin

from assay.base.verdict import Party
from assay.ladder.events import Event, Reader
from assay.records.importers.http_facts import (
    SESSION,
    Headers,
    facts_of,
    is_stateless,
    revision_of,
)
from assay.records.importers.importer import LARGEST_DOCUMENT, loosely
from assay.records.importers.talks import Shape, Talks, left_out, opened, row, shape_of
from assay.records.transcript import TranscriptRow

_CLIENT: Final = Party.CLIENT
_SERVER: Final = Party.SERVER

_NO_BODY: Final = "the body of the HTTP response is not in the file"
_CUT_EVENT: Final = "the stream is cut off"

_UNTIMED: Final = frozenset({"protocol/log", "protocol/progress", "protocol/subscription"})
"""Rules about messages of the server while a request is open: the messages of a stream have no times."""

_STREAM: Final = "text/event-stream"


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


class _Said(NamedTuple):
    """A message of the server in a response."""

    frame: bytes
    shape: Shape
    lacks: str = ""


class _Response:
    """What is left of a response: messages that are not in the order of the conversation yet."""

    __slots__ = ("end", "exchange", "is_listening", "number", "said")

    def __init__(self, exchange: HttpExchange, number: int, said: list[_Said]) -> None:
        self.exchange, self.number, self.said = exchange, number, said
        self.end = exchange.end
        self.is_listening = exchange.method == "GET"
        """Whether a client opened it to listen; the response to a message ends with the answer."""


def endpoints(exchanges: Sequence[HttpExchange]) -> frozenset[str]:
    """Return the URLs that speak MCP: those with a message in a request, and those with MCP headers."""
    return frozenset(place_of(each.url) for each in exchanges if _has_message(each))


def _has_message(exchange: HttpExchange) -> bool:
    if any(name.startswith("mcp-") for name in exchange.sent):
        return True
    return b'"jsonrpc"' in exchange.body or (exchange.method == "GET" and _endpoint_of(exchange) is not None)


def place_of(url: str) -> str:
    """Return *url* without its query and fragment."""
    return re.split(r"[?#]", url, maxsplit=1)[0]


def _endpoint_of(exchange: HttpExchange) -> str | None:
    """Return the URL for messages that a stream of the first HTTP transport (2024-11-05) begins with."""
    if _STREAM not in _text(exchange.received, "content-type") or not exchange.answer:
        return None
    first = next(Reader(LARGEST_DOCUMENT).feed(exchange.answer), None)
    if first is None or first.name != b"endpoint" or not first.data:
        return None
    try:
        return urljoin(exchange.url, first.data.decode(errors="replace"))
    except ValueError:
        return None


class Exchanges:
    """The rows of all exchanges of a file."""

    def __init__(self, exchanges: Sequence[HttpExchange], **more: Any) -> None:
        """*more* are members of every message's row, such as its mask."""
        known = endpoints(exchanges)
        self._exchanges = [each for each in exchanges if place_of(each.url) in known]
        self._more = more
        self._talks = Talks()
        self._numbers: OrderedDict[tuple[str, str], int] = OrderedDict()
        """The conversation of each session, by URL and session id, or by the URL of the first HTTP transport."""
        self._has_handshake: set[int] = set()
        self._tools: dict[str, int] = {}
        """The conversation whose tools requests without a session share, by URL."""
        self._pending: list[_Response] = []
        self._asked: dict[int, set[Any]] = {}
        """The ids of open requests of the client, by conversation."""
        self._asking: dict[int, set[Any]] = {}
        """The ids of open requests of the server, by conversation."""

    def rows(self) -> Iterator[TranscriptRow]:
        """Yield the rows, in order."""
        for each in sorted(self._exchanges, key=_begin(self._exchanges)):
            yield from self._due(each.begin)
            yield from self._exchange(each)
        while self._pending:
            yield from self._emit(self._pending.pop(0))

    # ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _exchange(self, exchange: HttpExchange) -> Iterator[TranscriptRow]:
        """Yield the message of a request; the response follows at once, or later at its time."""
        message, shape = loosely(exchange.body), shape_of(exchange.body)
        before = self._talks.count
        number = self._number(exchange, message, shape)
        if number > before:
            yield self._opened(exchange, number, message)
        if exchange.method == "POST":
            if shape.kind == "answer":
                yield from self._asked_by_server(number, shape)
            yield row(
                exchange.line,
                number,
                _CLIENT,
                exchange.body,
                http=facts_of(exchange.sent),
                time=exchange.begin,
                **self._more,
            )
            self._note(_CLIENT, number, shape)
        self._pending.append(_Response(exchange, number, list(_said(exchange, shape))))
        if exchange.end is None and exchange.method == "POST":
            yield from self._emit(self._pending.pop())
        yield from self._provable(number)

    def _opened(self, exchange: HttpExchange, number: int, message: Any) -> TranscriptRow:
        server, revision = _server(exchange.url), revision_of(message, exchange.sent)
        if not is_stateless(message, exchange.sent):
            return opened(exchange.line, number, server)
        tools = self._tools.setdefault(place_of(exchange.url), number)
        shared = {"tools": tools} if tools != number else {}
        return opened(exchange.line, number, server, revision=revision, **shared)

    def _number(self, exchange: HttpExchange, message: Any, shape: Shape) -> int:
        """Return the conversation of an exchange: by its session; alone if its revision has none."""
        if exchange.method == "POST" and is_stateless(message, exchange.sent):
            return self._talks.fresh()
        place = place_of(exchange.url)
        session = _text(exchange.sent, SESSION) or _text(exchange.received, SESSION)
        if not session:
            # The first HTTP transport has the session in the query of the URL.
            place = (_endpoint_of(exchange) if exchange.method == "GET" else None) or exchange.url
        key = (place, session)
        known = self._numbers.get(key)
        starts = shape.kind == "request" and shape.method == "initialize"
        if known is None or (starts and not session and known in self._has_handshake):
            known = self._numbers[key] = self._talks.fresh()
        if starts:
            self._has_handshake.add(known)
        return known

    # ── responses ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _due(self, now: float | None) -> Iterator[TranscriptRow]:
        """Yield everything of the responses that ended before *now*."""
        if now is None:
            return
        ended = [each for each in self._pending if each.end is not None and each.end <= now]
        for each in sorted(ended, key=lambda response: response.end or 0.0):
            self._pending.remove(each)
            yield from self._emit(each)

    def _asked_by_server(self, number: int, shape: Shape) -> Iterator[TranscriptRow]:
        """Yield the messages of a stream up to the request that the client answers."""
        if shape.id in self._asking.get(number, ()):
            return
        for each in self._pending:
            at = _place(each, lambda said: said.shape.kind == "request" and said.shape.id == shape.id)
            if each.number == number and at is not None:
                yield from self._emit(each, at + 1)
                return

    def _provable(self, number: int) -> Iterator[TranscriptRow]:
        """Yield the messages of open streams up to the last answer whose question was asked."""
        for each in self._pending:
            if each.number == number and each.is_listening:
                asked, last = self._asked.get(number, set()), -1
                for at, said in enumerate(each.said):
                    if said.shape.kind != "answer":
                        continue
                    if said.shape.id not in asked:
                        break
                    last = at
                yield from self._emit(each, last + 1)

    def _emit(self, response: _Response, count: int | None = None) -> Iterator[TranscriptRow]:
        """Yield the first *count* messages of a response, all without a count."""
        exchange, number = response.exchange, response.number
        now, response.said = response.said[:count], response.said[count:] if count is not None else []
        for each in now:
            if each.lacks:
                yield left_out(exchange.line, number, _SERVER, each.shape, each.lacks, exchange.end)
            else:
                blind = _UNTIMED if response.is_listening else frozenset()
                yield row(
                    exchange.line, number, _SERVER, each.frame, http={}, time=exchange.end, blind=blind, **self._more
                )
            self._note(_SERVER, number, each.shape)
        if count is None:
            yield from self._failed(exchange, number)

    def _failed(self, exchange: HttpExchange, number: int) -> Iterator[TranscriptRow]:
        """Yield the end of a request that an HTTP error answered, and no message."""
        ident = shape_of(exchange.body).id
        if exchange.status < 400 or ident is None or ident not in self._asked.get(number, ()):
            return
        # A client signs in after 401, and opens a new session after 404; a server that fails owes an answer.
        why = f"HTTP status {exchange.status}" if exchange.status >= 500 else ""
        members = {"event": "unanswered", "dir": "s2c", "conversation": number, "id": ident}
        yield TranscriptRow(exchange.line, {**members, "code": "UPSTREAM_FAILURE", "why": why}, time=exchange.end)

    def _note(self, party: Party, number: int, shape: Shape) -> None:
        """Follow the open requests of both parties."""
        mine, theirs = (self._asked, self._asking) if party is _CLIENT else (self._asking, self._asked)
        if shape.kind == "request":
            mine.setdefault(number, set()).add(shape.id)
        elif shape.kind == "answer":
            theirs.get(number, set()).discard(shape.id)


def _begin(exchanges: Sequence[HttpExchange]) -> Callable[[HttpExchange], float]:
    """Return the key that sorts by time. An exchange without a time stays behind the one before it."""
    times: dict[int, float] = {}
    last = 0.0
    for each in exchanges:
        last = times[id(each)] = each.begin if each.begin is not None else last
    return lambda each: times[id(each)]


def _place(response: _Response, wanted: Callable[[_Said], bool]) -> int | None:
    return next((at for at, said in enumerate(response.said) if wanted(said)), None)


def _said(exchange: HttpExchange, asked: Shape) -> Iterator[_Said]:
    """Yield the messages of a response."""
    kind = _text(exchange.received, "content-type")
    if _STREAM in kind:
        yield from _events(exchange, asked)
    elif exchange.method == "POST" and exchange.status:
        yield from _body(exchange, asked, kind)


def _body(exchange: HttpExchange, asked: Shape, kind: str) -> Iterator[_Said]:
    """Yield the message of a response that is not a stream."""
    answer = exchange.answer
    if answer is None:
        if asked.kind == "request" and exchange.status < 300:
            yield _Said(b"", Shape("answer", asked.id), _NO_BODY)
        return
    is_error = exchange.status >= 300
    if answer.strip() and ("json" in kind or not is_error) and not (is_error and not _is_message(answer)):
        yield _Said(answer, shape_of(answer))


def _is_message(answer: bytes) -> bool:
    found = loosely(answer.strip())
    return isinstance(found, dict) and "jsonrpc" in found


def _events(exchange: HttpExchange, asked: Shape) -> Iterator[_Said]:
    """Yield the messages of a stream of events."""
    if not exchange.answer:
        if asked.kind == "request":
            yield _Said(b"", Shape("answer", asked.id), _NO_BODY)
        return
    reader = Reader(LARGEST_DOCUMENT)
    events: list[Event] = list(reader.feed(exchange.answer))
    for each in events:
        if each.is_message and each.data is not None:
            yield _Said(each.data, shape_of(each.data))
    if reader.rest().strip():
        yield _Said(b"", Shape("answer", asked.id) if asked.kind == "request" else Shape(), _CUT_EVENT)


def _server(url: str) -> str:
    """Return the host of a URL, without a password that may be before it."""
    found = re.match(r"[a-z]+://(?:[^/?#]*@)?([^/?#@]*)", url, re.IGNORECASE)
    return found[1] if found is not None else ""


def _text(headers: Headers, name: str) -> str:
    value = headers.get(name, "")
    return value if isinstance(value, str) else value[-1]
