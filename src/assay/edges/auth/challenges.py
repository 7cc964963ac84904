"""
Who somebody is, and what is said to those who are not let in. No I/O, no clock, no secrets.

The sentences go to strangers, in headers too: each is fixed, holds nothing of what was sent, and keeps to the
characters that RFC 6750 §3 allows.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

REALM: Final = "assay"

_ADDRESS: Final = re.compile(r"https?://[!#-\[\]-~]+")
"""A URL that can stand between quotation marks in a header."""


class Principal(NamedTuple):
    """Somebody who is let in."""

    name: str
    """Stable for one person or program, and of nobody else."""
    tier: str


class Denied(NamedTuple):
    """Why somebody is not, ready to be sent."""

    status: int
    """401, or 403 for somebody who is known and may not."""
    challenge: bytes
    """The value of `WWW-Authenticate`; `Gate.challenge` adds where to get a token."""
    reason: str
    """A sentence for the body of the answer."""


class AuthRefusal(NamedTuple):
    """One reason to deny."""

    reason: str
    error: str = "invalid_token"
    """The code of RFC 6750 §3.1; empty where nothing is wrong with a token, since there is none or nobody can tell."""
    status: int = 401


NO_TOKEN: Final = AuthRefusal("a bearer token is required", "")
NO_BEARER: Final = AuthRefusal("the Authorization header has no bearer token", "")
TOO_LONG: Final = AuthRefusal("the Authorization header is too long")
MALFORMED: Final = AuthRefusal("the bearer token is malformed")
UNKNOWN_KEY: Final = AuthRefusal("the key is unknown")
EXPIRED_KEY: Final = AuthRefusal("the key has expired")
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


def denied(refusal: AuthRefusal, scopes: Sequence[str] = ()) -> Denied:
    """*refusal* as it is sent by a server that asks tokens for *scopes*."""
    parts = [f'realm="{REALM}"']
    if refusal.error:
        parts += [f'error="{refusal.error}"', f'error_description="{refusal.reason}"']
    if scopes:
        # MCP 2025-11-25, Authorization: so that a client asks for these and not for all that there are.
        parts.append(f'scope="{" ".join(scopes)}"')
    return Denied(refusal.status, f"Bearer {', '.join(parts)}".encode("ascii"), refusal.reason)


def with_metadata(challenge: bytes, address: str) -> bytes:
    """*challenge* with the address of the metadata (RFC 9728 §5.1), unless that has no place in a header."""
    # It is mostly made of the Host header, which a stranger writes.
    if not _ADDRESS.fullmatch(address):
        return challenge
    return b'%b, resource_metadata="%b"' % (challenge, address.encode("ascii"))
