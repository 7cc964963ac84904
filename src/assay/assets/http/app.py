"""
The ASGI application: one POST in, one JSON answer out. Nothing is kept from one request to the next.

It handles HTTP. The asset server judges and answers messages; the access check decides which clients may connect.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from functools import partial
from typing import Any, Final, TypeVar

from assay.assets.asset_server import WAITING, AssetServer, AssetTurn, Settled, is_mcp
from assay.assets.mcp_methods import Methods
from assay.base.limits import REQUESTS, Limits
from assay.base.verdict import Verdict
from assay.core.conversation import Facts
from assay.edges.auth import Gate, Principal
from assay.edges.http import body
from assay.edges.http.access import METADATA, Door
from assay.edges.http.heads import HeadRefusal, RequestHead, refuse_head
from assay.edges.http.health import probes
from assay.edges.http.http_server import serve
from assay.edges.http.listen_address import ListenAddress
from assay.edges.http.origin_check import Safety
from assay.edges.http.quotas import Full, Quota
from assay.edges.http.replies import (
    CLOSE,
    HttpReply,
    Pairs,
    Receive,
    Route,
    Send,
    error_body,
    is_patient,
    not_allowed,
    refusal,
    refuse,
    reply,
    shared,
    slowly,
    status_of,
)
from assay.edges.http.request_headers import ENDPOINT, headers_of, path_of, peeked, revision_of
from assay.edges.recorder import Recorder, Records
from assay.records.metrics import Metrics
from assay.records.record import ServerPlace
from assay.settings import Settings
from assay.settings.http_section import Http
from assay.spec.revisions import REVISIONS
from assay.spec.schema import protocol_schema

_log: Final = logging.getLogger("assay")

_ENDING: Final = Full(503, "the server is ending")

_NOT_JSON: Final = HeadRefusal(406, "the answer is application/json")

_FAILED: Final = "the server failed; its log says why"

T = TypeVar("T")


class App:
    """The asset server over HTTP. One event loop, no threads but those that wait for a backend."""

    def __init__(
        self,
        methods: Methods,
        recorder: Recorder,
        *,
        limits: Limits = REQUESTS,
        http: Http | None = None,
        safety: Safety | None = None,
        gate: Gate | None = None,
        log: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._methods = methods
        self._recorder = recorder
        self._limits = limits
        self._http = http or Http()
        self._door = Door(safety or Safety(), gate, Principal("anonymous", methods.tier), log)
        self.owner_of = self._door.owner_of
        each = self._http.requests_each if gate is not None else None
        self._requests = Quota("requests", self._http.requests, each=each)
        self.stopping = False
        self._routes: dict[str, Route] = {
            ENDPOINT: self._endpoint,
            **probes(self._door, stopping=lambda: self.stopping, metrics=recorder.metrics),
            METADATA: self._metadata,
            METADATA + ENDPOINT: self._metadata,
        }

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """One HTTP request."""
        if scope["type"] != "http":
            raise RuntimeError(f"no {scope['type']} here")
        route = self._routes.get(path_of(scope))
        if route is None:
            await refuse(send, "METHOD_NOT_FOUND", f"there is nothing here; MCP is at {ENDPOINT}")
            return
        try:
            await route(scope, receive, send)
        except Exception as error:  # a bug of ours: only the operator sees it
            _log.exception("%s %a failed", scope["method"], scope["path"], exc_info=error)
            # If the response has already started, this raises, and the connection ends.
            await refuse(send, "INTERNAL_ERROR", _FAILED, [CLOSE])

    @property
    def in_hand(self) -> int:
        """The number of requests in progress."""
        return self._requests.held

    def at_once(self, pairs: Pairs, frame: bytes) -> None:
        """Return None: every request takes the same way."""

    def flush(self) -> None:
        """Do nothing: a message is recorded before its answer is sent."""

    def sweep(self) -> None:
        """Write journal lines that wait for the next message."""
        self._recorder.flush()

    def stop(self) -> None:
        """Refuse new requests."""
        self.stopping = True

    async def close(self) -> None:
        """No background work to stop."""

    async def _metadata(self, scope: dict[str, Any], _: Receive, send: Send) -> None:
        await self._door.metadata(scope, send)

    async def _endpoint(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["method"] == "OPTIONS":
            await self._door.preflight(headers_of(scope), send)
            return
        head = await self._door.head(scope, send)
        principal = await self._door.admitted(head.headers, send) if head is not None else None
        if head is None or principal is None:
            return
        if head.method != "POST":
            await not_allowed(send, "POST", shared(head.headers))
            return
        full = _ENDING if self.stopping else self._requests.full(principal.name)
        if full is not None:
            await full.refuse(send, [CLOSE, *shared(head.headers)])
            return
        if not head.as_json:
            await refuse_head(_NOT_JSON, head.headers, send)
            return
        self._requests.take(principal.name)
        try:
            frame = await self._frame(head, receive)
            answer = await self._answer(principal, head, frame)
            await slowly(reply(send, *answer), self._http.send_seconds)
        except body.Gone:
            return
        finally:
            self._requests.give_back(principal.name)

    async def _frame(self, head: RequestHead, receive: Receive) -> bytes:
        """Return the message, or enough of it to refuse it as too long."""
        limit = self._limits.frame_bytes
        if body.says_too_long(head.headers.get(b"content-length"), limit):
            return bytes(limit + 1)
        return await body.read(receive, limit)

    async def _answer(self, principal: Principal, head: RequestHead, frame: bytes) -> HttpReply:
        """Return the response to a message, and record both."""
        began = self._recorder.clock()
        revision = _revision(head, frame)
        # Clients of 2025-03-26 and before send no header.
        patient = is_patient(revision or head.revision, in_session=False)
        server = AssetServer(
            self._methods,
            limits=self._limits,
            tier=principal.tier,
            revision=revision,
            identify=self._recorder.identify,
        )
        try:
            turn = server.hear(frame, Facts("http", head.revision, head.headers))
            moment = self._recorder.moment(turn.verdict, began, head.headers)
            answers = await _answers(server, turn, moment.request_id)
            self._recorder.exchange(turn, answers, moment, head.headers)
        except Exception as error:
            said = server.failed(frame, error)
            content = said[0] if said else error_body("INTERNAL_ERROR", _FAILED)
            status = status_of("INTERNAL_ERROR", patient=bool(said) and patient)
        else:
            # Without the header, what is not JSON-RPC is from no client of MCP: it gets 400, as in specs/000.
            patient = patient and (head.revision is not None or turn.code != "INVALID_ENVELOPE")
            status, content = _outcome(turn, answers, patient=patient)
        self._recorder.flush()
        closing = [CLOSE] if status == 413 else []
        return HttpReply(status, content, [*shared(head.headers), *closing])


def _revision(head: RequestHead, frame: bytes) -> str | None:
    """Return the revision in which a message is answered; None if it is `initialize`, or a bare method."""
    message = None if head.is_stateless else peeked(frame)
    # Without the header, an array can only be a batch of 2025-03-26; specs/001 has none.
    known = head.revision is not None or isinstance(message, list) or (isinstance(message, dict) and is_mcp(message))
    return revision_of(head.revision, message) if known else None


async def _answers(server: AssetServer, turn: AssetTurn, request_id: str) -> Sequence[Settled]:
    """Return the responses to all accepted requests, in order. Other clients do not wait for a backend."""
    if not any(map(_waits, turn.asked)):
        return server.answers(turn, request_id)
    answers = []
    for request in turn.asked:
        answer = await _beside(server.answer, request, request_id)
        answers.append((server.settle(request, answer), answer[1]))
    return answers


def _outcome(turn: AssetTurn, answers: Sequence[Settled], *, patient: bool) -> tuple[int, bytes]:
    """Return the status and the body for a judged message and its responses."""
    verdict, frames = turn.verdict, turn.frames(answers)
    code = turn.code or next((each for _, each in answers if each is not None), None)
    if not frames and (code is not None or verdict.kind == "blank"):
        return refusal(verdict, None, code, patient=patient)
    status = status_of(code, verdict, patient=patient, answered=bool(frames))
    # One message, one response: only a batch has several, and those are in one array.
    return status, frames[0] if frames else b""


def _waits(request: Verdict) -> bool:
    """Whether *request* waits for another service."""
    params = request.value.get("params")
    name = request.value["method"] if request.exchange is None else (params or {}).get("name")
    return bool(name == WAITING)


async def _beside(work: Callable[..., T], *arguments: Any) -> T:
    """
    Return the result of *work*, or raise its exception, in a daemon thread.

    A pool would have few threads, and delay the exit until a backend has answered.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        try:
            given = work(*arguments)
        except Exception as error:
            settle = partial(done.set_exception, error)
        else:
            settle = partial(done.set_result, given)
        with suppress(RuntimeError):  # the loop is closed: the result is no longer needed
            loop.call_soon_threadsafe(lambda: None if done.done() else settle())

    threading.Thread(target=run, daemon=True).start()
    return await done


