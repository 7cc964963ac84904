"""
API keys: create, hash and look up keys. No I/O; the clock is a parameter.

Only the SHA-256 of a key is stored. That is enough for our keys, whose 160 random bits cannot be guessed; it would not
be enough for a password.
"""

import re
from base64 import b32encode
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from math import inf
from secrets import token_bytes
from typing import Final, NamedTuple

from assay.edges.auth.challenges import AuthRefusal, Principal, expired_key
from assay.settings import ApiKey

PREFIX: Final = "assay_"
"""The prefix of our keys: people and scanners for leaked secrets recognize it."""

RANDOM_BYTES: Final = 20
"""160 bits, in 32 characters of base32 without padding. 128 bits would be enough."""

LEAST_CHARACTERS: Final = 32
"""Minimal characters of a key that was made elsewhere: 128 bits in hexadecimal. A shorter one can be guessed."""

TOKEN: Final = re.compile(rb"[A-Za-z0-9._~+/-]+=*")
"""The characters of a bearer token (RFC 6750 §2.1)."""


def new_key() -> str:
    """Return a new random key: letters and digits only, so that a double click selects all of it."""
    return PREFIX + b32encode(token_bytes(RANDOM_BYTES)).decode("ascii").lower()


def written_hash(key: bytes) -> str:
    """Return the hash of *key* for the configuration."""
    return f"sha256:{sha256(key).hexdigest()}"


def objection(key: bytes) -> str | None:
    """Return why *key* is unsuitable; None if it is fine."""
    if not TOKEN.fullmatch(key):
        return "a key can have only letters, digits and . _ ~ + / -"
    if len(key) < LEAST_CHARACTERS:
        return f"a key has at least {LEAST_CHARACTERS} characters: the hash of a shorter one can be guessed"
    return None


class _Holder(NamedTuple):
    principal: Principal
    until: float


class Keyring:
    """
    All keys by their digest.

    A look-up may take longer for a digest that shares a prefix with a stored one. This leaks nothing useful: an
    attacker would need keys with chosen digest prefixes, each further bit doubles the work, and a digest does not
    reveal the key.
    """

    __slots__ = ("_holders",)

    def __init__(self, keys: Mapping[str, ApiKey], tier: str) -> None:
        self._holders = {
            bytes.fromhex(key.hash.removeprefix("sha256:")): _Holder(Principal(name, key.tier or tier), _until(key))
            for name, key in keys.items()
        }

    def find(self, digest: bytes, now: float) -> Principal | AuthRefusal | None:
        """Return the principal of a key; None if the key is unknown."""
        holder = self._holders.get(digest)
        if holder is None:
            return None
        if now < holder.until:
            return holder.principal
        return expired_key(datetime.fromtimestamp(holder.until, UTC).date().isoformat())


def _until(key: ApiKey) -> float:
    if key.expires is None:
        return inf
    moment = datetime.fromisoformat(key.expires)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
