"""
Who gives out tokens for a server behind the guard: what the server says of it, with its address replaced by ours.

Clients compare the `resource` that is named there with the URL they talk to, and look where a challenge sends them
(RFC 9728). Everything else in such a document stays as it is. A server that asks for tokens and has no such document is
one of 2025-03-26, which gives them out itself: that is then what ours says.

Only the origin of the server is ever asked, whatever URL a server names: the guard may reach more than its clients do.
"""

import asyncio
import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import orjson

from assay.edges.http.access import METADATA, Door
from assay.edges.http.forwarding import UpstreamHead
from assay.edges.http.quotas import Full
from assay.edges.http.replies import JSON, Pairs, Receive, Route, Send, reads, refuse, shared
from assay.edges.http.request_headers import address_of, headers_of
from assay.edges.upstream_errors import NoAnswerError
from assay.edges.upstream_target import Answered, UpstreamTarget

_ISSUERS: Final = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")
"""Where clients look that know of no other authorization server than the server itself (2025-03-26)."""

_MOST: Final = 256 << 10
"""Bytes of a document; they have one or two thousand."""

_SECONDS: Final = 15.0

_NONE: Final = frozenset({401, 403, 404, 405, 410})
"""Statuses of a server without such a document, or that shows it only after sign-in."""

MOST_DOCUMENTS: Final = 16
"""Maximal concurrent requests for documents of one server: the clients are not authenticated yet."""

_LONGEST: Final = 2048
"""Characters of a URL of metadata that is remembered; one with other characters than URLs have cannot be asked for."""

_TOKEN: Final = re.compile(rb"\s*(?:bearer|dpop)(?=\s|$)", re.IGNORECASE)
"""A challenge that asks for a token of OAuth."""

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


def challenges_for(values: Iterable[bytes], status: int, target: UpstreamTarget, ours: str) -> list[bytes]:
    """
    Every `WWW-Authenticate` of an answer, such that metadata of the server are at *ours*.

    Where a server with status 401 names none, a client is led to ours. What was asked for, *target* remembers.
    """
    led = [challenge(each, target, ours) for each in values]
    if status != 401:
        return led
    named = [found[2] for each in led for found in _POINTER.finditer(each)]
    # Where its metadata are elsewhere, they are not ours to replace.
    target.challenged = all(each.endswith(ours.partition(":")[2].encode()) for each in named)
    return led if named else _with_pointer(led, b'resource_metadata="%b"' % ours.encode())


def challenge(value: bytes, target: UpstreamTarget, ours: str) -> bytes:
    """A challenge in which metadata of the server are at *ours*; where they are, *target* remembers."""

    def replaced(found: re.Match[bytes]) -> bytes:
        url = found[2].decode("latin-1")
        led = _led(url, target.origin, ours)
        if led is None:
            return found[0]
        if len(url) <= _LONGEST and url.isascii() and url.isprintable():
            split = urlsplit(url)
            target.metadata = (split.path or "/") + (f"?{split.query}" if split.query else "")
        return found[1] + b'"%b"' % led.encode()

    return _POINTER.sub(replaced, value)


def _led(url: str, origin: str, ours: str) -> str | None:
    """Where the metadata at *url* of the server at *origin* are here; None if they are not the server's."""
    if is_inside(url, origin):
        return ours
    here = urlsplit(ours)
    try:
        split = urlsplit(url)
    except ValueError:
        return None
    # The server calls the guard's address its own. What is in front of the guard may have another scheme.
    known = split.scheme in ("http", "https") and split.netloc.lower() == here.netloc.lower()
    return here._replace(scheme=split.scheme).geturl() if known else None


def _with_pointer(values: list[bytes], pointer: bytes) -> list[bytes]:
    """These challenges, the first that asks for a token with *pointer* in it; without any challenge, one of our own."""
    if not values:
        return [b"Bearer " + pointer]
    for at, value in enumerate(values):
        scheme = _TOKEN.match(value)
        if scheme is not None:
            # Right behind the scheme: at the end it could belong to another challenge in the same header.
            rest = value[scheme.end() :].lstrip(b" ,")
            return [
                *values[:at],
                scheme[0].strip() + b" " + pointer + (b", " + rest if rest else b""),
                *values[at + 1 :],
            ]
    return values


