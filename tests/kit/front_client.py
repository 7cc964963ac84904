"""A client over Streamable HTTP: any number of messages at once, and all that comes of them in one queue."""

import asyncio
import json
import ssl
import threading
from collections import deque
from collections.abc import AsyncIterator, Coroutine
from contextlib import suppress
from typing import Any

import httpx

from assay.spec.revisions import handshake
from kit.http_client import BOTH, modern

SECONDS = 60
"""What anything here may take."""

TRUSTS_NONE = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""No test here speaks TLS, and each client would read all certificates of the authorities, which takes 20 ms."""

SESSION = "mcp-session-id"
GONE = {404, 503}
"""What a request gets when the server of its session has ended, or is ending."""


class FrontClient:
    """One client, with one session at a time."""

    def __init__(self, url: str, revision: str) -> None:
        self.url = url
        self.revision = revision
        self.broken: list[str] = []
        """What must not happen."""
        self.history: list[bytes] = []
        """All that has come to requests."""
        self.beside: list[bytes] = []
        """The bodies that came to all else."""
        self.may_break = False
        """Whether a response may break off, as under audit when the server ends."""
        self._session: str | None = None
        self._lines: deque[bytes] = deque()
        self._running: set[Any] = set()
        self._news = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._client = httpx.AsyncClient(
            timeout=SECONDS,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=8),
            trust_env=False,
            verify=TRUSTS_NONE,
        )

    # ── from outside ─────────────────────────────────────────────────────────────────────────────────────────────────

    def send(self, lines: list[bytes]) -> None:
        """Says *lines*, all at once; what is no request is waited for, as every client does."""
        for line in lines:
            body = line.removesuffix(b"\n")
            ident = asked(body)
            posting = self._begin(self._post(body, ident))
            if ident is None:
                posting.result(SECONDS)

    def receive(self) -> list[bytes]:
        """What has come, for which it is waited; nothing if nothing is open any more."""
        with self._news:
            assert self._news.wait_for(lambda: self._lines or not self._running, SECONDS), "nothing came"
            found = list(self._lines)
            self._lines.clear()
        assert not self.broken, self.broken
        return found

    def leave(self) -> None:
        """Ends the session, if there is one."""
        if self._session is not None:
            self._begin(self._delete()).result(SECONDS)

    @property
    def in_session(self) -> bool:
        """Whether there is one."""
        return self._session is not None

    def forget(self) -> None:
        """There is no session any more."""
        self._session = None

    def close(self) -> None:
        """Ends all of it."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(SECONDS)
        self._loop.close()

    # ── in its thread ────────────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self, doing: Coroutine[Any, Any, None]) -> Any:
        running = asyncio.run_coroutine_threadsafe(doing, self._loop)
        with self._news:
            self._running.add(running)
        running.add_done_callback(self._done)
        return running

    def _done(self, running: Any) -> None:
        with self._news:
            self._running.discard(running)
            if not running.cancelled() and running.exception() is not None:
                self.broken.append(repr(running.exception()))
            self._news.notify_all()

    def _got(self, line: bytes) -> None:
        with self._news:
            self._lines.append(line)
            self.history.append(line)
            self._news.notify_all()

    def _headers(self, body: bytes) -> Any:
        if not handshake(self.revision):
            return modern(body)
        named = {} if self._session is None else {SESSION: self._session}
        if named and self.revision >= "2025-06-18":
            named["mcp-protocol-version"] = self.revision
        return {**BOTH, **named}

    async def _post(self, body: bytes, ident: str | None) -> None:
        async with self._client.stream("POST", self.url, content=body, headers=self._headers(body)) as response:
            if SESSION in response.headers:
                self._session = response.headers[SESSION]
            if response.headers.get("content-type") == "text/event-stream":
                try:
                    async for line in events(response):
                        self._got(line)
                except (httpx.ReadError, httpx.RemoteProtocolError):
                    if not self.may_break:
                        raise
            else:
                text = await response.aread()
                if ident is not None:
                    self._got(named(text, ident, response.status_code) + b"\n")
                elif text:
                    self.beside.append(text)
            if response.status_code == 202 and b"notifications/initialized" in body:
                self._begin(self._listen())

    async def _listen(self) -> None:
        """What the server says by itself, until it ends, or breaks off."""
        headers = {**self._headers(b""), "accept": "text/event-stream"}
        with suppress(httpx.ReadError, httpx.RemoteProtocolError):
            async with self._client.stream("GET", self.url, headers=headers) as response:
                async for line in events(response):
                    self._got(line)

    async def _delete(self) -> None:
        response = await self._client.delete(self.url, headers=self._headers(b""))
        assert response.status_code in {200, 404, 502}, response

    async def _end(self) -> None:
        for each in asyncio.all_tasks():
            if each is not asyncio.current_task():
                each.cancel()
        await self._client.aclose()


def asked(body: bytes) -> str | None:
    """The id of a request, as JSON; None for anything else."""
    try:
        message = json.loads(body)
    except ValueError:
        return None
    if not isinstance(message, dict) or "method" not in message or type(message.get("id")) not in (str, int):
        return None
    return json.dumps(message["id"])


def named(text: bytes, ident: str, status: int) -> bytes:
    """An answer as it is; an error without an id is one of the request that it came to."""
    try:
        message = json.loads(text)
    except ValueError:
        raise AssertionError(f"{status}: {text!r}") from None
    if "error" not in message or message.get("id") is not None:
        return text
    code = -31011 if status in GONE else message["error"]["code"]
    return json.dumps({**message, "id": json.loads(ident), "error": {**message["error"], "code": code}}).encode()


async def events(response: httpx.Response) -> AsyncIterator[bytes]:
    """What events carry, each as a line; those that carry nothing, and one without an end, are left out."""
    rest = b""
    async for data in response.aiter_raw():
        *blocks, rest = (rest + data).replace(b"\r\n", b"\n").split(b"\n\n")
        for block in blocks:
            fields = [
                line.removeprefix(b"data:").removeprefix(b" ") for line in block.split(b"\n") if line[:5] == b"data:"
            ]
            if text := b"\n".join(fields):
                yield text + b"\n"
