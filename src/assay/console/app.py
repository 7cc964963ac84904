"""The HTTP application of a console: its page, API and events. No HTML is made here: text of peers is JSON."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime
from gzip import compress
from hashlib import sha256
from pathlib import Path
from time import time
from typing import Any, Final

import orjson
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Message, Receive

from assay.console.access import ApiError, ConsoleAccess
from assay.console.events import MOST_PAGES, ChangeSignal, EventStream
from assay.console.exceptions import exception_text
from assay.console.exports import Exporter, Exports, NoPayloadsError
from assay.console.message import curl, message_answer
from assay.console.rows import COLUMNS, HOW_TO_RECORD
from assay.console.state import ConsoleState
from assay.edges.http.replies import AwaitedReply, HttpReply, Pairs
from assay.guard.internal_errors import log_once

PAGE: Final = "index.html"

_KINDS: Final = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
"""The files that are served, by the end of their names; no others are."""

_log: Final = logging.getLogger("assay")

CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

_SAFE: Final = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
"""Headers of every response."""

MOST_BODY: Final = 1 << 20
"""Maximal bytes of the body of a request: the numbers of all rows."""

_SMALL: Final = 4096
"""Bytes of an answer that is not compressed."""

_LOGIN_PAGE: Final = (
    "This console needs its token.\n\nOpen the address that `assay console` printed when it was started; it ends with "
    "?token= and the token.\nThe token changes with each start.\n"
)


def _web_files() -> dict[str, Path]:
    """Return the files of the page by name: that of a request is compared with them, and never becomes a path."""
    root = Path(__file__).parents[1] / "web"
    found = (each for each in root.rglob("*") if each.suffix in _KINDS and each.is_file() and not each.is_symlink())
    return {each.relative_to(root).as_posix(): each for each in found}


Pump = Callable[[], Coroutine[Any, Any, None]]
"""What feeds a console until it is cancelled."""


class ConsoleApp:
    """The application, with its pump, as the HTTP server of the project runs it."""

    def __init__(
        self, state: ConsoleState, access: ConsoleAccess, reports: Mapping[str, Exporter], *, epoch: str
    ) -> None:
        """*reports* are exports that the command line adds."""
        self.state, self.access, self.epoch = state, access, epoch
        self.signal = ChangeSignal()
        self._files = _web_files()
        self._exports = Exports(state, reports)
        self._streams: list[tuple[str, EventStream]] = []
        """The pages that listen, each with its cookie."""
        reads: dict[str, Callable[[], Any]] = {
            "state": lambda: state.answer(epoch, self._exports.formats, time()),
            "findings": state.findings.answer,
            "contracts": lambda: {"contracts": [state.contract(each) for each in state.servers]},
            "sessions": lambda: {"sessions": state.sessions.answer()},
            "performance": lambda: {"lines": state.performance.answer()},
        }
        posts = {"export": self._export, "exception": self._exception, "logout": self._logout}
        self._app = Starlette(
            routes=[
                Route("/", self._page),
                Route("/assets/{name:path}", self._asset),
                *(Route(f"/api/{name}", _reading(read)) for name, read in reads.items()),
                Route("/api/rows", self._rows),
                Route("/api/messages/{seq}", self._message),
                Route("/api/messages/{seq}/curl", self._curl),
                Route("/api/events", self._events),
                *(Route(f"/api/{name}", _posting(post), methods=["POST"]) for name, post in posts.items()),
            ],
            exception_handlers=_HANDLERS,
        )
        self._app.router.redirect_slashes = False
        self._task: asyncio.Task[None] | None = None

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Any) -> None:
        """Answer one HTTP request: only one with access, and every response has its headers."""

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_SAFE)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        try:
            refused = self._refused(Request(scope))
            await (self._app if refused is None else refused)(scope, receive, guarded)
        except ClientDisconnect:
            return
        except Exception as error:  # a bug of ours: only the operator sees it
            _log.exception("the console failed", exc_info=error)

    def _refused(self, request: Request) -> Response | None:
        """Return the answer to a request without access; None if it has access."""
        try:
            self.access.check_origin(request)
            if not (request.url.path == "/" and "token" in request.query_params):
                self.access.check_sign_in(request)
        except ApiError as error:
            is_page = error.status == 401 and not request.url.path.startswith("/api/")
            return Response(_LOGIN_PAGE, 401, media_type="text/plain") if is_page else _error(request, error)
        return None

    # ── its life ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def begin(self, pump: Pump) -> None:
        """Start the *pump*, on the running event loop."""
        self._task = asyncio.get_running_loop().create_task(_logged(pump))

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
        self.signal.end()

    async def close(self) -> None:
        """End the pump."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    # ── the page ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _page(self, request: Request) -> Response:
        if "token" not in request.query_params:
            return self._file(request, PAGE)
        cookie = self.access.visit(request.query_params["token"], request)
        if cookie is None:
            return Response(_LOGIN_PAGE, 401, media_type="text/plain")
        reply = Response(status_code=303, headers={"location": "/"})
        reply.set_cookie(self.access.cookie, cookie, httponly=True, samesite="strict")
        return reply

    async def _asset(self, request: Request) -> Response:
        return self._file(request, request.path_params["name"])

    def _file(self, request: Request, name: str) -> Response:
        try:
            path = self._files[name]
            content = path.read_bytes()
        except (KeyError, OSError):
            raise ApiError(404, "unknown", "there is no such file") from None
        tag = f'"{sha256(content).hexdigest()[:32]}"'
        headers = {"etag": tag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers, media_type=_KINDS[path.suffix])

    # ── what a page reads ────────────────────────────────────────────────────────────────────────────────────────────

    async def _rows(self, request: Request) -> Response:
        store = self.state.store
        rows = store.after(_number(request, "after", 0))
        rows = rows[max(0, len(rows) - _number(request, "limit", store.most_rows)) :]
        head = {"epoch": self.epoch, "oldest": store.oldest, "newest": store.newest, "columns": COLUMNS}
        return await _reply(request, orjson.dumps(head)[:-1] + b',"rows":[' + b",".join(rows) + b"]}")

    async def _message(self, request: Request) -> Response:
        return await _reply(request, dumped(self._found(request)))

    def _found(self, request: Request) -> dict[str, Any]:
        number = request.path_params["seq"]
        seq = int(number) if number.isdecimal() and len(number) < 16 else 0
        if not 0 < seq <= self.state.store.newest:
            raise ApiError(404, "unknown", f"there is no row {number[:20]}")
        answer = message_answer(self.state, seq)
        if answer is None:
            raise ApiError(410, "dropped", "the message was dropped: newer ones took its place")
        return answer

    async def _curl(self, request: Request) -> Response:
        answer = self._found(request)
        record = self.state.store.record(answer["seq"])
        found = None if record is None else curl(record, self.state.server(answer["server"]))
        if found is None:
            remedy = HOW_TO_RECORD if record is not None and record.metadata.frame is None else ""
            why = "only a client's message to a running guard over HTTP can be sent again"
            raise ApiError(409, "unreachable", why, remedy)
        return await _reply(request, dumped({"command": found[0], "notes": found[1]}))

    async def _events(self, request: Request) -> Response:
        if request.method == "HEAD":
            raise ApiError(405, "method", "only GET here")
        if len(self._streams) >= MOST_PAGES:
            raise ApiError(503, "busy", f"at most {MOST_PAGES} pages can listen at once")
        listening = self.access.given_cookie(request), EventStream(self.state, self.epoch, *self._place(request))

        async def events() -> Any:
            self._streams.append(listening)
            try:
                async for each in listening[1].run(self.signal):
                    yield each
            finally:
                self._streams.remove(listening)

        # As a media type it would get a charset, which the type of event streams has no use for.
        return StreamingResponse(events(), headers={"content-type": "text/event-stream", "x-accel-buffering": "no"})

    def _place(self, request: Request) -> tuple[int, int]:
        """Return the row and the change to begin behind; a row of -1 for another start of the console."""
        last = request.headers.get("last-event-id", "")
        if last:
            epoch, *numbers = last.split("-")
            known = epoch == self.epoch and len(numbers) == 2 and all(n.isdecimal() and len(n) < 16 for n in numbers)
            return (int(numbers[0]), int(numbers[1])) if known else (-1, 0)
        return _number(request, "after", self.state.store.newest), _number(request, "tick", self.state.tick)

    # ── what a page does ─────────────────────────────────────────────────────────────────────────────────────────────

    async def _export(self, _: Request, given: dict[str, Any]) -> Response:
        try:
            file = await self._exports.file(given)
        except NoPayloadsError as error:
            raise ApiError(409, "payloads", str(error)) from None
        headers = {"content-disposition": f'attachment; filename="assay-{file.ending}"'}
        if file.left_out:
            headers["assay-left-out"] = str(file.left_out)
        return Response(file.content, headers=headers, media_type=file.kind)

    async def _exception(self, _: Request, given: dict[str, Any]) -> Response:
        ident = given.get("server", 0)
        server = self.state.server(ident) if type(ident) is int else None
        if server is None and "server" in given:
            raise ApiError(404, "unknown", "there is no such server")
        text, notes = exception_text(given, server.name if server is not None else "", datetime.now(UTC).date())
        return Response(orjson.dumps({"toml": text, "file": "assay.toml", "notes": notes}), media_type=_JSON)

    async def _logout(self, request: Request, _: dict[str, Any]) -> Response:
        cookie = self.access.given_cookie(request)
        self.access.sign_out(cookie)
        # Other pages of the same browser get nothing more.
        for owner, stream in self._streams if cookie else ():
            stream.is_over = stream.is_over or owner == cookie
        self.signal.changed()
        reply = Response(b"{}", media_type=_JSON)
        reply.delete_cookie(self.access.cookie, httponly=True, samesite="strict")
        return reply


