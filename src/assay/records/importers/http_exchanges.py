"""
Recorded HTTP requests and responses as messages in the order of the conversation. No I/O.

A file has one time for a request, and at most one for its response: the events of a stream have none. They are put
where they prove the most, and an answer never comes before its question.
"""

import re
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Any, Final
from urllib.parse import urljoin

from assay.base.verdict import Party
from assay.ladder.events import Reader
from assay.records.importers.http_bodies import STREAM, HttpExchange, Said, messages_of, size_of
from assay.records.importers.http_facts import (
    SESSION,
    facts_of,
    is_stateless,
    revision_of,
    text_of,
)
from assay.records.importers.importer import LARGEST_DOCUMENT, loosely
from assay.records.importers.not_recordings import RECORD
from assay.records.importers.plain_lines import method_senders
from assay.records.importers.talks import Shape, Talks, left_out, opened, row, shape_of
from assay.records.importers.time_sorting import MOST_HELD, in_order, with_times
from assay.records.rows import TranscriptError, TranscriptRow

_CLIENT: Final = Party.CLIENT
_SERVER: Final = Party.SERVER


_MOST_SESSIONS: Final = 10_000
"""Sessions of one file to remember, and URLs, as many as conversations are judged at a time."""

_NO_REQUEST: Final = "the body of the HTTP request is not in the file"

_OF_OTHERS: Final = frozenset({"ping", "tasks/get", "tasks/list", "tasks/cancel"})
"""Methods of MCP that other protocols have, too: Bitcoin the first one, Agent2Agent the others."""

_OTHER_HANDSHAKES: Final = frozenset({"processId", "clientCapabilities"})
"""Members of `initialize` in the Language Server Protocol and in the Agent Client Protocol, and never in MCP."""

_UNTIMED: Final = frozenset({"protocol/log", "protocol/progress", "protocol/subscription"})
"""Rules about messages of the server while a request is open: the messages of a stream have no times."""


class _Response:
    """What is left of a response: messages that are not in the order of the conversation yet."""

    __slots__ = ("answers", "emitted", "exchange", "is_alone", "is_listening", "number", "questions", "said")

    def __init__(self, exchange: HttpExchange, number: int, said: list[Said], *, is_alone: bool) -> None:
        self.exchange, self.number, self.is_alone = exchange, number, is_alone
        self.is_listening = exchange.method == "GET"
        """Whether a client opened it to listen; the response to a message ends with the answer."""
        self.said = deque(said)
        self.emitted = 0
        """The number of messages that are in the order already."""
        answers = ((at, each.shape.id) for at, each in enumerate(said) if each.shape.kind == "answer")
        self.answers = deque(answers if self.is_listening else ())
        """The answers on a stream that are left: place and id."""
        self.questions: list[Any] = []
        """The ids of the server's requests."""


def _speaks_mcp(exchange: HttpExchange) -> bool:
    """Return whether an exchange proves that its URL serves MCP, and no other protocol of JSON-RPC."""
    if any(name.startswith("mcp-") for name in (*exchange.sent, *exchange.received)):
        return True
    if exchange.method == "GET" and _endpoint_of(exchange) is not None:
        return True
    asked, value = shape_of(exchange.body), loosely(exchange.body.strip())
    if asked.kind == "other" and isinstance(value, list):
        return any(_is_mcp(each) for each in value)
    if asked.method == "initialize":
        return value is None or _is_mcp(value)
    said = messages_of(exchange, asked) if STREAM in text_of(exchange.received, "content-type") else ()
    return asked.method in _own_methods() or any(each.shape.method in _own_methods() for each in said)


def _is_mcp(message: Any) -> bool:
    method = message.get("method") if isinstance(message, dict) else None
    if method != "initialize":
        return isinstance(method, str) and method in _own_methods()
    asked = message.get("params")
    return not isinstance(asked, dict) or _OTHER_HANDSHAKES.isdisjoint(asked)


@cache
def _own_methods() -> frozenset[str]:
    """Return the methods that only MCP has, in any revision."""
    return frozenset(method_senders()) - _OF_OTHERS


def place_of(url: str) -> str:
    """Return *url* without its query and fragment."""
    return re.split(r"[?#]", url, maxsplit=1)[0]


