"""
A server elsewhere, over Streamable HTTP: requests to it, and what it answers, read piece by piece and within bounds.

It knows HTTP and its failures, and words them for people; what a message means is for others. Nothing that it says has
a header's value, a password or a query in it: there may be secrets in those.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from assay.base.server_names import name_of_url
from assay.edges.guard.failing import CONNECT, first_line, plain, reason
from assay.edges.http.origin_check import leads_here

WRITE: Final = 60.0
"""Seconds in which some bytes of a message must be taken."""

KEPT: Final = 4.0
"""Seconds that an idle connection is kept: uvicorn closes its own after 5, and a request must not run into that."""

_FAILURE: Final = 64 << 10
_FAILURE_SECONDS: Final = 5.0
"""Bytes of a failure's body that are read, and how long: enough for an error, or for the first line of a page."""

_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"

Pairs = list[tuple[bytes, bytes]]


class Lost(Exception):  # noqa: N818 - it is told to a person, as it is
    """No answer, and why: in words, with the canonical code for it, and what else there is to know."""

    def __init__(self, why: str, code: str = "UPSTREAM_FAILURE", **data: Any) -> None:
        super().__init__(why)
        self.why = why
        self.code = code
        self.data: dict[str, Any] = data


class Reply:
    """The head of an answer, and what follows."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self.status = response.status_code
        self.type: str = response.headers.get("content-type", "").partition(";")[0].strip().lower()

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
        value: str | None = self._response.headers.get(name)
        return value

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it comes. Raises `Lost` where it breaks off."""
        if self._response.headers.get("content-encoding", "identity").lower() != "identity":
            # A few bytes can unpack to gigabytes; and we have asked for none of it.
            raise Lost("its answer is compressed, although that was not requested", "UPSTREAM_INVALID")
        with _worded():
            async for chunk in self._response.aiter_raw():
                yield chunk

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
        reason = f"{self.status} {self._response.reason_phrase}".strip()
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

    def __init__(self, url: str, headers: Sequence[tuple[str, str]] = ()) -> None:
        """
        *headers* go with everything. Proxies and certificates of the environment count, but not for this machine.

        Raises `Lost` if those are of no use.
        """
        self._url = url
        # Without a path, which may hold a secret.
        self._where = name_of_url(url)
        try:
            self._client = httpx.AsyncClient(
                headers=[(name.encode("ascii"), value.encode()) for name, value in headers],
                timeout=httpx.Timeout(None, connect=CONNECT, write=WRITE),
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=KEPT),
                follow_redirects=False,
                trust_env=not leads_here(urlsplit(url).hostname or ""),
            )
        except (ImportError, OSError, ValueError, httpx.InvalidURL):
            # What they say may have the password of a proxy in it.
            why = "the proxies or certificates that the environment names cannot be used"
            raise Lost(f"{why} (HTTPS_PROXY, ALL_PROXY, SSL_CERT_FILE and the like)") from None
        # What we have not asked for is not understood: nothing is unpacked here.
        self._client.headers["accept-encoding"] = "identity"

    @asynccontextmanager
    async def post(self, frame: bytes, headers: Pairs, sent: Callable[[], None]) -> AsyncIterator[Reply]:
        """Sends *frame*, tells when it is *sent*, and gives the answer. Raises `Lost`."""

        async def content() -> AsyncIterator[bytes]:
            yield frame
            sent()

        whole = [
            *headers,
            (b"content-type", _JSON.encode()),
            (b"content-length", b"%d" % len(frame)),
            (b"accept", f"{_JSON}, {_EVENTS}".encode()),
        ]
        async with self._answer("POST", whole, content()) as reply:
            yield reply

    @asynccontextmanager
    async def get(self, headers: Pairs) -> AsyncIterator[Reply]:
        """Asks for a stream. Raises `Lost`."""
        async with self._answer("GET", [*headers, (b"accept", _EVENTS.encode())], None) as reply:
            yield reply

    async def delete(self, headers: Pairs) -> int:
        """Ends a session; the status. Raises `Lost`."""
        async with self._answer("DELETE", headers, None) as reply:
            return reply.status

    async def close(self) -> None:
        """Ends all connections."""
        await self._client.aclose()

    @asynccontextmanager
    async def _answer(self, method: str, headers: Pairs, content: AsyncIterator[bytes] | None) -> AsyncIterator[Reply]:
        with _worded(self._where):
            async with AsyncExitStack() as stack:
                asking = self._client.stream(method, self._url, headers=headers, content=content)
                try:
                    response = await stack.enter_async_context(asking)
                except AttributeError:
                    # With uvloop, one that is reset as soon as it is made leaves the library no socket to look at.
                    raise Lost(f"cannot connect to {self._where}: it resets connections at once") from None
                yield Reply(response)


class _worded:  # noqa: N801 - a context like those of contextlib
    """Turns failures of HTTP into `Lost`; *where* is the address that was tried."""

    def __init__(self, where: str = "the server") -> None:
        self._where = where

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, httpx.HTTPError | httpx.InvalidURL | httpx.StreamError | OSError):
            raise Lost(reason(error, self._where)) from None


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _quoted(said: str) -> str:
    return f": {said}" if said else ""


def shown_url(url: str) -> str:
    """*url* without name, password, query and fragment; of what is no URL, as much as cannot be a password."""
    try:
        parts = urlsplit(url)
        _ = parts.port
        known = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
    except ValueError:
        # A password with a slash in it looks like a port and a path.
        return ""
    return plain(known if parts.netloc else known.rpartition("@")[2])


def objection_to(url: str) -> str | None:
    """Why no server can be reached at *url*; None if one may."""
    try:
        parts = urlsplit(url)
        _ = parts.port
        httpx.URL(url)
    except (ValueError, httpx.InvalidURL):
        return "it is no URL"
    if parts.scheme not in ("http", "https"):
        return "it begins with neither http:// nor https://"
    return None if parts.hostname else "it names no host"
