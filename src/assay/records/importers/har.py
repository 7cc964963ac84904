"""
HAR 1.2, the archive of HTTP requests that browsers and proxies export, as messages in the order of the conversation.

A file has one time for a request, and at most one for its response: the events of a stream have none. They are put
where they prove the most, and an answer never comes before its question.
"""

import re
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from math import inf
from typing import Any, Final

from assay.base.verdict import Party
from assay.records.importers.conversations import Id, opened, row
from assay.records.importers.http_exchange import HttpExchange, last_of
from assay.records.importers.importer import RECORD, Head, ImportOptions
from assay.records.importers.json_documents import Entry, Times, entries_of, in_order
from assay.records.rows import TranscriptError, TranscriptRow

_BEGINNING: Final = re.compile(rb'\{\s*"log"\s*:\s*\{\s*"(?:version|creator|browser|pages|entries|comment|_)')

_SESSION: Final = "mcp-session-id"
_NO_REQUEST: Final = "the body of the HTTP request is not in the file"

_MOST_SESSIONS: Final = 10_000
"""Sessions of one file to remember, and URLs, as many as conversations are judged at a time."""

_MOST_STREAMS: Final = 100
"""Streams that a client listens to at a time in one session. It needs one; messages of others come at their end."""

_UNTIMED: Final = frozenset({"protocol/log", "protocol/progress", "protocol/subscription"})
"""Rules about messages of the server while a request is open: the messages of a stream have no times."""


def detect(head: Head) -> bool:
    """Return whether the file begins with the log of an archive, or has the name of one."""
    is_named = head.name.lower().endswith(".har") and head.text.startswith(b"{")
    return _BEGINNING.match(head.text) is not None or is_named


def read(pieces: Iterable[bytes], options: ImportOptions) -> Iterator[TranscriptRow]:
    """Yield the messages of all requests that have one."""
    return HttpRows(options.remark).rows(entries_of(pieces, "HAR", "log", "entries"))