def _endpoint_of(exchange: HttpExchange) -> str | None:
    """Return the URL for messages that a stream of the first HTTP transport (2024-11-05) begins with."""
    if STREAM not in text_of(exchange.received, "content-type") or not exchange.answer:
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

    def __init__(self, exchanges: Iterable[HttpExchange], remark: Callable[[str], None], **more: Any) -> None:
        """*remark* gets what is left out; *more* are members of every message's row, such as its mask."""
        self._exchanges, self._remark = exchanges, remark
        self._endpoints: set[str] = set()
        """The URLs that serve MCP."""
        self._others: set[str] = set()
        """The URLs that serve something else."""
        self._left_out = 0
        """The number of exchanges with those URLs."""
        self._more = more
        self._talks = Talks()
        self._numbers: OrderedDict[tuple[str, str], int] = OrderedDict()
        """The conversation of each session, by URL and session id, or by the URL of the first HTTP transport."""
        self._has_handshake: set[int] = set()
        self._tools: dict[str, int] = {}
        """The conversation whose tools requests without a session share, by URL."""
        self._pending: list[tuple[float, int, _Response]] = []
        """The responses that have not ended, as a heap: end, order of the file, response."""
        self._waiting = 0
        """The bytes of these responses."""
        self._streams: dict[int, list[_Response]] = {}
        """The streams that clients listen to, by conversation."""
        self._questions: dict[tuple[int, Any], tuple[_Response, int]] = {}
        """The response with a request of the server and the place in it, by conversation and id."""
        self._asked: dict[int, set[Any]] = {}
        """The ids of open requests of the client, by conversation."""
        self._order = count()

    def rows(self) -> Iterator[TranscriptRow]:
        """Yield the rows, in order."""
        timed = with_times(self._noted(), _begin, _end, size_of)
        for now, exchange in in_order(timed, lambda each: each[0], lambda each: size_of(each[1])):
            place = place_of(exchange.url)
            if place in self._endpoints:
                yield from self._due(now)
                yield from self._exchange(exchange)
            else:
                self._leave_out(place)
        yield from self._due(inf)
        self._report()

    def _noted(self) -> Iterator[HttpExchange]:
        """Yield each exchange, and note which URLs serve MCP."""
        for each in self._exchanges:
            place = place_of(each.url)
            if place not in self._endpoints and len(self._endpoints) < _MOST_SESSIONS and _speaks_mcp(each):
                self._endpoints.add(place)
            yield each

    def _leave_out(self, place: str) -> None:
        self._left_out += 1
        if len(self._others) < _MOST_SESSIONS:
            self._others.add(place)

    def _report(self) -> None:
        """Report what was left out. Raises `TranscriptError` if that is everything."""
        if not self._left_out:
            return
        count, places = self._left_out, len(self._others)
        entries = f"{count:,} {'entry' if count == 1 else 'entries'}"
        if not self._talks.count:
            raise TranscriptError(f"not a recording: no MCP message or header in {entries}; {RECORD}")
        more = "more than " if places >= _MOST_SESSIONS else ""
        self._remark(f"{entries} of {more}{places:,} other endpoint{'' if places == 1 else 's'} left out")

    # ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _exchange(self, exchange: HttpExchange) -> Iterator[TranscriptRow]:
        """Yield the message of a request; the response follows at once, or later at its time."""
        message, shape = loosely(exchange.body), shape_of(exchange.body)
        before = self._talks.count
        is_alone = exchange.method == "POST" and is_stateless(message, exchange.sent)
        number = self._talks.fresh() if is_alone else self._number(exchange, shape)
        if number > before:
            yield self._opened(exchange, number, message)
        if exchange.method == "POST" and not exchange.body.strip():
            yield left_out(exchange.line, number, _CLIENT, Shape(), _NO_REQUEST, exchange.begin)
        elif exchange.method == "POST":
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
        response = _Response(exchange, number, list(messages_of(exchange, shape)), is_alone=is_alone)
        if exchange.end is None and exchange.method == "POST":
            yield from self._emit(response)
        else:
            self._wait(response)
        yield from self._provable(number)
        while self._waiting > MOST_HELD:
            yield from self._next()

    def _wait(self, response: _Response) -> None:
        """Keep a response until its time has come."""
        end, number = response.exchange.end, response.number
        self._waiting += size_of(response.exchange)
        heappush(self._pending, (inf if end is None else end, next(self._order), response))
        if response.is_listening:
            self._streams.setdefault(number, []).append(response)
        for at, each in enumerate(response.said):
            if each.shape.kind == "request":
                self._questions.setdefault((number, each.shape.id), (response, at))
                response.questions.append(each.shape.id)

    def _opened(self, exchange: HttpExchange, number: int, message: Any) -> TranscriptRow:
        server, revision = _server(exchange.url), revision_of(message, exchange.sent)
        if not is_stateless(message, exchange.sent):
            return opened(exchange.line, number, server)
        tools = self._tools.setdefault(place_of(exchange.url), number)
        shared = {"tools": tools} if tools != number else {}
        return opened(exchange.line, number, server, revision=revision, **shared)

    def _number(self, exchange: HttpExchange, shape: Shape) -> int:
        """Return the conversation of an exchange, by its session."""
        place = place_of(exchange.url)
        session = text_of(exchange.sent, SESSION) or text_of(exchange.received, SESSION)
        if not session:
            # The first HTTP transport has the session in the query of the URL.
            place = (_endpoint_of(exchange) if exchange.method == "GET" else None) or exchange.url
        key = (place, session)
        known = self._numbers.get(key)
        starts = shape.kind == "request" and shape.method == "initialize"
        if known is None or (starts and not session and known in self._has_handshake):
            known = self._numbers[key] = self._talks.fresh()
            if len(self._numbers) > _MOST_SESSIONS:
                _, oldest = self._numbers.popitem(last=False)
                self._has_handshake.discard(oldest)
                self._asked.pop(oldest, None)
        if starts:
            self._has_handshake.add(known)
        return known

    # ── responses ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _due(self, now: float | None) -> Iterator[TranscriptRow]:
        """Yield everything of the responses that ended before *now*."""
        while now is not None and self._pending and self._pending[0][0] <= now:
            yield from self._next()

    def _next(self) -> Iterator[TranscriptRow]:
        """Yield everything of the response that ends first."""
        response = heappop(self._pending)[2]
        self._waiting -= size_of(response.exchange)
        yield from self._emit(response)

    def _asked_by_server(self, number: int, shape: Shape) -> Iterator[TranscriptRow]:
        """Yield the messages of a response up to the request that the client answers."""
        response, at = self._questions.pop((number, shape.id), (None, 0))
        if response is not None:
            yield from self._emit(response, at + 1)

    def _provable(self, number: int) -> Iterator[TranscriptRow]:
        """Yield the messages of open streams up to the last answer whose question was asked."""
        asked = self._asked.get(number, set())
        for each in self._streams.get(number, ()):
            while each.answers and each.answers[0][1] in asked:
                yield from self._emit(each, each.answers[0][0] + 1)

    def _emit(self, response: _Response, until: int | None = None) -> Iterator[TranscriptRow]:
        """Yield the messages of a response *until* the one with this number, all without a number."""
        exchange, number = response.exchange, response.number
        while response.said and (until is None or response.emitted < until):
            each = response.said.popleft()
            if response.answers and response.answers[0][0] == response.emitted:
                response.answers.popleft()
            response.emitted += 1
            yield self._said(response, each)
            self._note(_SERVER, number, each.shape)
        if until is None:
            yield from self._failed(exchange, number)
            yield from self._ended(response)

    def _ended(self, response: _Response) -> Iterator[TranscriptRow]:
        """Forget a response that is complete; yield the end of a conversation that was this request alone."""
        number = response.number
        if response.is_listening:
            self._streams[number].remove(response)
        for ident in response.questions:
            if self._questions.get((number, ident), (None, 0))[0] is response:
                del self._questions[number, ident]
        if not response.is_alone:
            return
        asked = self._asked.pop(number, None)
        if not asked:
            yield TranscriptRow(response.exchange.line, {"event": "release", "conversation": number})

    def _said(self, response: _Response, said: Said) -> TranscriptRow:
        # A stream that a client listens to may end long after its messages.
        line, end = response.exchange.line, None if response.is_listening else response.exchange.end
        if said.lacks:
            return left_out(line, response.number, _SERVER, said.shape, said.lacks, end)
        blind = _UNTIMED if response.is_listening else frozenset()
        return row(line, response.number, _SERVER, said.frame, http={}, time=end, blind=blind, **self._more)

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
        """Follow the open requests of the client."""
        if shape.kind == "request" and party is _CLIENT:
            self._asked.setdefault(number, set()).add(shape.id)
        elif shape.kind == "answer" and party is _SERVER:
            self._asked.get(number, set()).discard(shape.id)


def _begin(exchange: HttpExchange) -> float | None:
    return exchange.begin


def _end(exchange: HttpExchange) -> float | None:
    """Return the time of a response. A stream that a client listens to is not waited for."""
    return exchange.end if exchange.method == "POST" else None


def _server(url: str) -> str:
    """Return the host of a URL, without a password that may be before it."""
    found = re.match(r"[a-z]+://(?:[^/?#]*@)?([^/?#@]*)", url, re.IGNORECASE)
    return found[1] if found is not None else ""
