"""
The one HTTP client: requests to servers, issuers of keys and backends, over HTTP/1.1 connections that are kept.

It knows aiohttp, and nothing of MCP. Redirects are not followed, cookies are not kept, nothing is unpacked, and a body
is read only as far as the caller takes it. Errors contain no header value, password or query: those may be secrets.
"""

import asyncio
import os
import re
import select
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit
from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from multidict import CIMultiDict
from yarl import URL

from assay.edges.http.origin_check import leads_here
from assay.edges.upstream_errors import CONNECT, broken
from assay.settings.http_section import UpstreamSettings

Pairs = Sequence[tuple[bytes, bytes]]
Headed = CIMultiDict[str]
"""Headers of a request as the library takes them."""

IDLE_SECONDS: Final = 3.0
"""Seconds that an idle connection is kept: Node.js and uvicorn close theirs after 5."""

CONNECTIONS: Final = 256
"""Connections at once, unless the caller needs more; some systems let a process have 256 settings."""

WRITE: Final = 60.0
"""Seconds in which a server must take the next piece of a body."""

_PIECE: Final = 256 << 10
"""Bytes of a body that are written at once."""

_FIELD_BYTES: Final = 32 << 10
"""Bytes of one header of an answer, and of its status line. A session id may have 4 KB, a list of policies 16."""

_LONGEST_URL: Final = 64 << 10

_NUMBERS: Final = re.compile(r"[0-9]+(?:\.[0-9]+){3}")
"""What looks like an address of IPv4, and is asked of no resolver."""

_VISIBLE: Final = "".join(map(chr, range(0x21, 0x7F)))


DIRECTLY: Final = UpstreamSettings()
"""Public certificates, none of our own, no proxy."""


class ClientSetupError(ValueError):
    """Certificates or proxies that cannot be used. The text names settings and variables, not their values."""


def tls_context(settings: UpstreamSettings, *, environment: bool) -> ssl.SSLContext:
    """
    The context of verified TLS connections; with *environment*, `SSL_CERT_FILE` and `SSL_CERT_DIR` count.

    Raises `ClientSetupError`.
    """
    import certifi  # noqa: PLC0415 - only TLS needs it

    given = os.environ if environment else {}
    try:
        if settings.ca:
            context = ssl.create_default_context(cafile=settings.ca)
        elif given.get("SSL_CERT_FILE"):
            context = ssl.create_default_context(cafile=given["SSL_CERT_FILE"])
        elif given.get("SSL_CERT_DIR"):
            context = ssl.create_default_context(capath=given["SSL_CERT_DIR"])
        else:
            context = ssl.create_default_context(cafile=certifi.where())
    except (OSError, ValueError):
        which = "upstream.ca" if settings.ca else "SSL_CERT_FILE or SSL_CERT_DIR"
        raise ClientSetupError(f"the certificates of {which} cannot be read") from None
    if settings.certificate:
        try:
            # A key with a passphrase would ask for it on the terminal, where a client may be waiting.
            context.load_cert_chain(settings.certificate, settings.key or None, password=_no_passphrase)
        except (OSError, ValueError):
            raise ClientSetupError("upstream.certificate and upstream.key cannot be used") from None
    return context


def _no_passphrase() -> str:
    raise ValueError("the key has a passphrase")


class HttpAnswer:
    """The head of an answer; its body is read as the caller takes it."""

    __slots__ = ("_response", "pairs", "reason", "status")

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.reason = response.reason or ""
        self.pairs = [(name.lower(), value) for name, value in response.raw_headers]
        """Every header in its order, names in lower case."""

    def header(self, name: bytes) -> bytes | None:
        """The value of the header *name*; of one that came more than once, the first."""
        return next((value for given, value in self.pairs if given == name), None)

    async def piece(self) -> bytes:
        """The next bytes of the body as they come, empty at its end. Raises `BrokenError` where it breaks off."""
        content = self._response.content
        try:
            piece = await content.readany()
            if not piece:
                self._check_end()
        except (aiohttp.ClientError, OSError) as error:
            # The library prefers the error to what came before it, and the last event of a stream would be lost.
            if left := content._read_nowait(-1):
                return left
            raise broken(error) from None
        return piece

    @property
    def is_whole(self) -> bool:
        """Whether nothing more follows the last piece; False if that is not known yet."""
        return self._response.content.at_eof()

    async def chunks(self) -> AsyncIterator[bytes]:
        """The pieces of the body, until its end."""
        while piece := await self.piece():
            yield piece

    def _check_end(self) -> None:
        """Raise what the connection broke off with: the library takes a reset for the end of a body without length."""
        protocol = getattr(self._response, "_protocol", None)
        error = protocol.exception() if protocol is not None else None
        if isinstance(error, aiohttp.ClientOSError):
            raise error

    def close(self) -> None:
        """Close the connection, unless the whole body was read and the connection serves others again."""
        self._response.close()


