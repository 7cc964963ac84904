"""
A server in child processes, behind the guard, for clients over HTTP.

A session of the handshake revisions has a child of its own, or shares one with others; requests without a session all
share one. Nobody is left waiting, and nothing stays behind.
"""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha256
from operator import itemgetter
from time import monotonic
from typing import Any, Final

import orjson

from assay.base.message import params_of
from assay.edges.child import Labelled, StartError
from assay.edges.guard.front.guarded import Request
from assay.edges.guard.http_to_child.backoff import Backoff
from assay.edges.guard.http_to_child.childtalk import Talk, Whole
from assay.edges.guard.http_to_child.direct import Direct
from assay.edges.guard.http_to_child.mistakes import FAILED, contained, tell
from assay.edges.guard.http_to_child.outflow import Post, Stream
from assay.edges.guard.http_to_child.pipe import Owner, Pipe
from assay.edges.guard.http_to_child.room import Room, Tenant
from assay.edges.guard.http_to_child.share import Client, SessionShare, Share, SharedWire
from assay.edges.guard.http_to_child.stateless import Asking, Stateless
from assay.edges.guard.overseer import Overseer, Oversight
from assay.edges.http.heads import SESSION
from assay.edges.http.idleness import Idleness
from assay.edges.http.quotas import Full, Quota
from assay.edges.http.replies import CLOSE, Pairs, Receive, Send, not_allowed, refuse, reply, shared
from assay.edges.http.request_headers import UNNAMED, names_revision, peeked
from assay.edges.http.sessions import HttpSession, Sessions
from assay.edges.http.statuses import is_patient, status_in
from assay.guard.deliveries import End
from assay.settings.http_section import Http
from assay.spec.revisions import REVISIONS, handshake

EARLY: Final = 0.05
"""
Seconds after which an answer becomes a stream in revisions that have an id to come back with (2025-11-25): whoever
loses the connection then gets the answer all the same. Most calls are answered before, as plain JSON.
"""

TICK: Final = 0.25
"""Seconds between two looks at what has waited too long."""

PROBED: Final = 5.0
"""
Seconds that the child for requests without a session is kept if it gives no results: clients probe with such requests
whether a server speaks 2026-07-28, and go on with a session, and a child, of their own if it does not.
"""

STOPPED: Final = "the guard was stopped"
NEEDED: Final = "another session needed its place"

_ENDING: Final = Full(503, "the guard is ending")
_TOO_MANY_SESSIONS: Final = Full(503, "too many sessions at once")


