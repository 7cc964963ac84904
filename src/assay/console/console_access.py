"""
Who may use a console: a browser or program on this machine with its token, or a principal of the guard beside it.

A page of another origin can make a browser send requests here, and a page on another port of this machine even sends
our cookie, because ports do not make a site. So `Host` must be ours, and `Origin`, if there is one, exactly ours.
"""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Collection
from hmac import compare_digest
from typing import Any, Final, NamedTuple

from assay.base.loopback import is_loopback
from assay.edges.auth import Gate, Principal
from assay.edges.http.origin_check import Safety
from assay.edges.http.request_headers import Headers

_MOST_VISITS: Final = 100
"""Maximal signed-in browsers; the oldest is signed out."""

_SCHEME: Final = b"bearer "

_FOREIGN: Final = frozenset({b"cross-site", b"same-site"})
"""Values of `Sec-Fetch-Site` with which a browser marks requests of other origins."""

TOKEN_BYTES: Final = 32


class BrowserVisits:
    """The signed-in browsers: by the cookie of each, the `Authorization` that it signed in with, or nothing."""

    def __init__(self) -> None:
        self._known: dict[bytes, bytes] = {}

    def begin(self, cookie: bytes, authorization: bytes = b"") -> str:
        """Sign in a browser; return its cookie, which is *cookie* if it is signed in already."""
        if self._known.get(cookie) == authorization:
            # Another one would leave this one, and the streams of its pages, when the browser is signed out.
            return cookie.decode()
        self._known.pop(cookie, None)
        while len(self._known) >= _MOST_VISITS:
            del self._known[next(iter(self._known))]
        made = secrets.token_urlsafe(TOKEN_BYTES)
        self._known[made.encode()] = authorization
        return made

    def authorization(self, cookie: bytes) -> bytes | None:
        """Return what the browser with this cookie signed in with; None if it is not signed in."""
        return self._known.get(cookie)

    def end(self, cookie: bytes) -> None:
        """Sign out a browser."""
        self._known.pop(cookie, None)


class AccessDenied(NamedTuple):
    """Why a request is refused."""

    status: int
    code: str
    message: str
    login: str = ""
    """How to sign in: ``token``, or ``bearer`` for a key of the guard."""


class ConsoleAccess(ABC):
    """Decides about every request."""

    open_page = False
    """Whether the page itself, which has no data, is for everyone."""

    def __init__(self, port: int) -> None:
        # Cookies do not belong to a port: two consoles must not replace each other's.
        self.cookie = f"assay_console_{port}"
        self._visits = BrowserVisits()

    @abstractmethod
    def is_ours(self, host: bytes) -> bool:
        """Whether *host* is a name of this console."""

    @abstractmethod
    async def denied(self, scope: dict[str, Any], headers: Headers) -> AccessDenied | None:
        """Return why a request has no access; None if it has."""

    @abstractmethod
    def visit(self, token: str, headers: Headers) -> str | None:
        """Return the value of the cookie for a visit with *token*; None if the token is wrong."""

    async def login(self, headers: Headers) -> str | None:
        """Return the value of the cookie for a request with a key; None if it is wrong."""
        token = bearer(headers)
        return None if token is None else self.visit(token.decode("latin-1"), headers)

    def logout(self, headers: Headers) -> None:
        """Sign out the browser that sent the request: its cookie is not valid any more."""
        self._visits.end(self.given_cookie(headers))

    def credential(self, headers: Headers) -> str:
        """Return the `Authorization` for calls through the guard beside the console; "" if it needs none."""
        del headers
        return ""

    def objection(self, method: str, headers: Headers) -> AccessDenied | None:
        """Return why `Host` and `Origin` are refused; None if they are not."""
        host = headers.get(b"host", b"").strip()
        if not self.is_ours(host):
            return AccessDenied(403, "forbidden", "this Host is not served here")
        origin = headers.get(b"origin")
        own = {b"http://" + host.lower(), b"https://" + host.lower()}
        if origin is not None and origin.lower() not in own:
            return AccessDenied(403, "forbidden", "pages of another origin have no access")
        navigates = method == "GET" and headers.get(b"sec-fetch-mode") == b"navigate"
        if headers.get(b"sec-fetch-site") in _FOREIGN and not navigates:
            return AccessDenied(403, "forbidden", "pages of another origin have no access")
        if method == "POST" and origin is None and bearer(headers) is None:
            return AccessDenied(403, "forbidden", "a POST needs the Origin of the console, or Authorization")
        return None

    def given_cookie(self, headers: Headers) -> bytes:
        """Return the value of our cookie in a request; empty without one."""
        name = self.cookie.encode()
        for each in headers.get(b"cookie", b"").split(b";"):
            key, _, value = each.strip().partition(b"=")
            if key == name:
                return value
        return b""


