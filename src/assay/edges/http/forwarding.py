"""
What crosses between a client and a server at a URL beside messages: which headers go on, in either direction. No I/O.

Under enforce a header goes on only if it is in a list of ours or of the operator's, and status, content type, session
and events are written anew. Under audit what is end-to-end goes on as it came.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from assay.edges.http.heads import LAST_EVENT, PRINTABLE, SESSION, VERSION, RequestHead, is_utf8, shown_name, visible
from assay.edges.http.replies import Pairs
from assay.edges.http.request_headers import Headers, media_type

_HOPS: Final = frozenset(
    {
        *(b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection"),
        *(b"te", b"trailer", b"transfer-encoding", b"upgrade", b"http2-settings"),
    }
)
"""Headers that are meant for the next hop only (RFC 9110, 7.6.1)."""

_WRITTEN: Final = frozenset(
    {
        *(b"host", b"content-length", b"content-type", b"content-encoding", b"accept", b"accept-encoding", b"expect"),
        *(SESSION, VERSION, LAST_EVENT),
    }
)
"""Headers of a request that are written anew."""

_FORWARDED: Final = frozenset(
    {
        *(b"accept-language", b"user-agent", b"x-request-id", b"x-correlation-id"),
        *(b"traceparent", b"tracestate", b"baggage"),
    }
)
"""Headers that go on under enforce, beside credentials and what the operator lists."""

_CREDENTIAL: Final = re.compile(rb"authorization|(?:[a-z0-9]+-)*(?:api-?key|(?:access-?|auth-?)?token|key)")
"""Headers by which a client shows the server who it is: `X-Api-Key`, `X-Figma-Token` and the like."""

_JUDGED: Final = (b"mcp-method", b"mcp-name", b"mcp-param-")
"""Headers of the era without handshake, which the header rules hold against the body."""

_ACCEPTED: Final = {
    (True, True): b"application/json, text/event-stream",
    (True, False): b"application/json",
    (False, True): b"text/event-stream",
    (False, False): None,
}
"""The `Accept` header for the server: JSON, a stream."""

_JSON_TYPE: Final = (b"content-type", b"application/json")


def is_credential(name: bytes) -> bool:
    """Whether a client shows by the header *name* who it is."""
    return _CREDENTIAL.fullmatch(name) is not None


def end_to_end(pairs: Pairs, without: frozenset[bytes]) -> list[tuple[bytes, bytes]]:
    """The headers that are not for one hop only, and not among *without*."""
    named = {
        each.strip().lower() for name, value in pairs if name == b"connection" for each in value.split(b",") if each
    }
    # White space around a value is no part of it (RFC 9110, 5.5), and some writers refuse to send it.
    return [
        (name, value.strip(b" \t"))
        for name, value in pairs
        if name not in without and name not in _HOPS and name not in named
    ]


class Forwarding(NamedTuple):
    """Which headers of a client go on to a server at a URL."""

    enforcing: bool
    """Whether only those of a short list do."""
    tokens: bool = True
    """Whether the client's `Authorization` is meant for the server."""
    cookies: bool = True
    """Whether cookies are: where several servers share one origin they are not."""
    names: Sequence[bytes] = ()
    """Further names of requests that the operator has listed, in lower case."""
    answers: Sequence[bytes] = ()
    """The same for answers."""

    def headers(self, head: RequestHead, *, session: bytes | None = None) -> list[tuple[bytes, bytes]]:
        """The headers to send for *head*, in *session* if that is given, else in its own."""
        kept = [pair for pair in end_to_end(head.pairs, _WRITTEN) if self._goes_on(head, *pair)]
        ident = session if session is not None else head.session
        last = head.last_event if head.method == "GET" else None
        accept = _ACCEPTED[head.as_json, head.as_stream] if self.enforcing else head.headers.get(b"accept")
        written = ((b"accept", accept), (SESSION, ident), (VERSION, head.headers.get(VERSION)), (LAST_EVENT, last))
        kept += [(name, value) for name, value in written if value is not None]
        if head.method == "POST":
            kept.append(_JSON_TYPE)
        return kept

    def _goes_on(self, head: RequestHead, name: bytes, value: bytes) -> bool:
        if name == b"authorization":
            return self.tokens
        if name == b"cookie" and not self.cookies:
            return False
        if not self.enforcing:
            return True
        if PRINTABLE.fullmatch(value) is None:
            return False
        judged = head.is_stateless and name.startswith(_JUDGED)
        return judged or name in _FORWARDED or name in self.names or is_credential(name)

    def answer(self, head: "UpstreamHead", pairs: Pairs, challenges: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
        """
        The headers of an answer that go to the client under enforce.

        *challenges* are those of the server, such that they lead to us. `Location`, `Refresh`, `Alt-Svc` and the like
        have no way in here.
        """
        written = [(b"www-authenticate", each) for each in challenges]
        if head.session is not None:
            written.append((SESSION, head.session))
        if head.retry_after is not None:
            written.append((b"retry-after", head.retry_after))
        if head.allow is not None and head.status == 405:
            written.append((b"allow", head.allow))
        listed = [pair for pair in pairs if pair[0] in self.answers and PRINTABLE.fullmatch(pair[1])]
        return written + (listed if self.cookies else [pair for pair in listed if pair[0] != b"set-cookie"])

    def dropped(self, head: RequestHead) -> list[bytes]:
        """The headers of *head* that a server might miss: those that are not forwarded and not written anew."""
        every = end_to_end(head.pairs, _WRITTEN | _UNMISSED)
        return [pair[0] for pair in every if not self._goes_on(head, *pair) and not pair[0].startswith(_BROWSER)]


_UNMISSED: Final = frozenset(
    {
        *(b"authorization", b"cookie", b"origin", b"referer", b"cache-control", b"pragma", b"dnt", b"priority"),
        *(b"via", b"forwarded", b"x-real-ip"),
    }
)
_BROWSER: Final = (b"sec-", b"mcp-", b"x-forwarded-", b"access-control-")
"""Headers that no MCP server needs from a client, or must not believe."""


# ── what a server answers ────────────────────────────────────────────────────────────────────────────────────────────

_ONE_OF_EACH: Final = frozenset(
    {b"content-type", b"content-encoding", b"content-length", b"location", b"retry-after", SESSION, VERSION}
)


_METHODS: Final = re.compile(rb"[A-Z, ]{1,100}")


class UpstreamHead(NamedTuple):
    """What the head of a server's answer says, read once."""

    status: int
    kind: bytes
    """The media type, in lower case."""
    session: bytes | None
    """The session id that it gives, if it is one."""
    challenges: tuple[bytes, ...]
    """What it asks a client to show: each `WWW-Authenticate`."""
    retry_after: bytes | None
    allow: bytes | None
    """The methods that it allows, where another one was used."""
    location: bytes
    trouble: str
    """Why the answer cannot be relied on; empty if it can."""


def read_upstream_head(status: int, pairs: Pairs) -> UpstreamHead:
    """The head of a server's answer; names are in lower case."""
    headers = dict(pairs)
    session = headers.get(SESSION, b"").strip(b" \t")
    retry = headers.get(b"retry-after", b"").strip(b" \t")
    allow = headers.get(b"allow", b"")
    return UpstreamHead(
        status,
        media_type(headers.get(b"content-type", b"")),
        session if session and visible(session) else None,
        tuple(value for name, value in pairs if name == b"www-authenticate" and PRINTABLE.fullmatch(value)),
        retry if len(retry) <= 64 and PRINTABLE.fullmatch(retry) and retry else None,
        allow if _METHODS.fullmatch(allow) else None,
        headers.get(b"location", b""),
        _trouble(pairs, headers),
    )


def _trouble(pairs: Pairs, headers: Headers) -> str:
    names = [name for name, _ in pairs if name in _ONE_OF_EACH]
    if len(names) != len(set(names)):
        twice = next(name for name in names if names.count(name) > 1)
        return f"its answer has the header {shown_name(twice)} twice"
    if headers.get(b"content-encoding", b"identity").strip(b" \t").lower() != b"identity":
        return "its answer is compressed, although that was not requested"
    if not is_utf8(headers.get(b"content-type", b"")):
        return "its answer is in another charset than UTF-8"
    if SESSION in headers and not visible(headers[SESSION].strip(b" \t")):
        return "its session id is not one word of visible ASCII"
    return ""
