"""``[auth]``: who is let in over HTTP. What can be said of it without reading a key."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from assay.base.tiers import TIERS
from assay.settings.field_rules import moment, secret, table, word

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""What tokens may be signed with. Not ``none``, and no HS256: who can check its signatures can make them."""

_HASH: Final = r"sha256:[0-9A-Fa-f]{64}"

_SCOPE: Final = r"[\x21\x23-\x5b\x5d-\x7e]+"
"""RFC 6749 §3.3. A scope goes into a header, between quotation marks."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key that lets its holder in, by the name of its table."""

    hash: str = secret()
    """``sha256:`` and the digest of the key in hexadecimal."""

    tier: str | None = word(None, lambda: TIERS)
    """The tier of its holder; if there is none, that of callers of whom nothing else is known."""

    expires: str | None = moment()
    """From when on it lets nobody in; UTC unless it says otherwise."""

    def __post_init__(self) -> None:
        if not self.hash:
            raise ValueError("a key needs a hash; `assay keys new` makes both")
        if not re.fullmatch(_HASH, self.hash):
            raise ValueError(
                'expected "sha256:" and 64 hexadecimal digits; '
                "give the hash of a key, which `assay keys hash` prints, not the key itself"
            )


@dataclass(frozen=True, slots=True)
class Jwt:
    """Tokens that somebody else signs."""

    jwks: str = ""
    """The public keys they are signed with, a JSON Web Key Set: a file, or an https URL (http on this machine only)."""

    audience: tuple[str, ...] | None = None
    """One of these must be in ``aud``. An empty array says that tokens for anybody will do."""

    issuer: str | None = None
    """What ``iss`` must be. If it is a URL, clients without a token are sent there."""

    algorithms: tuple[str, ...] = word(("RS256", "ES256", "EdDSA"), lambda: ALGORITHMS)
    """What they may be signed with. The default is what the common issuers use, one for each kind of key."""

    required_scopes: tuple[str, ...] = ()
    """What a token must allow (``scope`` or ``scp``), all of it."""

    principal_claim: str = "sub"
    """The claim that says who it is."""

    tier_claim: str = "tier"
    """The claim that ``tiers`` looks up; a string, or an array of them, of which the highest tier counts."""

    tiers: Mapping[str, str] = table(words=lambda: TIERS)
    """The tier for each value of that claim. A value that is not listed gives nothing."""

    leeway: int = 30
    """Seconds by which the issuer's clock may differ from ours; five minutes at most (RFC 7519 §4.1.4: a few)."""

    require_exp: bool = True
    """Whether a token without an end is refused."""

    def __post_init__(self) -> None:
        if not 0 <= self.leeway <= 300:
            raise ValueError("leeway must be 0 to 300 seconds")
        if not self.algorithms:
            raise ValueError("algorithms must name at least one")
        if not all(re.fullmatch(_SCOPE, scope) for scope in self.required_scopes):
            raise ValueError("a scope must be ASCII without spaces, quotation marks and backslashes")
        if "://" in self.jwks:
            _check_address(self.jwks)
        if not self.jwks:
            raise ValueError("jwt needs jwks: the file or URL with the public keys that verify tokens")
        if self.audience is None:
            raise ValueError("jwt needs audience: the aud that tokens must have, such as the URL of this server")


def _check_address(url: str) -> None:
    """Raises `ValueError` for a URL that keys should not come from. Says nothing of what is in it."""
    from urllib.parse import urlsplit  # noqa: PLC0415 - not needed where nothing is configured

    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise ValueError("jwks is not a valid URL") from None
    if parts.scheme not in ("https", "http") or not host or parts.fragment:
        raise ValueError("jwks must be a file or an https URL")
    if "@" in parts.netloc:
        raise ValueError("jwks must not have a user name or password")
    if parts.scheme == "http" and not (host in ("localhost", "::1") or re.fullmatch(r"127(\.\d{1,3}){3}", host)):
        raise ValueError("jwks must be an https URL: over http the keys could be replaced on the way")


@dataclass(frozen=True, slots=True)
class Auth:
    """Who is let in over HTTP: holders of a key, of a token, or of either. Without the section, everyone."""

    keys: Mapping[str, ApiKey] = table()
    """The keys, by the names of those who hold them."""

    jwt: Jwt | None = None
    """Which tokens are good, if any."""

    def __post_init__(self) -> None:
        holders: dict[str, str] = {}
        for name, key in self.keys.items():
            if not (0 < len(name) <= 64 and name.isprintable()):
                raise ValueError("the name of a key must be 1 to 64 printable characters")
            if holders.setdefault(key.hash.lower(), name) != name:
                raise ValueError(f"the keys {holders[key.hash.lower()]} and {name} have the same hash")
        # Who removes the last key does not mean to open the door.
        if not self.keys and self.jwt is None:
            raise ValueError("there are neither keys nor jwt, so no client could connect; remove [auth] to let all in")