_JSON: Final = "application/json"


def dumped(value: Any) -> bytes:
    """Return *value* as JSON. Raises `ApiError` for a value with too many levels, which a peer can send."""
    try:
        return orjson.dumps(value)
    except TypeError:
        raise ApiError(413, "large", "the answer is nested too deeply to be shown") from None


def _number(request: Request, name: str, default: int) -> int:
    """Return a number of the query. Raises `ApiError`."""
    given = request.query_params.get(name)
    if given is None:
        return default
    if not given.isdecimal() or len(given) > 15:
        raise ApiError(400, "invalid", f"{name}: expected a number")
    return int(given)


async def _reply(request: Request, content: bytes) -> Response:
    """Return a good answer, compressed if it is large."""
    reply = Response(content, media_type=_JSON)
    if len(content) > _SMALL and "gzip" in request.headers.get("accept-encoding", ""):
        # A thread: compressing all rows takes some tenths of a second.
        headers = {"content-encoding": "gzip", "vary": "accept-encoding"}
        reply = Response(await asyncio.to_thread(compress, content, 1), headers=headers, media_type=_JSON)
    return reply


def _reading(read: Callable[[], Any]) -> Callable[[Request], Coroutine[Any, Any, Response]]:
    async def answered(request: Request) -> Response:
        return await _reply(request, dumped(read()))

    return answered


