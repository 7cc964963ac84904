"""
A server at a URL, as the guard asks it: one request out, one answer or stream back.

Knows HTTP and nothing of MCP. Redirects are not followed, cookies are not kept, and nothing is read ahead of whoever
takes it.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import httpx

from assay.edges.guard.failing import CONNECT, reason
from assay.edges.guard.http_to_http.forwarding import UpstreamHead, end_to_end, read_upstream_head
from assay.edges.http.origin_check import leads_here
from assay.edges.http.replies import Pairs

IDLE_SECONDS: Final = 3.0
"""How long a connection is kept for the next request: less than the 5 seconds after which Node.js and uvicorn close."""

IDLE_CONNECTIONS: Final = 100

_OF_ANSWERS: Final = frozenset({b"content-length", b"date"})
"""Headers of an answer that are written anew, whatever the mode."""

_NOTHING: Final = httpx.ByteStream(b"")

_UNPACKED: Final = (b"accept-encoding", b"identity")
"""What is compressed cannot be judged."""

_SHARING: Final = b"access-control-"
"""What tells a browser which pages may read an answer: that depends on where we are, not where the server is."""


class NoAnswerError(Exception):
    """Why there is no answer."""


class BrokenError(NoAnswerError):
    """The same, for want of a connection: there was none, or it broke off."""


class Answered(NamedTuple):
    """The head of an answer; its body is still to come."""

    head: UpstreamHead
    pairs: Pairs
    """Its end-to-end headers, names in lower case: what goes to a client under audit."""
    chunks: AsyncIterator[bytes]
    """Raises `NoAnswerError` where it breaks off."""


class Target:
    """One server."""

    __slots__ = (
        "_client",
        "_own",
        "_replaced",
        "_url",
        "challenged",
        "documents",
        "has_query",
        "metadata",
        "origin",
        "path",
    )

    def __init__(self, url: str, headers: Pairs = ()) -> None:
        """
        *headers*, names in lower case, are added to each request, in place of the client's own of that name.

        Raises `ValueError` for what is no URL of a server.
        """
        self._url = _parsed(url)
        self.origin = f"{self._url.scheme}://{self._url.netloc.decode()}"
        self.path = self._url.path
        self.has_query = bool(self._url.query)
        """Whether the operator's URL has a query: then no client may add to it."""
        self.documents = 0
        """How many documents beside the endpoint are being asked for."""
        self.challenged = False
        """Whether it has asked a client to show who it is."""
        self.metadata: str | None = None
        """Where it has said that metadata of its resource are: a path, perhaps with a query."""
        self._own = list(headers)
        self._replaced = {name.replace(b"_", b"-") for name, _ in headers}
        self._client = httpx.AsyncClient(
            # A proxy of the environment is for hosts elsewhere.
            trust_env=not leads_here(self._url.host),
            timeout=httpx.Timeout(None, connect=CONNECT),
            limits=httpx.Limits(
                max_connections=None, max_keepalive_connections=IDLE_CONNECTIONS, keepalive_expiry=IDLE_SECONDS
            ),
            follow_redirects=False,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        )

    @asynccontextmanager
    async def ask(
        self, method: str, pairs: Pairs, query: bytes = b"", body: bytes | None = None, path: str | None = None
    ) -> AsyncIterator[Answered]:
        """The answer to a request with these headers; at the URL, or at *path* of its origin."""
        url = self._url if path is None else httpx.URL(self.origin + path)
        if query and path is None:
            url = url.copy_with(query=b"&".join(filter(None, (url.query, query))))
        request = httpx.Request(method, url, headers=[*pairs, _UNPACKED], content=body)
        try:
            response = await self._client.send(request, stream=True)
        except httpx.HTTPError as error:
            raise BrokenError(_reason(error)) from None
        except AttributeError:
            # With uvloop, a connection that is reset as soon as it is made leaves the library no socket to look at.
            raise BrokenError("cannot connect to the server: it resets connections at once") from None
        except (OSError, ValueError) as error:
            # Certificates, names that cannot be encoded: httpx does not dress up everything.
            raise BrokenError(f"cannot connect to the server: {type(error).__name__}") from None
        try:
            if not 200 <= response.status_code < 600:
                raise NoAnswerError(f"its answer has the HTTP status {response.status_code}, which is none")
            every = [(name.lower(), value) for name, value in response.headers.raw]
            shown = [pair for pair in end_to_end(every, _OF_ANSWERS) if not pair[0].startswith(_SHARING)]
            yield Answered(read_upstream_head(response.status_code, every), shown, _chunks(response))
        finally:
            await response.aclose()
            # The library keeps an answer, its request and that one's body in a cycle: they would stay until the
            # collector comes by, which goes by the number of objects, not by their size.
            response.stream = request.stream = _NOTHING

    def with_own(self, pairs: Pairs) -> list[tuple[bytes, bytes]]:
        """
        These headers, with those of the operator in place of any that have the same name.

        To servers behind CGI or WSGI a name with underscores is the same as one with hyphens.
        """
        return [*(pair for pair in pairs if pair[0].replace(b"_", b"-") not in self._replaced), *self._own]

    async def close(self) -> None:
        """Ends every connection."""
        await self._client.aclose()


def _parsed(url: str) -> httpx.URL:
    try:
        split = urlsplit(url)
        found = httpx.URL(url)
    except (httpx.InvalidURL, ValueError, UnicodeError):
        raise ValueError("no URL") from None
    if found.scheme not in {"http", "https"} or not found.host:
        raise ValueError("expected http://… or https://…")
    if split.username is not None or split.password is not None:
        raise ValueError("a password in a URL is seen by everyone; give a header")
    return found.copy_with(fragment=None)


async def _chunks(response: httpx.Response) -> AsyncIterator[bytes]:
    try:
        async for chunk in response.aiter_raw():
            yield chunk
    except httpx.HTTPError as error:
        raise BrokenError(_reason(error)) from None


def _reason(error: httpx.HTTPError) -> str:
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return reason(error)
    if isinstance(error, httpx.ProtocolError):
        return "its answer broke off, or is no HTTP"
    return "the connection broke off"
