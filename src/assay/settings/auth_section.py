"""``[auth]``: the clients that may connect over HTTP. Checks that need no key file."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from assay.model.limits import TIERS
from assay.settings.fields import MOMENT, setting

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Accepted signature algorithms. Not ``none``, and not HS256: its key can both verify and create signatures."""

_HASH: Final = r"sha256:[0-9A-Fa-f]{64}"

_SCOPE: Final = r"[\x21\x23-\x5b\x5d-\x7e]+"
"""RFC 6749 §3.3. A scope goes into a header, between quotation marks."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key; the name of its table is the name of the client."""

    hash: str = setting("", secret=True)
    """Required. ``sha256:`` and the digest of the key in hexadecimal, as ``assay keys new`` prints it."""

    tier: str | None = setting(None, words=TIERS)
    """The tier of the client; by default ``tiers.tier``."""

    expires: str | None = setting(None, kind=MOMENT)
    """When the key expires: a date, or a date and time, in UTC unless it has another offset. By default never."""

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
    """Tokens of an external issuer."""

    jwks: str = ""
    """Required. The issuer's public keys, a JSON Web Key Set: a file or an https URL (http on this machine only)."""

    audience: tuple[str, ...] | None = None
    """Required. ``aud`` must contain one of these; an empty array accepts tokens for any audience."""

    issuer: str | None = None
    """The required ``iss``, by default any. If it is a URL, clients without a token are referred to it."""

    algorithms: tuple[str, ...] = setting(("RS256", "ES256", "EdDSA"), words=ALGORITHMS)
    """
    Accepted signature algorithms; ``RS384``, ``RS512``, ``PS256``, ``PS384``, ``PS512``, ``ES384`` and ``ES512`` are
    also available.
    """

    required_scopes: tuple[str, ...] = ()
    """Scopes that a token must have (``scope`` or ``scp``)."""

    principal_claim: str = "sub"
    """The claim with the name of the client."""

    tier_claim: str = "tier"
    """The claim that ``tiers`` maps to a tier; of an array, the highest tier counts."""

    tiers: Mapping[str, str] = setting({}, words=TIERS)
    """The tier for this value of the claim. Other values are ignored."""

    leeway: int = 30
    """Allowed clock difference to the issuer in seconds, at most 300."""

    require_exp: bool = True
    """Reject tokens without an expiry time."""

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
    """Raise `ValueError` for an unsafe URL of keys. The message does not contain the URL."""
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
    """The clients that may connect over HTTP: with an API key, a token, or either. Without the section, everyone."""

    keys: Mapping[str, ApiKey] = setting({})
    """The API keys by the name of the client."""

    jwt: Jwt | None = None
    """The accepted tokens; None if tokens are not accepted."""

    def __post_init__(self) -> None:
        holders: dict[str, str] = {}
        for name, key in self.keys.items():
            if not (0 < len(name) <= 64 and name.isprintable()):
                raise ValueError("the name of a key must be 1 to 64 printable characters")
            if holders.setdefault(key.hash.lower(), name) != name:
                raise ValueError(f"the keys {holders[key.hash.lower()]} and {name} have the same hash")
        # Removing the last key must not open the endpoint to everyone.
        if not self.keys and self.jwt is None:
            raise ValueError(
                "[auth] has neither keys nor jwt, so no client could connect; remove [auth] to accept all clients"
            )
