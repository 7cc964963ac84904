"""
The gate: maps the `Authorization` header of a request to a principal, or to a refusal.

Of HTTP it knows only that header, the challenge and the metadata of RFC 9728. Modules for tokens are imported only if
tokens are configured.
"""

import os
import time
from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from assay.edges.auth.api_keys import TOKEN, Keyring
from assay.edges.auth.challenges import (
    MALFORMED,
    NO_BEARER,
    NO_TOKEN,
    TOO_LONG,
    UNKNOWN_KEY,
    AuthRefusal,
    Denied,
    Principal,
    denied,
    with_metadata,
)
from assay.settings import Auth, Jwt, SettingsError
from assay.settings.extras import missing

if TYPE_CHECKING:
    from assay.edges.auth.tokens import Tokens

HEADER_BYTES: Final = 8 << 10
"""Maximal bytes of an Authorization header. Tokens with many groups have 4 kB; web servers accept 8 kB."""

_SCHEME: Final = b"bearer "

Clock = Callable[[], float]
Log = Callable[[str], None]


class Gate:
    """Authenticates clients, on one event loop. `known` handles most requests without waiting, `verify` new tokens."""

    __slots__ = ("_clock", "_denied", "_jwt", "_keyring", "_tokens")

    def __init__(self, keyring: Keyring, tokens: "Tokens | None", jwt: Jwt | None, clock: Clock) -> None:
        self._keyring = keyring
        self._tokens = tokens
        self._jwt = jwt
        self._clock = clock
        self._denied: dict[AuthRefusal, Denied] = {}

    @classmethod
    def read(
        cls,
        section: Auth | None,
        *,
        cwd: str | os.PathLike[str],
        tier: str,
        log: Log = lambda _: None,
        clock: Clock = time.time,
    ) -> "Gate | None":
        """
        Return the gate for *section*; None without a section, so that every client is accepted.

        *tier* is the default tier. Relative paths are in *cwd*. Raises `SettingsError` if a file cannot be read or a
        dependency is missing. A URL is requested when the first token comes.
        """
        if section is None:
            return None
        tokens = None
        if section.jwt is not None:
            tokens = _tokens(section, section.jwt, cwd, tier, log, clock)
        return cls(Keyring(section.keys, tier), tokens, section.jwt, clock)

    def known(self, authorization: bytes | None) -> Principal | Denied | None:
        """Return the principal or the refusal for a header without waiting; None if `verify` is needed."""
        if authorization is None:
            return self._deny(NO_TOKEN)
        if len(authorization) > HEADER_BYTES:
            return self._deny(TOO_LONG)
        credential = _credential(authorization)
        if not credential:
            return self._deny(NO_BEARER)
        digest = sha256(credential).digest()
        found = self._keyring.find(digest, self._clock())
        if found is None and self._tokens is not None:
            found = self._tokens.known(digest)
        if found is None:
            found = self._objection(credential)
        return self._deny(found) if isinstance(found, AuthRefusal) else found

    async def verify(self, authorization: bytes) -> Principal | Denied:
        """Return the principal or the refusal for a header. May request the issuer's keys, for at most five seconds."""
        found: Principal | Denied | AuthRefusal | None = self.known(authorization)
        if found is None and self._tokens is not None:
            token = _credential(authorization)
            found = await self._tokens.verify(token, sha256(token).digest())
        if isinstance(found, Principal | Denied):
            return found
        return self._deny(found or UNKNOWN_KEY)

    def challenge(self, refused: Denied, metadata: str = "") -> bytes:
        """Return the value of `WWW-Authenticate`, with the address of the *metadata* if there is one."""
        return with_metadata(refused.challenge, metadata) if self._issuer() else refused.challenge

    def metadata(self, resource: str) -> dict[str, Any] | None:
        """Return the metadata with the issuer of tokens for *resource* (RFC 9728 §2); None without an issuer."""
        issuer = self._issuer()
        if self._jwt is None or issuer is None:
            return None
        scopes = {"scopes_supported": list(self._jwt.required_scopes)} if self._jwt.required_scopes else {}
        return {
            "resource": resource,
            "authorization_servers": [issuer],
            "bearer_methods_supported": ["header"],
            **scopes,
        }

    def _issuer(self) -> str | None:
        """Return the issuer if it is a URL, as in RFC 8414 §2; other issuers have any name."""
        issuer = self._jwt.issuer if self._jwt is not None else None
        return issuer if issuer is not None and issuer.startswith(("https://", "http://")) else None

    def _objection(self, credential: bytes) -> AuthRefusal | None:
        """Return a refusal for a *credential* with an invalid form; None if the form is valid."""
        if not TOKEN.fullmatch(credential):
            return MALFORMED
        return None if self._tokens is not None and credential.count(b".") == 2 else UNKNOWN_KEY

    def _deny(self, refusal: AuthRefusal) -> Denied:
        found = self._denied.get(refusal)
        if found is None:
            found = self._denied[refusal] = denied(refusal, self._jwt.required_scopes if self._jwt is not None else ())
        return found


def _credential(authorization: bytes) -> bytes:
    """Return the credential after the scheme, which is case-insensitive (RFC 9110 §11.1); empty for another scheme."""
    return authorization[len(_SCHEME) :].strip(b" ") if authorization[: len(_SCHEME)].lower() == _SCHEME else b""


def _tokens(section: Auth, jwt: Jwt, cwd: str | os.PathLike[str], tier: str, log: Log, clock: Clock) -> "Tokens":
    try:
        import cryptography  # noqa: F401, PLC0415 - PyJWT loads without it, and then knows no keys

        from assay.edges.auth import key_source  # noqa: PLC0415 - only signed tokens need it
        from assay.edges.auth.tokens import Rules, Tokens  # noqa: PLC0415 - as above
    except ImportError as error:
        raise SettingsError(f"[auth.jwt] needs {missing(error, 'auth')}") from None
    if not jwt.audience:
        log("auth: tokens for any audience are accepted, because auth.jwt.audience is empty")

    place = key_source.shown(jwt.jwks)

    def keys(withdrawn: Callable[[], None]) -> key_source.KeySource:
        if "://" in jwt.jwks:
            return key_source.KeySource(key_source.from_url(jwt.jwks), place, clock=clock, log=log, withdrawn=withdrawn)
        path = os.path.join(cwd, jwt.jwks)
        found = key_source.KeySource(key_source.from_file(path), place, clock=clock, log=log, withdrawn=withdrawn)
        found.take(key_source.read_file(path))
        return found

    try:
        return Tokens(Rules(jwt, tier=tier, names=section.keys), jwt.algorithms, keys, clock)
    except key_source.KeysUnavailableError as error:
        raise SettingsError(f"auth.jwt.jwks: {place}: {error}") from None
