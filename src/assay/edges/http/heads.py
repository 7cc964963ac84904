"""
Parse the head of a request once into one typed value, before any header is used. No I/O.

The server, a proxy in between and the guard must never read different values from one header. Every ambiguous head is
refused here, in both modes: a repeated header, white space or control characters inside a value, a charset other than
UTF-8, a compressed body, a protocol header that `Connection` makes hop-by-hop, and a name that some servers treat as a
protocol header.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from assay.edges.http.replies import CLOSE, Pairs, Send, refuse, shared
from assay.edges.http.request_headers import Accepts, Headers, is_json
from assay.spec.revisions import REVISIONS, handshake, is_known

SESSION: Final = b"mcp-session-id"
VERSION: Final = b"mcp-protocol-version"
LAST_EVENT: Final = b"last-event-id"

LONGEST_TOKEN: Final = 4096
"""Maximal bytes of a session id or an event id: web servers accept heads of 8 KB or more."""

_VISIBLE: Final = re.compile(rb"[\x21-\x7e]+")
PRINTABLE: Final = re.compile(rb"[\t\x20-\x7e]*")

_SINGLE_WORDS: Final = (SESSION, VERSION, LAST_EVENT, b"mcp-method")
"""Headers whose value is one word of visible ASCII."""

_LISTS: Final = frozenset(
    {
        *(b"accept", b"accept-language", b"cookie", b"via", b"forwarded", b"x-forwarded-for", b"connection"),
        *(b"access-control-request-headers", b"cache-control", b"pragma", b"te", b"tracestate", b"baggage"),
    }
)
"""Headers that may be repeated: their values form one list (RFC 9110, 5.3)."""

_PROTECTED: Final = frozenset(
    {
        *(b"authorization", b"content-type", b"content-length", b"content-encoding", LAST_EVENT, b"accept"),
        *(b"host", b"origin", b"x-api-key"),
    }
)
"""Headers that the guard uses for decisions, in addition to all that start with `Mcp-`."""

_CHARSET: Final = re.compile(rb';\s*charset\s*=\s*"?([^";\s]*)"?', re.IGNORECASE)


class HeadRefusal(NamedTuple):
    """The reason for refusing a request by its head alone."""

    status: int
    detail: str
    code: str = "INVALID_ENVELOPE"
    data: Mapping[str, Any] | None = None
    """Further members of the error's data."""


class RequestHead(NamedTuple):
    """The head of a request. Every value is checked, and stripped of white space."""

    method: str
    headers: Headers
    """Every header by its name in lower case; the values of a list are joined by commas."""
    pairs: Pairs
    """The same headers in their order."""
    session: bytes | None = None
    """The session id; always None in a revision without sessions."""
    revision: str | None = None
    """The revision in the header, known or not."""
    last_event: bytes | None = None
    """The event after which a client resumes its stream."""
    as_json: bool = True
    as_stream: bool = True
    """Whether the client accepts a JSON body, and whether it accepts a stream."""

    @property
    def is_stateless(self) -> bool:
        """Whether the header has a revision without handshake and sessions."""
        return _is_stateless(self.revision)


_accepts: Final = Accepts()


def read_head(method: str, given: Pairs) -> RequestHead | HeadRefusal:
    """Parse these headers, with names in lower case; return the head, or why it is refused."""
    pairs = [(name, value.strip(b" \t")) for name, value in given]
    headers: Headers = dict(pairs)
    if len(headers) != len(pairs):
        joined = _joined(pairs)
        if isinstance(joined, HeadRefusal):
            return joined
        headers = joined
    wrong = _wrong_names(headers) or _wrong_values(headers)
    if wrong is None and method == "POST":
        wrong = _wrong_body(headers)
    if wrong is not None:
        return wrong
    given_version = headers.get(VERSION)
    version = None if given_version is None else given_version.decode("ascii")
    session, last = headers.get(SESSION), headers.get(LAST_EVENT)
    if _is_stateless(version):
        # In a revision without sessions a session id has no meaning, so it is neither used nor forwarded.
        session = last = None
    return RequestHead(method, headers, pairs, session, version, last, *_accepts.read(headers.get(b"accept")))


def _is_stateless(revision: str | None) -> bool:
    return is_known(revision) and not handshake(revision)


def check_accept(head: RequestHead) -> HeadRefusal | None:
    """Return the refusal if the client accepts neither JSON nor events; None if it accepts one."""
    if head.method == "DELETE" or head.as_stream or (head.as_json and head.method == "POST"):
        return None
    return HeadRefusal(406, "the answer is application/json or text/event-stream")


