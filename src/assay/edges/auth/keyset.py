"""
The public keys in a JSON Web Key Set (RFC 7517), as far as tokens can be checked with them. No I/O.

PyJWT makes the keys. Which key goes with which algorithm is settled here, from the key and never from the token: then a
signature cannot be checked as something else than what it was made as.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jwt import PyJWK

from assay.ladder import syntax

if TYPE_CHECKING:
    from jwt.algorithms import AllowedPublicKeys

KEYS: Final = 100
"""Keys that are read of one set. Issuers have two or three; the largest we know of publishes under twenty."""

RSA_BITS: Final = range(2048, 8193)
"""Shorter ones can be broken (RFC 7518 §3.3), longer ones take milliseconds for each token."""

KINDS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), frozenset({"RSA"})),
    # The curve is part of the algorithm (RFC 7518 §3.4). Older versions of PyJWT take any.
    "ES256": frozenset({"P-256"}),
    "ES384": frozenset({"P-384"}),
    "ES512": frozenset({"P-521"}),
    "EdDSA": frozenset({"Ed25519", "Ed448"}),
}
"""What kind of key each algorithm needs: a curve, or RSA."""

_MEMBERS: Final[Mapping[str, tuple[str, ...]]] = {"RSA": ("n", "e"), "EC": ("crv", "x", "y"), "OKP": ("crv", "x")}
"""What a public key of each type consists of. Nothing else is taken, the private half of a key least of all."""


class PublicKey(NamedTuple):
    """One key that tokens are signed with."""

    kid: str | None
    algorithms: frozenset[str]
    """What it may be used for: the algorithms of its kind, or the one that it names."""
    source: tuple[str, ...]
    """What it was made of: the same for the same key."""
    key: "AllowedPublicKeys"


class KeySet(NamedTuple):
    """The keys of one set that are of use."""

    keys: tuple[PublicKey, ...]
    unusable: int = 0

    def candidates(self, algorithm: str, kid: str | None) -> list[PublicKey]:
        """What a token can be signed with. One that names no key is checked with all that fit, which are few."""
        return [key for key in self.keys if algorithm in key.algorithms and kid in (None, key.kid)]

    def has_all_of(self, other: "KeySet") -> bool:
        """Whether every key of *other* is here, too, for the same uses."""
        return {_identity(key) for key in other.keys} <= {_identity(key) for key in self.keys}


def read_set(body: bytes) -> KeySet | None:
    """The keys in *body*; None if it is no set of keys. A set without keys is one: all may have been withdrawn."""
    document = syntax.read(body)
    entries = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        return None
    keys = tuple(key for key in map(_read_key, entries[:KEYS]) if key is not None)
    return KeySet(keys, len(entries) - len(keys))


def _read_key(entry: Any) -> PublicKey | None:
    """The key in *entry*; None if it is none for signatures, or not a good one."""
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
        # Whatever is wrong with a key, the others may be good. What PyJWT says of it has the key in it.
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
    """What makes the public key; None if it is of no type that we know, or not whole."""
    kty = entry.get("kty")
    names = _MEMBERS.get(kty) if isinstance(kty, str) else None
    members = {name: entry.get(name) for name in ("kty", *names)} if names else {}
    found = {name: value for name, value in members.items() if isinstance(value, str)}
    return found if found and len(found) == len(members) else None


def _identity(key: PublicKey) -> tuple[Any, ...]:
    return key.kid, key.algorithms, key.source
