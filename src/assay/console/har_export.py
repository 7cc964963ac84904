"""
Rows as an HTTP archive (HAR 1.2), which browsers, proxies and `assay check` open. No I/O.

An entry is a message of the client with what the server answered. A journal has messages and times, and hardly any
HTTP: what it does not have is as the protocol asks for it, and the comments in the file say so. Messages are those that
came in, as in a recording, so that a check finds the same again.
"""

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import quote

import orjson

from assay import __version__
from assay.console.console_exports import ExportFile, Numbered
from assay.console.message_view import NO_PAYLOAD, protocol_headers
from assay.console.row_cells import ANSWERS, faults, size, unique
from assay.records.importers.har import OWN_NAME
from assay.records.journal.reading import Record, recorded_frame, server_of
from assay.records.outcomes import recorded_outcome

_MADE_UP: Final = (
    "Made from a journal of assay, which has messages, times and verdicts. Hosts are names of servers, and session ids "
    "are digests. Headers and statuses that are not recorded are made for this file, as the protocol asks for them."
)
_STDIO: Final = "sent over standard input and output, not over HTTP"
_NO_HTTP: Final = "headers and status are not recorded"

_JSON: Final = "application/json"
_STREAM: Final = "text/event-stream"
_UNKNOWN: Final = "x-unknown"

_LINES: Final = re.compile(rb"\r\n|\r|\n")
_NO_HOST: Final = re.compile(r"[^a-z0-9.-]+")
_LONGEST_HOST: Final = 200
"""Maximal characters of a host: names have at most 253, and a number may be added."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_Talk = tuple[str, str, str, str]
"""Transport, server, route and session of a message."""


def har_file(rows: Sequence[Numbered]) -> ExportFile:
    """Return the messages as an HTTP archive."""
    archive = _Archive()
    left_out = sum(not archive.add(seq, record) for seq, record in rows)
    return ExportFile(archive.content(), _JSON, "messages.har", left_out)


class _Archive:
    """The entries, in the order in which they begin."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []
        self._open: dict[_Talk, dict[str, _Entry]] = {}
        """The requests of clients without an answer: by conversation, and there by their id in the journal."""
        self._hosts: dict[str, str] = {}
        """By the name of the server."""
        self._taken: dict[str, int] = {}
        """The hosts that are in use, with how many servers would have each."""

    def add(self, seq: int, record: Record) -> bool:
        """Add the message of *record*; return whether it has a place."""
        metadata = record["metadata"]
        talk = (record["transport"], server_of(record), record["route"], str(metadata.get("session") or ""))
        waiting = self._open.setdefault(talk, {})
        if metadata.get("party") == "client":
            entry = self._new("POST", talk, seq, record)
            if metadata.get("kind") == "request":
                waiting[record["requestId"]] = entry
            return True
        if metadata.get("party") != "server":
            return False
        if metadata.get("kind") in ANSWERS and record["requestId"] in waiting:
            waiting.pop(record["requestId"]).answer(seq, record)
        elif metadata.get("kind") in ANSWERS and record["method"] is not None:
            # Its request is not among the rows: alone, the answer would look like one that was never asked for.
            return False
        elif waiting:
            waiting[next(reversed(waiting))].event(seq, record)
        else:
            self._new("GET", talk, seq, record).event(seq, record)
        return True

    def _new(self, method: str, talk: _Talk, seq: int, record: Record) -> "_Entry":
        made = _Entry(method, self._url(talk), seq, record)
        self._entries.append(made)
        return made

    def _url(self, talk: _Talk) -> str:
        _, server, route, _ = talk
        host = self._hosts.get(server)
        if host is None:
            host = self._hosts[server] = self._free_host(server)
        return f"http://{host}{quote(route, safe='/%') if route.startswith('/') else '/'}"

    def _free_host(self, server: str) -> str:
        """Return a host that no other server has: a reader takes a host for one server."""
        plain = _NO_HOST.sub("-", server.lower())[:_LONGEST_HOST].strip("-.") or "server"
        host = plain
        while host in self._taken:
            self._taken[plain] += 1
            host = f"{plain}-{self._taken[plain]}"
        self._taken[host] = 1
        return host

    def content(self) -> bytes:
        """Return the file, with a line for each entry."""
        creator = {"name": OWN_NAME, "version": __version__}
        head = orjson.dumps({"version": "1.2", "creator": creator, "comment": _MADE_UP})
        entries = b",\n".join(orjson.dumps(each.value()) for each in self._entries)
        return b'{"log":' + head[:-1] + b',"entries":[\n' + entries + b"\n]}}\n"