def _posting(
    post: Callable[[Request, dict[str, Any]], Coroutine[Any, Any, Response]],
) -> Callable[[Request], Coroutine[Any, Any, Response]]:
    async def answered(request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _JSON:
            raise ApiError(400, "invalid", f"a POST needs the content type {_JSON}")
        content = bytearray()
        async for part in request.stream():
            content += part
            if len(content) > MOST_BODY:
                raise ApiError(413, "large", f"at most {MOST_BODY:,} bytes")
        try:
            given = orjson.loads(content)
        except orjson.JSONDecodeError:
            given = None
        if not isinstance(given, dict):
            raise ApiError(400, "invalid", "expected a JSON object")
        try:
            return await post(request, given)
        except ValueError as error:
            raise ApiError(400, "invalid", str(error)) from None

    return answered


def _error(_: Request, error: ApiError) -> Response:
    return Response(orjson.dumps({"error": error.error}), error.status, media_type=_JSON)


def _http_error(request: Request, error: HTTPException) -> Response:
    if error.status_code == 405:
        return _error(request, ApiError(405, "method", "another HTTP method is needed here"))
    return _error(request, ApiError(404, "unknown", "there is nothing here"))


def _bug(request: Request, _: Exception) -> Response:
    return _error(request, ApiError(500, "bug", "the console failed; its log says why"))


_HANDLERS: Final[dict[Any, Any]] = {ApiError: _error, HTTPException: _http_error, Exception: _bug}


async def _logged(pump: Pump) -> None:
    """Run *pump*; an error of ours is logged, and the page stays as it is."""
    try:
        await pump()
    except Exception as error:
        log_once(error, "the console gets no further records")
