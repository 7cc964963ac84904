"""
Requests without a session: each borrows a guarded session with the one child that all of them share.

Nothing here waits.
"""

import asyncio
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final

from assay.edges.backend import HttpRequest
from assay.edges.client_http import (
    ACCEPTED,
    BROKEN,
    SLOW,
    AwaitedResponse,
    HttpPort,
    WholeResponse,
    lost_answer,
    refusal_of,
)
from assay.edges.compile_turns import TURNS
from assay.edges.http.replies import HttpReply, status_in
from assay.edges.response_stream import SLOW_BYTES, ResponseStream
from assay.edges.server_child import SharedChild, UnavailableError
from assay.guard.connection_name import ANONYMOUS, ConnectionName
from assay.guard.deadlines import ENDLESS
from assay.guard.deliveries import ClientTraits, Delivery, Loss, Outcome, ServerTraits
from assay.guard.factory import ContractScope, SessionFactory
from assay.guard.id_map import key_of
from assay.guard.internal_errors import contained, log_once
from assay.guard.outgoing import is_answer
from assay.guard.session import GuardedSession, late_contracts
from assay.judge.conversation import Facts
from assay.model.json_values import LEVEL_KEY, params_of, versions_of
from assay.model.verdict import Exchange, Party, Verdict
from assay.records.http_notes import HttpNotes
from assay.schema.tool_contract import Contract
from assay.spec.revisions import LATEST

_CLIENT: Final = ClientTraits("http")
_SERVER: Final = ServerTraits("child")
_FROM_CLIENT: Final = Party.CLIENT
_FROM_SERVER: Final = Party.SERVER


@lru_cache(maxsize=1024)
def _name_of(principal: str) -> ConnectionName:
    return ConnectionName("", principal)


class NoResponse(ResponseStream):
    """The response of a request that is over. It keeps nothing, because all such requests share it."""

    def say(self, frame: bytes, asked: Exchange | None = None) -> None:
        """Drop a message."""

    def answer(self, frame: bytes, *keys: Hashable) -> None:
        """Drop a late answer."""


_NO_RESPONSE: Final = NoResponse()
_NO_RESPONSE.ended = True