class _Entry:
    """One entry: a message of the client, or a stream on which the server sent one, and what came back."""

    def __init__(self, method: str, url: str, seq: int, record: Record) -> None:
        self._method, self._url, self._asked = method, url, record
        self._answer: Record | None = None
        self._events: list[Record] = []
        self._seqs = [seq]

    def answer(self, seq: int, record: Record) -> None:
        """Set the answer to the message."""
        self._seqs.append(seq)
        self._answer = record

    def event(self, seq: int, record: Record) -> None:
        """Add a message that the server sent before the answer."""
        # That of a stream is the first already. There may be any number of others, so they are not searched.
        if seq != self._seqs[-1]:
            self._seqs.append(seq)
        self._events.append(record)

    def value(self) -> dict[str, Any]:
        """Return the entry."""
        begin, end = _time(self._asked), _time(self._records[-1])
        # Half a microsecond less: a reader that adds both as floats must not find the next message before this end.
        took = round(max(0.0, (end - begin) / timedelta(milliseconds=1) - 0.0005), 4)
        return {
            "startedDateTime": begin.isoformat(timespec="microseconds").replace("+00:00", "Z"),
            "time": took,
            "request": self._request(),
            "response": self._response(),
            "cache": {},
            "timings": {"blocked": -1, "dns": -1, "connect": -1, "ssl": -1, "send": 0, "wait": took, "receive": 0},
            "comment": "; ".join(dict.fromkeys(self._comments())),
            "_assay": self._facts(),
        }

    @property
    def _records(self) -> list[Record]:
        """All messages, in order; that of a stream once."""
        first = [] if self._method == "GET" else [self._asked]
        return [*first, *self._events, *([self._answer] if self._answer is not None else [])]

    def _facts(self) -> dict[str, Any]:
        """Return what a journal has and HAR has no place for."""
        asked = self._asked
        found = [each for record in self._records for each in faults(record)]
        return {
            "rows": self._seqs,
            "server": server_of(asked),
            "transport": asked["transport"],
            "tool": asked["metadata"].get("tool"),
            "requestId": asked["requestId"],
            "verdicts": [recorded_outcome(record).shown for record in self._records],
            "rules": unique(found, "rule"),
            "guardMs": asked["durationMs"],
        }

    def _comments(self) -> Iterator[str]:
        if self._asked["transport"] == "stdio":
            yield _STDIO
        elif not _exchange(self._asked):
            yield _NO_HTTP
        for record in self._records:
            metadata = record["metadata"]
            which = f"{metadata.get('party')} {metadata.get('kind')}"
            if metadata.get("kind") != "missing" and _payload(record) is None:
                yield f"{which}: {'too large to record' if metadata.get('omitted') is True else NO_PAYLOAD}"
            if metadata.get("redacted") is True:
                yield f"{which}: secrets are masked"
            verdict = recorded_outcome(record).shown
            if verdict in {"blocked", "repaired"}:
                yield f"{which}: {verdict} by the guard ({', '.join(unique(faults(record), 'rule'))})"

    # ── the request ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _request(self) -> dict[str, Any]:
        record = self._asked
        made: dict[str, Any] = {
            "method": self._method,
            "url": self._url,
            "httpVersion": "HTTP/1.1",
            "cookies": [],
            "headers": _headers(self._sent_headers()),
            "queryString": [],
            "headersSize": -1,
            "bodySize": size(record["inputBytes"]) if self._method == "POST" else 0,
        }
        payload = _payload(record) if self._method == "POST" else None
        if payload is not None:
            # Only the body of a response has an encoding in HAR 1.2.
            made["postData"] = {"mimeType": _JSON, **_text(payload, "_encoding")}
        return made

    def _sent_headers(self) -> Iterator[tuple[str, str]]:
        metadata = self._asked["metadata"]
        recorded = _exchange(self._asked).get("headers")
        if isinstance(recorded, dict):
            yield from ((str(name), str(value)) for name, value in recorded.items())
            return
        is_post = self._method == "POST"
        yield "Accept", f"{_JSON}, {_STREAM}" if is_post else _STREAM
        if is_post:
            yield "Content-Type", _JSON
        # The response to a handshake is the first message with the revision and the session.
        if self._asked["method"] != "initialize":
            yield from protocol_headers(metadata, _value(self._asked))
            yield from self._session()

    def _session(self) -> Iterator[tuple[str, str]]:
        session = self._asked["metadata"].get("session")
        if isinstance(session, str) and session:
            yield "Mcp-Session-Id", session

    # ── the response ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _response(self) -> dict[str, Any]:
        status, text = self._status()
        bodies = [each for each in (_payload(record) for record in self._said) if each is not None]
        is_stream = bool(self._events)
        kind = _STREAM if is_stream else _JSON if self._said else ""
        content: dict[str, Any] = {"size": 0, "mimeType": kind or _UNKNOWN}
        if bodies:
            body = b"".join(map(_event, bodies)) if is_stream else bodies[0]
            content |= {"size": len(body), **_text(body, "encoding")}
        elif self._said:
            content["size"] = sum(size(record["inputBytes"]) for record in self._said)
        headers = [("Content-Type", kind)] if kind else []
        if self._asked["method"] == "initialize":
            headers += self._session()
        return {
            "status": status,
            "statusText": text,
            "httpVersion": "HTTP/1.1",
            "cookies": [],
            "headers": _headers(headers),
            "content": content,
            "redirectURL": "",
            "headersSize": -1,
            "bodySize": content["size"] if status else -1,
        }

    @property
    def _said(self) -> list[Record]:
        """The messages of the server."""
        found = [*self._events, *([self._answer] if self._answer is not None else [])]
        return [each for each in found if each["metadata"].get("kind") != "missing"]

    def _status(self) -> tuple[int, str]:
        """Return the status and its text; 0 for a request without an answer."""
        failed = self._answer if self._answer is not None else self._asked
        recorded = _exchange(failed).get("status")
        if isinstance(recorded, int):
            return recorded, ""
        error = failed["error"] or {}
        is_missing = self._answer is not None and failed["metadata"].get("kind") == "missing"
        is_blocked = self._answer is None and recorded_outcome(failed).shown == "blocked"
        if is_missing or is_blocked:
            status = error.get("httpStatus")
            fallback = 504 if is_missing else 422
            return status if isinstance(status, int) else fallback, str(error.get("code") or "")
        if self._said:
            return 200, "OK"
        return (0, "") if self._asked["metadata"].get("kind") == "request" else (202, "Accepted")


def _exchange(record: Record) -> dict[str, Any]:
    """Return what a record has of the HTTP exchange."""
    found = record["metadata"].get("http")
    return found if isinstance(found, dict) else {}


def _time(record: Record) -> datetime:
    try:
        return datetime.fromisoformat(record["ts"]).astimezone(UTC)
    except (ValueError, OverflowError):
        return _EPOCH


def _payload(record: Record) -> bytes | None:
    return recorded_frame(record["metadata"])


def _value(record: Record) -> Any:
    try:
        return orjson.loads(_payload(record) or b"null")
    except orjson.JSONDecodeError:
        return None


def _text(body: bytes, encoding: str) -> dict[str, str]:
    """Return a body as text, or as Base64 with the name of the member that says so."""
    try:
        return {"text": body.decode()}
    except UnicodeDecodeError:
        return {"text": b64encode(body).decode(), encoding: "base64"}


def _event(body: bytes) -> bytes:
    """Return a message as an event of a stream."""
    return b"event: message\n" + b"".join(b"data: " + line + b"\n" for line in _LINES.split(body)) + b"\n"


def _headers(pairs: Iterator[tuple[str, str]] | list[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in pairs]
