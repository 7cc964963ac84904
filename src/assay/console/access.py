"""
Who may use a console: a browser or a program on this machine with its token.

A page of another origin can make a browser send requests here, and a page on another port of this machine even sends
our cookie, because ports do not make a site. So `Host` must be ours, and `Origin`, if there is one, exactly ours.
"""

import secrets
from hmac import compare_digest
from typing import Final

from starlette.requests import Request

from assay.edges.http.origin_check import is_loopback

_MOST_VISITS: Final = 100
"""Maximal signed-in browsers; the oldest is signed out."""

_SCHEME: Final = "bearer "

_FOREIGN: Final = frozenset({"cross-site", "same-site"})
"""Values of `Sec-Fetch-Site` with which a browser marks requests of other origins."""

TOKEN_BYTES: Final = 32


class ApiError(Exception):
    """A request that gets an error. The message is for people."""

    def __init__(self, status: int, code: str, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.error = {"code": code, "message": message, **({"remedy": remedy} if remedy else {})}


class ConsoleAccess:
    """Decides about every request."""

    def __init__(self, port: int) -> None:
        """*port* is that of the console."""
        self.token = secrets.token_urlsafe(TOKEN_BYTES)
        # Cookies do not belong to a port: two consoles must not replace each other's.
        self.cookie = f"assay_console_{port}"
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}
        self._visits: dict[str, None] = {}
        """The cookies of signed-in browsers."""

    def check_origin(self, request: Request) -> None:
        """Refuse a request with another `Host` or `Origin`. Raises `ApiError`."""
        headers, method = request.headers, request.method
        host, origin = headers.get("host", "").strip().lower(), headers.get("origin")
        if host not in self._hosts:
            raise ApiError(403, "forbidden", "this Host is not served here")
        navigates = method == "GET" and headers.get("sec-fetch-mode") == "navigate"
        is_foreign = origin is not None and origin.lower() not in {f"http://{host}", f"https://{host}"}
        if is_foreign or (headers.get("sec-fetch-site") in _FOREIGN and not navigates):
            raise ApiError(403, "forbidden", "pages of another origin have no access")
        if method == "POST" and origin is None and _bearer(request) is None:
            raise ApiError(403, "forbidden", "a POST needs the Origin of the console, or Authorization")

    def check_sign_in(self, request: Request) -> None:
        """Refuse a request without a valid cookie or token. Raises `ApiError`."""
        if request.client is None or not is_loopback(request.client.host):
            raise ApiError(403, "forbidden", "only clients on this machine")
        given = _bearer(request)
        is_token = given is not None and compare_digest(given.encode(), self.token.encode())
        if not is_token and self.given_cookie(request) not in self._visits:
            raise ApiError(401, "login", "open the address with the token that the console printed")

    def visit(self, token: str, request: Request) -> str | None:
        """Return the value of the cookie for a visit with *token*; None if the token is wrong."""
        if not compare_digest(token.encode(errors="replace"), self.token.encode()):
            return None
        cookie = self.given_cookie(request)
        if cookie in self._visits:
            # Another one would leave this one, and the streams of its pages, when the browser is signed out.
            return cookie
        while len(self._visits) >= _MOST_VISITS:
            del self._visits[next(iter(self._visits))]
        made = secrets.token_urlsafe(TOKEN_BYTES)
        self._visits[made] = None
        return made

    def sign_out(self, cookie: str) -> None:
        """Sign out a browser: its cookie is not valid any more."""
        self._visits.pop(cookie, None)

    def given_cookie(self, request: Request) -> str:
        """Return the value of our cookie in a request; empty without one."""
        return request.cookies.get(self.cookie, "")


def _bearer(request: Request) -> str | None:
    """Return the credential in `Authorization`; None without one."""
    given = request.headers.get("authorization")
    if given is None or given[: len(_SCHEME)].lower() != _SCHEME:
        return None
    return given[len(_SCHEME) :].strip()
