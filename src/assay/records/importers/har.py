"""
HAR 1.2, the archive of HTTP requests that browsers and proxies export, as messages in the order of the conversation.

A file has one time for a request, and at most one for its response: the events of a stream have none. They are put
where they prove the most, and an answer never comes before its question.
"""

import re
from base64 import b64decode
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from math import inf
from typing import Any, Final, NamedTuple
from urllib.parse import urljoin

from assay.judge import syntax
from assay.judge.events import Reader
from assay.model.json_values import named_revision
from assay.model.verdict import Party
from assay.records.importers.conversations import Id, Shape, method_senders, opened, row, shape_of
from assay.records.importers.importer import (
    LARGEST_DOCUMENT,
    RECORD,
    Head,
    ImportOptions,
    loosely,
    seconds,
    seconds_after,
)
from assay.records.importers.json_documents import Entry, Times, entries_of, in_order
from assay.records.rows import TranscriptError, TranscriptRow
from assay.spec.revisions import REVISIONS, handshake

_BEGINNING: Final = re.compile(rb'\{\s*"log"\s*:\s*\{\s*"(?:version|creator|browser|pages|entries|comment|_)')

_SESSION: Final = "mcp-session-id"
_VERSION: Final = "mcp-protocol-version"

_NO_REQUEST: Final = "the body of the HTTP request is not in the file"
_NO_RESPONSE: Final = "the body of the HTTP response is not in the file"
_CUT_EVENT: Final = "the stream is cut off"

_USUAL_HEADERS: Final = 2000
"""Bytes of the headers of an exchange, about."""

_MOST_SESSIONS: Final = 10_000
"""Sessions of one file to remember, and URLs, as many as conversations are judged at a time."""

_MOST_STREAMS: Final = 100
"""Streams that a client listens to at a time in one session. It needs one; messages of others come at their end."""

_UNTIMED: Final = frozenset({"protocol/log", "protocol/progress", "protocol/subscription"})
"""Rules about messages of the server while a request is open: the messages of a stream have no times."""

_OF_OTHERS: Final = frozenset({"ping", "tasks/get", "tasks/list", "tasks/cancel"})
"""Methods of MCP that other protocols have, too: Bitcoin the first one, Agent2Agent the others."""

_OTHER_HANDSHAKES: Final = frozenset({"processId", "clientCapabilities"})
"""Members of `initialize` in the Language Server Protocol and in the Agent Client Protocol, and never in MCP."""


def detect(head: Head) -> bool:
    """Return whether the file begins with the log of an archive, or has the name of one."""
    is_named = head.name.lower().endswith(".har") and head.text.startswith(b"{")
    return _BEGINNING.match(head.text) is not None or is_named


def read(pieces: Iterable[bytes], options: ImportOptions) -> Iterator[TranscriptRow]:
    """Yield the messages of all requests that have one."""
    return HttpRows(options.remark).rows(entries_of(pieces, "HAR", "log", "entries"))


# ── one request ──────────────────────────────────────────────────────────────────────────────────────────────────────


class _Said(NamedTuple):
    """A message of the server in a response."""

    frame: bytes
    shape: Shape
    lacks: str = ""