class StatelessRequest(AwaitedResponse):
    """One request of a client, or one notification."""

    __slots__ = ("_requests", "ident", "is_clean", "is_retired", "listens", "owner", "session", "wants_logs")

    def __init__(self, session: GuardedSession, requests: "StatelessRequests", request: HttpRequest) -> None:
        super().__init__(requests.port, request.head, _NO_RESPONSE)
        self.session = session
        self.owner = request.principal
        self.listens = self.wants_logs = False
        self.is_clean = True
        """Whether its session may serve another request."""
        self.is_retired = False
        """Whether it does."""
        self.ident: Any = None
        self._requests = requests

    def opened(self, verdict: Verdict) -> None:
        """Prepare the response to a request that goes on to the child."""
        exchange = verdict.exchange
        self.wait(verdict.value, exchange.id if exchange is not None else verdict.value.get("id"))
        self.is_clean = verdict.findings is None

    def wait(self, message: dict[str, Any], ident: Any) -> None:
        """Prepare the response to a request with this id."""
        self.ident = ident
        as_json, as_stream = self.head.as_json, self.head.as_stream
        self.response = ResponseStream(as_json=as_json, as_stream=as_stream, due=(key_of(ident),))
        self.listens = message.get("method") == ENDLESS
        meta = params_of(message).get("_meta")
        # Log messages are never sent on a subscription.
        self.wants_logs = isinstance(meta, dict) and LEVEL_KEY in meta and not self.listens

    # ── from the child ───────────────────────────────────────────────────────────────────────────────────────────────

    def from_server(self, frame: bytes, rest: bytes = b"") -> None:
        """
        Handle a message of the child, with the ids of this client.

        An internal error fails this request only: the child and its other clients go on.
        """
        if self.is_retired:
            self._requests.child.from_nobody(frame, rest)
            return
        session = self.session
        try:
            if session.calm and not rest:
                verdict = session.judge(_FROM_SERVER, frame)
                if verdict.findings is None and verdict.kind == "result" and verdict.exchange is not None:
                    if not self._requests.is_useful or verdict.exchange.contract is None:
                        self._requests.note_result(verdict)
                    self.response.answer(frame, *self.response.due)
                    return
                made = session.outcome(verdict, rest)
            else:
                made = session.from_server(frame, rest)
            self._act(made)
            if made.verdict is not None and made.verdict.value is None and not made.to_client:
                self._pass_unread(frame)
        except Exception as error:
            log_once(error, "a message of a server could not be delivered")
            self.failed(self.ident)

    def overhear(self, frame: bytes) -> None:
        """Judge and record a message that the client does not get."""
        if not self.is_retired:
            self.is_clean = False
            self.session.from_server(frame)

    def failed(self, _: Any) -> None:
        """Fail the request after an internal error."""
        self.is_clean = False
        if not self.is_retired:
            self._act(self.session.exchange_lost(self.session.conversation.open_requests(Party.CLIENT), BROKEN))
            self._give_up(BROKEN)

    def _act(self, made: Outcome) -> None:
        verdict = made.verdict
        self.is_clean = self.is_clean and not made.failed and (verdict is None or verdict.findings is None)
        for each in made.to_server:
            self._requests.child.send(self, each.frame)
        for each in made.to_client:
            self._deliver(each)

    def _deliver(self, delivery: Delivery) -> None:
        verdict, response = delivery.verdict, self.response
        if not delivery.answers and (verdict is None or not is_answer(verdict)):
            if response.as_stream:
                response.say(delivery.frame)
                if response.behind > SLOW_BYTES:
                    self._cut()
            return
        if verdict is not None and verdict.kind == "result":
            self._requests.note_result(verdict)
        response.answer(delivery.frame, *response.due)

    def _pass_unread(self, frame: bytes) -> None:
        """Under audit an unreadable answer passes, also to a request that the session does not track."""
        if not self.session.enforcing and self.response.due:
            self.response.answer(frame, *self.response.due)

    def _cut(self) -> None:
        """The client is too slow, and the others cannot wait for it: the request fails."""
        self.response.cut()
        self._act(self.session.withdraw(self.session.conversation.open_requests(Party.CLIENT), SLOW))
        self._give_up(SLOW)

    def _give_up(self, why: Loss) -> None:
        """Fail the request if its session does not track it, or not any more."""
        if self.response.due - self.response.cancelled:
            self.response.answer(lost_answer(self.ident, why), *self.response.due)
        else:
            self.response.end()

    def lost(self, why: Loss) -> None:
        """The child is lost."""
        try:
            self._act(self.session.server_lost(why))
        except Exception as error:
            log_once(error, "a request could not be ended")
        self.is_clean = False
        self._give_up(why)

    def tick(self) -> None:
        """Fail the request if it has waited too long."""
        self._act(self.session.tick())

    def listed(self) -> None:
        """Go on after another request has listed the tools, or after contracts were compiled."""
        if self.is_retired:
            return
        try:
            self._act(self.session.release())
        except Exception as error:
            log_once(error, "a call that waited could not be forwarded")
            self.failed(self.ident)

    def compile(self, contracts: list[Contract]) -> None:
        """Compile what the call needs that has waited, in turn with other work."""
        self._requests.compile(contracts, self)

    # ── to the client ────────────────────────────────────────────────────────────────────────────────────────────────

    def reply(self) -> HttpReply | None:
        """Return the whole response; None if it is to be written as a stream."""
        whole = self.response.whole
        if whole is not None:
            status = status_in(whole)
            if self.response.as_json or status != 200:
                return HttpReply(status, whole, () if b"origin" not in self.head.headers else self.headers)
        return None if self.response.as_stream else HttpReply(202, b"", self.headers)

    def status_with(self, answer: bytes) -> int:
        """Return the status of the response if it has this *answer*."""
        return 200 if self.response.begun else status_in(answer)

    def finish(self) -> None:
        """The response was written, or the client has gone, which cancels the request."""
        if not self.response.ended:
            with contained("a request could not be cancelled"):
                self.cancel()
        self._requests.done(self)
        super().finish()

    def cancel(self) -> None:
        """Cancel the request, because the client has gone."""
        self.is_clean = False
        asked = self.session.conversation.open_requests(Party.CLIENT)
        if asked:
            self._act(self.session.client_gone(asked))
        else:
            self._requests.child.leave(self)


