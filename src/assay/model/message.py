"""The messages of JSON-RPC as values."""

from dataclasses import dataclass
from typing import Any

Id = str | int | float | None


@dataclass(frozen=True, slots=True)
class Request:
    """A request: it has exactly one response with the same id."""

    id: Id
    method: str
    params: Any = None


@dataclass(frozen=True, slots=True)
class Notification:
    """A notification: it has no response."""

    method: str
    params: Any = None


@dataclass(frozen=True, slots=True)
class Result:
    """The response to a request that succeeded."""

    id: Id
    result: Any


@dataclass(frozen=True, slots=True)
class Error:
    """The response to a request that failed; the id is None if the request could not be read."""

    id: Id
    code: int
    message: str
    data: Any = None


@dataclass(frozen=True, slots=True)
class Batch:
    """Several messages in one frame, which only revision 2025-03-26 has."""

    messages: tuple["Message | None", ...]


Message = Request | Notification | Result | Error | Batch


def message_of(kind: str, value: Any) -> Message | None:
    """Return the message in *value* of this *kind*; None if it is not a valid message."""
    match kind, value:
        case "request", {"method": str(method)}:
            return Request(value.get("id"), method, value.get("params"))
        case "notification", {"method": str(method)}:
            return Notification(method, value.get("params"))
        case "result", {"result": result}:
            return Result(value.get("id"), result)
        case "error", {"error": {"code": int(code) | float(code), "message": str(message)} as error}:
            return Error(value.get("id"), int(code), message, error.get("data"))
        case "batch", list():
            return Batch(tuple(_entry(each) for each in value))
    return None


def _entry(value: Any) -> Message | None:
    """Return an entry of a batch, of any kind."""
    kinds = ("request", "error", "result") if isinstance(value, dict) and "id" in value else ("notification", "error")
    return next((found for kind in kinds if (found := message_of(kind, value)) is not None), None)
