"""
Who gives out tokens for a server behind the guard: what the server says of it, with its address replaced by ours.

Clients compare the `resource` that is named there with the URL they talk to, and look where a challenge sends them
(RFC 9728). Everything else in such a document stays as it is.
"""

import asyncio
import re
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from assay.edges.guard.http_to_http.forwarding import UpstreamHead
from assay.edges.guard.http_to_http.target import Answered, NoAnswerError, Target
from assay.edges.http.asking import address_of, headers_of
from assay.edges.http.door import METADATA, Door
from assay.edges.http.quotas import Full
from assay.edges.http.replies import JSON, Pairs, Receive, Route, Send, reads, refuse, shared

_ISSUERS: Final = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")
"""Where clients look that know of no other authorization server than the server itself (2025-03-26)."""

_MOST: Final = 256 << 10
"""Bytes of a document; they have one or two thousand."""

_SECONDS: Final = 15.0

_AT_ONCE: Final = 16
"""Documents of one server that are asked for at once: nobody has shown who it is yet."""

_POINTER: Final = re.compile(rb'(resource_metadata\s*=\s*)"([^"]*)"', re.IGNORECASE)


def is_inside(url: str, origin: str) -> bool:
    """Whether *url* is at the server whose *origin* that is."""
    try:
        split, ours = urlsplit(url), urlsplit(origin)
        return (split.scheme, split.hostname, _port(split)) == (ours.scheme, ours.hostname, _port(ours))
    except ValueError:
        return False


def _port(split: Any) -> int | None:
    return split.port or {"http": 80, "https": 443}.get(split.scheme)


def challenge(value: bytes, origin: str, address: str, endpoint: str) -> bytes:
    """A `WWW-Authenticate` in which metadata of the server at *origin* are where we have them."""
    ours = f"{address}{METADATA}{endpoint}".encode()

    def replaced(found: re.Match[bytes]) -> bytes:
        url = found[2].decode("latin-1")
        return found[1] + b'"%b"' % ours if is_inside(url, origin) else found[0]

    return _POINTER.sub(replaced, value)


def resource(content: bytes, origin: str, own: str) -> bytes:
    """Metadata of a resource at *origin* as those of our *own* address; what is none of that, as it is."""
    try:
        found = orjson.loads(content)
    except ValueError:
        return content
    named = found.get("resource") if isinstance(found, dict) else None
    if not isinstance(named, str) or not is_inside(named, origin):
        return content
    return orjson.dumps({**found, "resource": own})


class Discovery:
    """The documents of one server."""

    __slots__ = ("_door", "_endpoint", "_enforcing", "_target")

    def __init__(self, target: Target, endpoint: str, door: Door, *, enforcing: bool) -> None:
        """Under *enforcing* only JSON documents pass, and with headers of ours."""
        self._target = target
        self._endpoint = endpoint
        self._door = door
        self._enforcing = enforcing

    @staticmethod
    def paths(endpoint: str) -> list[str]:
        """Where the documents of the server at *endpoint* are."""
        return [name + endpoint for name in (METADATA, *_ISSUERS)]

    def routes(self, *, alone: bool) -> dict[str, Route]:
        """By path; those without the endpoint in them only where this server is *alone* here."""
        behind = self._target.path.rstrip("/")
        every = {name + self._endpoint: name + behind for name in (METADATA, *_ISSUERS)}
        if alone:
            every |= {name: name for name in (METADATA, *_ISSUERS)}
        return {ours: self._route(theirs) for ours, theirs in every.items()}

    def _route(self, path: str) -> Route:
        async def document(scope: dict[str, Any], _: Receive, send: Send) -> None:
            headers = headers_of(scope)
            if scope["method"] == "OPTIONS":
                await self._door.preflight(headers, send)
            elif await self._door.passes(headers, send) and await reads(scope, send, shared(headers)):
                own = address_of(scope, headers) + self._endpoint
                await self._pass(path, own, shared(headers), send)

        return document

    async def _pass(self, path: str, own: str, ours: Pairs, send: Send) -> None:
        if self._target.documents >= _AT_ONCE:
            await Full(503, "too many requests at once").refuse(send, ours)
            return
        self._target.documents += 1
        try:
            await self._passed(path, own, ours, send)
        finally:
            self._target.documents -= 1

    async def _passed(self, path: str, own: str, ours: Pairs, send: Send) -> None:
        try:
            pairs = self._target.with_own([(b"accept", b"application/json")])
            async with asyncio.timeout(_SECONDS), self._target.ask("GET", pairs, path=path) as answered:
                content = await _content(answered)
                head = answered.head
                if self._enforcing:
                    _check(head, content)
        except (NoAnswerError, TimeoutError) as error:
            await refuse(send, "UPSTREAM_FAILURE", str(error) or "no answer in time", ours)
            return
        if path.startswith(METADATA) and head.status == 200:
            content = resource(content, self._target.origin, own)
        if self._enforcing and head.status != 200:
            content = b""
        kept = [JSON] if self._enforcing else answered.pairs
        headers = [*kept, *ours, (b"content-length", b"%d" % len(content))]
        await send({"type": "http.response.start", "status": head.status, "headers": headers})
        await send({"type": "http.response.body", "body": content})


def _check(head: UpstreamHead, content: bytes) -> None:
    """Raise `NoAnswerError` unless this is a JSON document, or says with a 4xx that there is none."""
    if head.trouble:
        raise NoAnswerError(head.trouble)
    if 400 <= head.status < 500:
        return
    if head.status != 200:
        raise NoAnswerError(f"its answer has HTTP status {head.status}")
    try:
        document = orjson.loads(content)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise NoAnswerError("its document is not a JSON object")


async def _content(answered: Answered) -> bytes:
    held = bytearray()
    async for chunk in answered.chunks:
        held += chunk
        if len(held) > _MOST:
            raise NoAnswerError("the document is too long")
    return bytes(held)
