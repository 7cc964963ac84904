"""
Signed tokens (JWT, RFC 7519): verified once, cached until they expire.

PyJWT verifies the signature; `claims` checks the rest.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import Final

from jwt import PyJWS

from assay.edges.auth.challenges import NO_KEYS, SIGNATURE, UNKNOWN_SIGNER, AuthRefusal, Principal
from assay.edges.auth.claims import Admission, Claims, Header, Rules, read_claims, read_header
from assay.edges.auth.key_source import KeySource
from assay.edges.auth.keyset import PublicKey

REMEMBERED: Final = 10_000
"""Maximal cached tokens, about 400 bytes each. Beyond it, the least recently used one is dropped."""


class Tokens:
    """The tokens of one issuer."""

    def __init__(
        self,
        rules: Rules,
        algorithms: Collection[str],
        source: Callable[[Callable[[], None]], KeySource],
        clock: Callable[[], float],
    ) -> None:
        self._rules = rules
        self._algorithms = frozenset(algorithms)
        self._clock = clock
        self._jws = PyJWS(sorted(algorithms))
        self._good: OrderedDict[bytes, Admission] = OrderedDict()
        """By digest: a token in memory could be stolen."""
        # A withdrawn key invalidates the tokens it signed. It is rare, so all cached tokens are dropped.
        self._source = source(self._good.clear)

    def known(self, digest: bytes) -> Principal | None:
        """Return the principal of a cached token that is still valid; None for any other."""
        found = self._good.get(digest)
        if found is None or not self._source.is_at_rest():
            return None
        return self._remembered(digest)

    async def verify(self, token: bytes, digest: bytes) -> Principal | AuthRefusal:
        """Return the principal of the token, or the refusal."""
        header = read_header(token, self._algorithms)
        if isinstance(header, AuthRefusal):
            return header
        if await self._source.current() is None:
            return NO_KEYS
        principal = self._remembered(digest)
        if principal is not None:
            return principal
        claims = self._claims(token, header, await self._keys(header))
        found = claims if isinstance(claims, AuthRefusal) else self._rules.judge(claims, self._clock())
        if isinstance(found, AuthRefusal):
            return found
        self._remember(digest, found)
        return found.principal

    async def _keys(self, header: Header) -> list[PublicKey]:
        """Return the keys that may have signed the token; fetch new keys if none fits."""
        for look in (self._source.current, self._source.newer):
            keys = await look()
            found = keys.candidates(header.algorithm, header.kid) if keys is not None else []
            if found:
                return found
        return []

    def _claims(self, token: bytes, header: Header, keys: list[PublicKey]) -> Claims | AuthRefusal:
        if not keys:
            return UNKNOWN_SIGNER
        for each in keys:
            try:
                payload = self._jws.decode(token, each.key, algorithms=[header.algorithm])
            except Exception:  # noqa: S112 - whatever it is that PyJWT stumbles over, the token is not good with this key
                continue
            return read_claims(payload)
        return SIGNATURE

    def _remembered(self, digest: bytes) -> Principal | None:
        found = self._good.get(digest)
        if found is None:
            return None
        if self._clock() >= found.until:
            del self._good[digest]
            return None
        self._good.move_to_end(digest)
        return found.principal

    def _remember(self, digest: bytes, found: Admission) -> None:
        self._good[digest] = found
        # The first are the least recently used. Expired ones are dropped, and at least one if the cache is full.
        now = self._clock()
        while self._good and (len(self._good) > REMEMBERED or next(iter(self._good.values())).until <= now):
            self._good.popitem(last=False)
