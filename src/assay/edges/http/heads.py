"""
The head of a request, read once into one typed value before anything looks at a header. No I/O.

A server behind the guard, a proxy in between and the guard itself must never read two different values from one
header. Everything that could be read in two ways is refused here, in both modes: a repeated header, white space or
control characters inside a value, a charset other than UTF-8, a compressed body, a protocol header that `Connection`
declares to be for one hop only, and a name that some servers take for a protocol header.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from assay.edges.http.replies import CLOSE, Pairs, Send, refuse, shared
from assay.edges.http.request_headers import Accepts, Headers, is_json
from assay.spec.revisions import REVISIONS, handshake

SESSION: Final = b"mcp-session-id"
VERSION: Final = b"mcp-protocol-version"
LAST_EVENT: Final = b"last-event-id"

LONGEST_TOKEN: Final = 4096
"""Bytes of a session id or an event id: web servers take heads of 8 KB or more."""

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
"""Headers that may come more than once: their values make one list (RFC 9110, 5.3)."""

_PROTECTED: Final = frozenset(
    {
        *(b"authorization", b"content-type", b"content-length", b"content-encoding", LAST_EVENT, b"accept"),
        *(b"host", b"origin", b"x-api-key"),
    }
)
"""Headers that the guard decides by, beside all that begin with `Mcp-`."""

_CHARSET: Final = re.compile(rb';\s*charset\s*=\s*"?([^";\s]*)"?', re.IGNORECASE)


class HeadRefusal(NamedTuple):
    """Why a request is refused by its head alone."""

    status: int
    detail: str
    code: str = "INVALID_ENVELOPE"
    data: Mapping[str, Any] | None = None
    """What the error carries beside the detail."""


class RequestHead(NamedTuple):
    """What a request says of itself. Every value has been checked, and stripped of the white space around it."""

    method: str
    headers: Headers
    """Every header by its name in lower case; the values of a list are joined by commas."""
    pairs: Pairs
    """The same headers in the order they came."""
    session: bytes | None = None
    """The session id; always None in a revision that has no sessions."""
    revision: str | None = None
    """The revision that the header names, known or not."""
    last_event: bytes | None = None
    """The event after which a client resumes its stream."""
    as_json: bool = True
    as_stream: bool = True
    """Whether the client accepts a JSON body, and whether it accepts a stream."""

    @property
    def is_stateless(self) -> bool:
        """Whether the header names a revision that has neither handshake nor sessions."""
        return _is_stateless(self.revision)


_accepts: Final = Accepts()


def read_head(method: str, given: Pairs) -> RequestHead | HeadRefusal:
    """The head of a request with these headers, names in lower case; or why there is none that can be relied on."""
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
        # A revision without sessions gives a session id no meaning, so nothing may act on one or forward it.
        session = last = None
    return RequestHead(method, headers, pairs, session, version, last, *_accepts.read(headers.get(b"accept")))


def _is_stateless(revision: str | None) -> bool:
    return revision is not None and revision in REVISIONS and not handshake(revision)


def may_be_odd(headers: Headers, revision: str | None) -> bool:
    """
    A quick look at headers none of which came twice: False only if `read_head` refuses none of their names and values.

    A session id is not looked at: one that is odd is no session's.
    """
    if b"_" in b"".join(headers) or LAST_EVENT in headers:
        return True
    # Where there is no handshake, each message is held to this header anyway.
    if b"mcp-method" in headers and (revision is None or handshake(revision)):
        return True
    token = headers.get(b"authorization")
    return token is not None and PRINTABLE.fullmatch(token) is None


def check_accept(head: RequestHead) -> HeadRefusal | None:
    """Why no answer of ours would be acceptable to the client; None if one is."""
    if head.method == "DELETE" or head.as_stream or (head.as_json and head.method == "POST"):
        return None
    return HeadRefusal(406, "the answer is application/json or text/event-stream")


def visible(value: bytes) -> bool:
    """Whether *value* is one word of visible ASCII, and not too long to be a token."""
    return len(value) <= LONGEST_TOKEN and _VISIBLE.fullmatch(value) is not None


def is_protected(name: bytes) -> bool:
    """Whether the guard decides by the header *name*, so that nothing may take it away or imitate it."""
    return name in _PROTECTED or name.startswith(b"mcp-")


def charset_of(content_type: bytes) -> bytes:
    """The charset that a Content-Type names, in lower case; empty if it names none."""
    found = _CHARSET.findall(content_type)
    return b" ".join(found).lower() if found else b""


def is_utf8(content_type: bytes) -> bool:
    """Whether a Content-Type leaves no doubt that the text is UTF-8."""
    return charset_of(content_type) in {b"", b"utf-8", b"utf8"}


def _joined(pairs: Pairs) -> Headers | HeadRefusal:
    """Headers by name. One that comes twice and is no list has no one value."""
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
            # Nothing is decided by it. A line break is in no header, so what is joined by one equals nothing.
            headers[name] += b"\n" + value
    return headers


def _odd(name: bytes, detail: str) -> HeadRefusal:
    """A header that has no one value. For those that repeat the body, the specification has an error of its own."""
    mismatch = name in {VERSION, b"mcp-method", b"mcp-name"} or name.startswith(b"mcp-param-")
    return HeadRefusal(400, detail, "HEADER_MISMATCH" if mismatch else "INVALID_ENVELOPE")


def _wrong_names(headers: Headers) -> HeadRefusal | None:
    for name in headers if b"_" in b"".join(headers) else ():
        if b"_" in name and is_protected(name.replace(b"_", b"-")):
            # Servers behind CGI, WSGI and some proxies read Mcp_Session_Id as Mcp-Session-Id.
            return HeadRefusal(400, f"the header {shown_name(name)} is spelt with an underscore; use a hyphen")
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
    """The name of a header for people: parts capitalised, nothing that a terminal would act upon, cut short."""
    text = name[:60].decode("ascii", "replace")
    shown = "-".join(each.capitalize() for each in text.split("-"))
    return {"Mcp-Protocol-Version": "MCP-Protocol-Version", "Last-Event-Id": "Last-Event-ID"}.get(shown, shown)


async def refuse_head(refusal: HeadRefusal, headers: Headers, send: Send) -> None:
    """Answer a request that is refused by its head."""
    status, detail, code, data = refusal
    # Whoever frames a request oddly is not trusted with where its body ends; what it accepts has no part in that.
    closing = [] if status == 406 else [CLOSE]
    await refuse(send, code, detail, [*closing, *shared(headers)], status=status, data=data)
