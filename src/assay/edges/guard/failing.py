"""
Why a server at a URL gave no answer, in words for people.

Nothing that is said here has a header's value, a password or a query in it: there may be secrets in those.
"""

import os
import socket
import ssl
from collections.abc import Iterator
from typing import Final

import httpx

CONNECT: Final = 10.0
"""Seconds for a connection, TLS included: a server on another continent takes one or two."""

NO_POST: Final = "this may be a server of 2024-11-05 (HTTP+SSE), or the URL may lack its path"
"""What is likely behind a 404 or 405 that `initialize` gets."""

SHOWN: Final = 200
"""Characters of what a server says that are told."""


def reason(error: Exception, where: str = "the server") -> str:
    """
    Return what happened, in words; *where* is the address that was tried, if it may be shown.

    The texts of the libraries are used only where they cannot contain anything of a request.
    """
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, socket.gaierror):
            return f"its name could not be resolved: {plain(cause.strerror or '')}"
        if isinstance(cause, ssl.SSLError):
            why = getattr(cause, "verify_message", "") or cause.reason or "handshake failed"
            return f"no secure connection: {plain(str(why)).lower().replace('_', ' ')}"
    if isinstance(error, httpx.ConnectTimeout):
        return f"cannot connect to {where} within {CONNECT:g} seconds"
    for cause in causes:
        if isinstance(cause, OSError) and cause.errno:
            return f"{_phase(error, where)}: {os.strerror(cause.errno)}"
    if isinstance(error, httpx.ConnectError):
        return f"cannot connect to {where}: {_many_failed(error)}"
    if isinstance(error, httpx.RemoteProtocolError):
        return f"it broke off, or answered with what is no HTTP: {plain(str(error))}"
    return f"{_phase(error, where)}: {type(error).__name__}"


def _phase(error: Exception, where: str) -> str:
    if isinstance(error, httpx.ConnectError | httpx.ProxyError | httpx.UnsupportedProtocol):
        return f"cannot connect to {where}"
    return "the connection broke off"


def _many_failed(error: Exception) -> str:
    """Where a name has several addresses, each may have failed in its own way; the library tells only that all did."""
    return plain(str(error)).lower() or "unknown reason"


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
