"""Requests, answers and errors of the console's API, and what a console can do. Data only."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import orjson

from assay.console.console_exports import Exporter
from assay.console.console_rows import CallAnswer
from assay.console.console_state import StartCommand
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


class CallConfirmError(Exception):
    """A tool that may change something was to be called without a confirmation."""

    def __init__(self, annotations: dict[str, Any] | None, why: str) -> None:
        super().__init__(why)
        self.annotations = annotations


class CallFailedError(Exception):
    """A server could not be called; the message is one line."""


class CallWish(NamedTuple):
    """A call that a page asks for."""

    url: str
    """The address of the guard; "" to start *guard* for this call."""
    tool: str
    arguments: dict[str, Any]
    confirmed: bool
    authorization: str = ""
    guard: "NewGuard | None" = None


class NewGuard(NamedTuple):
    """A guard to start for one call: as the one that runs already."""

    name: str
    start: StartCommand
    mode: str
    payloads: bool


@dataclass(frozen=True)
class ConsoleActions:
    """What a console can do beside showing. All of it may wait, and runs in a thread."""

    exporters: Mapping[str, Exporter] = field(default_factory=dict)
    call: Callable[[CallWish], CallAnswer] | None = None
    """Calls a tool. Raises `CallConfirmError` and `CallFailedError`."""
    starts: bool = False
    """Whether a call may start the program of a guard on this machine again."""
    demo: Callable[[], str] | None = None
    """Starts the demonstration and returns the name of its server. Raises `CallFailedError`."""


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
