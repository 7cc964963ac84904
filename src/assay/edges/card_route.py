"""
The card of a server behind the guard: ``<endpoint>/server-card``, forwarded byte for byte in both modes, not judged.

A card is not a message: it belongs to no session and is in no journal. The URLs in it are those of the server, and stay
as they are: to a client, a rewritten card would be another card than the published one.
"""

import asyncio
from typing import Any, Final, NamedTuple

from assay.edges.http.access import METADATA, Door
from assay.edges.http.forwarding import UpstreamHead
from assay.edges.http.heads import LAST_EVENT, PRINTABLE, SESSION, RequestHead
from assay.edges.http.quotas import Full
from assay.edges.http.replies import Pairs, Receive, Route, Send, reads, refuse, shared
from assay.edges.http.request_headers import address_of, headers_of
from assay.edges.oauth_discovery import MOST_DOCUMENTS, challenges_for, document_content
from assay.edges.upstream_errors import NoAnswerError
from assay.edges.upstream_target import Answered
from assay.edges.url_backend import NO_QUERY, UrlBackend

_NAME: Final = "server-card"
"""The name below the path of an MCP endpoint that is reserved for its card."""

_MOST: Final = 1 << 20
"""Bytes of a card; most have one or two thousand."""

_SECONDS: Final = 15.0
"""Seconds for the whole document, as for the documents about tokens."""

_CONDITIONS: Final = (b"accept", b"if-none-match", b"if-modified-since")
"""Headers of a request that are forwarded in both modes, beside those of every request."""

_NOT_OURS: Final = frozenset({b"accept", SESSION, LAST_EVENT})
"""Headers of messages: a card is the same for every session."""

_OF_DOCUMENTS: Final = frozenset(
    {
        *(b"content-type", b"content-encoding", b"content-language", b"cache-control", b"etag", b"last-modified"),
        *(b"expires", b"age", b"vary"),
    }
)
"""Headers of an answer that are forwarded under enforce, beside those of every answer."""


class _Card(NamedTuple):
    """A response of the server, as it is forwarded."""

    status: int
    pairs: Pairs
    content: bytes
    length: bytes


class CardRoute:
    """The card of one server at a URL."""

    __slots__ = ("_door", "_proxy")

    def __init__(self, proxy: UrlBackend, door: Door) -> None:
        self._proxy = proxy
        self._door = door

    @staticmethod
    def path(endpoint: str) -> str:
        """Return where the card of the server at *endpoint* is."""
        return f"{endpoint}/{_NAME}"

    def routes(self) -> dict[str, Route]:
        """Return the route of the card, by its path."""
        return {self.path(self._proxy.endpoint): self.answer}

    async def answer(self, scope: dict[str, Any], _: Receive, send: Send) -> None:
        """Answer one request: the same clients are let in as at the endpoint."""
        if scope["method"] == "OPTIONS":
            await self._door.preflight(headers_of(scope), send)
            return
        head = await self._door.head(scope, send)
        if head is None or await self._door.admitted(head.headers, send, self._proxy.endpoint) is None:
            return
        ours = shared(head.headers)
        if not await reads(scope, send, ours):
            return
        if scope["query_string"] and self._keeps_queries_out():
            await refuse(send, "INVALID_ENVELOPE", NO_QUERY, ours, status=400)
        elif self._proxy.target.documents >= MOST_DOCUMENTS:
            await Full(503, "too many requests at once").refuse(send, ours)
        else:
            await self._forward(scope, head, send)

    def _keeps_queries_out(self) -> bool:
        return self._proxy.factory.enforcing or self._proxy.gated or self._proxy.target.has_query

    async def _forward(self, scope: dict[str, Any], head: RequestHead, send: Send) -> None:
        target = self._proxy.target
        address = address_of(head.headers, self._proxy.public_url)
        target.documents += 1
        try:
            async with asyncio.timeout(_SECONDS):
                card = await self._ask(head, scope["query_string"], address)
        except (NoAnswerError, TimeoutError) as error:
            await refuse(send, "UPSTREAM_FAILURE", str(error) or "no answer in time", shared(head.headers))
            return
        finally:
            target.documents -= 1
        named = {name for name, _ in card.pairs}
        # A card is public, and its server lets every page read it; otherwise the guard lets those that it knows.
        ours = [pair for pair in shared(head.headers) if pair[0] not in named or pair[0] == b"vary"]
        length = [(b"content-length", card.length)] if card.length else []
        await send({"type": "http.response.start", "status": card.status, "headers": [*card.pairs, *ours, *length]})
        await send({"type": "http.response.body", "body": card.content})

    async def _ask(self, head: RequestHead, query: bytes, address: str) -> _Card:
        """Return the response of the server to a request with *head*. Raises `NoAnswerError`."""
        target = self._proxy.target
        path = target.below(_NAME) + (f"?{query.decode('latin-1')}" if query else "")
        answered = await target.ask(head.method, target.with_own(self._headers(head)), path=path)
        try:
            self._check(answered.head)
            is_empty = head.method == "HEAD" or answered.head.status == 304
            content = b"" if is_empty else await document_content(answered, _MOST)
            pairs = self._pairs(answered, address)
        finally:
            answered.close()
        status = answered.head.status
        if self._proxy.factory.enforcing and status not in {200, 304}:
            # The text of an error is not a card.
            content = b""
        length = (answered.length or b"") if head.method == "HEAD" else b"%d" % len(content)
        return _Card(status, pairs, content, b"" if status == 304 or not length.isdigit() else length)

    def _headers(self, head: RequestHead) -> list[tuple[bytes, bytes]]:
        """Return the headers for the server."""
        every = [pair for pair in self._proxy.forwarding.headers(head) if pair[0] not in _NOT_OURS]
        given = {name for name, _ in every}
        wanted = [(name, head.headers[name]) for name in _CONDITIONS if name in head.headers and name not in given]
        return every + [pair for pair in wanted if PRINTABLE.fullmatch(pair[1])]

    def _check(self, head: UpstreamHead) -> None:
        """Raise `NoAnswerError` for a response that leads past the guard, or that can be read in two ways."""
        enforcing = self._proxy.factory.enforcing
        if enforcing and head.trouble:
            raise NoAnswerError(head.trouble)
        astray = 300 <= head.status < 400 and head.status != 304
        if (astray and (enforcing or self._proxy.gated)) or (enforcing and head.status >= 500):
            raise NoAnswerError(f"its answer has HTTP status {head.status}")

    def _pairs(self, answered: Answered, address: str) -> list[tuple[bytes, bytes]]:
        """Return the headers for the client."""
        proxy, head = self._proxy, answered.head
        status = 0 if proxy.gated else head.status
        ours = f"{address}{METADATA}{proxy.endpoint}"
        given = [value for name, value in answered.pairs if name == b"www-authenticate"]
        challenges = challenges_for(head.challenges if proxy.factory.enforcing else given, status, proxy.target, ours)
        if not proxy.factory.enforcing:
            kept = [pair for pair in answered.pairs if pair[0] != b"www-authenticate"]
            return [*kept, *((b"www-authenticate", each) for each in challenges), *answered.sharing]
        written = [pair for pair in proxy.forwarding.answer(head, answered.pairs, challenges) if pair[0] != SESSION]
        known = [pair for pair in answered.pairs if pair[0] in _OF_DOCUMENTS and pair not in written]
        return [*written, *(pair for pair in (*known, *answered.sharing) if PRINTABLE.fullmatch(pair[1]))]