def visible(value: bytes) -> bool:
    """Whether *value* is one word of visible ASCII within the limit of a token."""
    return len(value) <= LONGEST_TOKEN and _VISIBLE.fullmatch(value) is not None


def is_protected(name: bytes) -> bool:
    """Whether the guard uses the header *name* for decisions, so that it must not be removed or imitated."""
    return name in _PROTECTED or name.startswith(b"mcp-")


def charset_of(content_type: bytes) -> bytes:
    """Return the charset of a Content-Type, in lower case; empty without one."""
    found = _CHARSET.findall(content_type)
    return b" ".join(found).lower() if found else b""


def is_utf8(content_type: bytes) -> bool:
    """Whether the text of a Content-Type is certainly UTF-8."""
    return charset_of(content_type) in {b"", b"utf-8", b"utf8"}


def _joined(pairs: Pairs) -> Headers | HeadRefusal:
    """Return the headers by name, or the refusal of a repeated one that is not a list."""
    headers: Headers = {}
    for name, value in pairs:
        if name not in headers:
            headers[name] = value
        elif name in _LISTS:
            headers[name] += b", " + value
        elif name == b"content-type":
            return HeadRefusal(415, "the header Content-Type came twice")
        elif is_protected(name) or name == b"traceparent":
            return _odd(name, f"the header {shown_name(name)} came twice; send it once")
        else:
            # The header is not used for decisions. No header has a line break, so the joined value equals no other.
            headers[name] += b"\n" + value
    return headers


def _odd(name: bytes, detail: str) -> HeadRefusal:
    """Return the refusal of an ambiguous header. For those that repeat the body, there is a special error."""
    mismatch = name in {VERSION, b"mcp-method", b"mcp-name"} or name.startswith(b"mcp-param-")
    return HeadRefusal(400, detail, "HEADER_MISMATCH" if mismatch else "INVALID_ENVELOPE")


def _wrong_names(headers: Headers) -> HeadRefusal | None:
    for name in headers if b"_" in b"".join(headers) else ():
        if b"_" in name and is_protected(name.replace(b"_", b"-")):
            # Servers behind CGI, WSGI and some proxies read Mcp_Session_Id as Mcp-Session-Id.
            return HeadRefusal(400, f"the header {shown_name(name)} has an underscore; use a hyphen")
    listed = headers.get(b"connection")
    if listed is None or listed.lower() in {b"keep-alive", b"close"}:
        return None
    for each in listed.split(b","):
        name = each.strip(b" \t").lower()
        if is_protected(name):
            return HeadRefusal(400, f"Connection names {shown_name(name)}, which is not for one hop only")
    return None


def _wrong_values(headers: Headers) -> HeadRefusal | None:
    for name in _SINGLE_WORDS:
        value = headers.get(name)
        if value is not None and not visible(value):
            if name == VERSION:
                requested = {"requested": value[:100].decode("latin-1"), "supported": list(REVISIONS)}
                return HeadRefusal(400, "unknown MCP-Protocol-Version", "UNSUPPORTED_REVISION", requested)
            return _odd(name, f"the header {shown_name(name)} is not one word of visible ASCII")
    token = headers.get(b"authorization")
    if token is not None and PRINTABLE.fullmatch(token) is None:
        return HeadRefusal(400, "the header Authorization is not printable ASCII")
    return None


def _wrong_body(headers: Headers) -> HeadRefusal | None:
    kind = headers.get(b"content-type", b"")
    if kind != b"application/json":
        if not is_json(headers):
            return HeadRefusal(415, "the body is application/json")
        if not is_utf8(kind):
            return HeadRefusal(415, "the body is UTF-8; send no other charset")
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        return HeadRefusal(415, "the body must not be compressed; leave Content-Encoding out")
    return None


def shown_name(name: bytes) -> str:
    """Return the name of a header for messages: parts capitalised, without control characters, cut."""
    text = name[:60].decode("ascii", "replace")
    shown = "-".join(each.capitalize() for each in text.split("-"))
    return {"Mcp-Protocol-Version": "MCP-Protocol-Version", "Last-Event-Id": "Last-Event-ID"}.get(shown, shown)


async def refuse_head(refusal: HeadRefusal, headers: Headers, send: Send) -> None:
    """Answer a request that was refused by its head."""
    status, detail, code, data = refusal
    # The end of the body of an ambiguous request is not trusted, so the connection is closed.
    closing = [] if status == 406 else [CLOSE]
    await refuse(send, code, detail, [*closing, *shared(headers)], status=status, data=data)
