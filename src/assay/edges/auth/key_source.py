"""
Where the public keys come from, and when they are looked for again. The only code here that waits.

There is one request at a time, however many wait for it; what cannot be had leaves the keys as they were. A request has
a task of its own: the client whose token began it may go away, and the others still get what they wait for.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from math import inf
from typing import Final

import httpx

from assay.edges.auth.keyset import KeySet, read_set

TIMEOUT: Final = 5.0
"""Seconds for all of a request. Whoever waits for it has a client waiting, too."""

SET_BYTES: Final = 256 << 10
"""What is read of a set of keys. Real ones have 1 to 20 kB."""

HOUR: Final = 3600.0
"""Seconds until keys are looked for again, which is how long a withdrawn key goes on to be trusted."""

AGAIN: Final = 30.0
"""
Seconds between two requests at least, so that tokens with made-up keys do not become a flood for the issuer; and how
long a new key may go unknown.
"""

SOON: Final = 5.0
"""The same while there are no keys at all: an issuer that starts together with us is there in a moment."""

Fetch = Callable[[], Awaitable[bytes]]
Log = Callable[[str], None]


class KeysUnavailableError(Exception):
    """Why there are no keys to be had, in words for the log: no more of an address than its place."""


class KeySource:
    """The keys of an issuer, as new as they need to be. *withdrawn* is called when a key is gone."""

    def __init__(
        self, fetch: Fetch, place: str, *, clock: Callable[[], float], log: Log, withdrawn: Callable[[], None]
    ) -> None:
        self.keys: KeySet | None = None
        """None until there are some."""
        self._fetch = fetch
        self._place = place
        self._clock = clock
        self._log = log
        self._withdrawn = withdrawn
        self._tried = -inf
        self._succeeded = -inf
        self._failure = ""
        self._task: asyncio.Task[None] | None = None

    def is_at_rest(self) -> bool:
        """Whether `current` would give what is here already, without a look or a wait."""
        return self.keys is not None and (self._is_fresh() or not (self._may_try() or self._is_awaited()))

    async def current(self) -> KeySet | None:
        """The keys, not older than an hour if that can be had; None if there are none."""
        if not self._is_fresh():
            if self._may_try():
                self._begin()
            if self._is_awaited():
                await self._end()
        return self.keys

    async def newer(self) -> KeySet | None:
        """The keys, for somebody who misses one: asked for again if that was not done just now."""
        if self._may_try():
            self._begin()
        await self._end()
        return self.keys

    def take(self, body: bytes) -> None:
        """Takes the keys in *body*; raises `KeysUnavailableError` if it is no set of keys."""
        found, before = read_set(body), self.keys
        if found is None:
            raise KeysUnavailableError("not a JSON Web Key Set")
        self._tried = self._succeeded = self._clock()
        self.keys = found
        if before != found or self._failure:
            unusable = f" ({found.unusable} more are unusable)" if found.unusable else ""
            self._log(f"auth: {len(found.keys)} keys from {self._place}{unusable}")
        self._failure = ""
        if before is not None and not found.has_all_of(before):
            self._withdrawn()

    def _is_fresh(self) -> bool:
        return _is_within(HOUR, self._succeeded, self._clock())

    def _may_try(self) -> bool:
        pause = SOON if self.keys is None else AGAIN
        return not self._is_under_way() and not _is_within(pause, self._tried, self._clock())

    def _is_under_way(self) -> bool:
        return self._task is not None and not self._task.done()

    def _is_awaited(self) -> bool:
        # With keys in hand, nobody waits a second time for an issuer that did not answer the first time.
        return self._is_under_way() and (self.keys is None or not self._failure)

    def _begin(self) -> None:
        self._tried = self._clock()
        self._task = asyncio.get_running_loop().create_task(self._look(), name="auth: keys")

    async def _end(self) -> None:
        if self._task is not None and not self._task.done():
            await asyncio.shield(self._task)

    async def _look(self) -> None:
        try:
            async with asyncio.timeout(TIMEOUT):
                body = await self._fetch()
            self.take(body)
        except KeysUnavailableError as error:
            self._fail(str(error))
        except TimeoutError:
            self._fail("no answer in time")

    def _fail(self, reason: str) -> None:
        # Once, not every half minute.
        if reason != self._failure:
            kept = "the previous keys stay in use" if self.keys is not None else "no token can be verified"
            self._log(f"auth: no keys from {self._place}: {reason}; {kept}")
        self._failure = reason


def _is_within(seconds: float, since: float, now: float) -> bool:
    """A clock that was set back would stretch the time, so what lies in the future counts as long ago."""
    return 0 <= now - since < seconds


# ── from a file ──────────────────────────────────────────────────────────────────────────────────────────────────────


def read_file(path: str) -> bytes:
    """What the file holds; raises `KeysUnavailableError`."""
    try:
        with open(path, "rb") as file:
            body = file.read(SET_BYTES + 1)
    except OSError as error:
        raise KeysUnavailableError(os.strerror(error.errno) if error.errno else "cannot be read") from None
    _check_size(body)
    return body


def from_file(path: str) -> Fetch:
    """Reads a file, for whom nothing waits meanwhile."""

    async def fetch() -> bytes:
        return await asyncio.to_thread(read_file, path)

    return fetch


def _check_size(body: bytes | bytearray) -> None:
    if len(body) > SET_BYTES:
        raise KeysUnavailableError(f"more than {SET_BYTES >> 10} KiB")


# ── from a URL ───────────────────────────────────────────────────────────────────────────────────────────────────────

_HEADERS: Final = {
    "Accept": "application/jwk-set+json, application/json",
    # A few compressed bytes can unpack to gigabytes.
    "Accept-Encoding": "identity",
    "User-Agent": "assay",
}


def shown(place: str) -> str:
    """A file or URL as it may be told: in one line, and without what stands behind a question mark."""
    plain = (place.partition("?")[0] if "://" in place else place)[:200]
    return plain if plain.isprintable() else ascii(plain)[1:-1]


def from_url(url: str) -> Fetch:
    """
    Asks *url*, which is not allowed to point anywhere else; raises `KeysUnavailableError` at once if it is none.
    Proxies, certificates and a .netrc from the environment are left alone: a process that sets those
    could put in its own keys.
    """
    try:
        httpx.URL(url)
    except (httpx.InvalidURL, UnicodeError):
        raise KeysUnavailableError("not a valid URL") from None
    # Reads a file of certificates: better now than while somebody waits.
    context = httpx.create_ssl_context(trust_env=False) if url.startswith("https:") else False

    async def fetch() -> bytes:
        client = httpx.AsyncClient(verify=context, timeout=TIMEOUT, trust_env=False, follow_redirects=False)
        try:
            async with client, client.stream("GET", url, headers=_HEADERS) as response:
                return await _body(response)
        except httpx.ConnectError as error:
            raise KeysUnavailableError(f"no connection: {error}") from None
        except httpx.TimeoutException:
            raise KeysUnavailableError("no answer in time") from None
        except httpx.HTTPError:
            raise KeysUnavailableError("no HTTP response, or an incomplete one") from None
        except (OSError, ValueError) as error:
            # Certificates, names that cannot be encoded: httpx does not dress up everything.
            raise KeysUnavailableError(f"no connection: {type(error).__name__}") from None

    return fetch


async def _body(response: httpx.Response) -> bytes:
    if response.status_code != 200:
        raise KeysUnavailableError(f"HTTP status {response.status_code}")
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise KeysUnavailableError("compressed, although that was not requested")
    body = bytearray()
    async for part in response.aiter_raw():
        body += part
        _check_size(body)
    return bytes(body)
