"""
The answer of a server at a URL to one request, read piece by piece and within bounds, and what its failures say.

It does not know what a message means. No text here contains a header's value, a password or a query, except what a
server asks a client to show.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Any, Final

from assay.edges.upstream_client import HttpAnswer
from assay.edges.upstream_errors import BrokenError, first_line, plain, shown_url

_FAILURE: Final = 64 << 10
_FAILURE_SECONDS: Final = 5.0
"""Bytes of a failure's body that are read, and how long: enough for an error, or for the first line of a page."""

_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"


class Lost(Exception):  # noqa: N818 - the reason is shown to people as it is
    """Why there is no answer, with the canonical code for it and further members of the error's `data`."""

    def __init__(self, why: str, code: str = "UPSTREAM_FAILURE", **data: Any) -> None:
        super().__init__(why)
        self.why = why
        self.code = code
        self.data: dict[str, Any] = data


class UpstreamAnswer:
    """The head of an answer, and what follows."""

    def __init__(self, answer: HttpAnswer) -> None:
        self._answer = answer
        self.status = answer.status
        self.type: str = (self.header("content-type") or "").partition(";")[0].strip().lower()

    @property
    def good(self) -> bool:
        """Whether the request was taken."""
        return 200 <= self.status < 300

    @property
    def is_json(self) -> bool:
        """Whether a message follows."""
        return self.type == _JSON

    @property
    def is_events(self) -> bool:
        """Whether events follow."""
        return self.type == _EVENTS

    @property
    def barred(self) -> dict[str, str]:
        """What a server that refuses the client wants to see, for the error's `data`."""
        wanted = plain(self.header("www-authenticate") or "") if self.status in (401, 403) else ""
        return {"wwwAuthenticate": wanted} if wanted else {}

    def header(self, name: str) -> str | None:
        """The value of the header *name*."""
        value = self._answer.header(name.encode())
        return None if value is None else value.decode("latin-1")

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it comes. Raises `Lost` where it breaks off."""
        if (self.header("content-encoding") or "identity").strip().lower() != "identity":
            # A few bytes can unpack to gigabytes; and we have asked for none of it.
            raise Lost("its answer is compressed, although that was not requested", "UPSTREAM_INVALID")
        try:
            async for chunk in self._answer.chunks():
                yield chunk
        except BrokenError as error:
            raise Lost(str(error)) from None

    async def body(self, limit: int) -> bytes:
        """The whole body; of one that is longer than *limit*, one byte more than that. Of a failure, its beginning."""
        if self.good:
            return await self._body(limit, [])
        pieces: list[bytes] = []
        # Whatever comes of it, the status is known already.
        with suppress(Lost, TimeoutError):
            async with asyncio.timeout(_FAILURE_SECONDS):
                await self._body(min(limit, _FAILURE), pieces)
        return b"".join(pieces)[:_FAILURE]

    async def _body(self, limit: int, pieces: list[bytes]) -> bytes:
        held = 0
        async with aclosing(self.chunks()) as chunks:
            async for chunk in chunks:
                pieces.append(chunk)
                held += len(chunk)
                if held > limit:
                    break
        return b"".join(pieces)[: limit + 1]

    def failure(self, body: bytes) -> Lost:
        """The reason in an answer with this *body* that has no message in it."""
        said = first_line(body)
        reason = f"{self.status} {plain(self._answer.reason)}".strip()
        if self.status in (401, 403):
            return self._barred(reason, said)
        if 300 <= self.status < 400:
            where = shown_url(self.header("location") or "")
            why = f"it redirects{f' to {where}' if where else ''} ({reason}), which is not followed"
            return Lost(why, status=self.status)
        if self.good and not body:
            return Lost(f"it answered {reason}, and nothing else", "UPSTREAM_INVALID", status=self.status)
        if self.good:
            what = f"the content type {self.type[:60]}" if self.type else "no content type"
            return Lost(f"it answered {reason} with {what}{_quoted(said)}", "UPSTREAM_INVALID", status=self.status)
        return Lost(f"it answered {reason}{_quoted(said)}", status=self.status)

    def _barred(self, reason: str, said: str) -> Lost:
        """The client is not let in: what the server wants to see is the most useful thing to know."""
        known = self.barred
        asks = f"; it asks for {known['wwwAuthenticate']}" if known else ""
        return Lost(f"it answered {reason}{asks}{_quoted(said)}", status=self.status, **known)


def _quoted(said: str) -> str:
    return f": {said}" if said else ""


class SessionGone(Lost):
    """The server no longer knows the session."""

    def __init__(self, session: bytes, failure: Lost) -> None:
        super().__init__(failure.why, failure.code, **failure.data)
        self.session = session


class Refused(Lost):
    """The server has answered with a 4xx status and this *body*: it may, so a missing answer is not its fault."""

    def __init__(self, failure: Lost, body: bytes) -> None:
        super().__init__(failure.why, failure.code, **failure.data)
        self.body = body
        self.status: int = failure.data["status"]
