"""
Why a server at a URL gave no answer, in words for people.

No text here contains a header's value, a password or a query: those may be secrets.
"""

import os
import socket
import ssl
from collections.abc import Iterator
from typing import Final, Literal
from urllib.parse import urlsplit

import aiohttp

CONNECT: Final = 10.0
"""Seconds for a connection, TLS included: a server on another continent takes one or two."""

NO_POST: Final = "this may be a server of 2024-11-05 (HTTP+SSE), or the URL may lack its path"
"""What is likely behind a 404 or 405 that `initialize` gets."""

SHOWN: Final = 200
"""Characters of a server's text that are shown."""


class NoAnswerError(Exception):
    """Why there is no answer."""


class BrokenError(NoAnswerError):
    """Why there is no answer, where the connection failed: there was none, it broke off, or it brought no HTTP."""

    def __init__(self, why: str, kind: Literal["unreached", "cut", "garbled"] = "cut") -> None:
        super().__init__(why)
        self.kind = kind


def broken(error: Exception, where: str = "the server") -> BrokenError:
    """The error to raise in place of one of the library; *where* is the address that was tried, if it may be shown."""
    why = reason(error, where)
    if isinstance(error, _UNREACHED):
        return BrokenError(why, "unreached")
    return BrokenError(why, "garbled" if isinstance(error, aiohttp.ClientResponseError) else "cut")


def reason(error: Exception, where: str = "the server") -> str:
    """
    Return what happened, in words; *where* is the address that was tried, if it may be shown.

    The texts of the libraries are used only where they cannot contain anything of a request.
    """
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, socket.gaierror):
            return f"its name could not be resolved: {plain(cause.strerror or '')}"
        # Errors of the library are errors of TLS too, without the text that says why.
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, aiohttp.ClientError):
            why = getattr(cause, "verify_message", "") or cause.reason or "handshake failed"
            return f"no secure connection: {plain(str(why)).lower().replace('_', ' ')}"
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return f"cannot connect to {where} within {CONNECT:g} seconds"
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"cannot connect to {where}: the proxy answered {error.status}"
    if isinstance(error, TimeoutError):
        return "the connection broke off: the server does not read what is sent"
    for cause in causes:
        if isinstance(cause, OSError) and cause.errno:
            return f"{_phase(error, where)}: {os.strerror(cause.errno)}"
    if isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientPayloadError | aiohttp.ClientResponseError):
        return f"it broke off, or answered with what is no HTTP: {_NO_HTTP.get(type(error).__name__, 'invalid data')}"
    return f"{_phase(error, where)}: {type(error).__name__}"


_NO_HTTP: Final = {
    "ServerDisconnectedError": "it closed the connection without an answer",
    "ClientPayloadError": "its answer is incomplete",
}

_UNREACHED: Final = (
    *(aiohttp.ClientConnectorError, aiohttp.ClientConnectorCertificateError, aiohttp.ConnectionTimeoutError),
    *(aiohttp.ClientHttpProxyError, ValueError),
)
"""Errors before there is a connection; a name that cannot be encoded is a `ValueError`."""


def _phase(error: Exception, where: str) -> str:
    return f"cannot connect to {where}" if isinstance(error, _UNREACHED) else "the connection broke off"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """*error* and what led to it, groups taken apart."""
    waiting: list[BaseException | None] = [error]
    seen = 0
    while waiting and seen < 50:
        each = waiting.pop(0)
        if each is None:
            continue
        seen += 1
        yield each
        waiting += [each.__cause__, each.__context__, *getattr(each, "exceptions", ())]


def plain(text: str) -> str:
    """*text* as it may be told: on one line, printable, cut short."""
    shown = " ".join("".join(char if char.isprintable() else " " for char in text[: 10 * SHOWN]).split())
    return shown if len(shown) <= SHOWN else shown[: SHOWN - 1] + "…"


def first_line(body: bytes) -> str:
    """The first line of *body* that says anything."""
    for line in body[: 10 * SHOWN].decode(errors="replace").splitlines():
        if shown := plain(line):
            return shown
    return ""


def shown_url(url: str) -> str:
    """*url* without name, password, query and fragment; of what is no URL, as much as cannot be a password."""
    try:
        parts = urlsplit(url)
        _ = parts.port
        known = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
    except ValueError:
        # A password with a slash in it looks like a port and a path.
        return ""
    return plain(known if parts.netloc else known.rpartition("@")[2])