class _Body(aiohttp.Payload):
    """A body that reports when it is written. aiohttp's own for bytes warns of every one above a megabyte."""

    _autoclose = True

    def __init__(self, value: bytes, sent: Callable[[], None] | None) -> None:
        super().__init__(value, content_type="application/json")
        self._size = len(value)
        self._sent = sent

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Required by the base class."""
        return str(self._value, encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Write all of it."""
        await self.write_with_length(writer, None)

    async def write_with_length(self, writer: AbstractStreamWriter, _: int | None) -> None:
        """Write all of it, in pieces; each must be taken within `WRITE` seconds."""
        value = self._value
        if len(value) <= _PIECE:
            await writer.write(value)
        else:
            for at in range(0, len(value), _PIECE):
                async with asyncio.timeout(WRITE):
                    await writer.write(value[at : at + _PIECE])
                    await writer.drain()
        if self._sent is not None:
            self._sent()


class _Connector(aiohttp.TCPConnector):
    """
    Reuses no connection on which something came unasked: a response too many, or the end.

    The library would parse it as the response to the next request, which may be that of another client.
    """

    async def _get(self, key: Any, traces: Any) -> Any:
        while (found := await super()._get(key, traces)) is not None:
            protocol = found.protocol
            if protocol is not None and not protocol.should_close:
                transport = protocol.transport
                if transport is not None and not _is_readable(transport):
                    return found
            found.close()
        return None


def _is_readable(transport: asyncio.BaseTransport) -> bool:
    """Whether a socket has bytes, or its end, that the event loop has not read yet."""
    number = transport.get_extra_info("socket").fileno()
    if not hasattr(select, "poll"):
        return bool(select.select([number], [], [], 0)[0])
    waiting = select.poll()
    waiting.register(number, select.POLLIN)
    return bool(waiting.poll(0))


