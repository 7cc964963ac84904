"""
The ASGI application of the guard: routes, who may come in, how much at once, and a request read whole.

It knows HTTP. What becomes of a message, the backend says.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from assay.edges.guard.front.guarded import Backend, Request
from assay.edges.http import body
from assay.edges.http.asking import Accepts, Headers, headers_of, is_json
from assay.edges.http.door import METADATA, Door
from assay.edges.http.probes import probes
from assay.edges.http.replies import CLOSE, Pairs, Receive, Reply, Route, Send, not_allowed, refuse, shared
from assay.edges.http.section import Http

_log: Final = logging.getLogger("assay")

_TOO_MANY: Final = (b"retry-after", b"1")

_SINGLE: Final = (b"mcp-session-id", b"mcp-protocol-version", b"last-event-id", b"authorization")


class Front:
    """Backends over HTTP, each at a path of its own. One event loop."""

    def __init__(
        self,
        backends: Mapping[str, Backend],
        door: Door,
        http: Http,
        *,
        frame_bytes: int,
        metrics: Callable[[], bytes],
        beside: Mapping[str, Route] | None = None,
        tend: Callable[[], None] = lambda: None,
    ) -> None:
        """
        *backends* by path, *metrics* as they are to be shown. *beside* are further routes, by path.

        *tend* is called once a second.
        """
        self._tend = tend
        self._backends = dict(backends)
        self._door = door
        self._http = http
        self._frame_bytes = frame_bytes
        self._zeros = b""
        self._accepts = Accepts()
        self.in_hand = 0
        self.streams = 0
        self.stopping = False
        self._routes: dict[str, Route] = {
            **probes(door, stopping=lambda: self.stopping, metrics=metrics),
            **self._metadata(),
            **(beside or {}),
        }

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """One HTTP request."""
        if scope["type"] != "http":
            raise RuntimeError(f"no {scope['type']} here")
        path = scope["path"]
        route = self._routes.get(path)
        try:
            if path in self._backends:
                await self._endpoint(path, scope, receive, send)
            elif route is not None:
                await route(scope, receive, send)
            else:
                there = ", ".join([*self._backends][:10])
                await refuse(send, "METHOD_NOT_FOUND", f"there is nothing here; MCP is at {there}")
        except Exception as error:  # a mistake of ours: nobody sees it but the operator
            _log.exception("%s %a failed", scope["method"], path, exc_info=error)
            # Where the answer has begun already this raises, and the connection ends.
            await refuse(send, "INTERNAL_ERROR", "the guard failed; its log says why", [CLOSE])

    def at_once(self, _: Pairs, __: bytes) -> Reply | None:
        """Nothing is: a server is always waited for."""
        return None

    def flush(self) -> None:
        """Nothing was answered at once; backends put on record what they answer."""

    def sweep(self) -> None:
        """Has every backend drop what nobody uses, if it does."""
        self._tend()
        for backend in self._backends.values():
            sweep = getattr(backend, "sweep", None)
            if sweep is not None:
                sweep()

    def stop(self) -> None:
        """From now on nothing new is begun; streams end."""
        self.stopping = True
        for backend in self._backends.values():
            backend.stop()

    async def close(self) -> None:
        """Ends every backend; one that cannot be ended keeps none of the others from it."""
        for backend in self._backends.values():
            try:
                await backend.close()
            except Exception as error:  # a mistake of ours, and everything else is still to be ended
                _log.exception("a backend could not be ended", exc_info=error)

    def _metadata(self) -> dict[str, Route]:
        """Who gives out tokens for each backend, where our own gate asks for them."""
        if self._door.gate is None:
            return {}

        def route(endpoint: str) -> Route:
            async def metadata(scope: dict[str, Any], _: Receive, send: Send) -> None:
                await self._door.metadata(scope, send, endpoint)

            return metadata

        return {METADATA: route(next(iter(self._backends)))} | {METADATA + each: route(each) for each in self._backends}

    # ── the endpoints ────────────────────────────────────────────────────────────────────────────────────────────────

    async def _endpoint(self, path: str, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        headers = headers_of(scope)
        method = scope["method"]
        if method == "OPTIONS":
            await self._door.preflight(headers, send)
            return
        principal = await self._door.admitted(scope, headers, send, path)
        if principal is None:
            return
        if method not in {"POST", "GET", "DELETE"}:
            await not_allowed(send, "POST, GET, DELETE", shared(headers))
        elif await self._acceptable(method, headers, send):
            request = Request(method, headers, scope["headers"], scope["query_string"], b"", principal.name)
            await self._counted(self._backends[path], request, receive, send)

    async def _acceptable(self, method: str, headers: Headers, send: Send) -> bool:
        """Whether its head is that of such a request; else that has been told."""
        if method == "POST" and not is_json(headers):
            told = [CLOSE, *shared(headers)]
            await refuse(send, "INVALID_ENVELOPE", "the body is application/json", told, status=415)
            return False
        if any(b"\n" in headers.get(name, b"") for name in _SINGLE):
            # Which of two values the server takes nobody knows, so nothing could be judged by either.
            await refuse(
                send, "INVALID_ENVELOPE", "a header came twice that there is one of", shared(headers), status=400
            )
            return False
        as_json, as_stream = self._accepts.read(headers.get(b"accept"))
        if method == "DELETE" or as_stream or (as_json and method == "POST"):
            return True
        wanted = "the answer is application/json or text/event-stream"
        await refuse(send, "INVALID_ENVELOPE", wanted, shared(headers), status=406)
        return False

    async def _counted(self, backend: Backend, request: Request, receive: Receive, send: Send) -> None:
        """A request, unless there are too many at once."""
        if self.stopping or self._is_too_much(request.method):
            why = "the guard is ending" if self.stopping else "too many requests at once"
            await refuse(send, "OVERLOADED", why, [_TOO_MANY, CLOSE, *shared(request.headers)])
            return
        is_stream = request.method == "GET"
        self.streams += is_stream
        self.in_hand += not is_stream
        try:
            await self._read(backend, request, receive, send)
        finally:
            self.streams -= is_stream
            self.in_hand -= not is_stream

    def _is_too_much(self, method: str) -> bool:
        return self.streams >= self._http.streams if method == "GET" else self.in_hand >= self._http.requests

    def _too_long(self) -> bytes:
        """As many bytes as make a message too long, the same for all."""
        if not self._zeros:
            self._zeros = bytes(self._frame_bytes + 1)
        return self._zeros

    async def _read(self, backend: Backend, request: Request, receive: Receive, send: Send) -> None:
        """Reads the body, and hands the request on. A body that says that it is too long is not read at all."""
        if request.method == "POST":
            if body.says_too_long(request.headers.get(b"content-length"), self._frame_bytes):
                frame = self._too_long()
            else:
                try:
                    frame = await body.read(receive, self._frame_bytes)
                except body.Gone:
                    return
            request = request._replace(frame=frame)
        await backend.answer(request, receive, send)
