"""The HTTP application of a console: its page, API and events. No HTML is made here: text of peers is JSON."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from gzip import compress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs

import orjson

from assay.console.api_values import JSON_KIND, ApiError, ApiReply, ApiRequest, number_of
from assay.console.console_access import AccessDenied, ConsoleAccess
from assay.console.console_answers import ConsoleAnswers
from assay.console.console_exports import Exporter, journal_file, recording_file
from assay.console.console_posts import ConsolePosts
from assay.console.console_state import ConsoleState
from assay.console.event_stream import MOST_PAGES, ChangeSignal, EventStream
from assay.edges.http import body
from assay.edges.http.replies import STREAM, AwaitedReply, HttpReply, Pairs, Receive, Send
from assay.edges.http.request_headers import Headers, headers_of, media_type
from assay.guard.internal_errors import log_once

PAGE: Final = "index.html"

_KINDS: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
}
"""The files that are served, by the end of their names; no others are."""


class WebFile(NamedTuple):
    """A file of the page."""

    content: bytes
    kind: str
    tag: str
    """A value for `ETag`."""


class WebFiles:
    """All files, found once: a name in a request is compared with them, and never becomes a path."""

    def __init__(self) -> None:
        root = Path(__file__).parents[1] / "web"
        found = (each for each in root.rglob("*") if each.suffix in _KINDS and each.is_file() and not each.is_symlink())
        self._paths = {each.relative_to(root).as_posix(): each for each in sorted(found)}

    @property
    def names(self) -> list[str]:
        """The names of all files."""
        return list(self._paths)

    def read(self, name: str) -> WebFile | None:
        """Return a file; None for an unknown name."""
        path = self._paths.get(name)
        if path is None:
            return None
        try:
            content = path.read_bytes()
        except OSError:
            return None
        return WebFile(content, _KINDS[path.suffix], f'"{sha256(content).hexdigest()[:32]}"')


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
"""Maximal bytes of the body of a request: the numbers of all rows."""

_SMALL: Final = 4096
"""Bytes of an answer that is not compressed."""

_LOGIN_PAGE: Final = (
    b"This console needs its token.\n\nOpen the address that `assay console` printed when it was started; it ends with "
    b"?token= and the token.\nThe token changes with each start.\n"
)


class ConsoleApp:
    """The application."""

    def __init__(
        self, state: ConsoleState, access: ConsoleAccess, reports: Mapping[str, Exporter], *, epoch: str
    ) -> None:
        """*reports* are exports that the command line adds."""
        self.state, self.access, self.epoch = state, access, epoch
        self._web = WebFiles()
        self.signal = ChangeSignal()
        self._streams: list[tuple[bytes, asyncio.Future[None]]] = []
        """The pages that listen: the cookie of each, and what is done when it is gone."""
        exporters = {"recording": recording_file, "journal": journal_file, **reports}
        self._answers = ConsoleAnswers(state, exporters, epoch=epoch)
        self._posts = ConsolePosts(state, exporters, self._answers.server_of)

    def end(self) -> None:
        """End the streams: the console ends."""
        self.signal.end()

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
        method, path = scope["method"], scope["path"].removeprefix("/")
        _refuse(self.access.objection(method, headers))
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
        denied = self.access.denied(scope, request.headers)
        is_page = not request.path.startswith("api/")
        if denied is not None and is_page and denied.status == 401:
            await self._reply(send, ApiReply(_LOGIN_PAGE, _TEXT, 401), request.headers)
            return
        _refuse(denied)
        if is_page:
            await self._reply(send, self._file(request), request.headers)
        elif request.path == "api/events":
            await self._events(request, receive, send)
        else:
            await self._reply(send, self._answers.answer(request), request.headers)

    async def _post(self, scope: dict[str, Any], request: ApiRequest, receive: Receive, send: Send) -> None:
        _refuse(self.access.denied(scope, request.headers))
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
        reply = self._logout(request) if request.path == "api/logout" else await self._posts.answer(request)
        await self._reply(send, reply, request.headers)

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
        return ApiReply(b"", _TEXT, 303, ((b"location", b"/"), self._cookie(value)))

    def _cookie(self, value: str, age: str = "") -> tuple[bytes, bytes]:
        made = f"{self.access.cookie}={value}; HttpOnly; SameSite=Strict; Path=/{age}"
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

    async def _events(self, request: ApiRequest, receive: Receive, send: Send) -> None:
        if len(self._streams) >= MOST_PAGES:
            raise ApiError(503, "busy", f"at most {MOST_PAGES} pages can listen at once")
        gone: asyncio.Future[None] = asyncio.ensure_future(_disconnected(receive))
        listening = self.access.given_cookie(request.headers), gone
        self._streams.append(listening)
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
            gone.cancel()
            self._streams.remove(listening)

    def _after(self, request: ApiRequest) -> tuple[int, int]:
        """Return the row and the change to begin behind; a row of -1 for another start of the console."""
        last = request.headers.get(b"last-event-id", b"").decode("latin-1")
        if last:
            epoch, *numbers = last.split("-")
            known = epoch == self.epoch and len(numbers) == 2 and all(n.isdecimal() and len(n) < 16 for n in numbers)
            return (int(numbers[0]), int(numbers[1])) if known else (-1, 0)
        return number_of(request, "after", self.state.store.newest), number_of(request, "tick", self.state.tick)

    def _logout(self, request: ApiRequest) -> ApiReply:
        self.access.logout(request.headers)
        cookie = self.access.given_cookie(request.headers)
        # Other pages of the same browser get nothing more.
        for owner, gone in self._streams if cookie else ():
            if owner == cookie:
                gone.cancel()
        return ApiReply(b"{}", headers=(self._cookie("", "; Max-Age=0"),))


def _refuse(denied: AccessDenied | None) -> None:
    if denied is not None:
        raise ApiError(denied.status, denied.code, denied.message)


async def _disconnected(receive: Receive) -> None:
    """Return when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


Pump = Callable[[], Coroutine[Any, Any, None]]
"""What feeds a console until it is cancelled."""


class ConsoleService:
    """The application with its pump, as the HTTP server of the project runs it."""

    def __init__(self, app: ConsoleApp, pump: Pump) -> None:
        self._app, self._pump = app, pump
        self._task: asyncio.Task[None] | None = None

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Handle one HTTP request."""
        await self._app(scope, receive, send)

    def begin(self) -> None:
        """Start the pump, on the running event loop."""
        self._task = asyncio.get_running_loop().create_task(_logged(self._pump))

    def at_once(self, pairs: Pairs, frame: bytes) -> HttpReply | AwaitedReply | None:
        """Return None: every request takes the same way."""
        del pairs, frame
        return None

    def flush(self) -> None:
        """Do nothing: a console has no records of its own."""

    def sweep(self) -> None:
        """Do nothing: everything is bounded."""

    def stop(self) -> None:
        """End the streams."""
        self._app.end()

    async def close(self) -> None:
        """End the pump."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


async def _logged(pump: Pump) -> None:
    """Run *pump*; an error of ours is logged, and the page stays as it is."""
    try:
        await pump()
    except Exception as error:
        log_once(error, "the console gets no further records")