class UpstreamClient:
    """A pool of connections. Made anywhere; used and closed in one event loop."""

    __slots__ = ("_connections", "_context", "_proxy", "_proxy_headers", "_session", "_where")

    def __init__(
        self,
        url: str,
        settings: UpstreamSettings = DIRECTLY,
        *,
        environment: bool = True,
        connections: int = CONNECTIONS,
        where: str = "the server",
    ) -> None:
        """
        Requests go to the host of *url*, which errors call *where*.

        With *environment*, its certificates count where *settings* have none. Neither those nor its proxies count for
        this machine. Raises `ClientSetupError`.
        """
        self._where = where
        parts = urlsplit(url)
        elsewhere = not leads_here(parts.hostname or "")
        self._context: ssl.SSLContext | bool = True
        if parts.scheme == "https":
            self._context = tls_context(settings, environment=environment and elsewhere)
        on = settings.proxies and elsewhere
        self._proxy, self._proxy_headers = _proxy_for(parts.scheme, parts.hostname or "") if on else (None, None)
        self._connections = connections
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def ask(
        self,
        method: str,
        url: URL,
        pairs: Pairs,
        body: bytes | None = None,
        sent: Callable[[], None] | None = None,
    ) -> AsyncIterator[HttpAnswer]:
        """Send a request, call *sent* when it is written, and yield the answer. Raises `BrokenError`."""
        answer = await self.answer(method, url, pairs, body, sent)
        try:
            yield answer
        finally:
            answer.close()

    async def answer(
        self,
        method: str,
        url: URL,
        pairs: Pairs | Headed,
        body: bytes | None = None,
        sent: Callable[[], None] | None = None,
    ) -> HttpAnswer:
        """Send a request and return the head of the answer, which the caller has to close. Raises `BrokenError`."""
        try:
            response = await self._opened().request(
                method,
                url,
                data=None if body is None else _Body(body, sent),
                headers=pairs if isinstance(pairs, CIMultiDict) else headed_by(pairs),
                allow_redirects=False,
                proxy=self._proxy,
                proxy_headers=self._proxy_headers,
            )
        except (aiohttp.ClientError, OSError, ValueError) as error:
            # ValueError: names that cannot be encoded, headers that cannot be sent.
            raise broken(error, self._where) from None
        return HttpAnswer(response)

    async def close(self) -> None:
        """End every connection."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            # A session belongs to the loop that it is made in, so it is made with the first request.
            connector = _Connector(limit=self._connections, keepalive_timeout=IDLE_SECONDS, ssl=self._context)
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT),
                skip_auto_headers=("User-Agent", "Accept", "Content-Type"),
                auto_decompress=False,
                trust_env=False,
                max_line_size=_FIELD_BYTES,
                max_field_size=_FIELD_BYTES,
            )
            # A request that may have reached the server is never sent twice.
            self._session._retry_connection = False
        return self._session


def headed_by(pairs: Pairs) -> Headed:
    """Return *pairs* as the library takes them; for a client that sends the same ones again and again."""
    made: CIMultiDict[str] = CIMultiDict()
    for name, value in pairs:
        made.add(name.decode("ascii"), _text(value))
    # What is compressed cannot be judged, and a few bytes can unpack to gigabytes.
    made["Accept-Encoding"] = "identity"
    return made


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        # The library writes UTF-8 only.
        return value.decode("latin-1")


def url_of(text: str) -> URL:
    """The URL that *text* spells, as it is sent: what is quoted in it stays as it is. Raises `ValueError`."""
    if len(text) > _LONGEST_URL or not text.isprintable():
        raise ValueError("not a URL")
    found = URL(text, encoded=text.isascii() and " " not in text).with_fragment(None)
    if _NUMBERS.fullmatch(found.raw_host or ""):
        ip_address(found.raw_host or "")
    return found


def with_query(url: URL, query: bytes) -> URL:
    """*url* with *query* behind its own."""
    more = quote(query, safe=_VISIBLE)
    text = str(url)
    return URL(f"{text}{'&' if url.raw_query_string else '?'}{more}", encoded=True)


def with_path(url: URL, path: str) -> URL:
    """The URL of *path*, which may have a query, at the same origin."""
    return URL(f"{origin_of(url)}{quote(path, safe=_VISIBLE)}", encoded=True)


def origin_of(url: URL) -> str:
    """Scheme, host and port of *url*, without a port that the scheme implies."""
    return f"{url.scheme}://{url.host_port_subcomponent}"


def _proxy_for(scheme: str, host: str) -> tuple[URL | None, CIMultiDict[str] | None]:
    """The proxy of the environment for *scheme* and *host*, and the headers that it needs."""
    given = getproxies_environment()
    if host and proxy_bypass_environment(host, given):
        return None, None
    text = given.get(scheme) or given.get("all") or ""
    if not text:
        return None, None
    try:
        proxy = URL(text if "://" in text else f"http://{text}")
    except ValueError:
        proxy = URL()
    if proxy.scheme not in ("http", "https") or not proxy.host:
        raise ClientSetupError("the proxy that HTTPS_PROXY, HTTP_PROXY or ALL_PROXY names cannot be used")
    headers: CIMultiDict[str] = CIMultiDict()
    if proxy.user is not None:
        token = f"{unquote(proxy.raw_user or '')}:{unquote(proxy.raw_password or '')}"
        headers["Proxy-Authorization"] = "Basic " + b64encode(token.encode()).decode()
    return proxy.with_user(None), headers


def objection_to(url: str) -> str | None:
    """Why no server can be reached at *url*; None if one may."""
    try:
        parts = urlsplit(url)
        _ = parts.port
        usable: Any = url_of(url).host
    except (ValueError, UnicodeError):
        return "it is no URL"
    if parts.scheme not in ("http", "https"):
        return "it begins with neither http:// nor https://"
    return None if parts.hostname and usable else "it names no host"
