"""
A server elsewhere, over Streamable HTTP: requests to it, and what it answers, read piece by piece and within bounds.

It knows HTTP and its failures, and words them for people; what a message means is for others. Nothing that it says has
a header's value, a password or a query in it: there may be secrets in those.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, Final

from assay.base.server_names import name_of_url
from assay.edges.http_client import DIRECTLY, ClientSetupError, HttpAnswer, HttpClient, Pairs, url_of
from assay.edges.upstream_errors import BrokenError, first_line, plain, shown_url
from assay.settings.upstream_section import UpstreamSettings

_FAILURE: Final = 64 << 10
_FAILURE_SECONDS: Final = 5.0
"""Bytes of a failure's body that are read, and how long: enough for an error, or for the first line of a page."""

_NAMED: Final = ((b"user-agent", b"assay"),)

_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"


class Lost(Exception):  # noqa: N818 - it is told to a person, as it is
    """No answer, and why: in words, with the canonical code for it, and what else there is to know."""

    def __init__(self, why: str, code: str = "UPSTREAM_FAILURE", **data: Any) -> None:
        super().__init__(why)
        self.why = why
        self.code = code
        self.data: dict[str, Any] = data


class Reply:
    """The head of an answer, and what follows."""

    def __init__(self, answer: HttpAnswer) -> None:
        self._answer = answer
        self.status = answer.status
        self.type: str = (self.header("content-type") or "").partition(";")[0].strip().lower()

    @property
    def good(self) -> bool:
        """Whether the request was taken."""
        return 200 <= self.status < 300

    @property
    def is_json(self) -> bool:
        """Whether a message follows."""
        return self.type == _JSON

    @property
    def is_events(self) -> bool:
        """Whether events follow."""
        return self.type == _EVENTS

    @property
    def barred(self) -> dict[str, str]:
        """What a server that lets nobody in wants to see, as it is told in `data`."""
        wanted = plain(self.header("www-authenticate") or "") if self.status in (401, 403) else ""
        return {"wwwAuthenticate": wanted} if wanted else {}

    def header(self, name: str) -> str | None:
        """The value of the header *name*."""
        value = self._answer.header(name.encode())
        return None if value is None else value.decode("latin-1")

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it comes. Raises `Lost` where it breaks off."""
        if (self.header("content-encoding") or "identity").strip().lower() != "identity":
            # A few bytes can unpack to gigabytes; and we have asked for none of it.
            raise Lost("its answer is compressed, although that was not requested", "UPSTREAM_INVALID")
        try:
            async for chunk in self._answer.chunks():
                yield chunk
        except BrokenError as error:
            raise Lost(str(error)) from None

    async def body(self, limit: int) -> bytes:
        """The whole body; of one that is longer than *limit*, one byte more than that. Of a failure, its beginning."""
        if self.good:
            return await self._body(limit, [])
        pieces: list[bytes] = []
        # Whatever comes of it, the status is known already.
        with suppress(Lost, TimeoutError):
            async with asyncio.timeout(_FAILURE_SECONDS):
                await self._body(min(limit, _FAILURE), pieces)
        return b"".join(pieces)[:_FAILURE]

    async def _body(self, limit: int, pieces: list[bytes]) -> bytes:
        held = 0
        async with aclosing(self.chunks()) as chunks:
            async for chunk in chunks:
                pieces.append(chunk)
                held += len(chunk)
                if held > limit:
                    break
        return b"".join(pieces)[: limit + 1]

    def failure(self, body: bytes) -> Lost:
        """What an answer with this *body* says that is none to pass on."""
        said = first_line(body)
        reason = f"{self.status} {plain(self._answer.reason)}".strip()
        if self.status in (401, 403):
            return self._barred(reason, said)
        if 300 <= self.status < 400:
            where = shown_url(self.header("location") or "")
            why = f"it redirects{f' to {where}' if where else ''} ({reason}), which is not followed"
            return Lost(why, status=self.status)
        if self.good and not body:
            return Lost(f"it answered {reason}, and nothing else", "UPSTREAM_INVALID", status=self.status)
        if self.good:
            what = f"the content type {self.type[:60]}" if self.type else "no content type"
            return Lost(f"it answered {reason} with {what}{_quoted(said)}", "UPSTREAM_INVALID", status=self.status)
        return Lost(f"it answered {reason}{_quoted(said)}", status=self.status)

    def _barred(self, reason: str, said: str) -> Lost:
        """Whoever asks is not let in: what the server wants to see is the most useful thing to know."""
        known = self.barred
        asks = f"; it asks for {known['wwwAuthenticate']}" if known else ""
        return Lost(f"it answered {reason}{asks}{_quoted(said)}", status=self.status, **known)


class Upstream:
    """One server elsewhere."""

    def __init__(
        self,
        url: str,
        headers: Sequence[tuple[str, str]] = (),
        settings: UpstreamSettings = DIRECTLY,
    ) -> None:
        """
        *headers* go with everything. *settings* say how the server is reached.

        Raises `Lost` if those cannot be used.
        """
        self._url = url_of(url)
        self._own = [
            (b"user-agent", b"assay"),
            *((name.lower().encode("ascii"), value.encode()) for name, value in headers),
        ]
        try:
            # The name has no path, which may hold a secret.
            self._client = HttpClient(url, settings, where=name_of_url(url))
        except ClientSetupError as error:
            raise Lost(str(error)) from None

    @asynccontextmanager
    async def post(self, frame: bytes, headers: Pairs, sent: Callable[[], None]) -> AsyncIterator[Reply]:
        """Sends *frame*, tells when it is *sent*, and gives the answer. Raises `Lost`."""
        whole = [
            *headers,
            (b"content-type", _JSON.encode()),
            (b"accept", f"{_JSON}, {_EVENTS}".encode()),
        ]
        async with self._reply("POST", whole, frame, sent) as reply:
            yield reply

    @asynccontextmanager
    async def get(self, headers: Pairs) -> AsyncIterator[Reply]:
        """Asks for a stream. Raises `Lost`."""
        async with self._reply("GET", [*headers, (b"accept", _EVENTS.encode())]) as reply:
            yield reply

    async def delete(self, headers: Pairs) -> int:
        """Ends a session; the status. Raises `Lost`."""
        async with self._reply("DELETE", headers) as reply:
            return reply.status

    async def close(self) -> None:
        """Ends all connections."""
        await self._client.close()

    @asynccontextmanager
    async def _reply(
        self, method: str, headers: Pairs, frame: bytes | None = None, sent: Callable[[], None] | None = None
    ) -> AsyncIterator[Reply]:
        named = {name for name, _ in headers}
        pairs = [*(pair for pair in self._own if pair[0] not in named), *headers]
        try:
            answer = await self._client.answer(method, self._url, pairs, frame, sent)
        except BrokenError as error:
            raise Lost(str(error)) from None
        try:
            yield Reply(answer)
        finally:
            answer.close()


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _quoted(said: str) -> str:
    return f": {said}" if said else ""
