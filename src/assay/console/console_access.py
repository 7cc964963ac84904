"""
Who may use a console: a browser or a program on this machine with its token.

A page of another origin can make a browser send requests here, and a page on another port of this machine even sends
our cookie, because ports do not make a site. So `Host` must be ours, and `Origin`, if there is one, exactly ours.
"""

import secrets
from hmac import compare_digest
from typing import Any, Final, NamedTuple

from assay.base.loopback import is_loopback
from assay.edges.http.request_headers import Headers

_MOST_VISITS: Final = 100
"""Maximal signed-in browsers; the oldest is signed out."""

_SCHEME: Final = b"bearer "

_FOREIGN: Final = frozenset({b"cross-site", b"same-site"})
"""Values of `Sec-Fetch-Site` with which a browser marks requests of other origins."""

TOKEN_BYTES: Final = 32


class AccessDenied(NamedTuple):
    """Why a request is refused."""

    status: int
    code: str
    message: str


class ConsoleAccess:
    """Decides about every request."""

    def __init__(self, port: int) -> None:
        """*port* is that of the console."""
        self.token = secrets.token_urlsafe(TOKEN_BYTES)
        # Cookies do not belong to a port: two consoles must not replace each other's.
        self.cookie = f"assay_console_{port}"
        self._hosts = {b"%s:%d" % (name, port) for name in (b"127.0.0.1", b"localhost", b"[::1]")}
        self._visits: dict[bytes, None] = {}
        """The cookies of signed-in browsers."""

    def objection(self, method: str, headers: Headers) -> AccessDenied | None:
        """Return why `Host` and `Origin` are refused; None if they are not."""
        host = headers.get(b"host", b"").strip().lower()
        if host not in self._hosts:
            return AccessDenied(403, "forbidden", "this Host is not served here")
        origin = headers.get(b"origin")
        if origin is not None and origin.lower() not in {b"http://" + host, b"https://" + host}:
            return AccessDenied(403, "forbidden", "pages of another origin have no access")
        navigates = method == "GET" and headers.get(b"sec-fetch-mode") == b"navigate"
        if headers.get(b"sec-fetch-site") in _FOREIGN and not navigates:
            return AccessDenied(403, "forbidden", "pages of another origin have no access")
        if method == "POST" and origin is None and bearer(headers) is None:
            return AccessDenied(403, "forbidden", "a POST needs the Origin of the console, or Authorization")
        return None

    def denied(self, scope: dict[str, Any], headers: Headers) -> AccessDenied | None:
        """Return why a request has no access; None if it has."""
        client = scope.get("client")
        if client is None or not is_loopback(str(client[0])):
            return AccessDenied(403, "forbidden", "only clients on this machine")
        given = bearer(headers)
        if given is not None and compare_digest(given, self.token.encode()):
            return None
        if self.given_cookie(headers) in self._visits:
            return None
        return AccessDenied(401, "login", "open the address with the token that the console printed")

    def visit(self, token: str, headers: Headers) -> str | None:
        """Return the value of the cookie for a visit with *token*; None if the token is wrong."""
        if not compare_digest(token.encode(errors="replace"), self.token.encode()):
            return None
        cookie = self.given_cookie(headers)
        if cookie in self._visits:
            # Another one would leave this one, and the streams of its pages, when the browser is signed out.
            return cookie.decode()
        while len(self._visits) >= _MOST_VISITS:
            del self._visits[next(iter(self._visits))]
        made = secrets.token_urlsafe(TOKEN_BYTES)
        self._visits[made.encode()] = None
        return made

    def logout(self, headers: Headers) -> None:
        """Sign out the browser that sent the request: its cookie is not valid any more."""
        self._visits.pop(self.given_cookie(headers), None)

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
