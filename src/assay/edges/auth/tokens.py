"""Signed tokens (JWT, RFC 7519): their claims, and a cache of tokens that were checked."""

import binascii
from base64 import urlsafe_b64decode
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from math import inf
from typing import Any, Final, NamedTuple

from jwt import PyJWS

from assay.edges.auth.challenges import (
    ALGORITHM,
    AUDIENCE,
    CLAIMS,
    EARLY,
    ENDLESS,
    EXPIRED,
    EXTENSION,
    ISSUER,
    NAMELESS,
    NAMESAKE,
    NO_JWT,
    NO_KEYS,
    SCOPE,
    SIGNATURE,
    UNKNOWN_SIGNER,
    AuthRefusal,
    Principal,
)
from assay.edges.auth.key_source import KeySource, PublicKey
from assay.judge import syntax
from assay.model.limits import TIERS
from assay.settings import Jwt

NAME_CHARACTERS: Final = 256
"""Maximal characters of a principal. OpenID Connect §2 allows 255; sessions and the journal keep the name."""

Claims = Mapping[str, Any]


class Header(NamedTuple):
    """The header of a token: key and algorithm."""

    algorithm: str
    kid: str | None


class Admission(NamedTuple):
    """An accepted principal, and the time until which the token is valid."""

    principal: Principal
    until: float


def read_header(token: bytes, algorithms: Collection[str]) -> Header | AuthRefusal:
    """Read the header of *token*, which must use one of *algorithms*."""
    header = _read_object(token.partition(b".")[0])
    if header is None:
        return NO_JWT
    algorithm, kid = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or algorithm not in algorithms:
        return ALGORITHM
    # RFC 7515 §4.1.11: an unknown critical extension makes a token invalid. Older versions of PyJWT ignore it.
    if "crit" in header or "b64" in header:
        return EXTENSION
    return Header(algorithm, kid) if isinstance(kid, str | None) else NO_JWT


def _read_object(part: bytes) -> dict[str, Any] | None:
    try:
        value = syntax.read(urlsafe_b64decode(part + b"=" * (-len(part) % 4)))
    except (binascii.Error, ValueError):
        return None
    return value if isinstance(value, dict) else None


def read_claims(payload: bytes) -> Claims | AuthRefusal:
    """Read the claims in the *payload* of a token."""
    claims = syntax.read(payload)
    return claims if isinstance(claims, dict) else CLAIMS


class Rules:
    """The configured requirements for the claims of a token."""

    __slots__ = ("_jwt", "_names", "_tier")

    def __init__(self, jwt: Jwt, *, tier: str, names: Collection[str] = ()) -> None:
        self._jwt = jwt
        self._tier = tier
        self._names = frozenset(names)

    def judge(self, claims: Claims, now: float) -> Admission | AuthRefusal:
        """Return the principal of a token with these *claims*, or why it is rejected."""
        until = self._until(claims, now)
        if isinstance(until, AuthRefusal):
            return until
        principal = self._addressed(claims) or self._principal(claims)
        if isinstance(principal, AuthRefusal):
            return principal
        missing = set(self._jwt.required_scopes) - _scopes(claims)
        return SCOPE if missing else Admission(principal, until)

    def _until(self, claims: Claims, now: float) -> float | AuthRefusal:
        """Return when the token expires; a refusal if it has expired or is not valid yet (RFC 7519 §4.1.4, §4.1.5)."""
        end, begin = claims.get("exp"), claims.get("nbf")
        if end is None and self._jwt.require_exp:
            return ENDLESS
        if not _is_date(end) or not _is_date(begin):
            return CLAIMS
        until = inf if end is None else end + self._jwt.leeway
        if now >= until:
            return EXPIRED
        return EARLY if begin is not None and now + self._jwt.leeway < begin else until

    def _addressed(self, claims: Claims) -> AuthRefusal | None:
        """Return a refusal for the wrong issuer or audience (RFC 7519 §4.1.1, §4.1.3); None if both are right."""
        if self._jwt.issuer is not None and claims.get("iss") != self._jwt.issuer:
            return ISSUER
        if self._jwt.audience and not _words(claims.get("aud")) & set(self._jwt.audience):
            return AUDIENCE
        return None

    def _principal(self, claims: Claims) -> Principal | AuthRefusal:
        name = claims.get(self._jwt.principal_claim)
        if not isinstance(name, str) or not 0 < len(name) <= NAME_CHARACTERS or not name.isprintable():
            return NAMELESS
        # A user who can choose a name could choose that of an API key and get the sessions of its client.
        return NAMESAKE if name in self._names else Principal(name, self._tier_of(claims))

    def _tier_of(self, claims: Claims) -> str:
        listed = self._jwt.tiers
        found = {listed[value] for value in _words(claims.get(self._jwt.tier_claim)) if value in listed}
        return max(found, key=TIERS.index, default=self._tier)


def _is_date(value: Any) -> bool:
    # Not isinstance: a bool is an int in Python, but not a date.
    return value is None or type(value) in (int, float)


def _words(value: Any) -> set[str]:
    """Return the strings in a claim that is a string or an array of strings; empty for any other type."""
    values = value if isinstance(value, list) else [value]
    return {one for one in values if isinstance(one, str)}


def _scopes(claims: Claims) -> set[str]:
    """Return the scopes of the token: `scope` (RFC 8693 §4.2), or `scp` of some issuers, as a string or an array."""
    return {word for name in ("scope", "scp") for text in _words(claims.get(name)) for word in text.split()}


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
