"""
A server behind the guard, as the HTTP front sees it: what it is handed, and what it must do with it. No I/O.

The front reads requests, sees who may come in, and counts them; what becomes of a message is the backend's.
"""

from typing import NamedTuple, Protocol, runtime_checkable

import orjson

from assay.edges.http.heads import RequestHead
from assay.edges.http.replies import AwaitedReply, HttpReply, Receive, Send, is_patient, status_of
from assay.edges.http.request_headers import Headers
from assay.judge import render


class HttpRequest(NamedTuple):
    """One HTTP request that was let in, with its whole body."""

    head: RequestHead
    query: bytes
    frame: bytes
    """The body; of one that is too long, the first bytes, one more than the limit."""
    principal: str
    """Who asks, by the guard's own keys and tokens; "anonymous" where it has none."""

    @property
    def method(self) -> str:
        """POST, GET or DELETE."""
        return self.head.method

    @property
    def headers(self) -> Headers:
        """Every header by its name in lower case."""
        return self.head.headers


def failure(request: HttpRequest, code: str, detail: str) -> tuple[int, bytes]:
    """Return the status and the body of a canonical error for *request*, with the id of the request if it shows one."""
    try:
        message = orjson.loads(request.frame)
        token = orjson.dumps(message["id"]) if type(message["id"]) in (str, int) else None
    except (ValueError, KeyError, TypeError):
        token = None
    head = request.head
    patient = token is not None and is_patient(head.revision, in_session=head.session is not None)
    return status_of(code, patient=patient), render.plain_error(token, code, detail, why=detail)


class Backend(Protocol):
    """One server behind the guard."""

    async def answer(self, request: HttpRequest, receive: Receive, send: Send) -> None:
        """
        Answers *request*, whole or as a stream; *receive* tells when the client goes.

        Raises for nothing that either side has said.
        """

    def stop(self) -> None:
        """From now on nothing new is begun; streams end, after what is still to be said on them."""

    async def close(self) -> None:
        """End everything that is running, after `stop` and the grace time of requests."""


@runtime_checkable
class PromptBackend(Protocol):
    """A backend that can begin a request without waiting, so that no task is needed for it."""

    def begin(self, request: HttpRequest) -> AwaitedReply | HttpReply | None:
        """Return the response to a POST, or the request that waits for its server; None if that takes more time."""

    def flush(self) -> None:
        """Write the records of what is sent from now on."""
