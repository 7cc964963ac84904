"""
A server in child processes, behind the guard, for clients over HTTP.

A session of the handshake revisions has a child of its own; requests without a session all share one.
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import inf
from time import monotonic
from typing import Any, Final

from assay.edges.backend import HttpRequest
from assay.edges.child import Labelled, StartError
from assay.edges.child_pipe import ChildPipe, PipeOwner
from assay.edges.client_http import BROKEN, AwaitedResponse, HttpClient, HttpPort, SessionAnswer, WholeResponse
from assay.edges.compile_turns import TURNS
from assay.edges.http.quotas import Full, Quota, to_end
from assay.edges.http.replies import CLOSE, HttpReply, Receive, Send, is_patient, not_allowed, refuse, reply, shared
from assay.edges.http.request_headers import names_revision, peeked
from assay.edges.http.sessions import DROPPED, HttpSession, Sessions
from assay.edges.response_stream import ResponseStream
from assay.edges.server_child import ChildSharer, DedicatedChild, SharedChild
from assay.edges.server_index import standing
from assay.edges.stateless_requests import StatelessRequests
from assay.guard.backoff import Backoff
from assay.guard.deliveries import ClientTraits, Loss, ServerTraits
from assay.guard.factory import SessionFactory
from assay.guard.internal_errors import contained, log_once
from assay.guard.recent_messages import End
from assay.guard.session import GuardedSession
from assay.guard.sinks import server_state
from assay.judge.redaction import without_secrets
from assay.records.http_notes import HttpNotes
from assay.settings.http_section import Http
from assay.spec.revisions import REVISIONS, handshake, is_known

PROBED: Final = 5.0
"""
Seconds that the child for requests without a session is kept if it gives no results: clients probe with such requests
whether a server speaks a revision without a handshake, and go on with a session, and a child, of their own if not.
"""

ROOM_SECONDS: Final = 5.0
"""Seconds that a new session waits for a free place: a child that has to be killed ends within half of that."""

STOPPED: Final = Loss("stopped", "the guard was stopped")
ENDED: Final = Loss("stopped", "the session was ended")
UNUSED: Final = Loss("stopped", "it was not used")

_ENDING: Final = Full(503, "the guard is ending")
_TOO_MANY_SESSIONS: Final = Full(503, "too many sessions at once")
_BUSY: Final = Full(503, "the server does not read what it is sent")


class ChildBackend:
    """The backend for a command."""

    def __init__(
        self,
        factory: SessionFactory,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        children: int = 64,
        children_each: int | None = None,
        http: Http | None = None,
        flights: str = "off",
        redact: Sequence[str] = (),
        stderr_in_errors: bool = False,
        errors: Callable[[bytes], None] | None = None,
        name: str = "",
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """
        At most *children* run at once for sessions, and *children_each* for those of one principal; None where
        there is one principal. One more is for requests without a session.

        The last messages of a broken session are written to *flights*, redacted by *redact*. What children write to
        stderr goes to *errors*, with *name* or that of its program before each line; with *stderr_in_errors* the
        requests of a session whose child has ended get the last of it, redacted.
        """
        self._factory = factory
        self._commit = self.flush = factory.records.commit
        """Writes the records; comes before everything that is sent to a client."""
        self._command = list(command)
        self._env, self._cwd = env, cwd
        self._is_gated = children_each is not None
        self._quota = Quota("servers", children, each=children_each)
        self._http = http or Http()
        self._flights, self._redact = flights, tuple(redact)
        self._stderr_in_errors = stderr_in_errors
        self._errors = errors or _to_stderr
        self._name = name or os.path.basename(self._command[0])
        self._clock = clock
        self._port = HttpPort(self._http, self._commit)
        self._stateless = StatelessRequests(factory, self._port, self._stateless_child, self._arm)
        self._backoffs: dict[str, Backoff] = {}
        """One for each principal: one whose children end must not keep others from starting theirs."""
        self._pipes: dict[ChildPipe, str | None] = {}
        """The principal that each child counts for; None for the child without sessions."""
        self._beside: set[asyncio.Task[None]] = set()
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_due = inf
        """The time of the alarm, which is at or before the first deadline of a request."""
        self._stopping = False
        self.trouble = ""
        """Why the last child could not be started, or ended by itself; empty once another one was started."""
        self.last_line = ""
        """The last line on stderr of the last child that ended by itself."""
        self._noted = b""
        """The state that is recorded."""
        self._sessions: Sessions[HttpClient] = Sessions(
            self._http, clock, self._dropped, is_idle=lambda client: client.is_idle
        )

    @property
    def sessions(self) -> int:
        """How many there are."""
        return len(self._sessions)

    @property
    def running(self) -> bool:
        """Whether there is a child."""
        return bool(self._pipes)

    # ── a request ────────────────────────────────────────────────────────────────────────────────────────────────────

    def begin(self, request: HttpRequest) -> AwaitedResponse | HttpReply | None:
        """Return the response to a POST, or the request that waits for its server; None if that takes more time."""
        head = request.head
        if self._stopping:
            return None
        if head.session is not None:
            session = self._sessions.find(head.session, request.principal)
            if session is None or session.server.ended or (head.revision is not None and not is_known(head.revision)):
                return None
            guarded = session.server.session
            if guarded.may_wait and guarded.late_contracts(request.frame):
                return None
            return self._ask(session.server, request)
        if not head.is_stateless or (self._stateless.tools.is_late and self._stateless.late_contracts(request)):
            return None
        return self._ask_stateless(request)

    async def answer(self, request: HttpRequest, receive: Receive, send: Send) -> None:
        """Answer *request*, whole or as a stream."""
        if self._stopping:
            await _ENDING.refuse(send, [CLOSE, *shared(request.headers)])
        elif request.head.session is not None:
            await self._in_session(request, request.head.session, receive, send)
        elif request.method != "POST":
            await not_allowed(send, "POST", shared(request.headers))
        else:
            await self._unknown(request, receive, send)

    async def _carry_on(self, found: AwaitedResponse | HttpReply, receive: Receive, send: Send) -> None:
        """Write the response to a request that was begun."""
        if isinstance(found, HttpReply):
            self._commit()
            await reply(send, *found)
        else:
            await found.carry_on(receive, send)

    async def _unknown(self, request: HttpRequest, receive: Receive, send: Send) -> None:
        """A message without a session: one that opens a session, or one of the era that has none."""
        version = request.head.revision
        message = None if request.head.is_stateless else peeked(request.frame)
        opens = isinstance(message, dict) and message.get("method") == "initialize"
        stateless = _is_stateless(version, message) and (self._factory.enforcing or not opens)
        # It may be large, and the answer may take long.
        del message
        if stateless:
            await TURNS.compile(self._stateless.late_contracts(request), request.principal)
            await self._carry_on(self._ask_stateless(request), receive, send)
        elif opens:
            # Under audit also with an unknown revision in the header: the child of a session may know it.
            await self._open(request, receive, send)
        else:
            await refuse(
                send, "INVALID_ENVELOPE", "there is no session; begin with initialize", shared(request.headers)
            )

    async def _in_session(self, request: HttpRequest, ident: bytes, receive: Receive, send: Send) -> None:
        headers, version = shared(request.headers), request.head.revision
        session = self._sessions.find(ident, request.principal)
        if session is None or session.server.ended:
            gone = "there is no such session; begin with initialize"
            await refuse(send, "METHOD_NOT_FOUND", gone, headers, status=404)
        elif version is not None and not is_known(version):
            data = {"requested": version[:100], "supported": list(REVISIONS)}
            await refuse(send, "UNSUPPORTED_REVISION", "unknown MCP-Protocol-Version", headers, data=data)
        elif request.method == "GET":
            await self._listen(session, request, receive, send)
        elif request.method == "DELETE":
            self._sessions.drop(session)
            self._commit()
            await reply(send, 200, headers=headers)
        else:
            await TURNS.compile(session.server.session.late_contracts(request.frame), request.principal)
            await self._carry_on(self._ask(session.server, request), receive, send)

    # ── sessions ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _open(self, request: HttpRequest, receive: Receive, send: Send) -> None:
        """`initialize`: a session, and a child for it."""
        if self._is_full(request.principal) and not self._factory.passes(request.frame):
            # It is refused, and must not cost another session its place.
            client = self._client(self._dedicated(request.principal), request)
            await self._carry_on(self._ask(client, request, opens=True), receive, send)
            return
        full = await self._make_room(request.principal)
        if self._stopping:
            full = _ENDING
        if full is None:
            client = self._client(self._dedicated(request.principal), request)
            session = self._sessions.begin(request.principal, client)
            if session is not None:
                await self._opened(client, session, request, receive, send)
                return
            own = self._is_gated and self._sessions.has_share(request.principal)
            full = Full(429, "you have too many sessions at once") if own else _TOO_MANY_SESSIONS
        await full.refuse(send, [CLOSE, *shared(request.headers)])

    async def _opened(
        self, client: HttpClient, session: HttpSession[HttpClient], request: HttpRequest, receive: Receive, send: Send
    ) -> None:
        """Answer the request that opens *session*, which is dropped if the server does not accept it."""
        client.http_session = session
        session.unclaimed = lambda asked: client.unclaimed([asked])
        client.session.rename(session.ident)
        try:
            await self._carry_on(self._ask(client, request, opens=True), receive, send)
        finally:
            if not client.opened or client.ended:
                self._sessions.drop(session)

    def _client(self, link: DedicatedChild, request: HttpRequest) -> HttpClient:
        """Return the client of a new session over *link*."""
        traits = ClientTraits("http", owner=request.principal)
        client = link.client = HttpClient(self._factory.open(traits, ServerTraits("child")), link)
        return client

    def _is_full(self, principal: str) -> bool:
        """Return whether something has to end before *principal* can begin a session."""
        return self._quota.full(principal) is not None or self._sessions.is_full(principal)

    def _ask(self, client: HttpClient, request: HttpRequest, *, opens: bool = False) -> AwaitedResponse | HttpReply:
        """Return the response to a message in a session, or to the one that *opens* it."""
        head = request.head
        if not client.server.has_room(len(request.frame) + client.session.held_bytes):
            return _overloaded(request)
        patient = not opens or is_patient(head.revision, in_session=False)
        if self._factory.http is None:
            found = client.ask(request.frame, as_json=head.as_json, as_stream=head.as_stream, patient=patient)
        else:
            found = self._ask_noted(client, request, self._factory.http, patient=patient)
        if isinstance(found, WholeResponse):
            return _whole(request, found)
        if client.session.deadline < self._alarm_due:
            self._arm(client.session.deadline)
        return SessionAnswer(self._port, head, found, client, self._sessions.touch, opens=opens)

    def _ask_noted(
        self, client: HttpClient, request: HttpRequest, notes: HttpNotes, *, patient: bool
    ) -> ResponseStream | WholeResponse:
        """Return the response to a message in a session, whose HTTP request is recorded."""
        head, status = request.head, None
        note = notes.begin(head.method, head.headers)
        try:
            found = client.ask(request.frame, as_json=head.as_json, as_stream=head.as_stream, patient=patient)
            status = found.status if isinstance(found, WholeResponse) else None
        finally:
            notes.end(status)
        if status is None:
            # In a session an answer of the server always has this status.
            note.status = 200
        return found

    async def _listen(
        self, session: HttpSession[HttpClient], request: HttpRequest, receive: Receive, send: Send
    ) -> None:
        """GET: the messages that belong to no request, or the rest of a stream that broke off."""
        client, headers = session.server, shared(request.headers)
        last = request.head.last_event
        missed = None
        if last is None:
            stream: ResponseStream | None = client.listen()
        else:
            missed = session.after(last)
            if missed is None:
                await refuse(send, "INVALID_ENVELOPE", "Last-Event-ID does not belong to this session", headers)
                return
            stream = client.resume(int(last.partition(b"-")[0]))
            if stream is None and session.has_lost(last):
                await refuse(send, "UPSTREAM_FAILURE", DROPPED, headers, status=410)
                return
        if stream is None:
            stream = ResponseStream()
            stream.end()
        try:
            await stream.write(self._http, self._commit, receive, send, headers, missed=missed)
        finally:
            client.left(stream)

    def _dropped(self, session: HttpSession[HttpClient]) -> None:
        """End a session, and its child with it, if that is its own."""
        with contained("a session could not be ended"):
            session.server.close(ENDED)

    # ── without sessions ─────────────────────────────────────────────────────────────────────────────────────────────

    def _ask_stateless(self, request: HttpRequest) -> AwaitedResponse | HttpReply:
        if not self._stateless.has_room(len(request.frame)):
            return _overloaded(request)
        notes = self._factory.http
        found = self._stateless.ask(request) if notes is None else self._stateless.ask_noted(request, notes)
        return _whole(request, found) if isinstance(found, WholeResponse) else found

    # ── children ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def spawn(self, owner: PipeOwner, principal: str) -> ChildPipe:
        """Start a child for sessions of *principal*. Raises `StartError`."""
        full = self._quota.full(principal)
        if full is not None:
            raise StartError(f"cannot start one more: {full.why}")
        return self._spawn(owner, principal)

    def _spawn(self, owner: PipeOwner, principal: str | None = None) -> ChildPipe:
        """Start a child, which counts for *principal* until it has ended. Raises `StartError`."""
        errors = Labelled(self._name, self._errors).add
        limit = self._factory.frame_bytes
        try:
            pipe = ChildPipe(self._command, owner, limit=limit, errors=errors, env=self._env, cwd=self._cwd)
        except StartError as error:
            self.trouble = str(error)
            self._note_state()
            raise
        self.trouble = ""
        self._pipes[pipe] = principal
        if principal is not None:
            self._quota.take(principal)
        self._note_state()
        pipe.when_over(lambda: self._over(pipe))
        return pipe

    def _over(self, pipe: ChildPipe) -> None:
        principal = self._pipes.pop(pipe)
        if principal is not None:
            self._quota.give_back(principal)
        self.trouble = self.trouble or pipe.lost_for
        if pipe.lost_for:
            self.last_line = pipe.last_line
        self._note_state()

    def _note_state(self) -> None:
        """Record whether children run, if that has changed."""
        state = server_state(standing(self).state, self.trouble, self.last_line if self.trouble else "")
        if state != self._noted:
            self._noted = state
            self._factory.records.event("state", state, "")
            self._factory.records.commit()

    def _dedicated(self, principal: str) -> DedicatedChild:
        """Return the way from a session of *principal* to a child of its own."""
        return DedicatedChild(self, lambda: self._backoffs.setdefault(principal, Backoff()), self._clock)

    def _stateless_child(self, begin: Callable[[], GuardedSession]) -> SharedChild:
        def broke(own: GuardedSession, _: Sequence[ChildSharer], end: End) -> None:
            self._stateless.renew()
            # All of them keep their messages together.
            own.save_recent(self._flights, self._redact, end)

        # It has a place of its own: however many sessions there are, requests without one are answered.
        return SharedChild(self._spawn, begin, self._clock, broke)

    def broke(self, client: HttpClient, end: End) -> None:
        """The child of one session has ended by itself."""
        with contained("the last messages of a session could not be kept"):
            client.session.save_recent(self._flights, self._redact, end)
        if client.http_session is not None:
            self._sessions.drop(client.http_session)

    def end(self, pipe: ChildPipe) -> None:
        """End a child, beside everything else."""
        self._do(pipe.end())

    async def _make_room(self, principal: str) -> Full | None:
        """
        Wait until *principal* may start one more child; return the reached limit if it may not.

        A child that is ending still takes memory, so it counts until it has ended.
        """
        try:
            async with asyncio.timeout(ROOM_SECONDS):
                while (full := self._quota.full(principal)) is not None:
                    ending = self._ending_for(principal)
                    if not ending:
                        return full
                    await _one_over(ending)
        except TimeoutError:
            return self._quota.full(principal)
        return None

    def _ending_for(self, principal: str) -> list[ChildPipe]:
        """Return the child of an idle session, which ends for *principal*; if there is none, those that end anyway."""
        own_only = self._quota.has_share(principal)
        running = {pipe: each for each in self._sessions if (pipe := _pipe_of(each)) is not None}
        last = to_end((each for each in running.values() if each.server.is_idle), principal, own_only=own_only)
        if last is None:
            counted = [pipe for pipe in self._pipes if pipe not in running and self._pipes[pipe] is not None]
            return [pipe for pipe in counted if not own_only or self._pipes[pipe] == principal]
        self._sessions.drop(last)
        return [pipe for pipe in running if running[pipe] is last]

    def shown(self, last_words: list[str]) -> list[str]:
        """Return what a client may read of the last lines that its own child wrote to stderr."""
        if not self._stderr_in_errors:
            return []

        return without_secrets(last_words, self._redact)

    def _do(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    # ── time, and the end ────────────────────────────────────────────────────────────────────────────────────────────

    def _arm(self, due: float) -> None:
        """See that what is *due* then is looked at."""
        if due >= self._alarm_due:
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_due = due
        wait = max(0.0, due - self._factory.now())
        self._alarm = asyncio.get_running_loop().call_later(wait, self._tick)

    def _tick(self) -> None:
        self._alarm, self._alarm_due = None, inf
        for session in list(self._sessions):
            try:
                session.server.tick()
            except Exception as error:  # no request in it may wait for ever, and the others go on
                log_once(error, "a late request could not be answered")
                with contained("a session could not be ended"):
                    session.server.close(BROKEN)
            if session.server.ended:
                self._sessions.drop(session)
        self._stateless.tick()
        for each in self._sessions:
            self._arm(each.server.session.deadline)
        for asking in self._stateless.open:
            self._arm(asking.session.deadline)

    def sweep(self) -> None:
        """Drop the sessions that no client uses, and end the children that none needs."""
        self._sessions.sweep()
        now = self._clock()
        self._backoffs = {name: each for name, each in self._backoffs.items() if not each.is_spent(now)}
        kept = self._http.session_seconds
        if self._stateless.child.is_idle(kept if self._stateless.is_useful else min(kept, PROBED)):
            self._stateless.is_useful = False
            self._do(self._stateless.child.end(UNUSED))

    def stop(self) -> None:
        """Begin nothing new; streams end, after what is still to be sent on them."""
        self._stopping = True
        for session in list(self._sessions):
            session.server.stop()
        for asking in list(self._stateless.open):
            if asking.listens:
                asking.response.end()

    async def close(self) -> None:
        """End every child. Requests that still wait fail."""
        self.stop()
        if self._alarm is not None:
            self._alarm.cancel()
        ending = self._stateless.child.end(STOPPED, at_once=True)
        for session in list(self._sessions):
            with contained("a session could not be ended"):
                session.server.close(STOPPED)
            self._sessions.drop(session)
        pipes = [pipe.end(at_once=True) for pipe in list(self._pipes)]
        await asyncio.gather(ending, *pipes)
        await asyncio.gather(*self._beside)
        self._commit()


def _overloaded(request: HttpRequest) -> HttpReply:
    return _BUSY.reply([CLOSE, *shared(request.headers)])


def _whole(request: HttpRequest, found: WholeResponse) -> HttpReply:
    headers = shared(request.headers)
    return HttpReply(found.status, found.content, [*headers, CLOSE] if found.status == 413 else headers)


def _pipe_of(session: HttpSession[HttpClient]) -> ChildPipe | None:
    """Return the child of *session*; None before it starts, and after it has ended."""
    link = session.server.server
    return link.pipe if isinstance(link, DedicatedChild) else None


async def _one_over(pipes: Sequence[ChildPipe]) -> None:
    """Wait until one of *pipes* has ended."""
    over = asyncio.Event()
    for pipe in pipes:
        pipe.when_over(over.set)
    await over.wait()


def _is_stateless(version: str | None, message: Any) -> bool:
    """Return whether a message without a session is of the era that has none, as is one that cannot be read."""
    if version is not None:
        return not is_known(version) or not handshake(version)
    return message is None or (isinstance(message, dict) and names_revision(message))


def _to_stderr(data: bytes) -> None:
    with suppress(OSError):
        os.write(2, data)