class Children:
    """The backend for a command."""

    def __init__(
        self,
        oversight: Oversight,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        shared: bool = False,
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
        At most *children* run at once for sessions, and *children_each* for those of one principal; None where nothing
        tells principals apart. One more is for requests without a session. With *shared* sessions of one principal that
        are opened in the same way share one.

        The last messages of a broken session go to *flights*, without what *redact* says. What children write to stderr
        goes to *errors*, with *name* or that of its program before each line; with *stderr_in_errors* a session whose
        child has ended is told the last of it, redacted.
        """
        self._oversight = oversight
        self._recorder = oversight.recorder
        self._command = list(command)
        self._env, self._cwd = env, cwd
        self._is_gated = children_each is not None
        self._quota = Quota("servers", children, each=children_each)
        self._room = Room(self._quota, self._tenants)
        self._http = http or Http()
        self._flights, self._redact = flights, tuple(redact)
        self._stderr_in_errors = stderr_in_errors
        self._errors = errors or _to_stderr
        self._name = name or os.path.basename(self._command[0])
        self._clock = clock
        self._is_shared = shared
        self._shares: dict[tuple[str, bytes], SessionShare] = {}
        self._stateless = Stateless(oversight, self._stateless_share)
        self._modern: Share = self._stateless.share
        self._backoffs: dict[str, Backoff] = {}
        """One for each principal: whoever makes its own children end must not keep others from starting theirs."""
        self._pipes: set[Pipe] = set()
        self._beside: set[asyncio.Task[None]] = set()
        self._ticking: asyncio.Task[None] | None = None
        self._stopping = False
        self.trouble = ""
        """Why the last child could not be started, or ended by itself; nothing once another one was started."""
        self._sessions: Sessions[Talk] = Sessions(self._http, clock, self._dropped, idleness=_idleness)

    @property
    def sessions(self) -> int:
        """How many there are."""
        return len(self._sessions)

    @property
    def running(self) -> bool:
        """Whether there is a child."""
        return bool(self._pipes)

    # ── a request ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def answer(self, request: Request, receive: Receive, send: Send) -> None:
        """Answers *request*, whole or as a stream."""
        if self._ticking is None:
            self._ticking = asyncio.ensure_future(self._tick())
        if self._stopping:
            await _ENDING.refuse(send, [CLOSE, *shared(request.headers)])
            return
        ident, told = request.head.session, request.head.revision
        if ident is not None:
            await self._in_session(request, ident, told, receive, send)
        elif request.method != "POST":
            await not_allowed(send, "POST", shared(request.headers))
        else:
            await self._unknown(request, told, receive, send)

    async def _unknown(self, request: Request, told: str | None, receive: Receive, send: Send) -> None:
        """A message without a session: one that opens a session, or one of the era that has none."""
        if request.head.is_stateless:
            await self._without_session(request, told, receive, send)
            return
        message = peeked(request.frame)
        opens = isinstance(message, dict) and message.get("method") == "initialize"
        stateless = _is_stateless(told, message) and (self._oversight.enforcing or not opens)
        params = params_of(message) if opens and self._is_shared else {}
        # It may be large, and the answer may take long.
        del message
        if stateless:
            await self._without_session(request, told, receive, send)
        elif opens:
            # Under audit also with an unknown revision in the header: the child of a session may know it.
            await self._open(request, params, receive, send)
        else:
            await refuse(
                send, "INVALID_ENVELOPE", "there is no session; begin with initialize", shared(request.headers)
            )

    async def _in_session(
        self, request: Request, ident: bytes, version: str | None, receive: Receive, send: Send
    ) -> None:
        headers = shared(request.headers)
        session = self._sessions.find(ident, request.principal)
        if session is None or session.server.ended:
            gone = "there is no such session; begin with initialize"
            await refuse(send, "METHOD_NOT_FOUND", gone, headers, status=404)
        elif version is not None and version not in REVISIONS:
            data = {"requested": version[:100], "supported": list(REVISIONS)}
            await refuse(send, "UNSUPPORTED_REVISION", "unknown MCP-Protocol-Version", headers, data=data)
        elif request.method == "GET":
            await self._listen(session, request, receive, send)
        elif request.method == "DELETE":
            self._sessions.drop(session)
            self._recorder.flush()
            await reply(send, 200, headers=headers)
        else:
            await self._post(session.server, request, receive, send)

    # ── sessions ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _open(self, request: Request, params: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """`initialize`: a session, and a child for it."""
        if self._is_full(request.principal) and not self._oversight.passes(request.frame):
            # It is refused, and must not cost another session its place.
            await self._post(self._talk(self._direct(request.principal)), request, receive, send)
            return
        full = await self._room_for(request, params)
        if full is None:
            # Not before: a share that waits for its first session counts as spent, and may be gone by now.
            wire = SharedWire(self._share_for(request, params)) if self._is_shared else self._direct(request.principal)
            talk = self._talk(wire)
            session = self._sessions.begin(request.principal, talk)
            if session is not None:
                await self._opened(talk, session, request, receive, send)
                return
            own = self._is_gated and self._sessions.has_share(request.principal)
            full = Full(429, "you have too many sessions at once") if own else _TOO_MANY_SESSIONS
        await full.refuse(send, [CLOSE, *shared(request.headers)])

    async def _opened(
        self, talk: Talk, session: HttpSession[Talk], request: Request, receive: Receive, send: Send
    ) -> None:
        """What opens *session*, which is over if nothing comes of it."""
        talk.session = session
        talk.overseer.name(session.ident)
        try:
            await self._post(talk, request, receive, send)
        finally:
            if not talk.opened or talk.ended:
                self._sessions.drop(session)
                self._recorder.flush()

    def _talk(self, wire: Direct | SharedWire) -> Talk:
        """A conversation over *wire*."""
        talk = wire.talk = Talk(self._oversight.begin(), wire)
        return talk

    async def _room_for(self, request: Request, params: Mapping[str, Any]) -> Full | None:
        """Wait until there is a child for a new session, or a place for one; return why there is none."""
        full = None
        if not self._is_shared or not self._share_for(request, params).is_running:
            full = await self._room.make(request.principal)
        return _ENDING if self._stopping else full

    def _is_full(self, principal: str) -> bool:
        """Whether something has to end before *principal* can begin a session."""
        return self._quota.full(principal) is not None or self._sessions.is_full(principal)

    async def _post(self, talk: Talk, request: Request, receive: Receive, send: Send) -> None:
        as_json, as_stream = request.head.as_json, request.head.as_stream
        if not talk.wire.has_room(len(request.frame)):
            await _overloaded(request, send, "the server does not read what it is sent")
            return
        opens = not talk.opened
        patient = is_patient(request.head.revision, in_session=not opens)
        found = talk.hear(request.frame, as_json=as_json, as_stream=as_stream, patient=patient)
        self._recorder.flush()
        if isinstance(found, Whole):
            await _tell(request, found, send)
            return
        try:
            await self._respond_in_session(talk, found, request, receive, send, opens=opens)
        finally:
            # A child that had to wait for it waits no longer.
            found.leave()
            if talk.session is not None:
                self._sessions.touch(talk.session)

    async def _respond_in_session(
        self, talk: Talk, found: Post, request: Request, receive: Receive, send: Send, *, opens: bool
    ) -> None:
        as_json, as_stream = found.as_json, request.head.as_stream
        early = EARLY if talk.primed and as_json and as_stream else None
        if await found.first(early, receive) and not found.ended:
            # What was asked goes on.
            return
        headers = [*shared(request.headers)]
        if opens and talk.opened and talk.session is not None and not talk.ended:
            headers.append((SESSION, talk.session.ident.encode()))
        whole = found.whole
        if whole is not None and as_json:
            await reply(send, 200, whole, headers)
        elif as_stream:
            await self._streamed(talk, found, headers, receive, send)
        else:
            await reply(send, 202, headers=headers)

    async def _streamed(
        self,
        talk: Talk,
        stream: Stream,
        headers: Pairs,
        receive: Receive,
        send: Send,
        missed: Sequence[tuple[bytes, bytes]] | None = None,
    ) -> None:
        try:
            await stream.write(self._http, receive, send, headers, missed=missed)
        finally:
            talk.left(stream)

    async def _listen(self, session: HttpSession[Talk], request: Request, receive: Receive, send: Send) -> None:
        """GET: what the server says by itself, or the rest of a stream that broke off."""
        talk, headers = session.server, shared(request.headers)
        last = request.head.last_event
        if last is None:
            await self._streamed(talk, talk.listen(), headers, receive, send)
            return
        missed = session.after(last)
        if missed is None:
            await refuse(send, "INVALID_ENVELOPE", "Last-Event-ID is none of this session", headers)
            return
        stream = talk.resume(int(last.partition(b"-")[0]))
        if stream is None:
            stream = Stream()
            stream.end()
        await self._streamed(talk, stream, headers, receive, send, missed)

    def _dropped(self, session: HttpSession[Talk]) -> None:
        """A session is over, and its child with it, if that is its own."""
        with contained("a session could not be ended as it should"):
            session.server.drop("the session was ended")

    # ── without sessions ─────────────────────────────────────────────────────────────────────────────────────────────

    async def _without_session(self, request: Request, version: str | None, receive: Receive, send: Send) -> None:
        if not self._modern.has_room(len(request.frame)):
            await _overloaded(request, send, "the server does not read what it is sent")
            return
        as_json, as_stream = request.head.as_json, request.head.as_stream
        found = self._stateless.hear(request, version, as_json=as_json, as_stream=as_stream)
        self._recorder.flush()
        if isinstance(found, Whole):
            await _tell(request, found, send)
            return
        try:
            await self._respond(request, found, receive, send)
        finally:
            with contained("a request could not be cancelled"):
                if found.post is not None and not found.post.ended:
                    found.cancel()
                    self._recorder.flush()
            self._stateless.done(found)

    async def _respond(self, request: Request, asking: Asking, receive: Receive, send: Send) -> None:
        post = asking.post
        if post is None or (await post.first(None, receive) and not post.ended):
            return
        headers = shared(request.headers)
        whole = post.whole
        if whole is not None and (post.as_json or status_in(whole) != 200):
            await reply(send, status_in(whole), whole, headers)
        elif post.as_stream:
            await post.write(self._http, receive, send, headers)
        else:
            await reply(send, 202, headers=headers)

    # ── children ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def spawn(self, owner: Owner, principal: str) -> Pipe:
        """A child for sessions of *principal*. Raises `StartError`."""
        full = self._quota.full(principal)
        if full is not None:
            raise StartError(f"cannot start one more: {full.why}")
        pipe = self._spawn(owner)
        self._room.take(pipe, principal)
        return pipe

    def _spawn(self, owner: Owner) -> Pipe:
        """A child, which counts for no principal. Raises `StartError`."""
        errors = Labelled(self._name, self._errors).add
        limit = self._oversight.frame_bytes
        try:
            pipe = Pipe(self._command, owner, limit=limit, errors=errors, env=self._env, cwd=self._cwd)
        except StartError as error:
            self.trouble = str(error)
            raise
        self.trouble = ""
        self._pipes.add(pipe)
        pipe.when_over(lambda: self._over(pipe))
        return pipe

    def _over(self, pipe: Pipe) -> None:
        self._pipes.discard(pipe)
        self.trouble = self.trouble or pipe.lost_for

    def _direct(self, principal: str) -> Direct:
        """What leads from a session of *principal* to a child of its own."""
        return Direct(self, lambda: self._backoffs.setdefault(principal, Backoff(self._clock)), self._clock)

    def _stateless_share(self, begin: Callable[[], Overseer]) -> Share:
        def broke(nobody: Overseer, _: Sequence[Client], end: End) -> None:
            self._stateless.renew()
            # All of them are kept together, so that those of nobody are those of all.
            nobody.broke(self._flights, self._redact, end)

        # It has a place of its own: however many sessions there are, requests without one are answered.
        return Share(self._spawn, begin, self._recorder.flush, self._clock, broke)

    def _share_for(self, request: Request, params: Mapping[str, Any]) -> SessionShare:
        """The child of all sessions that this principal opens in this way; no other principal shares it."""
        told = (params.get("protocolVersion"), params.get("capabilities")) if params else ()
        try:
            key = request.principal, sha256(orjson.dumps(told, option=orjson.OPT_SORT_KEYS)).digest()
        except orjson.JSONEncodeError:
            # It is nested too deep, and will be refused.
            key = request.principal, b""
        if key not in self._shares:
            revision = told[0] if told and told[0] in REVISIONS else UNNAMED
            begin = partial(self._oversight.begin, revision=revision)
            flush, broke = self._recorder.flush, self._sessions_broke
            spawn = partial(self.spawn, principal=request.principal)
            self._shares[key] = SessionShare(spawn, begin, flush, self._clock, broke)
        return self._shares[key]

    def _sessions_broke(self, _: Overseer, clients: Sequence[Client], end: End) -> None:
        for each in clients:
            if isinstance(each, Talk):
                self.broke(each, end)

    def broke(self, talk: Talk, end: End) -> None:
        """The child of one session has ended by itself."""
        with contained("the last messages of a session could not be kept"):
            talk.overseer.broke(self._flights, self._redact, end)
        if talk.session is not None:
            self._sessions.drop(talk.session)

    def end(self, pipe: Pipe) -> None:
        """Ends a child, beside everything else."""
        self._room.ends(pipe)
        self._do(pipe.end())

    def _tenants(self) -> Iterator[Tenant]:
        """The children of sessions, the one used longest ago first."""
        for session in list(self._sessions):
            wire = session.server.wire
            if isinstance(wire, Direct) and wire.pipe is not None:
                ending = partial(self._give_up, [session], wire.pipe)
                yield Tenant(session.principal, session.server.idleness, ending)
        used = [(_last_use(share), key[0], share) for key, share in self._shares.items() if share.is_running]
        for _, principal, share in sorted(used, key=itemgetter(0)):
            idleness = max((each.server.idleness for each in _sessions_of(share)), default=Idleness.IDLE)
            yield Tenant(principal, idleness, partial(self._give_up_share, share))

    async def _give_up(self, sessions: Sequence[HttpSession[Talk]], pipe: Pipe) -> None:
        """End *sessions*, and wait until nothing is left of their child, which ends with them."""
        for session in sessions:
            self._sessions.drop(session)
        self._recorder.flush()
        await pipe.over()

    async def _give_up_share(self, share: SessionShare) -> None:
        """End a child that sessions share, and all of these."""
        sessions, pipe = _sessions_of(share), share.release(NEEDED)
        if pipe is not None:
            self.end(pipe)
            await self._give_up(sessions, pipe)

    def shown(self, last_words: list[str]) -> list[str]:
        """Return what a client may read of the last lines that its own child wrote to stderr."""
        if not self._stderr_in_errors:
            return []
        from assay.core.redaction import without_secrets  # noqa: PLC0415 - for broken sessions only

        return without_secrets(last_words, self._redact)

    def flush(self) -> None:
        """Puts on record what was heard."""
        self._recorder.flush()

    def _do(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    # ── time, and the end ────────────────────────────────────────────────────────────────────────────────────────────

    async def _tick(self) -> None:
        timeout = self._oversight.timeout or 0.0
        pause = min(TICK, timeout / 4) if timeout else TICK
        while True:
            await asyncio.sleep(pause)
            for session in list(self._sessions):
                self._look_after(session)
            self._stateless.tick()
            with contained("nobody could be looked after"):
                self._recorder.flush()
                self.sweep()

    def _look_after(self, session: HttpSession[Talk]) -> None:
        try:
            session.server.tick()
        except Exception as error:  # a mistake of ours: nobody in it may wait for ever, and the others go on
            tell("a session could not be looked after", error)
            with contained("a session could not be ended as it should"):
                session.server.drop(FAILED)
        if session.server.ended:
            self._sessions.drop(session)

    def sweep(self) -> None:
        """Drops the sessions that nobody uses, and ends the children that nobody needs."""
        self._sessions.sweep()
        self._shares = {key: share for key, share in self._shares.items() if not share.is_spent}
        self._backoffs = {name: each for name, each in self._backoffs.items() if not each.is_spent}
        kept = self._http.session_seconds
        if self._modern.is_idle(kept if self._stateless.useful else min(kept, PROBED)):
            self._stateless.useful = False
            self._do(self._modern.end("nobody needed it"))
        for share in self._shares.values():
            if share.is_idle(kept):
                self._do(share.end("nobody needed it"))

    def stop(self) -> None:
        """From now on nothing new is begun; streams end, after what is still to be said on them."""
        self._stopping = True
        for session in list(self._sessions):
            session.server.stop()
        for asking in list(self._stateless.open):
            if asking.listens and asking.post is not None:
                asking.post.end()

    async def close(self) -> None:
        """Ends every child. Whoever still waits is told."""
        self.stop()
        if self._ticking is not None:
            self._ticking.cancel()
        shares = [share.end(STOPPED, at_once=True) for share in [self._modern, *self._shares.values()]]
        for session in list(self._sessions):
            with contained("a session could not be ended as it should"):
                session.server.drop(STOPPED)
            self._sessions.drop(session)
        with contained("what was heard could not be put on record"):
            self._recorder.flush()
        pipes = [pipe.end(at_once=True) for pipe in list(self._pipes)]
        await asyncio.gather(*shares, *pipes)
        await asyncio.gather(*self._beside)


async def _overloaded(request: Request, send: Send, why: str) -> None:
    await Full(503, why).refuse(send, [CLOSE, *shared(request.headers)])


async def _tell(request: Request, told: Whole, send: Send) -> None:
    headers = shared(request.headers)
    await reply(send, told.status, told.content, [*headers, CLOSE] if told.status == 413 else headers)


def _idleness(session: HttpSession[Talk]) -> Idleness:
    return session.server.idleness


def _sessions_of(share: SessionShare) -> list[HttpSession[Talk]]:
    talks = [each for each in share.clients if isinstance(each, Talk)]
    return [each.session for each in talks if each.session is not None]


def _last_use(share: SessionShare) -> float:
    """When one of its sessions was used; the child itself counts as used while it has any."""
    return max((each.used for each in _sessions_of(share)), default=share.used)


def _is_stateless(version: str | None, message: Any) -> bool:
    """Whether a message without a session is of the era that has none; what cannot be read is taken for that."""
    if version is not None:
        return version not in REVISIONS or not handshake(version)
    return message is None or (isinstance(message, dict) and names_revision(message))


def _to_stderr(data: bytes) -> None:
    with suppress(OSError):
        os.write(2, data)