class _Session:
    """The conversation of a session; of a request without one, that request alone."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.has_handshake = False
        self.asked: set[Id | None] = set()
        """The ids of open requests of the client."""
        self.questions: dict[Id | None, tuple[_Response, int]] = {}
        """The response with each request of the server, and the number of its messages up to it."""
        self.streams: list[_Response] = []
        """The streams that the client listens to, if they have answers."""


class _Response:
    """A response whose messages are not all in the order of the conversation yet."""

    def __init__(self, exchange: HttpExchange, session: _Session) -> None:
        self.exchange, self.session = exchange, session
        self.is_listening = exchange.method == "GET"
        """Whether a client opened it to listen; it may end long after its messages."""
        self.said = list(exchange.messages())
        self.emitted = 0
        """The number of messages that are in the order already."""
        numbered = ((number, each.shape) for number, each in enumerate(self.said, 1))
        self.answers = deque((number, shape.id) for number, shape in numbered if shape.kind == "answer")
        """The answers that are left: number of the message and id."""


class HttpRows:
    """The rows of all exchanges of a file."""

    def __init__(self, remark: Callable[[str], None], mask: re.Pattern[str] | None = None) -> None:
        """*remark* gets what is left out; *mask* is the text in place of secrets."""
        self._remark, self._mask = remark, mask
        self._endpoints: set[str] = set()
        """The URLs that serve MCP."""
        self._others: set[str] = set()
        """The URLs that serve something else."""
        self._left_out = 0
        """The number of exchanges with those URLs."""
        self._count = 0
        """The number of conversations."""
        self._sessions: OrderedDict[tuple[str, str], _Session] = OrderedDict()
        """The sessions by URL and session id, or by the URL of the first HTTP transport."""
        self._tools: dict[str, int] = {}
        """The conversation whose tools requests without a session share, by URL."""
        self._responses: dict[HttpExchange, _Response] = {}
        """The responses that have not ended."""

    def rows(self, entries: Iterable[Entry]) -> Iterator[TranscriptRow]:
        """Yield the rows of the *entries* of a HAR, in order. Raises `TranscriptError` if no URL serves MCP."""
        for exchange, is_end in in_order(self._exchanges(entries)):
            if is_end:
                yield from self._end(exchange)
            elif exchange.place in self._endpoints:
                yield from self._begin(exchange)
            else:
                self._left_out += 1
                if len(self._others) < _MOST_SESSIONS:
                    self._others.add(exchange.place)
        if self._left_out:
            self._report()

    def _exchanges(self, entries: Iterable[Entry]) -> Iterator[tuple[Times, HttpExchange]]:
        """Yield each exchange, and note which URLs serve MCP."""
        for each in map(HttpExchange, entries):
            is_new = each.place not in self._endpoints and len(self._endpoints) < _MOST_SESSIONS
            if is_new and each.speaks_mcp():
                self._endpoints.add(each.place)
            # A stream that a client listens to ends at the end of the file, if its end is unknown.
            end = inf if each.end is None and not each.is_post else each.end
            yield Times(each.begin, end, each.size, is_stream=not each.is_post), each

    def _report(self) -> None:
        """Report what was left out. Raises `TranscriptError` if that is everything."""
        count, places = self._left_out, len(self._others)
        entries = f"{count:,} {'entry' if count == 1 else 'entries'}"
        if not self._count:
            raise TranscriptError(f"not a recording: no MCP message or header in {entries}; {RECORD}")
        more = "more than " if places >= _MOST_SESSIONS else ""
        self._remark(f"{entries} of {more}{places:,} other endpoint{'' if places == 1 else 's'} left out")

    def _begin(self, exchange: HttpExchange) -> Iterator[TranscriptRow]:
        """Yield the message of a request, and what was certainly sent before it or because of it."""
        before = self._count
        session = self._session_of(exchange)
        if self._count > before:
            yield self._opened(exchange, session.number)
        if exchange.is_post:
            yield from self._message(exchange, session)
        response = self._responses[exchange] = _Response(exchange, session)
        for number, each in enumerate(response.said, 1):
            if each.shape.kind == "request":
                session.questions.setdefault(each.shape.id, (response, number))
        if response.is_listening and response.answers and len(session.streams) < _MOST_STREAMS:
            session.streams.append(response)
        for stream in session.streams:
            # Up to the last answer whose question was asked.
            while stream.answers and stream.answers[0][1] in session.asked:
                yield from self._said(stream, stream.answers[0][0])

    def _session_of(self, exchange: HttpExchange) -> _Session:
        ident = last_of(exchange.sent, _SESSION) or last_of(exchange.received, _SESSION)
        # The first HTTP transport has the session in the query of the URL.
        key = (exchange.place if ident else exchange.endpoint or exchange.url, ident)
        is_alone = exchange.is_post and not exchange.has_session
        is_handshake = exchange.asked.kind == "request" and exchange.asked.method == "initialize"
        session = None if is_alone else self._sessions.get(key)
        if session is None or (is_handshake and not ident and session.has_handshake):
            self._count += 1
            session = _Session(self._count)
            if not is_alone:
                self._sessions[key] = session
            if len(self._sessions) > _MOST_SESSIONS:
                self._sessions.popitem(last=False)
        session.has_handshake = session.has_handshake or is_handshake
        return session

    def _opened(self, exchange: HttpExchange, number: int) -> TranscriptRow:
        # The host, without a password that may be before it.
        host = re.match(r"[a-z]+://(?:[^/?#]*@)?([^/?#@]*)", exchange.url, re.IGNORECASE)
        server = host[1] if host is not None else ""
        if exchange.has_session:
            return opened(exchange.line, number, server)
        tools = self._tools.setdefault(exchange.place, number)
        shared = {"tools": tools} if tools != number else {}
        return opened(exchange.line, number, server, revision=exchange.revision, **shared)

    def _message(self, exchange: HttpExchange, session: _Session) -> Iterator[TranscriptRow]:
        """Yield the message in a request; before an answer to the server, its question."""
        asked, place = exchange.asked, (exchange.line, session.number, Party.CLIENT)
        if not exchange.body.strip():
            yield row(*place, b"", lacks=_NO_REQUEST, time=exchange.begin)
            return
        if asked.kind == "answer" and asked.id in session.questions:
            yield from self._said(*session.questions[asked.id])
        sent = {name: each[0] if len(each) == 1 else each for name, each in exchange.sent.items()}
        judged = {name: each for name, each in sent.items() if name.startswith("mcp-") and name != _SESSION}
        http = {"headers": judged} if exchange.version is None else {"headers": judged, "revision": exchange.version}
        yield row(*place, exchange.body, http=http, time=exchange.begin, mask=self._mask)
        if asked.kind == "request":
            session.asked.add(asked.id)

    def _said(self, response: _Response, until: int | None = None) -> Iterator[TranscriptRow]:
        """Yield the messages of a response *until* the one with this number; None for all that are left."""
        exchange, session = response.exchange, response.session
        more: dict[str, Any] = {"blind": _UNTIMED} if response.is_listening else {"time": exchange.end}
        for frame, shape, lacks in response.said[response.emitted : until]:
            response.emitted += 1
            while response.answers and response.answers[0][0] <= response.emitted:
                response.answers.popleft()
            place = (exchange.line, session.number, Party.SERVER)
            yield row(*place, frame, shape=shape, lacks=lacks, http={}, mask=self._mask, **more)
            if shape.kind == "answer":
                session.asked.discard(shape.id)
            elif shape.kind == "request":
                session.questions.pop(shape.id, None)

    def _end(self, exchange: HttpExchange) -> Iterator[TranscriptRow]:
        """Yield what is left of a response, and the end of a request that an HTTP error answered, and no message."""
        response = self._responses.pop(exchange, None)
        if response is None:
            return
        session, asked = response.session, exchange.asked
        yield from self._said(response)
        if response in session.streams:
            session.streams.remove(response)
        if exchange.status >= 400 and asked.kind == "request" and asked.id in session.asked:
            # A client signs in after 401, and opens a new session after 404; a server that fails owes an answer.
            why = f"HTTP status {exchange.status}" if exchange.status >= 500 else ""
            members = {"event": "unanswered", "dir": "s2c", "conversation": session.number, "id": asked.id}
            yield TranscriptRow(exchange.line, {**members, "code": "UPSTREAM_FAILURE", "why": why}, time=exchange.end)
        if exchange.is_post and not exchange.has_session and not session.asked:
            yield TranscriptRow(exchange.line, {"event": "release", "conversation": session.number})