class _Exchange:
    """One HTTP request with its response, made of an entry of a HAR, whose members may have any type."""

    def __init__(self, entry: Entry) -> None:
        request, response = _object(entry.value.get("request")), _object(entry.value.get("response"))
        self.line = entry.line
        self.method, self.url = str(request.get("method")).upper(), str(request.get("url"))
        self.place = re.split(r"[?#]", self.url, maxsplit=1)[0]
        """The URL without its query and fragment."""
        self.is_post = self.method == "POST"
        self.is_listening = self.method == "GET"
        """Whether a client opened it to listen; it may end long after its messages."""
        self.sent, self.received = _headers_of(request), _headers_of(response)
        self.body = _body_of(_object(request.get("postData"))) or b""
        self.asked = shape_of(self.body)
        """The shape of the message in the request."""
        status = response.get("status")
        self.status = status if isinstance(status, int) else 0
        """The HTTP status; 0 without a response."""
        self.answer = _body_of(_object(response.get("content")))
        """The body of the response; None if the file does not have it."""
        self.begin = seconds(entry.value.get("startedDateTime"))
        """The time of the request in seconds; None if it is unknown."""
        self.end = seconds_after(self.begin, entry.value.get("time"))
        """The time of the response."""
        self.is_stream = "text/event-stream" in _last_of(self.received, "content-type")
        """Whether the response is a stream of events."""
        self.version = self.sent[_VERSION][0] if len(self.sent.get(_VERSION, ())) == 1 else None
        """The header MCP-Protocol-Version."""
        message = loosely(self.body)
        named = (self.version, named_revision(message) if isinstance(message, dict) else None)
        known = [each for each in named if each in REVISIONS]
        self.revision = next((each for each in known if each is not None and not handshake(each)), None)
        """The revision without a handshake that the request names, in its header or its body."""
        self.has_session = self.revision is None and (bool(known) or self.asked.method != "server/discover")
        """Whether the request may belong to a session, as its revision has a handshake."""
        self.session: _Session | None = None
        """Its conversation, from its beginning on."""
        self.said: list[_Said] = []
        """The messages of its response, from its beginning on."""
        self.emitted = 0
        """The number of messages that are in the order of the conversation already."""
        self.answers: deque[tuple[int, Id | None]] = deque()
        """The answers that are left: number of the message and id."""

    @property
    def times(self) -> Times:
        """Its beginning and its end, and the bytes that it takes in memory if its headers are not unusually long."""
        # A stream that a client listens to ends at the end of the file, if its end is unknown.
        end = inf if self.end is None and not self.is_post else self.end
        size = len(self.body) + len(self.answer or b"") + _USUAL_HEADERS
        return Times(self.begin, end, size, is_stream=not self.is_post)

    @property
    def endpoint(self) -> str | None:
        """The URL for messages that a stream of the first HTTP transport (2024-11-05) begins with."""
        if self.method != "GET" or not self.is_stream or not self.answer:
            return None
        first = next(Reader(LARGEST_DOCUMENT).feed(self.answer), None)
        if first is None or first.name != b"endpoint" or not first.data:
            return None
        try:
            return urljoin(self.url, first.data.decode(errors="replace"))
        except ValueError:
            return None

    def messages(self) -> Iterator[_Said]:
        """Yield the messages of the response."""
        answer, is_error = self.answer, self.status >= 300
        is_request = self.is_post and self.asked.kind == "request"
        lacking = Shape("answer", self.asked.id) if is_request else Shape()
        if self.is_stream and answer:
            reader = Reader(LARGEST_DOCUMENT)
            for each in reader.feed(answer):
                if each.is_message and each.data is not None:
                    yield _Said(each.data, shape_of(each.data))
            if reader.rest().strip():
                yield _Said(b"", lacking, _CUT_EVENT)
        elif is_request and (self.is_stream or (answer is None and self.status and not is_error)):
            yield _Said(b"", lacking, _NO_RESPONSE)
        elif self.is_post and self.status and answer and answer.strip():
            found = loosely(answer.strip()) if "json" in _last_of(self.received, "content-type") else None
            if not is_error or (isinstance(found, dict) and "jsonrpc" in found):
                yield _Said(answer, shape_of(answer))

    def speaks_mcp(self) -> bool:
        """Return whether it proves that its URL serves MCP, and no other protocol of JSON-RPC."""
        if any(name.startswith("mcp-") for name in (*self.sent, *self.received)) or self.endpoint is not None:
            return True
        value = loosely(self.body.strip())
        asked = value if isinstance(value, list) else [value or {"method": self.asked.method}]
        said = ({"method": each.shape.method} for each in (self.messages() if self.is_stream else ()))
        return any(map(_is_mcp, asked)) or any(map(_is_mcp, said))


def _is_mcp(message: Any) -> bool:
    method, params = _object(message).get("method"), _object(_object(message).get("params"))
    is_other = method == "initialize" and not _OTHER_HANDSHAKES.isdisjoint(params)
    return isinstance(method, str) and method in _own_methods() and not is_other


@cache
def _own_methods() -> frozenset[str]:
    """Return the methods that only MCP has, in any revision."""
    return frozenset(method_senders()) - _OF_OTHERS


def _last_of(headers: dict[str, list[str]], name: str) -> str:
    """Return the value of a header, the last one of several; "" without one."""
    return headers.get(name, [""])[-1]