Log = Callable[[str], None]


def run(
    address: str,
    settings: Settings,
    methods: Methods,
    records: Records,
    *,
    ready: Callable[[], AbstractContextManager[None]],
    settle: Callable[[], None],
    log: Log,
) -> int:
    """Serve at *address* until a signal comes; return the exit status."""
    gate = Gate.read(settings.auth, cwd=".", tier=settings.tiers.tier, log=log)
    place = ListenAddress.open("--http", address, settings.http, gated=gate is not None)
    # Before clients can connect: a request must not wait for a file.
    for revision in REVISIONS:
        protocol_schema(revision)
    metrics = Metrics()
    recorder = Recorder("http", ENDPOINT, records._replace(metrics=metrics), holding=True)
    if records.journal is not None:
        records.journal.introduce("http", ENDPOINT, ServerPlace(address=f"{place.url}{ENDPOINT}"))
    app = App(
        methods,
        recorder,
        limits=settings.limits,
        http=settings.http,
        safety=place.safety,
        gate=gate,
        log=log,
    )
    metrics.gauge("assay_requests_in_flight", "Requests in hand.", lambda: app.in_hand)
    settle()
    with ExitStack() as stack:

        def tell() -> None:
            stack.enter_context(ready())
            log(f"mcp:ready mode=http url={place.url}{ENDPOINT}")
            for line in place.notes(ENDPOINT):
                log(f"assay: {line}")

        serve(app, place.sock, settings.http, tell, owner_of=app.owner_of)
    return 0
