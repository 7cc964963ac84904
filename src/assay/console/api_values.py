"""Requests, answers and errors of the console's API. Data only."""

from typing import Any, Final, NamedTuple

import orjson

from assay.edges.http.request_headers import Headers

JSON_KIND: Final = b"application/json"


class ApiError(Exception):
    """A request that gets an error. The message is for people."""

    def __init__(self, status: int, code: str, message: str, **more: Any) -> None:
        super().__init__(message)
        self.status = status
        self.error = {"code": code, "message": message, **more}


class ApiReply(NamedTuple):
    """A complete response."""

    content: bytes
    kind: bytes = JSON_KIND
    status: int = 200
    headers: tuple[tuple[bytes, bytes], ...] = ()


class ApiRequest(NamedTuple):
    """One request that was let in."""

    method: str
    path: str
    """Below the console."""
    query: dict[str, str]
    headers: Headers
    value: Any = None
    """The JSON value of a POST."""


def json_reply(value: Any) -> ApiReply:
    """Return a good answer. Raises `ApiError` for a value with too many levels, which a peer can send."""
    try:
        return ApiReply(orjson.dumps(value))
    except TypeError:
        raise ApiError(413, "large", "the answer is nested too deeply to be shown") from None


def number_of(request: ApiRequest, name: str, default: int) -> int:
    """Return a number of the query. Raises `ApiError`."""
    given = request.query.get(name)
    if given is None:
        return default
    if not given.isdecimal() or len(given) > 15:
        raise ApiError(400, "invalid", f"{name}: expected a number")
    return int(given)
