"""
The public keys in a JSON Web Key Set (RFC 7517) that can verify tokens. No I/O.

PyJWT parses the keys. The algorithm of a key is decided here, from the key and never from the token: this prevents
algorithm confusion.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jwt import PyJWK

from assay.ladder import syntax

if TYPE_CHECKING:
    from jwt.algorithms import AllowedPublicKeys

KEYS: Final = 100
"""Maximal keys to read from one set. Issuers have two or three; the largest we know publishes under twenty."""

RSA_BITS: Final = range(2048, 8193)
"""Sizes of RSA keys: shorter ones can be broken (RFC 7518 §3.3), longer ones take milliseconds for each token."""

KINDS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), frozenset({"RSA"})),
    # The curve is part of the algorithm (RFC 7518 §3.4). Older versions of PyJWT accept any.
    "ES256": frozenset({"P-256"}),
    "ES384": frozenset({"P-384"}),
    "ES512": frozenset({"P-521"}),
    "EdDSA": frozenset({"Ed25519", "Ed448"}),
}
"""The kind of key for each algorithm: a curve, or RSA."""

_MEMBERS: Final[Mapping[str, tuple[str, ...]]] = {"RSA": ("n", "e"), "EC": ("crv", "x", "y"), "OKP": ("crv", "x")}
"""The members of a public key by type. All others are ignored, above all the private half of a key."""


class PublicKey(NamedTuple):
    """One key that verifies tokens."""

    kid: str | None
    algorithms: frozenset[str]
    """The algorithms of its kind, or the one that it names."""
    source: tuple[str, ...]
    """The members it was made of; equal for equal keys."""
    key: "AllowedPublicKeys"


class KeySet(NamedTuple):
    """The usable keys of one set."""

    keys: tuple[PublicKey, ...]
    unusable: int = 0

    def candidates(self, algorithm: str, kid: str | None) -> list[PublicKey]:
        """Return the keys that may have signed a token. A token without a key id is checked with all that fit."""
        return [key for key in self.keys if algorithm in key.algorithms and kid in (None, key.kid)]

    def has_all_of(self, other: "KeySet") -> bool:
        """Whether this set has every key of *other*, for the same algorithms."""
        return {_identity(key) for key in other.keys} <= {_identity(key) for key in self.keys}


def read_set(body: bytes) -> KeySet | None:
    """Parse the keys in *body*; None if it is not a key set. An empty set is valid: keys can be withdrawn."""
    document = syntax.read(body)
    entries = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        return None
    keys = tuple(key for key in map(_read_key, entries[:KEYS]) if key is not None)
    return KeySet(keys, len(entries) - len(keys))


def _read_key(entry: Any) -> PublicKey | None:
    """Parse the key in *entry*; None if it is not for signatures, or invalid."""
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
        # An invalid key must not affect the others. The message of PyJWT is dropped: it contains the key.
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
    """Return the members of the public key; None if its type is unknown or a member is missing."""
    kty = entry.get("kty")
    names = _MEMBERS.get(kty) if isinstance(kty, str) else None
    members = {name: entry.get(name) for name in ("kty", *names)} if names else {}
    found = {name: value for name, value in members.items() if isinstance(value, str)}
    return found if found and len(found) == len(members) else None


def _identity(key: PublicKey) -> tuple[Any, ...]:
    return key.kid, key.algorithms, key.source
