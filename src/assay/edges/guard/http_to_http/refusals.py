"""
What a server says where it refuses a request with a 4xx status: read within bounds, and written anew. No I/O.

Servers answer such requests with a JSON-RPC error that often lacks the id, with an OAuth error, or with plain text.
A client gets the status, and a JSON-RPC error with the reason and the id of its request.
"""

from typing import Any, Final

import orjson

from assay import render
from assay.edges.guard.failing import first_line, plain
from assay.errors import CanonicalError
from assay.ladder import syntax
from assay.verdict import Exchange

MOST_BYTES: Final = 64 << 10
"""Bytes of such a body that are read: errors have a few hundred, and a page says all in its first lines."""

SECONDS: Final = 5.0
"""How long its body may take: the status is known already."""


def addressed(content: bytes, exchange: Exchange) -> bytes | None:
    """
    The JSON-RPC error in *content* as the answer to *exchange*; None if there is no such error.

    A server that could not read the request, or the session, has no id to echo: what it sent is still the answer.
    """
    value = _read(content)
    error = _error(value)
    if error is None:
        return None
    ident = value.get("id")
    if type(ident) is type(exchange.id) and ident == exchange.id:
        return content
    return render.error_frame(_token(exchange), error, error.pop("data", None), None)


def explained(content: bytes, status: int, exchange: Exchange | None, revision: str | None) -> bytes:
    """A JSON-RPC error that says what *content* says, for *exchange* if there is one."""
    value = _read(content)
    error: dict[str, Any] | None = _error(value)
    if error is None:
        error = dict(CanonicalError.to_jsonrpc_error("UPSTREAM_FAILURE"))
        said = _oauth(value) or first_line(content)
        detail = f"the server answered with HTTP status {status}{f': {said}' if said else ''}"
        error["data"] = {"status": status, "detail": detail}
    token = _token(exchange) if exchange is not None else b"null"
    return render.error_frame(token, error, error.pop("data", None), revision)


def _read(content: bytes) -> Any:
    """The JSON object in *content*, or an empty one."""
    value = syntax.read(content)
    return value if isinstance(value, dict) else {}


def _error(value: dict[str, Any]) -> dict[str, Any] | None:
    """The members of a JSON-RPC error that may be told: a code, a message, and data of any kind."""
    error = value.get("error")
    if not isinstance(error, dict) or type(error.get("code")) is not int or not isinstance(error.get("message"), str):
        return None
    kept = {"code": error["code"], "message": error["message"]}
    return {**kept, "data": error["data"]} if "data" in error else kept


def _oauth(value: dict[str, Any]) -> str:
    """What an OAuth error says (RFC 6750, 3.1)."""
    told = [value.get(name) for name in ("error", "error_description")]
    return ": ".join(plain(each) for each in told if isinstance(each, str) and each)


def _token(exchange: Exchange) -> bytes:
    return exchange.spelling or orjson.dumps(exchange.id)
