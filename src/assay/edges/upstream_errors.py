"""
Describe why a server at a URL gave no response.

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
"""The likely cause of a 404 or 405 for `initialize`."""

SHOWN: Final = 200
"""Maximal characters of a server's text to show."""


class NoAnswerError(Exception):
    """There is no response; the message has the reason."""


class BrokenError(NoAnswerError):
    """The connection failed: it could not be opened, was closed, or did not carry HTTP."""

    def __init__(self, why: str, kind: Literal["unreached", "cut", "garbled"] = "cut") -> None:
        super().__init__(why)
        self.kind = kind


def broken(error: Exception, where: str = "the server") -> BrokenError:
    """Return the error to raise in place of one of the library; *where* is the address, if it may be shown."""
    why = reason(error, where)
    if isinstance(error, _UNREACHED):
        return BrokenError(why, "unreached")
    return BrokenError(why, "garbled" if isinstance(error, aiohttp.ClientResponseError) else "cut")


def reason(error: Exception, where: str = "the server") -> str:
    """
    Return the reason as text; *where* is the address, if it may be shown.

    Texts of the libraries are used only if they cannot contain parts of a request.
    """
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, socket.gaierror):
            return f"its name could not be resolved: {plain(cause.strerror or '')}"
        # Errors of the library may be TLS errors, too, without the reason.
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
        return (
            f"it closed the connection, or its answer is not HTTP: {_NO_HTTP.get(type(error).__name__, 'invalid data')}"
        )
    return f"{_phase(error, where)}: {type(error).__name__}"


_NO_HTTP: Final = {
    "ServerDisconnectedError": "it closed the connection without an answer",
    "ClientPayloadError": "its answer is incomplete",
}

_UNREACHED: Final = (
    *(aiohttp.ClientConnectorError, aiohttp.ClientConnectorCertificateError, aiohttp.ConnectionTimeoutError),
    *(aiohttp.ClientHttpProxyError, ValueError),
)
"""Errors before the connection; a name that cannot be encoded is a `ValueError`."""


def _phase(error: Exception, where: str) -> str:
    return f"cannot connect to {where}" if isinstance(error, _UNREACHED) else "the connection broke off"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield *error* and its causes, including the members of groups."""
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
    """Return *text* on one line, printable and cut."""
    shown = " ".join("".join(char if char.isprintable() else " " for char in text[: 10 * SHOWN]).split())
    return shown if len(shown) <= SHOWN else shown[: SHOWN - 1] + "…"


def first_line(body: bytes) -> str:
    """Return the first line of *body* that is not empty."""
    for line in body[: 10 * SHOWN].decode(errors="replace").splitlines():
        if shown := plain(line):
            return shown
    return ""


def shown_url(url: str) -> str:
    """Return *url* without user name, password, query and fragment; of an invalid URL, only its safe part."""
    try:
        parts = urlsplit(url)
        _ = parts.port
        known = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
    except ValueError:
        # A password with a slash in it looks like a port and a path.
        return ""
    return plain(known if parts.netloc else known.rpartition("@")[2])
