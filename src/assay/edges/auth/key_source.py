"""The public keys that tokens are checked with (JWKS, RFC 7517): their sources, and when they are fetched again."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jwt import PyJWK

from assay.edges.upstream_client import HttpAnswer, UpstreamClient, url_of
from assay.edges.upstream_errors import BrokenError
from assay.judge import syntax

if TYPE_CHECKING:
    from jwt.algorithms import AllowedPublicKeys


KEYS: Final = 100
"""Maximal keys to read from one set. Issuers have two or three; the largest we know publishes under twenty."""

RSA_BITS: Final = range(2048, 8193)
"""Sizes of RSA keys: shorter ones can be broken (RFC 7518 §3.3), longer ones take milliseconds for each token."""

KINDS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), frozenset({"RSA"})),
    # The curve is part of the algorithm (RFC 7518 §3.4). Older versions of PyJWT accept any.
    "ES256": frozenset({"P-256"}),
    "ES384": frozenset({"P-384"}),
    "ES512": frozenset({"P-521"}),
    "EdDSA": frozenset({"Ed25519", "Ed448"}),
}
"""The kind of key for each algorithm: a curve, or RSA."""

_MEMBERS: Final[Mapping[str, tuple[str, ...]]] = {"RSA": ("n", "e"), "EC": ("crv", "x", "y"), "OKP": ("crv", "x")}
"""The members of a public key by type. All others are ignored, above all the private half of a key."""


class PublicKey(NamedTuple):
    """One key that verifies tokens."""

    kid: str | None
    algorithms: frozenset[str]
    """The algorithms of its kind, or the one that it names."""
    source: tuple[str, ...]
    """The members it was made of; equal for equal keys."""
    key: "AllowedPublicKeys"


class KeySet(NamedTuple):
    """The usable keys of one set."""

    keys: tuple[PublicKey, ...]
    unusable: int = 0

    def candidates(self, algorithm: str, kid: str | None) -> list[PublicKey]:
        """Return the keys that may have signed a token. A token without a key id is checked with all that fit."""
        return [key for key in self.keys if algorithm in key.algorithms and kid in (None, key.kid)]

    def has_all_of(self, other: "KeySet") -> bool:
        """Whether this set has every key of *other*, for the same algorithms."""
        return {_identity(key) for key in other.keys} <= {_identity(key) for key in self.keys}


def read_set(body: bytes) -> KeySet | None:
    """Parse the keys in *body*; None if it is not a key set. An empty set is valid: keys can be withdrawn."""
    document = syntax.read(body)
    entries = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        return None
    keys = tuple(key for key in map(_read_key, entries[:KEYS]) if key is not None)
    return KeySet(keys, len(entries) - len(keys))


def _read_key(entry: Any) -> PublicKey | None:
    """Parse the key in *entry*; None if it is not for signatures, or invalid."""
    if not isinstance(entry, dict) or not _is_for_signatures(entry):
        return None
    members, kid = _members(entry), entry.get("kid")
    if members is None or not isinstance(kid, str | None):
        return None
    kind = members.get("crv", members["kty"])
    fitting = [algorithm for algorithm, kinds in KINDS.items() if kind in kinds]
    algorithms = frozenset(name for name in fitting if entry.get("alg") in (None, name))
    if not algorithms:
        return None
    try:
        key = PyJWK(dict(members), fitting[0]).key
    except Exception:
        # An invalid key must not affect the others. The message of PyJWT is dropped: it contains the key.
        return None
    if kind == "RSA" and key.key_size not in RSA_BITS:
        return None
    return PublicKey(kid, algorithms, tuple(members.values()), key)


def _is_for_signatures(entry: dict[str, Any]) -> bool:
    operations = entry.get("key_ops")
    return entry.get("use") in (None, "sig") and (
        operations is None or (isinstance(operations, list) and "verify" in operations)
    )


def _members(entry: dict[str, Any]) -> dict[str, str] | None:
    """Return the members of the public key; None if its type is unknown or a member is missing."""
    kty = entry.get("kty")
    names = _MEMBERS.get(kty) if isinstance(kty, str) else None
    members = {name: entry.get(name) for name in ("kty", *names)} if names else {}
    found = {name: value for name, value in members.items() if isinstance(value, str)}
    return found if found and len(found) == len(members) else None


def _identity(key: PublicKey) -> tuple[Any, ...]:
    return key.kid, key.algorithms, key.source


TIMEOUT: Final = 5.0
"""Seconds for the whole request; a client is waiting meanwhile."""

SET_BYTES: Final = 256 << 10
"""Maximal bytes of a key set. Real ones have 1 to 20 kB."""

HOUR: Final = 3600.0
"""Seconds between refreshes: a withdrawn key stays trusted this long."""

AGAIN: Final = 30.0
"""
Minimal seconds between two requests, so that tokens with forged key ids do not flood the issuer. A new key may stay
unknown this long.
"""

SOON: Final = 5.0
"""The same while there are no keys at all: an issuer that starts together with us is ready soon."""

Fetch = Callable[[], Awaitable[bytes]]
Log = Callable[[str], None]


class KeysUnavailableError(Exception):
    """Keys cannot be fetched; the message for the log has no secrets of the address."""


class KeySource:
    """The keys of an issuer, refreshed as needed. *withdrawn* is called when a key was removed."""

    def __init__(
        self, fetch: Fetch, place: str, *, clock: Callable[[], float], log: Log, withdrawn: Callable[[], None]
    ) -> None:
        self.keys: KeySet | None = None
        """None until the first successful fetch."""
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
        """Whether `current` would return the present keys without waiting."""
        return self.keys is not None and (self._is_fresh() or not (self._may_try() or self._is_awaited()))

    async def current(self) -> KeySet | None:
        """Return the keys, refreshed if they are older than an hour; None without keys."""
        if not self._is_fresh():
            if self._may_try():
                self._begin()
            if self._is_awaited():
                await self._end()
        return self.keys

    async def newer(self) -> KeySet | None:
        """Return the keys for a token with an unknown key: fetched again, unless that happened just now."""
        if self._may_try():
            self._begin()
        await self._end()
        return self.keys

    def take(self, body: bytes) -> None:
        """Use the keys in *body*. Raises `KeysUnavailableError` if it is not a key set."""
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
        # While there are keys, requests do not wait again for an issuer that just failed.
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
            self._fail("no response in time")

    def _fail(self, reason: str) -> None:
        # Logged once, not every half minute.
        if reason != self._failure:
            kept = "the previous keys stay in use" if self.keys is not None else "no token can be verified"
            self._log(f"auth: no keys from {self._place}: {reason}; {kept}")
        self._failure = reason


def _is_within(seconds: float, since: float, now: float) -> bool:
    """Whether *seconds* have not passed yet. A time in the future, after the clock was set back, counts as long ago."""
    return 0 <= now - since < seconds


# ── from a file ──────────────────────────────────────────────────────────────────────────────────────────────────────


def read_file(path: str) -> bytes:
    """Return the content of the file. Raises `KeysUnavailableError`."""
    try:
        with open(path, "rb") as file:
            body = file.read(SET_BYTES + 1)
    except OSError as error:
        raise KeysUnavailableError(os.strerror(error.errno) if error.errno else "cannot be read") from None
    _check_size(body)
    return body


def from_file(path: str) -> Fetch:
    """Return a function that reads a file in a thread, so that the event loop does not wait."""

    async def fetch() -> bytes:
        return await asyncio.to_thread(read_file, path)

    return fetch


def _check_size(body: bytes | bytearray) -> None:
    if len(body) > SET_BYTES:
        raise KeysUnavailableError(f"more than {SET_BYTES >> 10} KiB")


# ── from a URL ───────────────────────────────────────────────────────────────────────────────────────────────────────

_HEADERS: Final = ((b"accept", b"application/jwk-set+json, application/json"), (b"user-agent", b"assay"))


def shown(place: str) -> str:
    """Return a file or URL for the log: on one line, and without a query."""
    plain = (place.partition("?")[0] if "://" in place else place)[:200]
    return plain if plain.isprintable() else ascii(plain)[1:-1]


def from_url(url: str) -> Fetch:
    """
    Return a function that fetches *url* without redirects. Raises `KeysUnavailableError` for an invalid URL. Proxies,
    certificates and .netrc from the environment are ignored: with them other keys could be injected.
    """
    try:
        address = url_of(url)
    except (ValueError, UnicodeError):
        raise KeysUnavailableError("not a valid URL") from None
    # This reads a file of certificates: at start, not while a client waits.
    client = UpstreamClient(url, environment=False, where="the issuer")

    async def fetch() -> bytes:
        try:
            async with client.ask("GET", address, _HEADERS) as answer:
                return await _body(answer)
        except BrokenError as error:
            if error.kind == "unreached":
                raise KeysUnavailableError(f"no connection: {error}") from None
            raise KeysUnavailableError("no HTTP response, or an incomplete one") from None
        finally:
            # An issuer is asked once an hour.
            await client.close()

    return fetch


async def _body(answer: HttpAnswer) -> bytes:
    if answer.status != 200:
        raise KeysUnavailableError(f"HTTP status {answer.status}")
    if (answer.header(b"content-encoding") or b"identity").strip().lower() != b"identity":
        raise KeysUnavailableError("compressed, although that was not requested")
    body = bytearray()
    async for part in answer.chunks():
        body += part
        _check_size(body)
    return bytes(body)