class StatelessRequests:
    """All requests without a session, and the child that they share."""

    def __init__(
        self,
        factory: SessionFactory,
        port: HttpPort,
        child: Callable[[Callable[[], GuardedSession]], SharedChild],
        arm: Callable[[float], None],
    ) -> None:
        """*child* makes the shared child, given what makes a session; *arm* has a deadline looked at."""
        self.port = port
        self._factory = factory
        self._arm = arm
        self._scope: ContractScope = factory.scope()
        self.tools = self._scope.tools
        """The tools that the child has listed."""
        self.open: dict[StatelessRequest, None] = {}
        self._compiling: set[asyncio.Task[None]] = set()
        self.child = child(self.begin)
        self.is_useful = False
        """Whether the child has given a result: one that only refuses needs a session first."""

    def begin(self) -> GuardedSession:
        """Return a new session with this run of the child, which shares the tools with the others."""
        return self._factory.open(_CLIENT, _SERVER, scope=self._scope, revision=LATEST)

    def renew(self) -> None:
        """The child is lost. Until the next one lists its tools, calls are checked against those of this one."""
        known = self._scope.known
        self._scope = self._factory.scope(self._scope)
        self.tools = self._scope.tools
        self._scope.known = known
        self.is_useful = False

    def late_contracts(self, request: HttpRequest) -> list[Contract]:
        """Return the contract of the tool that *request* calls, if it has to be compiled first."""
        return late_contracts(self.tools, self._factory.limits, request.frame)

    def has_room(self, size: int) -> bool:
        """Whether the child can take *size* more bytes, after the calls that wait for the list of tools."""
        if not self.tools.complete:
            size += sum(each.session.held_bytes for each in self.open)
        return self.child.has_room(size)

    def ask(self, request: HttpRequest) -> StatelessRequest | WholeResponse:
        """Return the response to one message, or the request that waits for the child."""
        head = request.head
        session = self._factory.borrow(self._scope, _CLIENT, _SERVER, LATEST)
        if request.principal != ANONYMOUS:
            # All principals share the sessions of this child, one request after another.
            session.name = _name_of(request.principal)
        asking = StatelessRequest(session, self, request)
        facts = Facts("http", head.revision, head.headers, served=True, spoken=self._scope.known)
        if not session.calm:
            session.on_listed, session.compile_first = asking.listed, asking.compile
            made = session.from_client(request.frame, facts)
            if made.held is not None:
                asking.is_clean = False
                asking.wait(made.held, made.held["id"])
                return self._sent(asking, made.to_server[0].frame if made.to_server else None)
            if made.verdict is None:
                return WholeResponse(500)
            return self._asked(asking, made, made.verdict)
        verdict = session.judge(_FROM_CLIENT, request.frame, facts)
        exchange = verdict.exchange
        if verdict.kind == "request" and verdict.findings is None and exchange is not None and exchange.contract:
            # The call of a tool, as nearly all are: it goes on as it came.
            return self._forward(asking, verdict, verdict.frame)
        return self._asked(asking, session.outcome(verdict, b""), verdict)

    def _asked(self, asking: StatelessRequest, made: Outcome, verdict: Verdict) -> StatelessRequest | WholeResponse:
        """Return the response to a judged message, or the request that waits for the child."""
        refused = refusal_of(made, verdict, patient=False)
        if refused is not None:
            return refused
        frame = made.to_server[0].frame
        if verdict.kind != "request":
            if verdict.kind == "notification":
                self._note(asking, verdict, frame)
            # Anything else is an answer; but in this era no server asks its clients.
            return ACCEPTED
        return self._forward(asking, verdict, frame)

    def ask_noted(self, request: HttpRequest, notes: HttpNotes) -> StatelessRequest | WholeResponse:
        """Return the response to one message, as `ask` does, whose HTTP request is recorded."""
        note = notes.begin(request.method, request.headers)
        status = None
        try:
            found = self.ask(request)
            if isinstance(found, WholeResponse):
                status = found.status
            else:
                note.status_of = found.status_with
        finally:
            notes.end(status)
        return found

    def _forward(self, asking: StatelessRequest, verdict: Verdict, frame: bytes) -> StatelessRequest:
        """Send a request to the child."""
        asking.opened(verdict)
        return self._sent(asking, frame, verdict.value if frame is verdict.frame else None)

    def _sent(self, asking: StatelessRequest, frame: bytes | None, value: Any = None) -> StatelessRequest:
        """Send the child the first message for a request, if there is one; *value* is it, if it was read before."""
        self.open[asking] = None
        try:
            if self.child.pipe is None:
                self.child.start()
            if frame is not None:
                self.child.send(asking, frame, value)
        except UnavailableError as error:
            asking.lost(Loss("unstartable", str(error)))
        except Exception as error:  # an internal error: whether the child got the message is not known
            log_once(error, "a message could not be sent to a server")
            asking.failed(asking.ident)
            with contained("a request could not be cancelled"):
                self.child.leave(asking)
        self._arm(asking.session.deadline)
        return asking

    def note_result(self, verdict: Verdict) -> None:
        """Remember that the child gives results, and which revisions it speaks."""
        self.is_useful = True
        if verdict.method == "server/discover" and verdict.accepted:
            # A revision that has no such method leaves its result unjudged, so it may hold anything.
            self._scope.known = frozenset(versions_of(verdict.value)) or self._scope.known

    def _note(self, asking: StatelessRequest, verdict: Verdict, frame: bytes) -> None:
        """
        Forward a notification.

        Over HTTP a request is cancelled by closing its response. One that is cancelled by its id has to be known as
        this principal's: ids of clients without authentication coincide.
        """
        if verdict.method != "notifications/cancelled":
            with suppress(UnavailableError):
                self.child.start()
                self.child.send(asking, frame)
            return
        if asking.owner == ANONYMOUS:
            return
        ident = params_of(verdict.value).get("requestId")
        found = [each for each in self.open if each.owner == asking.owner and each.ident == ident]
        if len(found) == 1:
            found[0].is_clean = False
            found[0].response.cancelled.add(key_of(ident))
            self.child.send(found[0], frame)

    def done(self, asking: StatelessRequest) -> None:
        """Keep the session of an answered request for the next one, if nothing was wrong with it."""
        self.open.pop(asking, None)
        asking.session.on_listed = asking.session.compile_first = None
        if self.tools.lister is asking.session:
            with contained("a list of tools could not be given up"):
                asking.session.abandon()
        spare = len(self._scope.spare)
        self._factory.give_back(self._scope, asking.session, clean=asking.is_clean)
        asking.is_retired = len(self._scope.spare) > spare
        # A late answer may still come: nothing of the response is kept for it.
        asking.response = _NO_RESPONSE

    def compile(self, contracts: list[Contract], asking: StatelessRequest) -> None:
        """Compile what a call needs, and go on with it then."""
        task = asyncio.ensure_future(TURNS.compile(contracts, asking.owner))
        self._compiling.add(task)

        def compiled(_: object) -> None:
            self._compiling.discard(task)
            asking.listed()

        task.add_done_callback(compiled)

    def tick(self) -> None:
        """Fail what has waited too long."""
        for asking in list(self.open):
            try:
                asking.tick()
            except Exception as error:  # the others still have their time
                log_once(error, "a late request could not be answered")
                asking.failed(asking.ident)
