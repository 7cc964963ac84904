"""
Principals, and the responses to clients that are rejected. No I/O, no clock, no secrets.

The messages go to unknown clients, also in headers: each contains nothing of the request, and uses only the
characters that RFC 6750 §3 allows.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

REALM: Final = "assay"

_ADDRESS: Final = re.compile(r"https?://[!#-\[\]-~]+")
"""A URL that is valid between quotation marks in a header."""


class Principal(NamedTuple):
    """An authenticated client."""

    name: str
    """A stable name that no other client has."""
    tier: str


class Denied(NamedTuple):
    """A rejected request: status, header and message of the response."""

    status: int
    """401, or 403 for a known client without permission."""
    challenge: bytes
    """The value of `WWW-Authenticate`; `Gate.challenge` adds the address of the metadata."""
    reason: str
    """The message in the body of the response."""


class AuthRefusal(NamedTuple):
    """One reason to reject a request."""

    reason: str
    error: str = "invalid_token"
    """The code of RFC 6750 §3.1; empty if there is no token, or it cannot be verified now."""
    status: int = 401


NO_TOKEN: Final = AuthRefusal("a bearer token is required", "")
NO_BEARER: Final = AuthRefusal("the Authorization header has no bearer token", "")
TOO_LONG: Final = AuthRefusal("the Authorization header is too long")
MALFORMED: Final = AuthRefusal("the bearer token is malformed")
UNKNOWN_KEY: Final = AuthRefusal("the key is unknown")
NO_JWT: Final = AuthRefusal("the token is not a JWT")
ALGORITHM: Final = AuthRefusal("the token is signed with an algorithm that is not accepted")
EXTENSION: Final = AuthRefusal("the token needs an extension that is not supported")
NO_KEYS: Final = AuthRefusal("the keys that verify tokens are unavailable", "")
UNKNOWN_SIGNER: Final = AuthRefusal("the token is signed with an unknown key")
SIGNATURE: Final = AuthRefusal("the signature of the token is invalid")
CLAIMS: Final = AuthRefusal("the claims of the token are malformed")
EXPIRED: Final = AuthRefusal("the token has expired")
ENDLESS: Final = AuthRefusal("the token has no exp")
EARLY: Final = AuthRefusal("the token is not valid yet")
ISSUER: Final = AuthRefusal("the token is from another issuer")
AUDIENCE: Final = AuthRefusal("the token is for another audience")
NAMELESS: Final = AuthRefusal("the token has no usable principal")
NAMESAKE: Final = AuthRefusal("the principal of the token has the name of an API key")
SCOPE: Final = AuthRefusal("the token lacks required scopes", "insufficient_scope", 403)


def expired_key(day: str) -> AuthRefusal:
    """Return the refusal of a key that expired on *day*. Only the holder of the key gets it."""
    return AuthRefusal(f"the key expired on {day}")


def denied(refusal: AuthRefusal, scopes: Sequence[str] = ()) -> Denied:
    """Return *refusal* as a response of a server that requires *scopes*."""
    parts = [f'realm="{REALM}"']
    if refusal.error:
        parts += [f'error="{refusal.error}"', f'error_description="{refusal.reason}"']
    if scopes:
        # MCP 2025-11-25, Authorization: so that a client requests only these scopes.
        parts.append(f'scope="{" ".join(scopes)}"')
    return Denied(refusal.status, f"Bearer {', '.join(parts)}".encode("ascii"), refusal.reason)


def with_metadata(challenge: bytes, address: str) -> bytes:
    """Return *challenge* with the address of the metadata (RFC 9728 §5.1), if it is valid in a header."""
    # The address usually comes from the Host header, which the client controls.
    if not _ADDRESS.fullmatch(address):
        return challenge
    return b'%b, resource_metadata="%b"' % (challenge, address.encode("ascii"))
