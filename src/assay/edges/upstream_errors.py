"""Errors of the way to a server at a URL, and the answers of a guard in their place. No I/O."""

import os
import socket
import ssl
from codecs import getincrementaldecoder
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import aiohttp
import orjson

from assay.judge import render, syntax
from assay.model.errors import no_answer
from assay.model.json_values import Id
from assay.model.verdict import Exchange

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


MOST_BYTES: Final = 64 << 10
"""Bytes of such a body that are read: errors have a few hundred, and a page says all in its first lines."""

SECONDS: Final = 5.0
"""How long its body may take: the status is known already."""


def addressed(content: bytes, exchange: Exchange, known: Mapping[str, Any] | None = None) -> bytes | None:
    """
    The JSON-RPC error in *content* as the answer to *exchange*; None if there is no such error.

    What else is *known* of the refusal goes into `data`, as far as the server has left room there.
    """
    return as_answer(content, exchange.id, _token(exchange), known)


def as_answer(content: bytes, ident: Id, token: bytes, known: Mapping[str, Any] | None = None) -> bytes | None:
    """
    The same as the answer to the request of that id, which is spelt *token*.

    A server that could not read the request, or the session, has no id to echo: what it sent is still the answer.
    """
    value = _read(content)
    error = _error(value)
    if error is None:
        return None
    if _answers(value, ident) and not known:
        return content
    data = error.get("data", {})
    if known and isinstance(data, dict):
        error["data"] = {**known, **data}
    return render.error_frame(token, error, None, None)


def explained(
    content: bytes,
    status: int,
    exchange: Exchange | None,
    revision: str | None,
    why: str = "",
    known: Mapping[str, Any] | None = None,
) -> bytes:
    """
    A JSON-RPC error that says what *content* says, for *exchange* if there is one.

    *why* says it in other words, and *known* is what else there is to know.
    """
    value = _read(content)
    error: dict[str, Any] | None = _error(value)
    if error is None:
        said = _oauth(value) or first_line(content)
        detail = why or f"the server answered with HTTP status {status}{f': {said}' if said else ''}"
        data = {"status": status, **(known or {}), "detail": detail}
        if body := value or _text(content, detail):
            data["body"] = body
        error = {**no_answer("UPSTREAM_FAILURE", detail), "data": data}
    token = _token(exchange) if exchange is not None else b"null"
    return render.error_frame(token, error, None, revision)


def _read(content: bytes) -> dict[str, Any]:
    """The JSON object in *content*, or an empty one."""
    value = syntax.read(content)
    return value if isinstance(value, dict) else {}


def _error(value: dict[str, Any]) -> dict[str, Any] | None:
    """Return the members of a JSON-RPC error to forward: code, message and data."""
    error = value.get("error")
    if not isinstance(error, dict) or type(error.get("code")) is not int or not isinstance(error.get("message"), str):
        return None
    kept = {"code": error["code"], "message": error["message"]}
    return {**kept, "data": error["data"]} if "data" in error else kept


def _answers(value: dict[str, Any], ident: Id) -> bool:
    """Whether a body with an error is the answer to the request *ident* as it stands."""
    given = value.get("id")
    whole = value.get("jsonrpc") == "2.0" and value.keys().isdisjoint({"method", "result"})
    return whole and type(given) is type(ident) and given == ident


def _oauth(value: dict[str, Any]) -> str:
    """Return the text of an OAuth error (RFC 6750, 3.1)."""
    texts = [value.get(name) for name in ("error", "error_description")]
    return ": ".join(plain(each) for each in texts if isinstance(each, str) and each)


def _text(content: bytes, shown: str) -> str:
    """Return *content* if it is plain text that is not part of *shown*; empty for a page for browsers."""
    try:
        # A cut text may end within a character.
        text = getincrementaldecoder("utf-8")().decode(content).strip()
    except UnicodeDecodeError:
        return ""
    readable = text.translate(_LAYOUT).isprintable()
    return text if readable and not text.startswith("<") and text not in shown else ""


_LAYOUT: Final = str.maketrans("", "", "\t\r\n")


def _token(exchange: Exchange) -> bytes:
    return exchange.spelling or orjson.dumps(exchange.id)
