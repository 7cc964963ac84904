"""
What a token says, and whether that is enough. No signatures, no I/O; the clock is given.

Nothing here is believed before the signature has been checked, but for the header, which says what to check it with.
"""

import binascii
from base64 import urlsafe_b64decode
from collections.abc import Collection, Mapping
from math import inf
from typing import Any, Final, NamedTuple

from assay.base.tiers import TIERS
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
    SCOPE,
    AuthRefusal,
    Principal,
)
from assay.ladder import syntax
from assay.settings import Jwt

NAME_CHARACTERS: Final = 256
"""Of a principal. OpenID Connect §2 has 255 at most; names are kept with sessions and written to the journal."""

Claims = Mapping[str, Any]


class Header(NamedTuple):
    """What a token says it is signed with."""

    algorithm: str
    kid: str | None


class Admission(NamedTuple):
    """Somebody is let in, and until when."""

    principal: Principal
    until: float


def read_header(token: bytes, algorithms: Collection[str]) -> Header | AuthRefusal:
    """The header of *token*, which must be signed with one of *algorithms*."""
    header = _read_object(token.partition(b".")[0])
    if header is None:
        return NO_JWT
    algorithm, kid = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or algorithm not in algorithms:
        return ALGORITHM
    # RFC 7515 §4.1.11: what is critical and not understood makes a token invalid. Older versions of PyJWT pass over it.
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
    """The claims in the *payload* of a token."""
    claims = syntax.read(payload)
    return claims if isinstance(claims, dict) else CLAIMS


class Rules:
    """What the claims of a token must be, by the configuration."""

    __slots__ = ("_jwt", "_names", "_tier")

    def __init__(self, jwt: Jwt, *, tier: str, names: Collection[str] = ()) -> None:
        self._jwt = jwt
        self._tier = tier
        self._names = frozenset(names)

    def judge(self, claims: Claims, now: float) -> Admission | AuthRefusal:
        """Whom a token with these *claims* lets in, if anybody."""
        until = self._until(claims, now)
        if isinstance(until, AuthRefusal):
            return until
        principal = self._addressed(claims) or self._principal(claims)
        if isinstance(principal, AuthRefusal):
            return principal
        missing = set(self._jwt.required_scopes) - _scopes(claims)
        return SCOPE if missing else Admission(principal, until)

    def _until(self, claims: Claims, now: float) -> float | AuthRefusal:
        """When the token ends, unless it has, or has not begun (RFC 7519 §4.1.4, §4.1.5)."""
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
        """Why it is not from whom, or for whom, it has to be (RFC 7519 §4.1.1, §4.1.3); None if it is."""
        if self._jwt.issuer is not None and claims.get("iss") != self._jwt.issuer:
            return ISSUER
        if self._jwt.audience and not _words(claims.get("aud")) & set(self._jwt.audience):
            return AUDIENCE
        return None

    def _principal(self, claims: Claims) -> Principal | AuthRefusal:
        name = claims.get(self._jwt.principal_claim)
        if not isinstance(name, str) or not 0 < len(name) <= NAME_CHARACTERS or not name.isprintable():
            return NAMELESS
        # Where people choose their names, one could choose that of a key, and get at what belongs to its holder.
        return NAMESAKE if name in self._names else Principal(name, self._tier_of(claims))

    def _tier_of(self, claims: Claims) -> str:
        listed = self._jwt.tiers
        found = {listed[value] for value in _words(claims.get(self._jwt.tier_claim)) if value in listed}
        return max(found, key=TIERS.index, default=self._tier)


def _is_date(value: Any) -> bool:
    # Not isinstance: a bool is an int in Python, and no date.
    return value is None or type(value) in (int, float)


def _words(value: Any) -> set[str]:
    """The strings in a claim that is one, or an array of them; of what is neither there are none."""
    values = value if isinstance(value, list) else [value]
    return {one for one in values if isinstance(one, str)}


def _scopes(claims: Claims) -> set[str]:
    """What the token allows: `scope` (RFC 8693 §4.2), or `scp`, as some issuers have it, in words or in an array."""
    return {word for name in ("scope", "scp") for text in _words(claims.get(name)) for word in text.split()}