def _headers_of(message: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the values of headers by name in lower case."""
    listed = message.get("headers")
    found: dict[str, list[str]] = {}
    for each in map(_object, listed if isinstance(listed, list) else ()):
        name, value = each.get("name"), str(each.get("value") or "")
        if isinstance(name, str):
            try:
                value.encode("latin-1")
            except UnicodeEncodeError:
                # A recorder may have decoded UTF-8. Headers are bytes as Latin-1, as everywhere else.
                value = value.encode(errors="replace").decode("latin-1")
            found.setdefault(name.lower(), []).append(value)
    return found


def _body_of(content: Mapping[str, Any]) -> bytes | None:
    """Return a body, which is there as text or as JSON; None if the file does not have it."""
    text = content.get("text")
    if isinstance(text, str) and "base64" in (content.get("encoding"), content.get("_encoding")):
        try:
            return b64decode(text)
        except ValueError:
            return None
    if isinstance(text, str):
        return text.encode(errors="replace")
    return syntax.write(text) if isinstance(text, dict | list) else None


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


# ── all requests ─────────────────────────────────────────────────────────────────────────────────────────────────────


class _Session:
    """The conversation of a session; of a request without one, that request alone."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.has_handshake = False
        self.asked: set[Id | None] = set()
        """The ids of open requests of the client."""
        self.questions: dict[Id | None, tuple[_Exchange, int]] = {}
        """The exchange with each request of the server, and the number of its messages up to it."""
        self.streams: list[_Exchange] = []
        """The streams that the client listens to, if they have answers."""


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

    def _exchanges(self, entries: Iterable[Entry]) -> Iterator[tuple[Times, _Exchange]]:
        """Yield each exchange, and note which URLs serve MCP."""
        for each in map(_Exchange, entries):
            is_new = each.place not in self._endpoints and len(self._endpoints) < _MOST_SESSIONS
            if is_new and each.speaks_mcp():
                self._endpoints.add(each.place)
            yield each.times, each

    def _report(self) -> None:
        """Report what was left out. Raises `TranscriptError` if that is everything."""
        count, places = self._left_out, len(self._others)
        entries = f"{count:,} {'entry' if count == 1 else 'entries'}"
        if not self._count:
            raise TranscriptError(f"not a recording: no MCP message or header in {entries}; {RECORD}")
        more = "more than " if places >= _MOST_SESSIONS else ""
        self._remark(f"{entries} of {more}{places:,} other endpoint{'' if places == 1 else 's'} left out")

    def _begin(self, exchange: _Exchange) -> Iterator[TranscriptRow]:
        """Yield the message of a request, and what was certainly sent before it or because of it."""
        before = self._count
        session = exchange.session = self._session_of(exchange)
        if self._count > before:
            yield self._opened(exchange, session.number)
        if exchange.is_post:
            yield from self._message(exchange, session)
        exchange.said = list(exchange.messages())
        for number, each in enumerate(exchange.said, 1):
            if each.shape.kind == "request":
                session.questions.setdefault(each.shape.id, (exchange, number))
            elif each.shape.kind == "answer":
                exchange.answers.append((number, each.shape.id))
        if exchange.is_listening and exchange.answers and len(session.streams) < _MOST_STREAMS:
            session.streams.append(exchange)
        for stream in session.streams:
            # Up to the last answer whose question was asked.
            while stream.answers and stream.answers[0][1] in session.asked:
                yield from self._said(stream, session, stream.answers[0][0])

    def _session_of(self, exchange: _Exchange) -> _Session:
        ident = _last_of(exchange.sent, _SESSION) or _last_of(exchange.received, _SESSION)
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

    def _opened(self, exchange: _Exchange, number: int) -> TranscriptRow:
        # The host, without a password that may be before it.
        host = re.match(r"[a-z]+://(?:[^/?#]*@)?([^/?#@]*)", exchange.url, re.IGNORECASE)
        server = host[1] if host is not None else ""
        if exchange.has_session:
            return opened(exchange.line, number, server)
        tools = self._tools.setdefault(exchange.place, number)
        shared = {"tools": tools} if tools != number else {}
        return opened(exchange.line, number, server, revision=exchange.revision, **shared)

    def _message(self, exchange: _Exchange, session: _Session) -> Iterator[TranscriptRow]:
        """Yield the message in a request; before an answer to the server, its question."""
        asked, place = exchange.asked, (exchange.line, session.number, Party.CLIENT)
        if not exchange.body.strip():
            yield row(*place, b"", lacks=_NO_REQUEST, time=exchange.begin)
            return
        if asked.kind == "answer" and asked.id in session.questions:
            other, number = session.questions[asked.id]
            yield from self._said(other, session, number)
        sent = {name: each[0] if len(each) == 1 else each for name, each in exchange.sent.items()}
        judged = {name: each for name, each in sent.items() if name.startswith("mcp-") and name != _SESSION}
        http = {"headers": judged} if exchange.version is None else {"headers": judged, "revision": exchange.version}
        yield row(*place, exchange.body, http=http, time=exchange.begin, mask=self._mask)
        if asked.kind == "request":
            session.asked.add(asked.id)

    def _said(self, exchange: _Exchange, session: _Session, until: int | None = None) -> Iterator[TranscriptRow]:
        """Yield the messages of a response *until* the one with this number; None for all that are left."""
        more: dict[str, Any] = {"blind": _UNTIMED} if exchange.is_listening else {"time": exchange.end}
        for frame, shape, lacks in exchange.said[exchange.emitted : until]:
            exchange.emitted += 1
            place = (exchange.line, session.number, Party.SERVER)
            yield row(*place, frame, shape=shape, lacks=lacks, http={}, mask=self._mask, **more)
            if shape.kind == "answer":
                exchange.answers.popleft()
                session.asked.discard(shape.id)
            elif shape.kind == "request":
                session.questions.pop(shape.id, None)

    def _end(self, exchange: _Exchange) -> Iterator[TranscriptRow]:
        """Yield what is left of a response, and the end of a request that an HTTP error answered, and no message."""
        session, asked = exchange.session, exchange.asked
        if session is None:
            return
        yield from self._said(exchange, session)
        if exchange in session.streams:
            session.streams.remove(exchange)
        if exchange.status >= 400 and asked.kind == "request" and asked.id in session.asked:
            # A client signs in after 401, and opens a new session after 404; a server that fails owes an answer.
            why = f"HTTP status {exchange.status}" if exchange.status >= 500 else ""
            members = {"event": "unanswered", "dir": "s2c", "conversation": session.number, "id": asked.id}
            yield TranscriptRow(exchange.line, {**members, "code": "UPSTREAM_FAILURE", "why": why}, time=exchange.end)
        if exchange.is_post and not exchange.has_session and not session.asked:
            yield TranscriptRow(exchange.line, {"event": "release", "conversation": session.number})
