"""
The HTTP server: uvicorn, with time limits for slow connections.

uvicorn waits for ever for the head of a request, for a client that does not read, and for streams at the end. There are
no timers: all connections are checked once a second.
"""

import asyncio
import ctypes
import logging
import os
import socket
from collections.abc import Callable, Hashable
from functools import partial
from itertools import chain
from typing import Any, ClassVar, Final, Protocol

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from assay.edges.http.acceptor import Acceptor
from assay.edges.http.held_bytes import HeldBytes, network_of
from assay.edges.http.replies import SMALL, AwaitedReply, HttpReply, Pairs, Receive, Send, error_body
from assay.edges.http.request_headers import ENDPOINT
from assay.settings.http_section import Http

LARGE: Final = 128 << 10
"""Minimal bytes of a block that is returned at once: the initial value of glibc."""

_M_MMAP_THRESHOLD: Final = -3


def give_back() -> None:
    """Set the threshold. Other libraries have none, and a setting of the user stays."""
    if not os.environ.get("MALLOC_MMAP_THRESHOLD_") and not os.environ.get("GLIBC_TUNABLES"):
        set_option = getattr(ctypes.CDLL(None), "mallopt", None)
        if set_option is not None:
            set_option(_M_MMAP_THRESHOLD, LARGE)


_log: Final = logging.getLogger("assay")

HEAD_BYTES: Final = 64 << 10
"""Maximal bytes of the head of a request, or of trailers. Names, a token and a trace have less than 10 KB."""

PIPELINED: Final = 100
"""Maximal pipelined requests on one connection. Each takes 2 kB, for 20 bytes from the client."""

BODY_BYTES: Final = 64 << 20
"""Maximal bytes of all incomplete bodies. Most bodies are complete with their first packet."""

ANSWER_BYTES: Final = 128 << 20
"""Maximal bytes of all unread responses. A batch of 50 kB can have a response of 4 MB."""

_TOO_LARGE: Final = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_TOO_SLOW: Final = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_LAST: Final = b"connection: close\r\ncontent-length: %d\r\n\r\n"
_ENDPOINT: Final = ENDPOINT.encode()
_OFFERS: Final = frozenset({b"connection", b"upgrade", b"http2-settings"})


class _HeadTooLargeError(Exception):
    """Stops the parser: the head is too long."""


class Served(Protocol):
    """An ASGI application, with the calls of the server that runs it."""

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Handle one HTTP request."""

    def at_once(self, pairs: Pairs, frame: bytes) -> HttpReply | AwaitedReply | None:
        """
        Return the response to a complete POST to the endpoint, if that needs no waiting.

        After None nothing has changed, and the request is handled again.
        """

    def flush(self) -> None:
        """Write the records of immediate responses."""

    def sweep(self) -> None:
        """Drop unused objects; called once a second."""

    def stop(self) -> None:
        """Refuse new requests and end the streams, after their last messages."""

    async def close(self) -> None:
        """End everything that is running; the last call."""


class Outbox:
    """The responses of one turn of the event loop: recorded in one write, before the first is sent."""

    __slots__ = ("_waiting", "flush")

    def __init__(self) -> None:
        self._waiting: list[tuple[Connection, bytes, bool]] = []
        self.flush: Callable[[], None] = lambda: None

    def put(self, connection: "Connection", data: bytes, *, close: bool) -> None:
        """Queue *data* to be sent in this turn."""
        if not self._waiting:
            connection.loop.call_soon(self.send)
        self._waiting.append((connection, data, close))
        connection.due_bytes += len(data)

    def send(self) -> None:
        """Send the queued responses."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            self.flush()
        for connection, data, close in waiting:
            connection.due_bytes = 0
            if not connection.transport.is_closing():
                connection.sent_bytes = len(data)
                connection.transport.write(data)
                if close:
                    connection.transport.close()


