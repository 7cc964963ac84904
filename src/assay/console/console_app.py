"""The HTTP application of a console: its page, API and events. No HTML is made here: text of peers is JSON."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from gzip import compress
from time import time
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs

import orjson

from assay import __version__
from assay.console.console_access import AccessDenied, ConsoleAccess
from assay.console.console_exports import MOST_EXPORTED, OWN_EXPORTS, Exporter, ExportFile, chosen_seqs
from assay.console.console_rows import COLUMNS, VERSION, CallAnswer
from assay.console.console_state import ConsoleState, ServerFacts
from assay.console.event_stream import MOST_PAGES, ChangeSignal, EventStream
from assay.console.exception_text import exception_text
from assay.console.message_view import NO_PAYLOAD, curl, message_answer
from assay.console.web_files import PAGE, WebFiles
from assay.edges.http import body
from assay.edges.http.replies import STREAM, Receive, Send
from assay.edges.http.request_headers import Headers, headers_of, media_type
from assay.records.live.filter_words import WORDS, FilterError, FilterWords

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
_JSON: Final = b"application/json"
_TEXT: Final = b"text/plain; charset=utf-8"

MOST_BODY: Final = 1 << 20
"""Maximal bytes of the body of a request: the arguments of a call, or the numbers of all rows."""

_SMALL: Final = 4096
"""Bytes of an answer that is not compressed."""

_LOGIN_PAGE: Final = (
    b"This console needs its token.\n\nOpen the address that `assay console` printed when it was started; it ends with "
    b"?token= and the token.\nThe token changes with each start.\n"
)


class ApiError(Exception):
    """A request that gets an error. The message is for people."""

    def __init__(self, status: int, code: str, message: str, **more: Any) -> None:
        super().__init__(message)
        self.status = status
        self.error = {"code": code, "message": message, **more}


class ApiReply(NamedTuple):
    """A complete response."""

    content: bytes
    kind: bytes = _JSON
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
    tool: str
    arguments: dict[str, Any]
    confirmed: bool
    authorization: str


@dataclass(frozen=True)
class ConsoleActions:
    """What a console can do beside showing. All of it may wait, and runs in a thread."""

    exporters: Mapping[str, Exporter] = field(default_factory=dict)
    call: Callable[[CallWish], CallAnswer] | None = None
    """Calls a tool. Raises `CallConfirmError` and `CallFailedError`."""
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
        self.state, self.access, self._actions = state, access, actions
        self._base, self._own, self.epoch = base, own, epoch
        self._web = web or WebFiles()
        self.signal = ChangeSignal()
        self._pages = 0
        self._exporters = {**OWN_EXPORTS, **actions.exporters}

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
            await self._events(request, receive, send)
        else:
            await self._reply(send, await self._read(request), request.headers)

    async def _post(self, scope: dict[str, Any], request: ApiRequest, receive: Receive, send: Send) -> None:
        if request.path != "api/login":
            _refuse(await self.access.denied(scope, request.headers))
        if media_type(request.headers.get(b"content-type", b"")) != _JSON:
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
        handler = _POSTS.get(request.path)
        if handler is None:
            raise ApiError(404, "unknown", "there is nothing here")
        await self._reply(send, await handler(self, request._replace(value=value)), request.headers)

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
        value = self.access.visit(request.query["token"])
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

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _read(self, request: ApiRequest) -> ApiReply:
        if request.path == "api/rows":
            return self._rows(request)
        first, _, rest = request.path.removeprefix("api/").partition("/")
        if first == "messages" and rest:
            return self._message(rest)
        handler = _GETS.get(first) if not rest else None
        if handler is None:
            raise ApiError(404, "unknown", "there is nothing here")
        return _json(handler(self, request))

    def _state(self, _: ApiRequest) -> Any:
        store = self.state.store
        return {
            "api": VERSION,
            "assay": __version__,
            "epoch": self.epoch,
            "now": time(),
            "own": self._own,
            "tick": self.state.tick,
            "newest": store.newest,
            "oldest": store.oldest,
            "limits": {"rows": store.most_rows, "detailBytes": store.most_bytes, "exportRows": MOST_EXPORTED},
            "dropped": self.state.dropped,
            "loading": self.state.loading,
            "failed": self.state.failed,
            "servers": self._servers(),
            "formats": list(self._exporters),
            "words": list(WORDS),
            "can": self._can(),
        }

    def _servers(self) -> list[Any]:
        return list(self.state.servers(time(), is_callable=self._actions.call is not None))

    def _can(self) -> list[str]:
        found = ["export", "exception"]
        if self._actions.call is not None:
            found.append("call")
        return [*found, "demo"] if self._actions.demo is not None else found

    def _rows(self, request: ApiRequest) -> ApiReply:
        store = self.state.store
        after, limit = _number(request, "after", 0), _number(request, "limit", store.most_rows)
        rows = store.after(after)
        rows = rows[max(0, len(rows) - limit) :]
        head = {"epoch": self.epoch, "oldest": store.oldest, "newest": store.newest, "columns": COLUMNS}
        return ApiReply(orjson.dumps(head)[:-1] + b',"rows":[' + b",".join(rows) + b"]}")

    def _message(self, rest: str) -> ApiReply:
        number, slash, what = rest.partition("/")
        seq = int(number) if number.isdecimal() and len(number) < 16 else 0
        if (slash and what != "curl") or not seq or seq > self.state.store.newest:
            raise ApiError(404, "unknown", f"there is no row {number[:20]}")
        answer = message_answer(self.state, seq)
        if answer is None:
            raise ApiError(410, "dropped", "the message was dropped: newer ones took its place")
        return _json(self._curl(seq) if slash else answer)

    def _curl(self, seq: int) -> Any:
        record = self.state.store.record(seq)
        row = self.state.store.row(seq)
        found = None if record is None or row is None else curl(record, self.state.server(row[2]))
        if found is None:
            remedy = NO_PAYLOAD if record is not None and "frame" not in record["metadata"] else ""
            why = "only a client's message to a running guard over HTTP can be sent again"
            raise ApiError(409, "unreachable", why, remedy=remedy)
        return {"command": found[0], "notes": found[1]}

    def _findings(self, _: ApiRequest) -> Any:
        board = self.state.findings
        return {
            "groups": board.answer(),
            "rules": dict(board.rules()),
            "wouldStop": board.would_stop,
            "stopped": board.stopped,
        }

    def _contracts(self, request: ApiRequest) -> Any:
        chosen = self._chosen(request)
        servers = [chosen] if chosen is not None else self._known_servers()
        return {"contracts": [self.state.contract(each) for each in servers]}

    def _known_servers(self) -> list[ServerFacts]:
        found = (self.state.server(each["id"]) for each in self.state.servers(0.0))
        return [each for each in found if each is not None]

    def _sessions(self, _: ApiRequest) -> Any:
        return {"sessions": self.state.sessions.answer()}

    def _performance(self, request: ApiRequest) -> Any:
        chosen = self._chosen(request)
        return {"lines": self.state.performance.answer(None if chosen is None else chosen.id)}

    def _chosen(self, request: ApiRequest) -> ServerFacts | None:
        if "server" not in request.query:
            return None
        return self._server_of(_number(request, "server", 0))

    def _server_of(self, ident: Any) -> ServerFacts:
        found = self.state.server(ident) if type(ident) is int else None
        if found is None:
            raise ApiError(404, "unknown", "there is no such server")
        return found

    # ── events ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _events(self, request: ApiRequest, receive: Receive, send: Send) -> None:
        if self._pages >= MOST_PAGES:
            raise ApiError(503, "busy", f"at most {MOST_PAGES} pages can listen at once")
        self._pages += 1
        gone: asyncio.Future[None] = asyncio.ensure_future(_disconnected(receive))
        try:
            stream = EventStream(self.state, self.epoch, *self._after(request), servers=self._servers)
            headers = [*_SAFE, *STREAM]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            # The head alone is not sent before the first bytes of the body.
            await send({"type": "http.response.body", "body": b"retry: 1000\n\n", "more_body": True})
            await stream.run(send, gone, self.signal)
        finally:
            gone.cancel()
            self._pages -= 1

    def _after(self, request: ApiRequest) -> tuple[int, int]:
        """Return the row and the change to begin behind; a row of -1 for another start of the console."""
        last = request.headers.get(b"last-event-id", b"").decode("latin-1")
        if last:
            epoch, *numbers = last.split("-")
            known = epoch == self.epoch and len(numbers) == 2 and all(n.isdecimal() and len(n) < 16 for n in numbers)
            return (int(numbers[0]), int(numbers[1])) if known else (-1, 0)
        return _number(request, "after", self.state.store.newest), _number(request, "tick", self.state.tick)

    # ── actions ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _export(self, request: ApiRequest) -> ApiReply:
        exporter = self._exporters.get(str(request.value.get("format")))
        if exporter is None:
            raise ApiError(400, "invalid", f"format: expected one of {', '.join(self._exporters)}")
        try:
            words = FilterWords.parse(str(request.value.get("filter") or ""))
            seqs = chosen_seqs(request.value.get("seqs"))
        except (FilterError, ValueError) as error:
            raise ApiError(400, "invalid", str(error)) from None
        # Taken here: the store changes while a thread makes the file.
        raw = self.state.store.raw_records(seqs)

        def made() -> tuple[ExportFile, int]:
            known = [(seq, orjson.loads(each)) for seq, each in raw if each is not None]
            return exporter([each for each in known if words.wants(each[1])]), len(raw) - len(known)

        file, missing = await asyncio.to_thread(made)
        left_out = file.left_out + missing
        headers = [(b"content-disposition", f'attachment; filename="assay-{file.ending}"'.encode())]
        if left_out:
            headers.append((b"assay-left-out", b"%d" % left_out))
        return ApiReply(file.content, file.kind.encode(), headers=tuple(headers))

    async def _exception(self, request: ApiRequest) -> ApiReply:
        wanted = {**request.value}
        if "server" in wanted:
            wanted["server_name"] = self._server_of(wanted["server"]).name
        try:
            text, notes = exception_text(wanted, datetime.now(UTC).date())
        except ValueError as error:
            raise ApiError(400, "invalid", str(error)) from None
        return _json({"toml": text, "file": "assay.toml", "notes": notes})

    async def _call(self, request: ApiRequest) -> ApiReply:
        value, call = request.value, self._actions.call
        if call is None:
            raise ApiError(404, "unknown", "this console cannot call tools")
        server = self._server_of(value.get("server"))
        tool, arguments = value.get("tool"), value.get("arguments", {})
        if not isinstance(tool, str) or not isinstance(arguments, dict):
            raise ApiError(400, "invalid", "expected tool, a string, and arguments, an object")
        if not server.address:
            why = "a server over STDIO belongs to its client: use assay call -- COMMAND"
            raise ApiError(409, "unreachable", why if server.totals.state != "ended" else "its guard has ended")
        given = value.get("authorization")
        if not isinstance(given, str):
            given = self.access.credential(request.headers)
        wish = CallWish(server.address, tool, arguments, value.get("confirmed") is True, given)
        try:
            return _json(await asyncio.to_thread(call, wish))
        except CallConfirmError as error:
            raise ApiError(409, "confirm", str(error), annotations=error.annotations) from None
        except CallFailedError as error:
            raise ApiError(502, "failed", str(error)) from None

    async def _demo(self, _: ApiRequest) -> ApiReply:
        if self._actions.demo is None:
            raise ApiError(404, "unknown", "this console has no demonstration")
        try:
            return _json({"server": await asyncio.to_thread(self._actions.demo)})
        except CallFailedError as error:
            raise ApiError(502, "failed", str(error)) from None

    async def _login(self, request: ApiRequest) -> ApiReply:
        value = await self.access.login(request.headers)
        if value is None:
            raise ApiError(401, "login", "the key is not valid here", login="bearer")
        return ApiReply(b"{}", headers=(self._cookie(value),))

    async def _logout(self, request: ApiRequest) -> ApiReply:
        self.access.logout(request.headers)
        return ApiReply(b"{}", headers=(self._cookie("", "; Max-Age=0"),))


_GETS: Final[dict[str, Callable[[ConsoleApp, ApiRequest], Any]]] = {
    "state": ConsoleApp._state,
    "findings": ConsoleApp._findings,
    "contracts": ConsoleApp._contracts,
    "sessions": ConsoleApp._sessions,
    "performance": ConsoleApp._performance,
}

_POSTS: Final[dict[str, Callable[[ConsoleApp, ApiRequest], Awaitable[ApiReply]]]] = {
    "api/export": ConsoleApp._export,
    "api/exception": ConsoleApp._exception,
    "api/call": ConsoleApp._call,
    "api/demo": ConsoleApp._demo,
    "api/login": ConsoleApp._login,
    "api/logout": ConsoleApp._logout,
}


def _refuse(denied: AccessDenied | None) -> None:
    if denied is not None:
        more = {"login": denied.login} if denied.login else {}
        raise ApiError(denied.status, denied.code, denied.message, **more)


def _json(value: Any) -> ApiReply:
    return ApiReply(orjson.dumps(value))


def _number(request: ApiRequest, name: str, default: int) -> int:
    given = request.query.get(name)
    if given is None:
        return default
    if not given.isdecimal() or len(given) > 15:
        raise ApiError(400, "invalid", f"{name}: expected a number")
    return int(given)


async def _disconnected(receive: Receive) -> None:
    """Return when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