def resource(content: bytes, origin: str, own: str) -> bytes:
    """Return the metadata of a resource at *origin* with our *own* address; anything else unchanged."""
    try:
        found = orjson.loads(content)
    except ValueError:
        return content
    named = found.get("resource") if isinstance(found, dict) else None
    if not isinstance(named, str) or not is_inside(named, origin):
        return content
    return orjson.dumps({**found, "resource": own})


class _Document(NamedTuple):
    """A document of the server, as it goes on."""

    status: int
    pairs: Pairs
    content: bytes


class Discovery:
    """The documents of one server."""

    __slots__ = ("_door", "_endpoint", "_enforcing", "_target")

    def __init__(self, target: UpstreamTarget, endpoint: str, door: Door, *, enforcing: bool) -> None:
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
        every = {name + self._endpoint: [name + behind] for name in _ISSUERS}
        every[METADATA + self._endpoint] = [METADATA + behind, METADATA]
        if alone:
            every |= {name: [name] for name in (METADATA, *_ISSUERS)}
        return {ours: self._route(theirs) for ours, theirs in every.items()}

    def _route(self, paths: list[str]) -> Route:
        async def document(scope: dict[str, Any], _: Receive, send: Send) -> None:
            headers = headers_of(scope)
            if scope["method"] == "OPTIONS":
                await self._door.preflight(headers, send)
            elif await self._door.passes(headers, send) and await reads(scope, send, shared(headers)):
                own = address_of(headers, self._door.safety.public_url) + self._endpoint
                await self._pass(self._places(paths), own, shared(headers), send)

        return document

    def _places(self, paths: list[str]) -> list[str]:
        """Where the document may be at the server: metadata first where a challenge has named them."""
        named = self._target.metadata
        if named is not None and METADATA in paths:
            paths = [*paths, named] if paths == [METADATA] else [named, *paths]
        return list(dict.fromkeys(paths))

    async def _pass(self, paths: list[str], own: str, ours: Pairs, send: Send) -> None:
        if self._target.documents >= MOST_DOCUMENTS:
            await Full(503, "too many requests at once").refuse(send, ours)
            return
        self._target.documents += 1
        try:
            async with asyncio.timeout(_SECONDS):
                found = await self._first(paths, own)
        except (NoAnswerError, TimeoutError) as error:
            await refuse(send, "UPSTREAM_FAILURE", str(error) or "no answer in time", ours)
            return
        finally:
            self._target.documents -= 1
        headers = [*found.pairs, *ours, (b"content-length", b"%d" % len(found.content))]
        await send({"type": "http.response.start", "status": found.status, "headers": headers})
        await send({"type": "http.response.body", "body": found.content})

    async def _first(self, paths: list[str], own: str) -> _Document:
        """What the server has at the first of *paths* where it has anything, or what we say in its place."""
        is_metadata = METADATA in paths
        for path in paths:
            found = await self._document(path)
            if not 400 <= found.status < 500:
                break
        if is_metadata and found.status == 200:
            return found._replace(content=resource(found.content, self._target.origin, own))
        if is_metadata and found.status in _NONE and self._target.challenged:
            return _Document(200, [JSON], orjson.dumps(_metadata(own, self._target.origin)))
        return found

    async def _document(self, path: str) -> _Document:
        """Return the document at *path* of the server; under enforce a JSON object, or the status of a missing one."""
        pairs = self._target.with_own([(b"accept", b"application/json")])
        answered = await self._target.ask("GET", pairs, path=path)
        try:
            content = await document_content(answered)
        finally:
            answered.close()
        if not self._enforcing:
            return _Document(answered.head.status, answered.pairs, content)
        _check(answered.head, content)
        return _Document(answered.head.status, [JSON], content if answered.head.status == 200 else b"")


def _metadata(own: str, origin: str) -> dict[str, Any]:
    """Metadata of our *own* address for a server that gives out tokens itself, as those of 2025-03-26 do."""
    return {"resource": own, "authorization_servers": [origin]}


def _check(head: UpstreamHead, content: bytes) -> None:
    """Raise `NoAnswerError` unless this is a JSON document, or a 4xx status."""
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


async def document_content(answered: Answered, most: int = _MOST) -> bytes:
    """Return the content of a document of the server. Raises `NoAnswerError` if it is too long."""
    held = bytearray()
    while chunk := await answered.piece():
        held += chunk
        if len(held) > most:
            raise NoAnswerError("the document is too long")
    return bytes(held)