def bearer(headers: Headers) -> bytes | None:
    """Return the credential in `Authorization`; None without one."""
    given = headers.get(b"authorization")
    if given is None or given[: len(_SCHEME)].lower() != _SCHEME:
        return None
    return given[len(_SCHEME) :].strip()


class TokenAccess(ConsoleAccess):
    """The token of a console, for programs and browsers on this machine."""

    def __init__(self, *, port: int, safety: Safety | None = None) -> None:
        """*port* is that of the console; *safety* has the names of the guard that it is beside, if there is one."""
        super().__init__(port)
        self.token = secrets.token_urlsafe(TOKEN_BYTES)
        self._safety = safety
        self._hosts = {b"%s:%d" % (name, port) for name in (b"127.0.0.1", b"localhost", b"[::1]")}

    def is_ours(self, host: bytes) -> bool:
        """Whether *host* is a name of this console."""
        if self._safety is not None:
            return self._safety.allows(host, None)
        return host.lower() in self._hosts

    async def denied(self, scope: dict[str, Any], headers: Headers) -> AccessDenied | None:
        """Return why a request has no access; None if it has."""
        client = scope.get("client")
        if client is None or not is_loopback(str(client[0])):
            return AccessDenied(403, "forbidden", "only clients on this machine; configure [auth] for others")
        given = bearer(headers)
        if given is not None and compare_digest(given, self.token.encode()):
            return None
        if self._visits.authorization(self.given_cookie(headers)) is not None:
            return None
        return AccessDenied(401, "login", "open the address with the token that the console printed", "token")

    def visit(self, token: str, headers: Headers) -> str | None:
        """Return the value of the cookie for a visit with *token*; None if the token is wrong."""
        good = compare_digest(token.encode(errors="replace"), self.token.encode())
        return self._visits.begin(self.given_cookie(headers)) if good else None


class GateAccess(ConsoleAccess):
    """Some principals of a guard with authentication. A browser signs in once, and its key is verified each time."""

    open_page = True

    def __init__(self, gate: Gate, safety: Safety, port: int, names: Collection[str]) -> None:
        """*names* are the principals that have access: a console shows the messages of all of them."""
        super().__init__(port)
        self._gate, self._safety, self._names = gate, safety, frozenset(names)

    def is_ours(self, host: bytes) -> bool:
        """Whether *host* is a name of the guard."""
        return self._safety.allows(host, None)

    async def denied(self, scope: dict[str, Any], headers: Headers) -> AccessDenied | None:
        """Return why a request has no access; None if it has."""
        del scope
        given = headers.get(b"authorization") or self._visits.authorization(self.given_cookie(headers))
        if given is not None and await self._admits(given):
            return None
        return AccessDenied(401, "login", "sign in with a key of the guard that auth.console names", "bearer")

    async def _admits(self, authorization: bytes) -> bool:
        found = self._gate.known(authorization)
        if found is None:
            found = await self._gate.verify(authorization)
        return isinstance(found, Principal) and found.name in self._names

    def credential(self, headers: Headers) -> str:
        """Return the `Authorization` of the request, or of the signed-in browser that sent it."""
        given = headers.get(b"authorization") or self._visits.authorization(self.given_cookie(headers)) or b""
        return given.decode("latin-1")

    def visit(self, token: str, headers: Headers) -> str | None:
        """Return None: a key of the guard does not belong in an address, which browsers and proxies record."""
        del token, headers
        return None

    async def login(self, headers: Headers) -> str | None:
        """Return the value of the cookie for a request with a key; None if it is wrong."""
        given = headers.get(b"authorization")
        if given is None or not await self._admits(given):
            return None
        return self._visits.begin(self.given_cookie(headers), given)
