"""One HTTP request with its response: what a HAR has of it, and the messages in it. No I/O."""

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, NamedTuple
from urllib.parse import urljoin

from assay.base.meta import named_revision
from assay.ladder import syntax
from assay.ladder.events import Reader
from assay.records.importers.conversations import Shape, method_senders, shape_of
from assay.records.importers.importer import LARGEST_DOCUMENT, loosely, seconds, seconds_after
from assay.records.importers.json_documents import Entry
from assay.spec.revisions import REVISIONS, handshake

_NO_RESPONSE: Final = "the body of the HTTP response is not in the file"
_CUT_EVENT: Final = "the stream is cut off"

_VERSION: Final = "mcp-protocol-version"

_USUAL_HEADERS: Final = 2000
"""Bytes of the headers of an exchange, about."""

_OF_OTHERS: Final = frozenset({"ping", "tasks/get", "tasks/list", "tasks/cancel"})
"""Methods of MCP that other protocols have, too: Bitcoin the first one, Agent2Agent the others."""

_OTHER_HANDSHAKES: Final = frozenset({"processId", "clientCapabilities"})
"""Members of `initialize` in the Language Server Protocol and in the Agent Client Protocol, and never in MCP."""

Headers = dict[str, list[str]]
"""The values of headers by name in lower case."""


class Said(NamedTuple):
    """A message of the server in a response."""

    frame: bytes
    shape: Shape
    lacks: str = ""


class HttpExchange:
    """One HTTP request with its response, made of an entry of a HAR, whose members may have any type."""

    def __init__(self, entry: Entry) -> None:
        request, response = _object(entry.value.get("request")), _object(entry.value.get("response"))
        status, content = response.get("status"), _object(response.get("content"))
        self.line = entry.line
        self.method, self.url = str(request.get("method")).upper(), str(request.get("url"))
        self.place = re.split(r"[?#]", self.url, maxsplit=1)[0]
        """The URL without its query and fragment."""
        self.is_post = self.method == "POST"
        self.sent, self.received = _headers_of(request), _headers_of(response)
        self.body = _body_of(_object(request.get("postData"))) or b""
        self.asked = shape_of(self.body)
        """The shape of the message in the request."""
        self.status = status if isinstance(status, int) else 0
        """The HTTP status; 0 without a response."""
        self.answer = _body_of(content)
        """The body of the response; None if the file does not have it."""
        self.begin = seconds(entry.value.get("startedDateTime"))
        """The time of the request in seconds; None if it is unknown."""
        self.end = seconds_after(self.begin, entry.value.get("time"))
        """The time of the response."""
        self.size = len(self.body) + len(self.answer or b"") + _USUAL_HEADERS
        """The bytes that it takes in memory, without headers of more than the usual size."""
        self.is_stream = "text/event-stream" in last_of(self.received, "content-type")
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

    def messages(self) -> Iterator[Said]:
        """Yield the messages of the response."""
        answer, is_error = self.answer, self.status >= 300
        is_request = self.is_post and self.asked.kind == "request"
        lacking = Shape("answer", self.asked.id) if is_request else Shape()
        if self.is_stream and answer:
            reader = Reader(LARGEST_DOCUMENT)
            for each in reader.feed(answer):
                if each.is_message and each.data is not None:
                    yield Said(each.data, shape_of(each.data))
            if reader.rest().strip():
                yield Said(b"", lacking, _CUT_EVENT)
        elif is_request and (self.is_stream or (answer is None and self.status and not is_error)):
            yield Said(b"", lacking, _NO_RESPONSE)
        elif self.is_post and self.status and answer and answer.strip():
            found = loosely(answer.strip()) if "json" in last_of(self.received, "content-type") else None
            if not is_error or (isinstance(found, dict) and "jsonrpc" in found):
                yield Said(answer, shape_of(answer))

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


def last_of(headers: Headers, name: str) -> str:
    """Return the value of a header, the last one of several; "" without one."""
    return headers.get(name, [""])[-1]


def _headers_of(message: Mapping[str, Any]) -> Headers:
    listed = message.get("headers")
    found: Headers = {}
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
