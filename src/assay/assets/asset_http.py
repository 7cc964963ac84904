"""
The ASGI application: one POST in, one JSON answer out. Nothing is kept from one request to the next.

It handles HTTP. The asset server judges and answers messages; the access check decides which clients may connect.
"""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Final

from assay.assets.asset_server import WAITING, AssetServer, is_mcp
from assay.assets.mcp_methods import Methods
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
from assay.edges.threads import beside
from assay.judge.conversation import Facts
from assay.model.verdict import Verdict
from assay.records.metrics import Metrics
from assay.records.record import ServerPlace
from assay.settings import Settings
from assay.spec.revisions import REVISIONS
from assay.spec.schema import protocol_schema

_log: Final = logging.getLogger("assay")

_ENDING: Final = Full(503, "the server is ending")

_NOT_JSON: Final = HeadRefusal(406, "the answer is application/json")

_FAILED: Final = "the server failed; its log says why"


class App:
    """The asset server over HTTP. One event loop, no threads but those that wait for a backend."""

    def __init__(
        self,
        methods: Methods,
        recorder: Recorder,
        settings: Settings,
        safety: Safety,
        gate: Gate | None,
        log: Callable[[str], None],
    ) -> None:
        self._methods = methods
        self._recorder = recorder
        self._limits = settings.limits
        self._send_seconds = settings.http.send_seconds
        self.door = Door(safety, gate, Principal("anonymous", methods.tier), log)
        each = settings.http.requests_each if gate is not None else None
        self.requests = Quota("requests", settings.http.requests, each=each)
        """The requests in progress."""
        self.stopping = False
        self._routes: dict[str, Route] = {
            ENDPOINT: self._endpoint,
            **probes(self.door, stopping=lambda: self.stopping, metrics=recorder.metrics),
            METADATA: lambda scope, _, send: self.door.metadata(scope, send),
            METADATA + ENDPOINT: lambda scope, _, send: self.door.metadata(scope, send),
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

    async def _endpoint(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["method"] == "OPTIONS":
            await self.door.preflight(headers_of(scope), send)
            return
        head = await self.door.head(scope, send)
        principal = await self.door.admitted(head.headers, send) if head is not None else None
        if head is None or principal is None:
            return
        if head.method != "POST":
            await not_allowed(send, "POST", shared(head.headers))
            return
        full = _ENDING if self.stopping else self.requests.full(principal.name)
        if full is not None:
            await full.refuse(send, [CLOSE, *shared(head.headers)])
            return
        if not head.as_json:
            await refuse_head(_NOT_JSON, head.headers, send)
            return
        self.requests.take(principal.name)
        try:
            limit = self._limits.frame_bytes
            too_long = body.says_too_long(head.headers.get(b"content-length"), limit)
            # Of a message that is too long, enough to refuse it.
            frame = bytes(limit + 1) if too_long else await body.read(receive, limit)
            status, content = await self._answer(principal, head, frame)
            headers = [*shared(head.headers), *([CLOSE] if status == 413 else [])]
            await slowly(reply(send, status, content, headers), self._send_seconds)
        except body.Gone:
            return
        finally:
            self.requests.give_back(principal.name)

    async def _answer(self, principal: Principal, head: RequestHead, frame: bytes) -> tuple[int, bytes]:
        """Return the status and the body for a message, and record both."""
        began = self._recorder.clock()
        message = None if head.is_stateless else peeked(frame)
        # Without the header, an array can only be a batch of 2025-03-26; specs/001 has none.
        known = isinstance(message, list) or (isinstance(message, dict) and is_mcp(message))
        # None for `initialize`, and for a bare method.
        revision = revision_of(head.revision, message) if known or head.revision is not None else None
        # Clients of 2025-03-26 and before send no header.
        patient = is_patient(revision or head.revision, in_session=False)
        server = AssetServer(
            self._methods,
            limits=self._limits,
            tier=principal.tier,
            revision=revision,
            recorder=self._recorder,
        )
        try:
            turn = server.hear(frame, Facts("http", head.revision, head.headers))
            moment = self._recorder.moment(turn.verdict, began, head.headers)
            if any(_waits(each) for each in turn.asked):
                # Other clients do not wait for a backend.
                answers = await beside(server.answers, turn, moment.request_id)
            else:
                answers = server.answers(turn, moment.request_id)
            self._recorder.exchange(turn, answers, moment, head.headers)
        except Exception as error:
            said = server.failed(frame, error)
            content = said[0] if said else error_body("INTERNAL_ERROR", _FAILED)
            return status_of("INTERNAL_ERROR", patient=bool(said) and patient), content
        finally:
            self._recorder.flush()
        code = turn.code or next((each for _, each in answers if each is not None), None)
        # Without the header, what is not JSON-RPC is from no client of MCP: it gets 400, as in specs/000.
        patient = patient and (head.revision is not None or turn.code != "INVALID_ENVELOPE")
        frames = turn.frames(answers)
        if not frames and (code is not None or turn.verdict.kind == "blank"):
            return refusal(turn.verdict, None, code, patient=patient)
        # One message, one response: only a batch has several, and those are in one array.
        status = status_of(code, turn.verdict, patient=patient, answered=bool(frames))
        return status, frames[0] if frames else b""


def _waits(request: Verdict) -> bool:
    """Whether *request* waits for another service."""
    params = request.value.get("params")
    name = request.value["method"] if request.exchange is None else (params or {}).get("name")
    return bool(name == WAITING)


def run(
    address: str,
    settings: Settings,
    methods: Methods,
    records: Records,
    *,
    ready: Callable[[], AbstractContextManager[None]],
    settle: Callable[[], None],
    log: Callable[[str], None],
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
    app = App(methods, recorder, settings, place.safety, gate, log)
    metrics.gauge("assay_requests_in_flight", "Requests in hand.", lambda: app.requests.held)
    settle()
    with ExitStack() as stack:

        def tell() -> None:
            stack.enter_context(ready())
            log(f"mcp:ready mode=http url={place.url}{ENDPOINT}")
            for line in place.notes(ENDPOINT):
                log(f"assay: {line}")

        serve(app, place.sock, settings.http, tell, owner_of=app.door.owner_of)
    return 0
