"""
API keys: how they are made, what is kept of them, whose they are. No I/O; the clock is given.

Only the SHA-256 of a key is kept. That is enough for keys that we make, whose 160 random bits nobody can guess; for a
password it would not be.
"""

import re
from base64 import b32encode
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from math import inf
from secrets import token_bytes
from typing import Final, NamedTuple

from assay.edges.auth.challenges import EXPIRED_KEY, AuthRefusal, Principal
from assay.settings import ApiKey

PREFIX: Final = "assay_"
"""What every key of ours begins with: people know it when they see it, and so do scanners for leaked secrets."""

RANDOM_BYTES: Final = 20
"""160 bits, in 32 characters of base32 without padding. With 128, nobody would guess one either."""

LEAST_CHARACTERS: Final = 32
"""Of a key that somebody else made: 128 bits in hexadecimal. Shorter ones are passwords."""

TOKEN: Final = re.compile(rb"[A-Za-z0-9._~+/-]+=*")
"""What a bearer token is made of (RFC 6750 §2.1)."""


def new_key() -> str:
    """A key that nobody has: letters and digits only, so that a double click selects all of it."""
    return PREFIX + b32encode(token_bytes(RANDOM_BYTES)).decode("ascii").lower()


def written_hash(key: bytes) -> str:
    """What the configuration has of *key*."""
    return f"sha256:{sha256(key).hexdigest()}"


def objection(key: bytes) -> str | None:
    """Why *key* should not be used as one; None if it may be."""
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
    Every key there is, by its digest.

    Looking up a digest may take longer for one that begins like a digest we have. That tells nobody anything: to use it
    one would need keys whose digests begin as one pleases, and each further bit doubles the work, while the key
    itself, of which digests say nothing, stays as unknown as before.
    """

    __slots__ = ("_holders",)

    def __init__(self, keys: Mapping[str, ApiKey], tier: str) -> None:
        self._holders = {
            bytes.fromhex(key.hash.removeprefix("sha256:")): _Holder(Principal(name, key.tier or tier), _until(key))
            for name, key in keys.items()
        }

    def find(self, digest: bytes, now: float) -> Principal | AuthRefusal | None:
        """Whose key it is; None if it is nobody's."""
        holder = self._holders.get(digest)
        if holder is None:
            return None
        return holder.principal if now < holder.until else EXPIRED_KEY


def _until(key: ApiKey) -> float:
    if key.expires is None:
        return inf
    moment = datetime.fromisoformat(key.expires)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