class Connection(HttpToolsProtocol):
    """One connection, with the times since which it waits for the client."""

    bodies: "ClassVar[HeldBytes[Connection]]" = HeldBytes(BODY_BYTES)
    answers: "ClassVar[HeldBytes[Connection]]" = HeldBytes(ANSWER_BYTES)
    owner_of: ClassVar[Callable[[Pairs], str]] = staticmethod(lambda _: "")
    """Returns the principal of a request by its headers; empty if that is not known."""
    outbox: ClassVar = Outbox()
    good_head: ClassVar[tuple[list[tuple[bytes, bytes]], bytes]] = ([], b"")
    """The cached head of most responses, and its input."""

    head_since: float | None = None
    """The start time of an incomplete head."""
    loose_bytes = 0
    """Bytes since the last body chunk or complete head."""
    largest_piece = 0
    """Bytes of the largest chunk received."""
    body_since = 0.0
    """The time when the last head was complete."""
    body_bytes = 0
    """Bytes received since then."""
    sent_bytes = 0
    """Bytes of the last message sent. It is held until its last byte is read."""
    begun: list[bytes] | None = None
    """The body of an incomplete request that could be answered at once."""
    due_bytes = 0
    """Bytes of its responses in the outbox."""
    idle_since: float | None = None
    """The time of the last immediate response, if nothing came since."""
    awaited: AwaitedReply | None = None
    """The request in hand, while it waits for its response without a task."""
    early: asyncio.TimerHandle | None = None
    """What makes its response a stream."""
    in_hand: RequestResponseCycle | None = None
    """The request in progress. uvicorn keeps only the last one received."""
    owner: Hashable = ""
    """The principal, or the network, that its bytes are counted for."""
    stuck_since: float | None = None
    """The time since which the client does not read."""
    stuck_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Start the time limit of a new connection."""
        super().connection_made(transport)
        self.head_since = self.loop.time()

    def connection_lost(self, exc: Exception | None) -> None:
        """Clean up after the client disconnected."""
        super().connection_lost(exc)
        self.bodies.release(self)
        self.answers.release(self)
        if self.in_hand is not None and not self.in_hand.response_complete:
            self.in_hand.disconnected = True
            self.in_hand.message_event.set()
        awaited = self._release()
        if awaited is not None:
            awaited.finish()

    def data_received(self, data: bytes) -> None:
        """Handle received bytes."""
        if self.head_since is None and self._answered():
            self.head_since = self.loop.time()
        self.loose_bytes += len(data)
        self.largest_piece = max(self.largest_piece, len(data))
        self.idle_since = None
        self._unset_keepalive_if_required()
        self._parse(data)
        if self.begun is not None and not self.transport.is_closing():
            self._begin_after_all()
        if self.loose_bytes > HEAD_BYTES and not self.transport.is_closing():
            self._refuse_head()
        elif self.cycle is not None and self.cycle.more_body and not self.cycle.response_complete:
            self.body_bytes += len(data)
            self._hold(self.bodies, self.body_bytes)
        else:
            self.bodies.release(self)

    def _hold(self, held: HeldBytes["Connection"], count: int) -> None:
        """Count bytes for the owner of this connection, and close the connections that exceed the limit."""
        if self not in held:
            known = Connection.owner_of(list(self.scope["headers"])) if self.scope is not None else ""
            self.owner = known or network_of(self.client[0] if self.client is not None else "")
        for each in held.hold(self, self.owner, count):
            each.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP. Earlier requests are answered first, and a 400 never stands for a response."""
        self.outbox.send()
        if self.cycle is None or self._answered():
            super().send_400_response(msg)
        elif self.cycle.more_body:
            self.transport.close()
        else:
            # The connection ends with the response to the last request; the parser reads nothing more.
            self.cycle.keep_alive = False

    def _refuse_head(self) -> None:
        """Refuse a head that is too long, and stop reading."""
        self.outbox.send()
        if self._answered():
            self.transport.write(_TOO_LARGE)
            self.transport.close()
        else:
            self.transport.abort()

    def _parse(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            self._decline(data[offer.args[0] :])
        except httptools.HttpParserError:
            # A head that is too long was already refused.
            if not self.transport.is_closing():
                self.send_400_response("Invalid HTTP request received.")

    def _decline(self, rest: bytes) -> None:
        """
        Ignore an `Upgrade` offer (RFC 9110, 7.8), at which the parser stops.

        Java's client offers HTTP/2 with the first request to every server without TLS.
        """
        method = self.parser.get_method()
        if method == b"CONNECT":
            self.send_400_response("Invalid HTTP request received.")
            return
        version = self.parser.get_http_version().encode()
        lines = [b"%b %b HTTP/%b" % (method, self.url, version)]
        for name, value in self.headers:
            if name == b"connection" and b"close" in value.lower():
                lines.append(b"connection: close")
            elif name not in _OFFERS:
                lines.append(b"%b: %b" % (name, value))
        self.parser = httptools.HttpRequestParser(self)
        self._parse(b"\r\n".join(lines) + b"\r\n\r\n" + rest)

    def on_message_complete(self) -> None:
        """Handle a complete request."""
        if self.parser.should_upgrade():
            return
        if self.begun is not None:
            answer = self._at_once(b"".join(self.begun))
            if answer is not None:
                self.begun = None
                if isinstance(answer, HttpReply):
                    keep = self.parser.should_keep_alive() and self.parser.get_http_version() != "1.0"
                    self._answer(answer, keep=keep)
                else:
                    self._await(answer)
                return
            self._begin_after_all()
        super().on_message_complete()

    def _at_once(self, body: bytes) -> HttpReply | AwaitedReply | None:
        try:
            answer: HttpReply | AwaitedReply | None = self._app.at_once(self.scope["headers"], body)
        except (
            Exception
        ) as error:  # a bug of ours: the parser, which calls this, would report it as an error of the client
            _log.exception("%s failed", ENDPOINT, exc_info=error)
            return HttpReply(500, error_body("INTERNAL_ERROR", "the server failed; its log says why"), [])
        return answer

    # ── a response that is awaited without a task ────────────────────────────────────────────────────────────────────

    def _await(self, awaited: AwaitedReply) -> None:
        """Wait for a response. To uvicorn it is a request in hand, behind which others on this connection wait."""
        self.idle_since = None
        self.scope["method"] = "POST"
        self.cycle = self.in_hand = RequestResponseCycle(
            scope=self.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=self.parser.should_keep_alive() and self.parser.get_http_version() != "1.0",
            on_response=self.on_response_complete,
        )
        self.cycle.more_body = False
        self.awaited = awaited
        if awaited.response.is_settled:
            self._settled()
            return
        awaited.response.changed = self._settled
        if awaited.early is not None:
            self.early = self.loop.call_later(awaited.early, self._stream)

    def _settled(self) -> None:
        """Send the awaited response, if it is known how."""
        awaited, cycle = self.awaited, self.in_hand
        if awaited is None or cycle is None or not awaited.response.is_settled:
            return
        answer = awaited.reply()
        if answer is None:
            self._stream()
            return
        self._release()
        cycle.response_complete = True
        awaited.finish()
        if not self.transport.is_closing():
            self._answer(answer, keep=cycle.keep_alive)
            if self.pipeline and cycle.keep_alive:
                self.on_response_complete()

    def _stream(self) -> None:
        """The response takes longer, or is a stream: a task writes it."""
        awaited, cycle = self._release(), self.in_hand
        if awaited is not None and cycle is not None:
            task = self.loop.create_task(cycle.run_asgi(partial(self._carry_on, awaited)))
            task.add_done_callback(self.tasks.discard)
            self.tasks.add(task)

    async def _carry_on(self, awaited: AwaitedReply, _: dict[str, Any], receive: Receive, send: Send) -> None:
        await self.flow.drain()
        await awaited.carry_on(receive, partial(self._send, send))

    def _release(self) -> AwaitedReply | None:
        """Wait for the response no longer; return it."""
        awaited, self.awaited = self.awaited, None
        early, self.early = self.early, None
        if awaited is not None:
            awaited.response.changed = None
        if early is not None:
            early.cancel()
        return awaited

    def _answer(self, answer: HttpReply, *, keep: bool) -> None:
        """Send *answer* with the other responses of this turn of the loop."""
        status, content, headers = answer
        self.server_state.total_requests += 1
        self.idle_since = self.loop.time()
        if keep and not headers and status == 200 and content:
            head = self._good_head()
            self.outbox.put(self, b"%b%d\r\n\r\n%b" % (head, len(content), content), close=False)
            return
        lines = [STATUS_LINE[status]]
        for name, value in (*self.server_state.default_headers, *headers):
            lines += (name, b": ", value, b"\r\n")
        if content:
            lines.append(b"content-type: application/json\r\n")
        lines.append(b"content-length: %d\r\n\r\n" % len(content) if keep else _LAST % len(content))
        lines.append(content)
        self.outbox.put(self, b"".join(lines), close=not keep)

    def _good_head(self) -> bytes:
        """Return the head of most responses, up to the length. uvicorn replaces its list of headers every second."""
        given = self.server_state.default_headers
        made_of, head = Connection.good_head
        if made_of is not given:
            lines = b"".join(b"%b: %b\r\n" % pair for pair in given)
            head = STATUS_LINE[200] + lines + b"content-type: application/json\r\ncontent-length: "
            Connection.good_head = given, head
        return head

    def on_headers_complete(self) -> None:
        """Handle a complete head."""
        if self.parser.should_upgrade():
            return
        # Bytes after a body in the same chunk are not in `loose_bytes`.
        if self.loose_bytes + self.largest_piece > HEAD_BYTES and self._head_bytes() > HEAD_BYTES:
            self._refuse_head()
            raise _HeadTooLargeError
        if self._could_be_answered_at_once():
            self.head_since = None
            self.loose_bytes = 0
            self.begun = []
            # As below: trailers are not headers.
            self.headers = []
            return
        self._begin()

    def _head_bytes(self) -> int:
        """Return the bytes of the complete head."""
        return len(self.url) + 4 * len(self.headers) + sum(map(len, chain.from_iterable(self.headers)))

    def _could_be_answered_at_once(self) -> bool:
        return (
            self.url == _ENDPOINT
            and self.parser.get_method() == b"POST"
            and self._answered()
            and not self.pipeline
            and not self.expect_100_continue
            and not self.flow.write_paused
            and self.due_bytes < SMALL
        )

    def _begin(self) -> None:
        """Let uvicorn start the request."""
        if len(self.pipeline) >= PIPELINED:
            self.transport.abort()
            return
        self.head_since = None
        self.idle_since = None
        self.loose_bytes = 0
        self.body_since = self.loop.time()
        self.body_bytes = 0
        super().on_headers_complete()
        # Trailers are not headers of the request (RFC 9110, 6.5.1).
        self.headers = []
        if not self.pipeline:
            self.in_hand = self.cycle

    def on_body(self, body: bytes) -> None:
        """Handle a chunk of a body."""
        self.loose_bytes = 0
        if self.begun is not None:
            self.begun.append(body)
        else:
            super().on_body(body)

    def _begin_after_all(self) -> None:
        """Hand the request over to uvicorn: its body is incomplete, or its response takes longer."""
        pieces, self.begun = self.begun or [], None
        self._begin()
        for piece in pieces:
            super().on_body(piece)

    def on_response_complete(self) -> None:
        """Continue after a response; the next request may already be there."""
        if self.pipeline:
            self.in_hand = self.pipeline[-1][0]
        super().on_response_complete()

    @property
    def app(self) -> Any:
        """The application that uvicorn runs. Created for each request: a kept one would be a reference cycle."""
        return self._run

    @app.setter
    def app(self, app: Any) -> None:
        self._app = app

    async def _run(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Start a request after the client has read the previous response."""
        await self.flow.drain()
        await self._app(scope, receive, partial(self._send, send))

    async def _send(self, send: Send, message: dict[str, Any]) -> None:
        self.sent_bytes = len(message.get("body", b""))
        await send(message)

    def pause_writing(self) -> None:
        """Pause: the client reads slowly."""
        super().pause_writing()
        self._hold_answer()

    def _hold_answer(self) -> None:
        waiting = self.transport.get_write_buffer_size()
        if waiting:
            self._hold(self.answers, max(waiting, self.sent_bytes))
        else:
            self.answers.release(self)

    def resume_writing(self) -> None:
        """Resume: the client has read nearly everything."""
        super().resume_writing()
        self.answers.release(self)

    def watch(self, now: float, http: Http) -> None:
        """Close a connection that exceeds a time limit."""
        if self.head_since is not None and now - self.head_since > http.header_seconds:
            self.transport.abort()
            return
        if self.idle_since is not None and now - self.idle_since > http.idle_seconds:
            self.transport.close()
            return
        cycle = self.in_hand
        # A body behind a request in progress is not read meanwhile, so its time limit does not apply.
        arriving = cycle is self.cycle and cycle is not None and cycle.more_body and not cycle.response_started
        if arriving and now - self.body_since > http.body_seconds and not self.transport.is_closing():
            self.transport.write(_TOO_SLOW)
            self.transport.close()
            return
        self._hold_answer()
        waiting = self.transport.get_write_buffer_size()
        if not waiting or waiting != self.stuck_bytes:
            self.stuck_since, self.stuck_bytes = (now, waiting) if waiting else (None, 0)
        elif self.stuck_since is not None and now - self.stuck_since > http.send_seconds:
            self.transport.abort()

    def _answered(self) -> bool:
        """Whether every request of the client is answered."""
        return self.cycle is None or self.cycle.response_complete


class HttpServer(uvicorn.Server):
    """uvicorn, which ends streams and slow connections instead of waiting for them."""

    def __init__(self, config: uvicorn.Config, app: Served, http: Http, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._app = app
        self._http = http
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and announce it."""
        # Not by uvicorn, which lets the event loop accept.
        self.servers = [Acceptor(each, self._connection) for each in sockets or ()]  # type: ignore[misc]
        self.started = True
        self._ready()

    def _connection(self) -> Connection:
        return Connection(config=self.config, server_state=self.server_state, app_state={})

    async def on_tick(self, counter: int) -> bool:
        """Check time limits; called every tenth of a second."""
        if counter % 10 == 0:
            now = asyncio.get_running_loop().time()
            for connection in list(self.server_state.connections):
                if isinstance(connection, Connection):
                    connection.watch(now, self._http)
            self._app.sweep()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish requests in progress and refuse new ones, within the grace time."""
        self._app.stop()
        Connection.outbox.send()
        await super().shutdown(sockets)
        await self._app.close()
        for connection in list(self.server_state.connections):
            if isinstance(connection, Connection):
                connection.transport.abort()

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Handle a signal: the first ends gracefully, the second at once. It is not raised again: the status is 0."""
        again = self.should_exit
        super().handle_exit(sig, frame)
        self._captured_signals.clear()
        self.force_exit = again


def listening(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises `OSError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen(1024)
    except OSError:
        found.close()
        raise
    return found


def serve(
    app: Served,
    sock: socket.socket,
    http: Http,
    ready: Callable[[], None],
    *,
    owner_of: Callable[[Pairs], str] = lambda _: "",
) -> None:
    """Serve until a signal comes; *owner_of* returns the principal of a request by its headers, if it is known."""
    # The application logs its own errors; uvicorn's log lines are only about disconnected clients.
    for name in ("uvicorn.error", "uvicorn.access", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=int(http.idle_seconds) or 1,
        timeout_graceful_shutdown=int(http.grace_seconds) or 1,
        backlog=1024,
    )
    Connection.outbox.flush = app.flush
    Connection.owner_of = staticmethod(owner_of)
    give_back()
    HttpServer(config, app, http, ready).run(sockets=[sock])
