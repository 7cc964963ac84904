"""
Ask a server at a URL for its card, or a site for its AI catalog, and the server for its own description of itself.

It blocks, within one time limit for everything. Headers, which may be tokens, go only to the origin of the given URL.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from assay.base.limits import Limits
from assay.core.extensions.card_rules import MEDIA_TYPE, NAME
from assay.edges.oauth_discovery import is_inside
from assay.edges.probe.document_line import DocumentLine, FetchedDocument
from assay.edges.probe.http_line import HttpLine
from assay.edges.probe.server_probe import InquiryError, UnreachableError, conversing
from assay.edges.upstream_client import origin_of, url_of
from assay.settings.upstream_section import UpstreamSettings

SUFFIX: Final = f"/{NAME}"

_WELL_KNOWN: Final = "/.well-known/ai-catalog.json"
_CATALOG_TYPES: Final = "application/ai-catalog+json, application/json"

_NOT_THERE: Final = frozenset({400, 404, 405, 406, 410})
"""Statuses of a server that has no document at a URL."""


class DocumentPlace(NamedTuple):
    """A URL where a document may be."""

    url: str
    endpoint: str = ""
    """The MCP endpoint whose card is there; empty if that is unknown."""


def places_of(url: str, *, catalog: bool) -> list[DocumentPlace]:
    """Return where the document for *url* may be, likeliest first. Raises `UnreachableError`."""
    try:
        split = urlsplit(url)._replace(fragment="")
    except ValueError:
        raise UnreachableError("expected a URL that begins with http:// or https://") from None
    path = split.path.rstrip("/")
    if catalog:
        own = path.endswith(".json")
        return [DocumentPlace(url if own else split._replace(path=_WELL_KNOWN, query="").geturl())]
    if path.endswith(SUFFIX):
        return [DocumentPlace(url, split._replace(path=path.removesuffix(SUFFIX)).geturl())]
    if path.endswith(".json"):
        return [DocumentPlace(url)]
    return [DocumentPlace(split._replace(path=path + SUFFIX).geturl(), url), DocumentPlace(url)]


class FoundDocument(NamedTuple):
    """A document, and the response that had it."""

    place: DocumentPlace
    fetched: FetchedDocument
    again: int | None
    """The status of a second request, for the document only if it has changed; None if it has no ETag."""


class CardInquiry:
    """The requests for one URL."""

    def __init__(
        self,
        client: Mapping[str, str],
        headers: Sequence[tuple[str, str]],
        upstream: UpstreamSettings,
        limits: Limits,
        timeout: float,
    ) -> None:
        """*client* is our name, *headers* are added to every request; everything together has *timeout* seconds."""
        self._client = client
        self._headers = headers
        self._upstream = upstream
        self._limits = limits
        self._deadline = time.monotonic() + timeout

    def document(self, url: str, *, catalog: bool) -> FoundDocument:
        """Return the card of the server at *url*, or the *catalog* of its site. Raises `InquiryError`."""
        places = places_of(url, catalog=catalog)
        accept = _CATALOG_TYPES if catalog else MEDIA_TYPE
        with DocumentLine(places[0].url, self._client, self._headers, self._upstream) as line:
            place, fetched = self._first(line, places, accept)
            etag = fetched.headers.get(b"etag")
            again = line.fetch(place.url, accept, self._deadline, etag=etag).status if etag else None
            return FoundDocument(place, fetched, again)

    def _first(
        self, line: DocumentLine, places: Sequence[DocumentPlace], accept: str
    ) -> tuple[DocumentPlace, FetchedDocument]:
        """Return the first of *places* that has a document."""
        fetched = line.fetch(places[0].url, accept, self._deadline)
        if fetched.status == 200:
            return places[0], fetched
        missing = fetched.status in _NOT_THERE
        for place in places[1:] if missing else ():
            other = self._document_at(line, place, accept)
            if other is not None:
                return place, other
        raise UnreachableError(f"HTTP {fetched.status}{': there is no such document' if missing else ''}")

    def _document_at(self, line: DocumentLine, place: DocumentPlace, accept: str) -> FetchedDocument | None:
        """Return the JSON at a less likely place; None without any. An MCP endpoint may answer with anything."""
        try:
            fetched = line.fetch(place.url, accept, self._deadline)
        except InquiryError:
            return None
        return fetched if fetched.status == 200 and b"json" in fetched.headers.get(b"content-type", b"") else None

    def opening(self, endpoint: str) -> tuple[str, dict[str, Any]]:
        """Return the revision and the first result of the server at *endpoint*. Raises `InquiryError`."""

        def opened() -> HttpLine:
            limit = self._limits.frame_bytes
            return HttpLine(endpoint, limit, self._client, self._headers, self._upstream)

        left = max(self._deadline - time.monotonic(), 0.001)
        with conversing(opened, _ignore, self._limits, left, client=self._client) as (asking, opening):
            return asking.revision, opening


def endpoint_of(card: Any, found: FoundDocument) -> str:
    """
    Return the MCP endpoint that a card is compared with; empty without one.

    A card at another place than the reserved one can name any URL. Only one at the origin of the card is asked:
    otherwise any document could make this machine send requests, and our headers, to others.
    """
    if found.place.endpoint:
        return found.place.endpoint
    remotes = card.get("remotes") if isinstance(card, dict) else None
    for remote in remotes if isinstance(remotes, list) else ():
        url = remote.get("url") if isinstance(remote, dict) and remote.get("type") == "streamable-http" else None
        if isinstance(url, str) and "{" not in url and is_inside(url, origin_of(url_of(found.place.url))):
            return url
    return ""


def _ignore(_: str) -> None:
    """Ignore log lines: other findings than those about the card are not the subject."""
