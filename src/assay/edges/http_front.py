"""
The ASGI application of the guard: routes, who may come in, how much at once, and a request read whole.

It knows HTTP. What becomes of a message, the backend says.
"""

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from assay.edges.auth import Principal
from assay.edges.backend import Backend, HttpRequest, PromptBackend, failure
from assay.edges.http import body
from assay.edges.http.access import METADATA, Door
from assay.edges.http.heads import RequestHead, check_accept, read_head, refuse_head
from assay.edges.http.health import probes
from assay.edges.http.quotas import Full, Quota
from assay.edges.http.replies import (
    CLOSE,
    AwaitedReply,
    HttpReply,
    Pairs,
    Receive,
    Route,
    Send,
    not_allowed,
    refuse,
    reply,
    shared,
)
from assay.edges.http.request_headers import ENDPOINT, headers_of, path_of
from assay.model.bounded import Shares
from assay.settings.http_section import Http

_MOST_HEADS: Final = 128
"""Heads of requests that are remembered, of up to 64 kB each."""

_log: Final = logging.getLogger("assay")


LONG_BODY: Final = 64 << 10
"""Bytes from which on a body is counted. Shorter ones of all requests in hand take 64 MB together."""

BODIES: Final = 256 << 20
"""Bytes of all longer bodies of requests in hand. Their number times the longest message would be 16 GiB."""


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
        shared_by_many, gated = len(self._backends) > 1, door.gate is not None
        self._requests = Quota(
            "requests",
            http.requests,
            each=http.requests_each if gated else None,
            per_server=http.requests_per_server if shared_by_many else None,
        )
        self._streams = Quota(
            "streams",
            http.streams,
            each=http.streams_each if gated else None,
            per_server=http.streams_per_server if shared_by_many else None,
        )
        self._bodies = Shares(BODIES)
        """The bytes of long bodies, which are kept until their requests are answered."""
        self._heads: dict[tuple[tuple[bytes, bytes], ...], tuple[RequestHead, Principal]] = {}
        self._begins = {path: each.begin for path, each in self._backends.items() if isinstance(each, PromptBackend)}
        self._flushes = [each.flush for each in self._backends.values() if isinstance(each, PromptBackend)]
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
        path = path_of(scope)
        route = self._routes.get(path)
        try:
            if path in self._backends:
                await self._endpoint(path, scope, receive, send)
            elif route is not None:
                await route(scope, receive, send)
            else:
                there = ", ".join([*self._backends][:10])
                await refuse(send, "METHOD_NOT_FOUND", f"there is nothing here; MCP is at {there}")
        except Exception as error:  # a bug of ours: only the operator sees it
            _log.exception("%s %a failed", scope["method"], path, exc_info=error)
            # Where the answer has begun already this raises, and the connection ends.
            await refuse(send, "INTERNAL_ERROR", "the guard failed; its log says why", [CLOSE])

    @property
    def in_hand(self) -> int:
        """How many requests are being answered."""
        return self._requests.held

    @property
    def streams(self) -> int:
        """How many streams are open."""
        return self._streams.held

    def at_once(self, pairs: Pairs, frame: bytes) -> HttpReply | AwaitedReply | None:
        """
        Return the response to a POST to the endpoint that is there whole, or the request that waits for it.

        None for a request that has to wait before it gets as far, or is refused.
        """
        begin = self._begins.get(ENDPOINT)
        if begin is None or self.stopping or len(frame) > self._frame_bytes:
            return None
        key = tuple(pairs)
        head, principal = self._heads.get(key) or self._known(key)
        if head is not None and self._door.gate is not None:
            # A token may have expired meanwhile.
            principal = self._door.known(head.headers)
        if head is None or principal is None or self._requests.full(principal.name, ENDPOINT) is not None:
            return None
        if len(frame) > LONG_BODY:
            # Counted with the others, which are read first.
            return None
        request = HttpRequest(head, b"", frame, principal.name)
        try:
            found = begin(request)
        except Exception as error:  # the request gets its answer, and only the log has the reason
            _log.exception("a POST request failed", exc_info=error)
            status, content = failure(request, "INTERNAL_ERROR", "the guard failed; its log says why")
            return HttpReply(status, content, shared(head.headers))
        if found is not None and not isinstance(found, HttpReply):
            self._requests.take(principal.name, ENDPOINT)
            found.release = partial(self._requests.give_back, principal.name, ENDPOINT)
        return found

    def _known(self, pairs: tuple[tuple[bytes, bytes], ...]) -> tuple[RequestHead | None, Principal | None]:
        """
        Return the head of a POST with these headers, and the principal, if the request is let in.

        Both are remembered, since a client repeats most of its heads.
        """
        head = read_head("POST", pairs)
        if not isinstance(head, RequestHead) or check_accept(head) is not None:
            return None, None
        principal = self._door.known(head.headers)
        if principal is not None:
            if len(self._heads) >= _MOST_HEADS:
                self._heads.clear()
            self._heads[pairs] = head, principal
        return head, principal

    def flush(self) -> None:
        """Write the records of what is sent from now on."""
        for flush in self._flushes:
            flush()

    def sweep(self) -> None:
        """Let every backend drop unused objects."""
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
        method = scope["method"]
        if method == "OPTIONS":
            await self._door.preflight(headers_of(scope), send)
            return
        head = await self._door.head(scope, send)
        if head is None:
            return
        principal = await self._door.admitted(head.headers, send, path)
        if principal is None:
            return
        unacceptable = check_accept(head)
        if method not in {"POST", "GET", "DELETE"}:
            await not_allowed(send, "POST, GET, DELETE", shared(head.headers))
        elif unacceptable is not None:
            await refuse_head(unacceptable, head.headers, send)
        else:
            request = HttpRequest(head, scope["query_string"], b"", principal.name)
            await self._counted(path, request, receive, send)

    async def _counted(self, path: str, request: HttpRequest, receive: Receive, send: Send) -> None:
        """A request to the backend at *path*, unless there are too many at once."""
        quota = self._streams if request.method == "GET" else self._requests
        full = Full(503, "the guard is ending") if self.stopping else quota.full(request.principal, path)
        if full is not None:
            await full.refuse(send, [CLOSE, *shared(request.headers)])
            return
        quota.take(request.principal, path)
        try:
            await self._read(self._backends[path], request, receive, send)
        finally:
            quota.give_back(request.principal, path)

    def _too_long(self) -> bytes:
        """As many bytes as make a message too long, the same for all."""
        if not self._zeros:
            self._zeros = bytes(self._frame_bytes + 1)
        return self._zeros

    async def _read(self, backend: Backend, request: HttpRequest, receive: Receive, send: Send) -> None:
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
        counted = len(request.frame) if len(request.frame) > LONG_BODY and request.frame is not self._zeros else 0
        if not self._bodies.take(request.principal, counted):
            full = Full(503, "too many long requests at once")
            await full.refuse(send, [CLOSE, *shared(request.headers)])
            return
        try:
            await backend.answer(request, receive, send)
        except Exception as error:  # a mistake of ours: the request gets its answer, and only the log says why
            _log.exception("a %s request failed", request.method, exc_info=error)
            status, content = failure(request, "INTERNAL_ERROR", "the guard failed; its log says why")
            # Where the answer has begun already this raises, and the connection ends.
            await reply(send, status, content, [CLOSE, *shared(request.headers)])
        finally:
            self._bodies.give_back(request.principal, counted)
