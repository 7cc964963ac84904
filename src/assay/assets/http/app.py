"""
The ASGI application: one request in, one answer or stream out.

It handles HTTP, sessions and streams. The asset server judges and answers messages; the access check and the gate
decide which clients may connect.
"""

import logging
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, Final, NamedTuple

from assay.assets.asset_server import AssetServer, AssetTurn, Settled, is_mcp
from assay.assets.http.plain_head import PlainHeads
from assay.assets.http.slow_requests import beside, listens, waits
from assay.assets.mcp_methods import Methods
from assay.base.limits import REQUESTS, Limits
from assay.core import render
from assay.core.conversation import Facts
from assay.edges.auth import Gate, Principal
from assay.edges.http import body
from assay.edges.http.access import METADATA, Door
from assay.edges.http.heads import (
    RequestHead,
    check_accept,
    refuse_head,
)
from assay.edges.http.health import probes
from assay.edges.http.open_streams import Streams
from assay.edges.http.origin_check import Safety
from assay.edges.http.quotas import Full, Quota
from assay.edges.http.replies import (
    CLOSE,
    SMALL,
    STREAM,
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
from assay.edges.http.request_headers import (
    ENDPOINT,
    UNNAMED,
    Headers,
    headers_of,
    names_revision,
    path_of,
    peeked,
)
from assay.edges.http.sessions import HttpSession, Sessions
from assay.edges.recorder import Recorder
from assay.ladder.events import event, primer
from assay.records.journal.record_ids import Moment
from assay.settings.http_section import Http
from assay.spec.revisions import LATEST, REVISIONS, features_of, handshake

_log: Final = logging.getLogger("assay")

_IN_SESSION: Final = Facts("http")

_ENDING: Final = Full(503, "the server is ending")


class Caller(NamedTuple):
    """The source of a message, as far as HTTP shows it."""

    principal: Principal
    headers: Headers
    session: HttpSession[AssetServer] | None
    version: str | None
    """The revision in the header, known or not."""

    @property
    def patient(self) -> bool:
        """Whether this is a client of the handshake era."""
        return is_patient(self.version, in_session=self.session is not None)


class HeardFrame(NamedTuple):
    """A judged message, and the server that answers it."""

    caller: Caller
    revision: str | None
    """The revision of a server that does not belong to a session."""
    server: AssetServer
    turn: AssetTurn
    moment: Moment


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
        clock: Callable[[], float] = monotonic,
        log: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._methods = methods
        self._recorder = recorder
        self._limits = limits
        self._http = http or Http()
        self._door = Door(safety or Safety(), gate, Principal("anonymous", methods.tier), log)
        self.owner_of = self._door.owner_of
        self.sessions: Sessions[AssetServer] = Sessions(self._http, clock, is_idle=lambda server: server.idle)
        self.streams = Streams(self._http, gated=gate is not None)
        each = self._http.requests_each if gate is not None else None
        self._requests = Quota("requests", self._http.requests, each=each)
        self.stopping = False
        self._idle: dict[tuple[str | None, str], list[AssetServer]] = {}
        self._heads = PlainHeads()
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
            await refuse(send, "INTERNAL_ERROR", "the server failed; its log says why", [CLOSE])

    @property
    def in_hand(self) -> int:
        """The number of requests in progress."""
        return self._requests.held

    async def close(self) -> None:
        """No background work to stop."""

    def sweep(self) -> None:
        """Drop unused sessions, and write pending journal lines."""
        self.sessions.sweep()
        self._recorder.flush()

    def stop(self) -> None:
        """Refuse new requests and end the streams, after their last messages."""
        self.stopping = True
        self.streams.end()

    async def _metadata(self, scope: dict[str, Any], _: Receive, send: Send) -> None:
        await self._door.metadata(scope, send)

    # ── the endpoint ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def _endpoint(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        method = scope["method"]
        if method == "OPTIONS":
            await self._door.preflight(headers_of(scope), send)
            return
        head = await self._door.head(scope, send)
        if head is None:
            return
        principal = await self._door.admitted(head.headers, send)
        if principal is None:
            return
        if method == "POST":
            await self._counted(principal, head, receive, send)
        elif method == "GET":
            await self._listen(principal, head, receive, send)
        elif method == "DELETE":
            await self._end_session(principal, head, send)
        else:
            await not_allowed(send, "POST, GET, DELETE", shared(head.headers))

    async def _counted(self, principal: Principal, head: RequestHead, receive: Receive, send: Send) -> None:
        """Handle a POST, unless there are too many."""
        full = _ENDING if self.stopping else self._requests.full(principal.name)
        if full is not None:
            await full.refuse(send, [CLOSE, *shared(head.headers)])
            return
        self._requests.take(principal.name)
        try:
            await self._post(principal, head, receive, send)
        finally:
            self._requests.give_back(principal.name)

    async def _post(self, principal: Principal, head: RequestHead, receive: Receive, send: Send) -> None:
        headers = head.headers
        unacceptable = check_accept(head)
        if unacceptable is not None:
            await refuse_head(unacceptable, headers, send)
            return
        caller = await self._caller(principal, head, send)
        if caller is None:
            return
        limit = self._limits.frame_bytes
        if body.says_too_long(headers.get(b"content-length"), limit):
            frame = bytes(limit + 1)
        else:
            try:
                frame = await body.read(receive, limit)
            except body.Gone:
                return
        await self._message(caller, frame, head.as_json, receive, send)

    async def _caller(self, principal: Principal, head: RequestHead, send: Send) -> Caller | None:
        """Return the source of the message; None if its session is unknown, which is then already answered."""
        caller = self._known_caller(principal, head.headers, head.session, head.revision)
        if caller is not None:
            return caller
        headers = shared(head.headers)
        if head.session is None or self.sessions.find(head.session, principal.name) is None:
            gone = "there is no such session; begin with initialize"
            await refuse(send, "METHOD_NOT_FOUND", gone, headers, status=404)
        else:
            data = render.revisions_data(head.revision or "")
            await refuse(send, "UNSUPPORTED_REVISION", "unknown MCP-Protocol-Version", headers, data=data)
        return None

    def _known_caller(
        self, principal: Principal, headers: Headers, ident: bytes | None, version: str | None
    ) -> Caller | None:
        """Return the source of the message; None if its session or revision is unknown."""
        if ident is None:
            return Caller(principal, headers, None, version)
        session = self.sessions.find(ident, principal.name)
        if session is None or (version is not None and version not in REVISIONS):
            return None
        return Caller(principal, headers, session, version)

    # ── a message ────────────────────────────────────────────────────────────────────────────────────────────────────

    def at_once(self, pairs: Pairs, frame: bytes) -> HttpReply | None:
        """
        Return the answer to a POST that has arrived whole; None if something has to be waited for.

        It is held back from the journal until `flush`. A request that gets None has left no trace, and can be made
        again. Without this way a call takes 1.8 times the CPU (144 µs against 78, side by side on a busy machine), most
        of it in a task of its own.
        """
        head = self._heads.read(pairs)
        if head is None or self.stopping or self._requests.held >= self._http.requests or head.may_take_long(frame):
            return None
        known = self._door.known(head.headers)
        caller = self._known_caller(known, head.headers, head.session, head.version) if known is not None else None
        if caller is None:
            return None
        try:
            heard = self._heard(caller, frame, head.facts)
            return self._outcome(heard, heard.server.answers(heard.turn, heard.moment.request_id))
        except Exception as error:
            return self._failed(caller, frame, error)

    def flush(self) -> None:
        """Write the journal lines of immediate responses."""
        self._recorder.flush()

    async def _message(self, caller: Caller, frame: bytes, as_json: bool, receive: Receive, send: Send) -> None:
        try:
            heard = self._heard(caller, frame, Facts("http", caller.version, caller.headers))
            outcome = await self._answered(heard)
        except Exception as error:
            outcome = self._failed(caller, frame, error)
        self._recorder.flush()
        if outcome is None:
            # It does no work, so it does not count as a request in progress.
            self._requests.give_back(caller.principal.name)
            try:
                await self._subscription(caller, heard.server, heard.turn.said, receive, send)
            finally:
                self._requests.take(caller.principal.name)
            return
        if outcome.status == 200 and outcome.content and not as_json:
            await self._as_stream(caller, outcome.content, outcome.headers, send)
        elif len(outcome.content) > SMALL:
            await slowly(reply(send, *outcome), self._http.send_seconds)
        else:
            await reply(send, *outcome)

    async def _answered(self, heard: HeardFrame) -> HttpReply | None:
        """Return the response to a message, and record it; None for one that opens a stream."""
        server, turn, moment = heard.server, heard.turn, heard.moment
        if turn.said and listens(turn.verdict):
            self._recorder.exchange(turn, (), moment, heard.caller.headers)
            return None
        if not any(map(waits, turn.asked)):
            return self._outcome(heard, server.answers(turn, moment.request_id))
        answers = []
        for request in turn.asked:
            answer = await beside(server.answer, request, moment.request_id)
            answers.append((server.settle(request, answer), answer[1]))
        if heard.caller.session is not None:
            self.sessions.touch(heard.caller.session)
        return self._outcome(heard, answers)

    def _failed(self, caller: Caller, frame: bytes, error: Exception) -> HttpReply:
        """Return the response to a message after an internal *error*: with the id of the request, if it has one."""
        session = caller.session
        server = session.server if session is not None else AssetServer(self._methods, limits=self._limits)
        said = server.failed(frame, error)
        body = said[0] if said else error_body("INTERNAL_ERROR", "the server failed; its log says why")
        status = status_of("INTERNAL_ERROR", patient=bool(said) and caller.patient)
        return HttpReply(status, body, shared(caller.headers))

    def _heard(self, caller: Caller, frame: bytes, facts: Facts) -> HeardFrame:
        """Judge *frame*, and return what to do; *facts* are for a message without a session."""
        began = self._recorder.clock()
        session = caller.session
        if session is not None:
            turn = session.server.hear(frame, _IN_SESSION)
            moment = self._recorder.moment(turn.verdict, began, caller.headers, session.ident)
            return HeardFrame(caller, None, session.server, turn, moment)
        revision = self._revision(caller.version, frame)
        server = self._taken(revision, caller.principal.tier)
        turn = server.hear(frame, facts)
        return HeardFrame(caller, revision, server, turn, self._recorder.moment(turn.verdict, began, caller.headers))

    def _outcome(self, heard: HeardFrame, answers: Sequence[Settled]) -> HttpReply:
        """Return the response to a message, and record it."""
        caller, _, _, turn, moment = heard
        self._recorder.exchange(turn, answers, moment, caller.headers)
        verdict = turn.verdict
        headers = shared(caller.headers)
        if len(answers) == 1 and verdict.findings is None and answers[0][1] is None:
            # The usual case: a request without findings, and its response.
            if caller.session is None:
                headers += self._settled(heard, None)
            return HttpReply(200, answers[0][0].onward or b"", headers)
        code = turn.code or next((each for _, each in answers if each is not None), None)
        frames = turn.frames(answers)
        if caller.session is None:
            headers += self._settled(heard, code)
        if not frames and (code is not None or verdict.kind == "blank"):
            status, content = refusal(verdict, None, code, patient=caller.patient)
        else:
            status = status_of(code, verdict, patient=caller.patient, answered=bool(frames))
            # One message, one response: only a batch has several, and those are in one array.
            content = frames[0] if frames else b""
        if status == 413:
            headers.append(CLOSE)
        return HttpReply(status, content, headers)

    def _revision(self, version: str | None, frame: bytes) -> str | None:
        """Return the revision of a message without a session; None if it opens a session, or is a bare method."""
        if version is not None and version in REVISIONS and not handshake(version):
            return version
        message = peeked(frame)
        if isinstance(message, list):
            return version if version in REVISIONS else UNNAMED
        if not isinstance(message, dict):
            return version if version in REVISIONS else None
        if message.get("method") == "initialize":
            return None
        if version is not None:
            return version if version in REVISIONS else LATEST
        if not is_mcp(message):
            return None
        return LATEST if names_revision(message) else UNNAMED

    def _taken(self, revision: str | None, tier: str) -> AssetServer:
        """Return a server for one message, reused if possible."""
        spare = self._idle.get((revision, tier))
        if spare:
            return spare.pop()
        return AssetServer(
            self._methods, limits=self._limits, tier=tier, revision=revision, identify=self._recorder.identify
        )

    def _settled(self, heard: HeardFrame, code: str | None) -> list[tuple[bytes, bytes]]:
        """Keep a server after one message: for its session, for reuse, or not at all."""
        caller, revision, server, turn, moment = heard
        if moment.method == "initialize" and code is None:
            session = self.sessions.begin(caller.principal.name, server)
            return [(b"mcp-session-id", session.ident.encode())] if session is not None else []
        if turn.verdict.findings is None and server.idle:
            spare = self._idle.setdefault((revision, caller.principal.tier), [])
            if len(spare) < 64:
                server.forget_settled()
                spare.append(server)
        return []

    # ── streams ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _as_stream(self, caller: Caller, frame: bytes, headers: Pairs, send: Send) -> None:
        """Send one response to a client that accepts only events; after a broken stream it can resume."""
        await send({"type": "http.response.start", "status": 200, "headers": [*STREAM, *headers]})
        session = caller.session
        events = event(frame)
        if session is not None:
            stream = session.new_stream()
            first = primer(session.keep(stream, 0, b"")) if _primed(session) else b""
            events = first + event(frame, session.keep(stream, 1, frame))
        await slowly(send({"type": "http.response.body", "body": events}), self._http.send_seconds)

    async def _subscription(
        self, caller: Caller, server: AssetServer, said: Sequence[bytes], receive: Receive, send: Send
    ) -> None:
        """Send the stream of `subscriptions/listen`: nothing changes while the server runs, so only its end is sent."""
        who, headers = caller.principal.name, shared(caller.headers)
        full = _ENDING if self.stopping else self.streams.full(who)
        if full is not None:
            await full.refuse(send, headers, seconds=10)
            return
        first = [event(each) for each in said]
        await self.streams.run(who, first, headers, receive, send, lambda: map(event, server.end()))

    async def _listen(self, principal: Principal, head: RequestHead, receive: Receive, send: Send) -> None:
        """Handle GET: a stream for the server's own messages, or the rest of a broken one."""
        headers = head.headers
        if not head.as_stream:
            await refuse(send, "INVALID_ENVELOPE", "a stream is text/event-stream", shared(headers), status=406)
            return
        caller = await self._caller(principal, head, send)
        if caller is None:
            return
        session = caller.session
        if session is None:
            await not_allowed(send, "POST", shared(headers))
            return
        full = _ENDING if self.stopping else self.streams.full(principal.name)
        if full is not None:
            await full.refuse(send, shared(headers), seconds=10)
            return
        last = head.last_event
        missed = session.after(last) if last is not None else []
        if missed is None:
            await refuse(send, "INVALID_ENVELOPE", "Last-Event-ID does not belong to this session", shared(headers))
            return
        first = [event(data, ident) for ident, data in missed if data]
        if last is None and _primed(session):
            first = [primer(session.keep(session.new_stream(), 0, b""))]
        who = principal.name
        await self.streams.run(who, first, shared(headers), receive, send, tuple, session, once=bool(missed))

    async def _end_session(self, principal: Principal, head: RequestHead, send: Send) -> None:
        caller = await self._caller(principal, head, send)
        if caller is None:
            return
        headers = head.headers
        if caller.session is None:
            await not_allowed(send, "POST", shared(headers))
            return
        self.sessions.drop(caller.session)
        await reply(send, 200, headers=shared(headers))


def _primed(session: HttpSession[AssetServer]) -> bool:
    return features_of(session.server.revision).primed_streams
