"""The HTTP application of a console: its page, API and events. No HTML is made here: text of peers is JSON."""

import asyncio
import logging
from gzip import compress
from typing import Any, Final
from urllib.parse import parse_qs

import orjson

from assay.console.api_values import JSON_KIND, ApiError, ApiReply, ApiRequest, ConsoleActions, number_of
from assay.console.console_access import AccessDenied, ConsoleAccess
from assay.console.console_answers import ConsoleAnswers
from assay.console.console_posts import ConsolePosts
from assay.console.console_state import ConsoleState
from assay.console.event_stream import MOST_PAGES, ChangeSignal, EventStream
from assay.console.export_formats import OWN_EXPORTS
from assay.console.web_files import PAGE, WebFiles
from assay.edges.http import body
from assay.edges.http.replies import STREAM, Receive, Send
from assay.edges.http.request_headers import Headers, headers_of, media_type

_log: Final = logging.getLogger("assay")

CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

_SAFE: Final = [
    (b"content-security-policy", CSP.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]
"""Headers of every response."""

_NOT_KEPT: Final = (b"cache-control", b"no-store")
_TEXT: Final = b"text/plain; charset=utf-8"

MOST_BODY: Final = 1 << 20
"""Maximal bytes of the body of a request: the arguments of a call, or the numbers of all rows."""

ACCESS_PACE: Final = 15.0
"""Seconds between two looks at whether a page that listens may still do so: its key may expire or be removed."""

_SMALL: Final = 4096
"""Bytes of an answer that is not compressed."""

_LOGIN_PAGE: Final = (
    b"This console needs its token.\n\nOpen the address that `assay console` printed when it was started; it ends with "
    b"?token= and the token.\nThe token changes with each start.\n"
)


class ConsoleApp:
    """The application. It is below *base*, which is ``/`` or ends with a slash."""

    def __init__(
        self,
        state: ConsoleState,
        access: ConsoleAccess,
        actions: ConsoleActions,
        *,
        base: str = "/",
        own: str = "console",
        epoch: str,
        web: WebFiles | None = None,
    ) -> None:
        self.state, self.access = state, access
        self._base, self.epoch = base, epoch
        self._web = web or WebFiles()
        self.signal = ChangeSignal()
        self._streams: list[tuple[bytes, asyncio.Future[None]]] = []
        """The pages that listen: the cookie of each, and what is done when it is gone."""
        exporters = {**OWN_EXPORTS, **actions.exporters}
        self._answers = ConsoleAnswers(state, actions, exporters, own=own, epoch=epoch)
        self._posts = ConsolePosts(state, access, actions, exporters, self._answers.server_of)

    def end(self) -> None:
        """End the streams and actions: the console ends."""
        self.signal.end()
        self._posts.end()

    # ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        headers = headers_of(scope)
        try:
            await self._answer(scope, headers, receive, send)
        except ApiError as error:
            content = orjson.dumps({"error": error.error})
            await self._reply(send, ApiReply(content, status=error.status), headers)
        except body.Gone:
            return
        except Exception as error:  # a bug of ours: only the operator sees it
            _log.exception("the console failed", exc_info=error)
            content = orjson.dumps({"error": {"code": "bug", "message": "the console failed; its log says why"}})
            await self._reply(send, ApiReply(content, status=500), headers)

    async def _answer(self, scope: dict[str, Any], headers: Headers, receive: Receive, send: Send) -> None:
        method, path = scope["method"], scope["path"]
        _refuse(self.access.objection(method, headers))
        if path == self._base.rstrip("/") and self._base != "/":
            await self._reply(send, ApiReply(b"", _TEXT, 308, ((b"location", self._base.encode()),)), headers)
            return
        if not path.startswith(self._base):
            raise ApiError(404, "unknown", "there is nothing here")
        path = path[len(self._base) :]
        query = {name: values[-1] for name, values in parse_qs(scope["query_string"].decode("latin-1")).items()}
        if method in {"GET", "HEAD"}:
            if method == "HEAD" and path == "api/events":
                raise ApiError(405, "method", "only GET here")
            await self._get(scope, ApiRequest("GET", path, query, headers), receive, send)
        elif method == "POST":
            await self._post(scope, ApiRequest("POST", path, query, headers), receive, send)
        else:
            raise ApiError(405, "method", "only GET and POST here")

    async def _get(self, scope: dict[str, Any], request: ApiRequest, receive: Receive, send: Send) -> None:
        if not request.path and "token" in request.query:
            await self._reply(send, self._visit(request), request.headers)
            return
        denied = await self.access.denied(scope, request.headers)
        is_page = not request.path.startswith("api/")
        if denied is not None and is_page and denied.status == 401:
            if not self.access.open_page:
                await self._reply(send, ApiReply(_LOGIN_PAGE, _TEXT, 401), request.headers)
                return
        else:
            _refuse(denied)
        if is_page:
            await self._reply(send, self._file(request), request.headers)
        elif request.path == "api/events":
            await self._events(scope, request, receive, send)
        else:
            await self._reply(send, self._answers.answer(request), request.headers)

    async def _post(self, scope: dict[str, Any], request: ApiRequest, receive: Receive, send: Send) -> None:
        if request.path != "api/login":
            _refuse(await self.access.denied(scope, request.headers))
        if media_type(request.headers.get(b"content-type", b"")) != JSON_KIND:
            raise ApiError(400, "invalid", "a POST needs the content type application/json")
        if body.says_too_long(request.headers.get(b"content-length"), MOST_BODY):
            raise ApiError(413, "large", f"at most {MOST_BODY:,} bytes")
        content = await body.read(receive, MOST_BODY)
        if len(content) > MOST_BODY:
            raise ApiError(413, "large", f"at most {MOST_BODY:,} bytes")
        try:
            value = orjson.loads(content)
        except orjson.JSONDecodeError:
            value = None
        if not isinstance(value, dict):
            raise ApiError(400, "invalid", "expected a JSON object")
        request = request._replace(value=value)
        visit = {"api/login": self._login, "api/logout": self._logout}.get(request.path, self._posts.answer)
        await self._reply(send, await visit(request), request.headers)

    async def _reply(self, send: Send, reply: ApiReply, headers: Headers) -> None:
        content = reply.content
        made = [*_SAFE, *reply.headers]
        if not any(name == b"cache-control" for name, _ in reply.headers):
            made.append(_NOT_KEPT)
        if content:
            made.append((b"content-type", reply.kind))
        if len(content) > _SMALL and b"gzip" in headers.get(b"accept-encoding", b""):
            # A thread: compressing all rows takes some tenths of a second.
            content = await asyncio.to_thread(compress, content, 1)
            made += [(b"content-encoding", b"gzip"), (b"vary", b"accept-encoding")]
        made.append((b"content-length", b"%d" % len(content)))
        await send({"type": "http.response.start", "status": reply.status, "headers": made})
        await send({"type": "http.response.body", "body": content})

    # ── the page ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _visit(self, request: ApiRequest) -> ApiReply:
        value = self.access.visit(request.query["token"], request.headers)
        if value is None:
            return ApiReply(_LOGIN_PAGE, _TEXT, 401)
        return ApiReply(b"", _TEXT, 303, ((b"location", self._base.encode()), self._cookie(value)))

    def _cookie(self, value: str, age: str = "") -> tuple[bytes, bytes]:
        made = f"{self.access.cookie}={value}; HttpOnly; SameSite=Strict; Path={self._base}{age}"
        return b"set-cookie", made.encode()

    def _file(self, request: ApiRequest) -> ApiReply:
        name = request.path.removeprefix("assets/") if request.path else PAGE
        found = self._web.read(name) if not request.path or request.path.startswith("assets/") else None
        if found is None:
            raise ApiError(404, "unknown", "there is no such file")
        headers = ((b"etag", found.tag.encode()), (b"cache-control", b"no-cache"))
        if request.headers.get(b"if-none-match") == found.tag.encode():
            return ApiReply(b"", status=304, headers=headers)
        return ApiReply(found.content, found.kind.encode(), headers=headers)

    # ── events ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _events(self, scope: dict[str, Any], request: ApiRequest, receive: Receive, send: Send) -> None:
        if len(self._streams) >= MOST_PAGES:
            raise ApiError(503, "busy", f"at most {MOST_PAGES} pages can listen at once")
        gone: asyncio.Future[None] = asyncio.ensure_future(_disconnected(receive))
        listening = self.access.given_cookie(request.headers), gone
        self._streams.append(listening)
        watching = asyncio.ensure_future(self._watch(scope, request.headers, gone))
        try:
            stream = EventStream(self.state, self.epoch, *self._after(request), servers=self._answers.servers)
            headers = [*_SAFE, *STREAM]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            # The head alone is not sent before the first bytes of the body.
            await send({"type": "http.response.body", "body": b"retry: 1000\n\n", "more_body": True})
            await stream.run(send, gone, self.signal)
            if gone.cancelled():
                await send({"type": "http.response.body", "body": b""})
        finally:
            watching.cancel()
            gone.cancel()
            self._streams.remove(listening)

    async def _watch(self, scope: dict[str, Any], headers: Headers, gone: "asyncio.Future[None]") -> None:
        """End the stream of a page once its cookie or key is not valid any more."""
        try:
            while await self.access.denied(scope, headers) is None:
                await asyncio.sleep(ACCESS_PACE)
        finally:
            # Also if the key cannot be verified.
            gone.cancel()

    def _after(self, request: ApiRequest) -> tuple[int, int]:
        """Return the row and the change to begin behind; a row of -1 for another start of the console."""
        last = request.headers.get(b"last-event-id", b"").decode("latin-1")
        if last:
            epoch, *numbers = last.split("-")
            known = epoch == self.epoch and len(numbers) == 2 and all(n.isdecimal() and len(n) < 16 for n in numbers)
            return (int(numbers[0]), int(numbers[1])) if known else (-1, 0)
        return number_of(request, "after", self.state.store.newest), number_of(request, "tick", self.state.tick)

    async def _login(self, request: ApiRequest) -> ApiReply:
        value = await self.access.login(request.headers)
        if value is None:
            raise ApiError(401, "login", "the key is not valid here", login="bearer")
        return ApiReply(b"{}", headers=(self._cookie(value),))

    async def _logout(self, request: ApiRequest) -> ApiReply:
        self.access.logout(request.headers)
        cookie = self.access.given_cookie(request.headers)
        # Other pages of the same browser get nothing more.
        for owner, gone in self._streams if cookie else ():
            if owner == cookie:
                gone.cancel()
        return ApiReply(b"{}", headers=(self._cookie("", "; Max-Age=0"),))


def _refuse(denied: AccessDenied | None) -> None:
    if denied is not None:
        more = {"login": denied.login} if denied.login else {}
        raise ApiError(denied.status, denied.code, denied.message, **more)


async def _disconnected(receive: Receive) -> None:
    """Return when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
