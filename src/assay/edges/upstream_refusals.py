"""
What a server says where it refuses a request with a 4xx status: read within bounds, and written anew. No I/O.

Servers answer such requests with a JSON-RPC error that often lacks the id, with an OAuth error, or with plain text.
A client gets the status, and a JSON-RPC error with the reason and the id of its request.
"""

from codecs import getincrementaldecoder
from collections.abc import Mapping
from typing import Any, Final

import orjson

from assay.base import no_answer
from assay.base.verdict import Exchange
from assay.core import render
from assay.core.party_state import Id
from assay.edges.upstream_errors import first_line, plain
from assay.ladder import syntax

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
        error = {**no_answer.error("UPSTREAM_FAILURE", detail), "data": data}
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
