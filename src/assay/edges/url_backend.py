"""
A server at a URL, behind the guard: each request of a client is judged, passed on, and answered with what is judged of
the server's answer.

Nobody is left waiting: where the server is down, late, or breaks off, the client gets an error that says so.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from time import monotonic
from typing import Any, Final

from assay.core.conversation import Facts
from assay.edges.guard.front.guarded import Request
from assay.edges.http.forwarding import Forwarding, is_credential
from assay.edges.http.heads import LAST_EVENT, RequestHead, shown_name
from assay.edges.http.open_streams import close, until_gone
from assay.edges.http.replies import CLOSE, Pairs, Receive, Send, not_allowed, refuse, reply, shared
from assay.edges.http.request_headers import ENDPOINT, UNNAMED, names_revision, peeked
from assay.edges.http.statuses import is_patient
from assay.edges.judged_exchange import JudgedExchange, Told
from assay.edges.upstream_errors import NO_POST, NoAnswerError, shown_url
from assay.edges.upstream_target import UpstreamTarget
from assay.edges.url_exchange import UrlExchange
from assay.edges.url_sessions import Stream, UrlSession, UrlSessions, Who
from assay.guard.deliveries import End
from assay.guard.factory import SessionFactory
from assay.settings.http_section import Http
from assay.spec.revisions import LATEST, REVISIONS, handshake

_JSON: Final = b"application/json"

_IN_SESSION: Final = Facts("http")

BACK_SECONDS: Final = 10.0
"""How long telling a server something may take that it does not wait for."""


TOLD: Final = 100
"""Answers that broke off of which people are told, as many as there are messages whose findings they are told."""

_UNFORWARDED: Final = 20
"""Names of headers that people are told are not forwarded: enough to find the one that a server misses."""

_KNOWN_HEADS: Final = 100

_SOON: Final = 0.05
"""Seconds after which a request counts as slow: its time is kept, and its client is watched."""

_OF_ONE_MESSAGE: Final = frozenset({b"content-type", b"accept", LAST_EVENT, b"mcp-method", b"mcp-name"})
"""Headers of a request that say nothing of what is sent in its name."""

_NO_QUERY: Final = "the guard forwards no query; put it into the URL of --target"
_GONE: Final = "there is no such session; begin with initialize"

HELD_BYTES: Final = 256 << 20
"""Of all answers together that are not whole yet. One may have 16 MiB; nearly all have some thousand."""


class UrlBackend:
    """The backend for a URL."""

    def __init__(
        self,
        factory: SessionFactory,
        target: UpstreamTarget,
        http: Http | None = None,
        *,
        endpoint: str = ENDPOINT,
        gated: bool = False,
        alone: bool = True,
        clock: Callable[[], float] = monotonic,
        log: Callable[[str], None] = lambda _: None,
        flights: str = "off",
        redact: Sequence[str] = (),
    ) -> None:
        """
        *gated* if the guard itself says who may come in; *alone* if no other server is at the guard's address.

        The last messages of a broken session go to *flights*, without what *redact* says.
        """
        http = http or Http()
        self.factory = factory
        self.target = target
        self.gated = gated
        self.forwarding = Forwarding(
            factory.enforcing,
            tokens=not gated,
            cookies=alone,
            names=[each.lower().encode() for each in http.forward_headers],
            answers=[each.lower().encode() for each in http.forward_response_headers],
        )
        self.endpoint = endpoint
        """Its path at the guard."""
        self._log = log
        self._flights, self._redact = flights, tuple(redact)
        self.talks = UrlSessions(factory, http, clock, gated=gated)
        self.spoken: frozenset[str] | None = None
        """The revisions that the server has said it speaks, without a handshake or with one."""
        self._held = 0
        self._stopping = False
        self._endless: set[asyncio.Future[None]] = set()
        self._beside: set[asyncio.Task[None]] = set()
        self._redirects: set[str] = set()
        self._unforwarded: set[bytes] = set()
        self._forwarded: set[tuple[bytes, ...]] = set()
        """The names in heads that were looked at already: a client sends the same ones with every request."""
        self._told_no_post = False
        self._broken = self._unjudged = 0
        self.running = False
        """Whether the server answered when it was last asked."""
        self.trouble = ""
        """Why it gave no answer then, for want of a connection."""

    @property
    def sessions(self) -> int:
        """How many there are."""
        return len(self.talks)

    async def answer(self, request: Request, receive: Receive, send: Send) -> None:
        """Answers *request*, whole or as a stream."""
        if await self._refused(request, send):
            return
        pairs = self.target.with_own(self.forwarding.headers(request.head))
        self._note_dropped(request.head)
        who = _who(request, pairs)
        turn, talk = self._turn(request, who)
        held = talk.origin or talk
        held.hands += 1
        try:
            if turn.told is not None:
                await self.tell(request, turn.told, send)
            else:
                errand = UrlExchange(self, request, pairs, turn, send)
                await (self._watched if errand.endless else self._carry_out)(errand, receive)
        except Exception:
            # A mistake of ours, which the front answers: what was asked must not stay open in the session.
            turn.forget()
            raise
        finally:
            held.hands -= 1
            self.talks.done(talk)

    async def _refused(self, request: Request, send: Send) -> bool:
        """Whether a request is refused for where it goes: then it has been answered."""
        head, headers = request.head, shared(request.headers)
        session, revision = head.session, head.revision
        enforcing = self.factory.enforcing
        if head.is_stateless and request.method != "POST":
            await not_allowed(send, "POST", headers)
        elif request.query and (enforcing or self.gated or self.target.has_query):
            # Nobody judges it; and behind a query of the operator's it could take back what that says.
            await refuse(send, "INVALID_ENVELOPE", _NO_QUERY, headers, status=400)
        elif session is not None and not self._may_use(session, request.principal):
            # Another principal's session looks like one that is not there, so that nothing is learned by trying.
            await refuse(send, "METHOD_NOT_FOUND", _GONE, headers, status=404)
        elif session is not None and enforcing and revision is not None and revision not in REVISIONS:
            data = {"requested": revision[:100], "supported": list(REVISIONS)}
            await refuse(send, "UNSUPPORTED_REVISION", "unknown MCP-Protocol-Version", headers, data=data)
        else:
            return False
        return True

    def _may_use(self, session: bytes, principal: str) -> bool:
        """
        Whether *principal* may ask something in *session*.

        One that the guard does not know was opened elsewhere, or before it was started: whose it is, and which tools it
        was told of, nobody can say. Only where nothing is enforced is it taken up as it is.
        """
        if self.talks.is_anothers(session, principal):
            return False
        return not (self.factory.enforcing or self.gated) or self.talks.knows(session, principal)

    def _note_dropped(self, head: RequestHead) -> None:
        """Tell people, once for each name, which headers of clients do not go on to the server."""
        if not self.factory.enforcing or len(self._unforwarded) >= _UNFORWARDED:
            return
        names = tuple([name for name, _ in head.pairs])
        if names in self._forwarded:
            return
        if len(self._forwarded) < _KNOWN_HEADS:
            self._forwarded.add(names)
        for name in self.forwarding.dropped(head):
            if name not in self._unforwarded:
                self._unforwarded.add(name)
                self._log(
                    f"assay: the header {shown_name(name)} of clients is not forwarded to the server; "
                    "if it needs that, list it in http.forward_headers"
                )

    def stop(self) -> None:
        """Streams that have no end of their own end now."""
        self._stopping = True
        for closing in list(self._endless):
            close(closing)

    async def close(self) -> None:
        """Ends every connection."""
        for task in list(self._beside):
            task.cancel()
        await self.target.close()

    def sweep(self) -> None:
        """Drops the sessions that nobody uses."""
        self.talks.sweep()

    # ── who asks, and what becomes of it ─────────────────────────────────────────────────────────────────────────────

    def _turn(self, request: Request, who: Who) -> tuple[JudgedExchange, UrlSession]:
        head = request.head
        talk = self._talk(request, who)
        patient = is_patient(head.revision, in_session=head.session is not None)
        turn = JudgedExchange(talk, patient=patient, enforcing=self.factory.enforcing)
        if request.method == "POST":
            turn.hear(request.frame, _IN_SESSION if head.session else Facts("http", head.revision, request.headers))
            if self.spoken is not None:
                turn.narrow(self.spoken)
        elif request.method == "GET":
            turn.resumed = head.last_event is not None
            turn.stream = talk.stream_of(head.last_event) or Stream()
        return turn, talk

    def _talk(self, request: Request, who: Who) -> UrlSession:
        ident, version = request.head.session, request.head.revision
        message = peeked(request.frame) if ident is None or self.talks.awaits else None
        # `true` is 1 to Python, and no id to anybody.
        if isinstance(message, dict) and "method" not in message and type(message.get("id")) in (str, int):
            asker = self.talks.asker(who, ident, message["id"])
            if asker is not None:
                return asker
        if ident is not None:
            known = version if version in REVISIONS and version is not None else UNNAMED
            listens = request.method == "GET"
            return self.talks.find(ident, who) or self.talks.adopted(ident, who, known, listens=listens)
        revision = _revision(version, message)
        return self.talks.opening(who) if revision is None else self.talks.alone(who, revision)

    async def _carry_out(self, errand: UrlExchange, receive: Receive) -> None:
        """
        Carries out *errand* in the task of its request, until it is over or the client goes.

        Nearly all are over within a few milliseconds. Only what takes longer gets a task that watches the client.
        """
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        watch: asyncio.Task[None] | None = None
        gone = False

        async def until_client_goes() -> None:
            nonlocal gone
            while (await receive())["type"] != "http.disconnect":
                pass
            gone = True
            if task is not None:
                task.cancel()

        def take_care() -> None:
            nonlocal watch
            errand.keep_time()
            watch = loop.create_task(until_client_goes())

        timer = loop.call_later(min(_SOON, self.factory.timeout or _SOON), take_care)
        try:
            await errand.run()
        except asyncio.CancelledError:
            if not gone or task is None:
                raise
            task.uncancel()
            errand.abandoned()
        finally:
            timer.cancel()
            if watch is not None:
                watch.cancel()

    async def _watched(self, errand: UrlExchange, receive: Receive) -> None:
        """Carries out *errand*, which has no end of its own, until it is over, the client goes, or we end."""
        errand.keep_time()
        closing: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        watch = asyncio.ensure_future(until_gone(receive, closing))
        work = asyncio.ensure_future(errand.run())
        self._endless.add(closing)
        if self._stopping:
            close(closing)
        try:
            await asyncio.wait((work, closing), return_when=asyncio.FIRST_COMPLETED)
            gone = watch.done() and not work.done()
            if not work.done():
                work.cancel()
                await asyncio.wait((work,))
            if gone:
                errand.abandoned()
            elif work.cancelled():
                await errand.ended()
            else:
                work.result()
        finally:
            self._endless.discard(closing)
            watch.cancel()
            work.cancel()

    # ── beside the answer ────────────────────────────────────────────────────────────────────────────────────────────

    async def tell(self, request: Request, told: Told, send: Send) -> None:
        """An answer of our own, on record."""
        self.factory.records.commit()
        headers = shared(request.headers)
        await reply(send, told.status, told.content, [*headers, CLOSE] if told.status == 413 else headers)

    def say(self, request: Request, talk: UrlSession, frame: bytes) -> None:
        """Sends the server something that nobody waits for, in the name of *request*."""
        if len(self._beside) < 100:
            task = asyncio.ensure_future(self._say(request, talk, frame))
            self._beside.add(task)
            task.add_done_callback(self._beside.discard)

    async def _say(self, request: Request, talk: UrlSession, frame: bytes) -> None:
        every = self.forwarding.headers(request.head, session=talk.ident)
        pairs = [pair for pair in every if pair[0] not in _OF_ONE_MESSAGE and not pair[0].startswith(b"mcp-param-")]
        pairs += [(b"content-type", _JSON), (b"accept", b"application/json, text/event-stream")]
        with suppress(NoAnswerError, TimeoutError):
            async with asyncio.timeout(BACK_SECONDS):
                (await self.target.ask("POST", self.target.with_own(pairs), request.query, frame)).close()

    def hold(self, more: int) -> None:
        """So many bytes more, or fewer, are held of answers. Raises `NoAnswerError` if that is too much."""
        self._held += more
        if more > 0 and self._held > HELD_BYTES:
            raise NoAnswerError("too many long answers come at once")

    def reached(self) -> None:
        """The server has answered something."""
        self.running, self.trouble = True, ""

    def unreachable(self, why: str) -> None:
        """There was no connection to the server, or it broke off."""
        self.running, self.trouble = False, why

    def redirected(self, where: bytes) -> None:
        """The server sends clients elsewhere: an operator should know, once."""
        # Without a query and a password, in either of which there may be a secret.
        shown = ascii(shown_url(where.decode("latin-1"))[:200])[1:-1]
        if shown not in self._redirects and len(self._redirects) < 10:
            self._redirects.add(shown)
            self._log(f"assay: the server redirects to {shown}, which is past the guard: give that as --target")

    def takes_no_post(self, status: int) -> None:
        """The server takes not even the first request: an operator should know what may be behind that, once."""
        if not self._told_no_post:
            self._told_no_post = True
            self._log(f"assay: the server answers what clients ask first with {status}; {NO_POST}")

    def broke(self, talk: UrlSession, why: str) -> None:
        """The server is lost while it owes an answer: what was last said in that session goes into a file, once."""
        session = talk.origin or talk
        if session.ident is not None and not session.broken:
            session.broken = True
            session.session.save_recent(self._flights, self._redact, End(why))

    def broke_off(self, why: str) -> None:
        """An answer of the server's broke off that a client has half of."""
        self._broken += 1
        if self._broken <= TOLD:
            self._log(f"assay: an answer of the server broke off, and so did what the client got of it: {why}")
        elif self._broken == TOLD + 1:
            self._log("assay: further answers that break off are not told")

    def unjudged(self, why: str) -> None:
        """An answer went on under audit that could not be kept until it was whole."""
        self._unjudged += 1
        if self._unjudged <= TOLD:
            self._log(f"assay: an answer of the server was passed on and not judged: {why}")
        elif self._unjudged == TOLD + 1:
            self._log("assay: further answers that are not judged are not told")


def _who(request: Request, pairs: Pairs) -> Who:
    """Who asks, by what goes to the server; the name of a header counts, since a server may know but one of them."""
    shown = [b"%b: %b" % pair for pair in pairs if is_credential(pair[0])]
    return Who(request.principal, sha256(b"\n".join(shown)).digest() if shown else b"")


def _revision(version: str | None, message: Any) -> str | None:
    """The revision that a message without a session counts as opened in; None for one that opens."""
    if version is not None and version in REVISIONS and not handshake(version):
        return version
    if isinstance(message, dict) and message.get("method") == "initialize":
        return None
    if version is not None:
        return version if version in REVISIONS else LATEST
    return LATEST if isinstance(message, dict) and names_revision(message) else UNNAMED
