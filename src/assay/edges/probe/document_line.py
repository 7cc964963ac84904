"""
Fetch documents from a server: one GET each, bounded in size and time. Redirects are not followed.

It blocks: each call runs the event loop until the document is complete, or late.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Self

from assay.core.extensions.card_rules import DOCUMENT_BYTES
from assay.edges.probe.probe_client import probe_client
from assay.edges.probe.server_probe import InquiryError, LineError, UnreachableError
from assay.edges.upstream_client import DIRECTLY, HttpAnswer, url_of
from assay.edges.upstream_errors import BrokenError, plain, shown_url
from assay.settings.upstream_section import UpstreamSettings

_REDIRECTS: Final = range(300, 400)
_UNCHANGED: Final = 304


class FetchedDocument(NamedTuple):
    """A response; its content only if the status is 200."""

    url: str
    status: int
    headers: Mapping[bytes, bytes]
    """By their names in lower case."""
    content: bytes


class DocumentLine:
    """The connection to the host of one URL, for documents. `with` closes it."""

    def __init__(
        self,
        url: str,
        client: Mapping[str, str],
        headers: Sequence[tuple[str, str]] = (),
        upstream: UpstreamSettings = DIRECTLY,
    ) -> None:
        """
        *client* is our name, *headers* are added to every request, *upstream* has the settings of the connection.

        Raises `UnreachableError`.
        """
        self._client, self._own = probe_client(url, client, headers, upstream)
        self._loop = asyncio.new_event_loop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._loop.run_until_complete(self._client.close())
        finally:
            self._loop.close()

    def fetch(self, url: str, accept: str, deadline: float, *, etag: bytes | None = None) -> FetchedDocument:
        """
        Return what is at *url*, before *deadline* by `time.monotonic`. Raises `InquiryError`.

        With *etag* the server is asked for the document only if it has changed.
        """
        headers = {**self._own, b"accept": accept.encode()}
        if etag is not None:
            headers[b"if-none-match"] = etag

        async def bounded() -> FetchedDocument:
            async with asyncio.timeout(deadline - time.monotonic()):
                return await self._fetch(url, headers)

        try:
            return self._loop.run_until_complete(bounded())
        except TimeoutError:
            raise LineError("no response in time") from None
        except BrokenError as error:
            raise (UnreachableError if error.kind == "unreached" else LineError)(str(error)) from None

    async def _fetch(self, url: str, headers: Mapping[bytes, bytes]) -> FetchedDocument:
        async with self._client.ask("GET", url_of(url), list(headers.items())) as answer:
            if answer.status in _REDIRECTS and answer.status != _UNCHANGED:
                raise UnreachableError(f"HTTP {answer.status}: {_redirect(answer)}")
            content = await _content(answer) if answer.status == 200 else b""
            return FetchedDocument(url, answer.status, dict(reversed(answer.pairs)), content)


def _redirect(answer: HttpAnswer) -> str:
    place = shown_url((answer.header(b"location") or b"").decode("latin-1"))
    to = f"a redirect to {plain(place)}" if place else "a redirect"
    return f"{to}, which is not followed; give the URL of the document itself"


async def _content(answer: HttpAnswer) -> bytes:
    if (answer.header(b"content-encoding") or b"identity").strip().lower() != b"identity":
        raise InquiryError("the document is compressed, although that was not requested")
    kind = (answer.header(b"content-type") or b"").partition(b";")[0].strip().lower()
    if kind == b"text/event-stream":
        raise InquiryError("a stream of events, not a document")
    held = bytearray()
    async for chunk in answer.chunks():
        held += chunk
        if len(held) > DOCUMENT_BYTES:
            raise InquiryError(f"the document has more than {DOCUMENT_BYTES:,} bytes")
    return bytes(held)
