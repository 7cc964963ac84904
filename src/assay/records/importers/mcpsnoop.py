"""Sessions of mcpsnoop: one envelope a line, with the message in ``raw``, as it was on the wire."""

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any, Final

from assay.base.verdict import Party
from assay.records.importers.http_facts import Headers, facts_of, headers_of, is_stateless, revision_of
from assay.records.importers.importer import (
    ImportOptions,
    RecordedLine,
    cut_off,
    first_object,
    loosely,
    records,
    seconds,
)
from assay.records.importers.json_members import frame_in, members
from assay.records.importers.talks import Shape, Talks, left_out, opened, row, shape_of
from assay.records.transcript import PARTIES, TranscriptError, TranscriptRow

_DIRECTIONS: Final = ("c2s", "s2c", "stderr", "meta")
_HEADERS: Final = {"mcp_protocol_version": "mcp-protocol-version", "mcp_method": "mcp-method", "mcp_name": "mcp-name"}
_MASK: Final = re.compile(r"\[REDACTED\]")
_CUT: Final = "cut by the recorder"

_MOST: Final = 10_000
"""Connections and open requests to remember."""

_SHARED: Final = frozenset(
    {
        *(
            "protocol/answered-twice",
            "protocol/before-initialize",
            "protocol/before-initialized",
            "protocol/capability",
        ),
        *("protocol/id-in-use", "protocol/id-reused", "protocol/progress", "protocol/progress-token"),
        "protocol/unsolicited",
    }
)
"""Rules that are not certain if several clients use a server: an envelope has a connection, but not the session."""


def detect(head: bytes, _: str) -> bool:
    """Return whether the first JSON object is an envelope."""
    first = first_object(head)
    return first.get("direction") in _DIRECTIONS and "session_id" in first and "transport" in first


def read(lines: Iterable[bytes], _: ImportOptions) -> Iterator[TranscriptRow]:
    """Yield the messages of all sessions."""
    talks = Talks()
    sessions: OrderedDict[str, _HttpSession] = OrderedDict()
    for line in records(lines, "mcpsnoop"):
        if not line.value:
            yield cut_off(line)
            continue
        party = PARTIES.get(_text(line.value, "direction"))
        if party is None and line.value.get("direction") not in _DIRECTIONS:
            raise TranscriptError(f'line {line.number}: expected "direction": "c2s" or "s2c"')
        if party is None:
            continue
        key, server = _text(line.value, "session_id"), _text(line.value, "server_label")
        if line.value.get("transport") == "http":
            if len(sessions) >= _MOST and key not in sessions:
                sessions.popitem(last=False)
            yield from sessions.setdefault(key, _HttpSession(talks, server)).rows(line, party)
        else:
            yield from _of_pipe(talks, line, party, key, server)


def _of_pipe(talks: Talks, line: RecordedLine, party: Party, key: str, server: str) -> Iterator[TranscriptRow]:
    """Yield the rows of a message over STDIO. What is not JSON is in ``text``."""
    frame = _frame(line)
    if frame is None:
        return
    lacks = _CUT if line.value.get("truncated") is True else ""
    if lacks:
        yield from talks.rows(line.number, party, frame, server=server, key=key, lacks=lacks, **_time(line))
    else:
        yield from talks.rows(line.number, party, frame, server=server, key=key, **_time(line), **_mask(line))


class _HttpSession:
    """The clients of one proxied server over HTTP."""

    def __init__(self, talks: Talks, server: str) -> None:
        self._talks, self._server = talks, server
        self._clients = 0
        self._latest = 0
        """The number of the latest conversation with a handshake; 0 without one."""
        self._tools = 0
        """The number of the conversation whose tools requests without a session share; 0 without one."""
        self._connections: OrderedDict[str, int] = OrderedDict()
        """The conversation of each connection."""
        self._alone: OrderedDict[tuple[str, Any], int] = OrderedDict()
        """The conversation of each open request that stands alone, by connection and id."""
        self._has_headers = False
        """Whether the recorder keeps headers: an earlier version does not."""

    def rows(self, line: RecordedLine, party: Party) -> Iterator[TranscriptRow]:
        """Yield the rows of a message."""
        status, frame = line.value.get("status"), _frame(line)
        if frame is None or (isinstance(status, int) and status >= 400 and "raw" not in line.value):
            # The body of an HTTP error may be anything.
            return
        shape, headers = shape_of(frame), self._headers(line)
        message = loosely(frame)
        before = self._talks.count
        number = self._number(line, party, shape, message, headers)
        if number > before:
            yield self._opened(line.number, number, revision_of(message, headers))
        if line.value.get("truncated") is True:
            yield left_out(line.number, number, party, shape, _CUT, **_time(line))
            return
        http = self._facts(line, headers) if party is Party.CLIENT else {}
        blind = _SHARED if self._clients > 1 else frozenset()
        yield row(line.number, number, party, frame, http=http, blind=blind, **_time(line), **_mask(line))

    def _opened(self, line: int, number: int, revision: str | None) -> TranscriptRow:
        """Return the row that opens a conversation. Requests that stand alone share the tools of the server."""
        if number == self._latest:
            return opened(line, number, self._server)
        shared = {"tools": self._tools} if self._tools else {}
        self._tools = self._tools or number
        return opened(line, number, self._server, revision=revision, **shared)

    def _facts(self, line: RecordedLine, headers: Headers) -> dict[str, Any]:
        """Return the headers of a request. Headers address one message, so they cannot describe a batch."""
        return facts_of(headers) if self._has_headers and line.value.get("batch") is not True else {}

    def _headers(self, line: RecordedLine) -> Headers:
        pairs = [(name, _text(line.value, field)) for field, name in _HEADERS.items() if field in line.value]
        params = line.value.get("mcp_param_headers")
        listed = [each for each in params if isinstance(each, dict)] if isinstance(params, list) else []
        pairs += [(_text(each, "name"), _text(each, "value")) for each in listed]
        self._has_headers = self._has_headers or bool(pairs)
        return headers_of(pairs)

    def _number(self, line: RecordedLine, party: Party, shape: Shape, message: Any, headers: Headers) -> int:
        """Return the conversation of a message."""
        connection = _text(line.value, "conn_id")
        key = (connection, shape.id)
        if party is Party.SERVER and shape.kind == "answer" and key in self._alone:
            return self._alone.pop(key)
        if party is Party.CLIENT and is_stateless(message, headers):
            number = self._talks.fresh()
            if shape.kind == "request":
                _remember(self._alone, key, number)
            _remember(self._connections, connection, number)
            return number
        starts = party is Party.CLIENT and shape.method == "initialize"
        known = self._connections.get(connection, self._latest)
        if known and not starts:
            _remember(self._connections, connection, known)
            return known
        self._latest = self._talks.fresh()
        self._clients += starts
        _remember(self._connections, connection, self._latest)
        return self._latest


def _remember(known: "OrderedDict[Any, int]", key: Any, number: int) -> None:
    known[key] = number
    if len(known) > _MOST:
        known.popitem(last=False)


def _frame(line: RecordedLine) -> bytes | None:
    """Return the message, to the byte; what is not JSON is in ``text``."""
    return members(line.text)["raw"] if "raw" in line.value else frame_in(line.text, "text")


def _time(line: RecordedLine) -> dict[str, Any]:
    return {"time": seconds(line.value.get("ts"))}


def _mask(line: RecordedLine) -> dict[str, Any]:
    return {"mask": _MASK if line.value.get("redacted") is True else None}


def _text(value: dict[str, Any], name: str) -> str:
    found = value.get(name)
    return found if isinstance(found, str) else ""
