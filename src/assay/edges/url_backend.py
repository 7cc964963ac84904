"""
A guarded server at a URL: each request of a client is judged and forwarded, and answered with the judged response.

Every request is answered: if the server is down, late, or disconnects, the client gets an error with the reason.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import aclosing, suppress
from hashlib import sha256
from time import monotonic
from typing import Any, Final
from weakref import WeakKeyDictionary

from assay.edges.awaited_exchange import SOON, AwaitedExchange
from assay.edges.backend import HttpRequest
from assay.edges.compile_turns import TURNS
from assay.edges.http.forwarding import Forwarding, is_credential
from assay.edges.http.heads import LAST_EVENT, RequestHead, shown_name
from assay.edges.http.held_bytes import HeldBytes
from assay.edges.http.replies import (
    CLOSE,
    AwaitedReply,
    HttpReply,
    Pairs,
    Receive,
    Send,
    is_patient,
    not_allowed,
    refuse,
    reply,
    shared,
)
from assay.edges.http.request_headers import ENDPOINT, UNNAMED, peeked, revision_of
from assay.edges.judged_exchange import GuardResponse, JudgedExchange
from assay.edges.server_index import standing
from assay.edges.upstream_client import Headed, headed_by
from assay.edges.upstream_errors import NO_POST, NoAnswerError, shown_url
from assay.edges.upstream_target import Answered, UpstreamTarget
from assay.edges.url_exchange import UrlExchange
from assay.edges.url_sessions import Stream, UrlSession, UrlSessions, Who
from assay.guard.deliveries import End
from assay.guard.factory import SessionFactory
from assay.guard.internal_errors import log_once
from assay.guard.own_frames import CANCELLED
from assay.guard.sinks import server_state
from assay.guard.tool_listing import LISTING_SECONDS
from assay.judge import syntax
from assay.judge.conversation import Facts
from assay.judge.events import Reader
from assay.schema.tool_contracts import Tools
from assay.settings.http_section import Http
from assay.spec.revisions import REVISIONS, is_known

_JSON: Final = b"application/json"
_EVENTS: Final = b"text/event-stream"

_IN_SESSION: Final = Facts("http")

BACK_SECONDS: Final = 10.0
"""Seconds for a message that the server does not wait for."""


MOST_LOGGED: Final = 100
"""Maximal broken responses to log: as many as messages with findings."""

_UNFORWARDED: Final = 20
"""Maximal names of dropped headers to log: enough to find the one that a server needs."""

_KNOWN_HEADS: Final = 100

_OF_ONE_MESSAGE: Final = frozenset({b"content-type", b"accept", LAST_EVENT, b"mcp-method", b"mcp-name"})
"""Headers of a request that do not apply to other messages in its name."""

NO_QUERY: Final = "the guard forwards no query; put it into the URL of --target"
_GONE: Final = "there is no such session; begin with initialize"

HELD_BYTES: Final = 256 << 20
"""Maximal bytes of all incomplete responses. One may have 16 MiB; nearly all have some kilobytes."""


MOST_BESIDE: Final = 2000
"""Messages of the guard itself that wait to be sent: as many as requests of servers wait for clients."""

AT_ONCE: Final = 100
"""How many of them are sent at once, each on a connection of its own."""


class ListBody:
    """The response to the guard's own request for the tools."""

    def __init__(self, answered: Answered) -> None:
        self._answered = answered

    def crowd_out(self) -> None:
        """Give up the response, because it takes more memory than others."""
        self._answered.close()


def _cancels(frame: bytes) -> bool:
    """Whether *frame* is the cancellation of a request."""
    if CANCELLED.encode() not in frame and b"\\" not in frame:
        return False
    message = syntax.read(frame)
    return isinstance(message, dict) and message.get("method") == CANCELLED


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
        log: Callable[[str], None] = lambda _: None,
        flights: str = "off",
        redact: Sequence[str] = (),
    ) -> None:
        """
        *gated* if the guard has its own authentication; *alone* if no other server is at the guard's address.

        The last messages of a broken session go to *flights*, without secrets and matches of *redact*.
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
        self.public_url = http.public_url
        self._log = log
        self._flights, self._redact = flights, tuple(redact)
        self.talks = UrlSessions(factory, http, monotonic, gated=gated)
        self.spoken: frozenset[str] | None = None
        """The revisions that the server lists, with or without a handshake."""
        self._held: HeldBytes[UrlExchange | ListBody] = HeldBytes(HELD_BYTES)
        self._stopping = False
        self._endless: set[asyncio.Future[None]] = set()
        self._beside: set[asyncio.Task[None]] = set()
        self._saying = asyncio.Semaphore(AT_ONCE)
        self._is_crowded = False
        """Whether messages of the guard were dropped."""
        self._redirects: set[str] = set()
        self._unforwarded: set[bytes] = set()
        self._listings: WeakKeyDictionary[Tools, asyncio.Future[None]] = WeakKeyDictionary()
        """The requests of the guard for the tools that a client called without having listed them."""
        self._known: dict[int, tuple[RequestHead, str, Headed, Who]] = {}
        """Heads that were looked at already, by their identity, with what follows from them."""
        self._told_no_post = False
        self._broken = self._unjudged = 0
        self.running = False
        """Whether the last request reached the server."""
        self.trouble = ""
        """Why the last connection failed."""

    @property
    def sessions(self) -> int:
        """The number of sessions."""
        return len(self.talks)

    def begin(self, request: HttpRequest) -> AwaitedReply | HttpReply | None:
        """Return the response to a POST, or the request that waits for its server; None if that takes more time."""
        head = request.head
        if self._stopping or not (head.is_stateless or head.session is not None) or self._refusal(request):
            return None
        pairs, who = self._prepared(request)
        talk = self._talk(request, who)
        if talk.session.may_wait and self._takes_time(request, talk):
            self.talks.done(talk)
            return None
        turn = self._turn(request, talk)
        held = talk.origin or talk
        if turn.response is not None:
            self.talks.done(talk)
            headers = shared(request.headers)
            return HttpReply(*turn.response, [*headers, CLOSE] if turn.response.status == 413 else headers)
        held.hands += 1
        return self._begun(request, pairs, turn, held)

    def _begun(self, request: HttpRequest, pairs: Headed, turn: JudgedExchange, held: UrlSession) -> AwaitedReply:
        async def work() -> None:
            try:
                await exchange.run()
            except Exception:
                turn.forget()
                raise
            finally:
                held.hands -= 1
                self.talks.done(turn.talk)

        awaited = AwaitedExchange(request, min(SOON, self.factory.timeout or SOON), self.factory.records.commit)
        exchange = UrlExchange(self, request, pairs, turn, awaited.send, buffered=True)
        awaited.start(exchange, self._listening(exchange, work()) if exchange.endless else work())
        return awaited

    def flush(self) -> None:
        """Write the records of what is answered from now on."""
        self.factory.records.commit()

    def _prepared(self, request: HttpRequest) -> tuple[Headed, Who]:
        """Return the headers for the server, and who asks. A client repeats most of its heads."""
        head, principal = request.head, request.principal
        known = self._known.get(id(head))
        if known is not None and known[0] is head and known[1] == principal:
            return known[2], known[3]
        pairs = self.target.with_own(self.forwarding.headers(head))
        self._note_dropped(head)
        headed, who = headed_by(pairs), _who(request, pairs)
        if len(self._known) >= _KNOWN_HEADS:
            self._known.clear()
        self._known[id(head)] = head, principal, headed, who
        return headed, who

    async def answer(self, request: HttpRequest, receive: Receive, send: Send) -> None:
        """Answer *request*, with a complete response or a stream."""
        if await self._refused(request, send):
            return
        pairs, who = self._prepared(request)
        talk = self._talk(request, who)
        held = talk.origin or talk
        held.hands += 1
        turn: JudgedExchange | None = None
        try:
            if self._takes_time(request, talk) and not await self._prepared_first(request, talk, receive):
                return
            turn = self._turn(request, talk)
            if turn.response is not None:
                await self.tell(request, turn.response, send)
            else:
                errand = UrlExchange(self, request, pairs, turn, send)
                await (self._watched if errand.endless else self._carry_out)(errand, receive)
        except Exception:
            # A bug of ours, which the front answers: the request must not stay open in the session.
            if turn is not None:
                turn.forget()
            raise
        finally:
            held.hands -= 1
            self.talks.done(talk)

    def _refusal(self, request: HttpRequest) -> str:
        """Return why a request is refused for where it goes; empty if it is not."""
        head = request.head
        session, revision = head.session, head.revision
        enforcing = self.factory.enforcing
        if head.is_stateless and request.method != "POST":
            return "method"
        if request.query and (enforcing or self.gated or self.target.has_query):
            # It is not judged; and behind a query of the operator's it could take back what that says.
            return "query"
        if session is None:
            return ""
        if not self._may_use(session, request.principal):
            # Another principal's session looks like one that is not there, so that nothing is learned by trying.
            return "session"
        return "revision" if enforcing and revision is not None and not is_known(revision) else ""

    async def _refused(self, request: HttpRequest, send: Send) -> bool:
        """Whether a request is refused for where it goes: then it has been answered."""
        headers, why = shared(request.headers), self._refusal(request)
        if why == "method":
            await not_allowed(send, "POST", headers)
        elif why == "query":
            await refuse(send, "INVALID_ENVELOPE", NO_QUERY, headers, status=400)
        elif why == "session":
            await refuse(send, "METHOD_NOT_FOUND", _GONE, headers, status=404)
        elif why == "revision":
            data = {"requested": (request.head.revision or "")[:100], "supported": list(REVISIONS)}
            await refuse(send, "UNSUPPORTED_REVISION", "unknown MCP-Protocol-Version", headers, data=data)
        return bool(why)

    def _may_use(self, session: bytes, principal: str) -> bool:
        """
        Whether *principal* may use *session*.

        A session that the guard does not know was opened elsewhere, or before its start: its owner and its tools are
        unknown. It is accepted only under audit.
        """
        if self.talks.is_anothers(session, principal):
            return False
        return not (self.factory.enforcing or self.gated) or self.talks.knows(session, principal)

    def _note_dropped(self, head: RequestHead) -> None:
        """Log, once for each name, the headers of clients that are not forwarded."""
        if not self.factory.enforcing or len(self._unforwarded) >= _UNFORWARDED:
            return
        for name in self.forwarding.dropped(head):
            if name not in self._unforwarded:
                self._unforwarded.add(name)
                self._log(
                    f"assay: the header {shown_name(name)} of clients is not forwarded to the server; "
                    "if it needs that, list it in http.forward_headers"
                )

    def stop(self) -> None:
        """End the endless streams."""
        self._stopping = True
        for closing in list(self._endless):
            _close(closing)

    async def close(self) -> None:
        """End every connection."""
        for task in list(self._beside):
            task.cancel()
        await self.target.close()

    def sweep(self) -> None:
        """Drop unused sessions."""
        self.talks.sweep()

    # ── who asks, and what becomes of it ─────────────────────────────────────────────────────────────────────────────

    def _turn(self, request: HttpRequest, talk: UrlSession) -> JudgedExchange:
        head = request.head
        patient = is_patient(head.revision, in_session=head.session is not None)
        turn = JudgedExchange(talk, patient=patient, enforcing=self.factory.enforcing)
        if request.method == "POST":
            facts = self._facts(request)
            if self.factory.http is None:
                turn.hear(request.frame, facts)
            else:
                turn.hear_noted(request.frame, facts, self.factory.http, head)
            if self.spoken is not None:
                turn.narrow(self.spoken)
        elif request.method == "GET":
            turn.resumed = head.last_event is not None
            turn.stream = talk.stream_of(head.last_event) or Stream()
        return turn

    def _facts(self, request: HttpRequest) -> Facts:
        head = request.head
        return _IN_SESSION if head.session else Facts("http", head.revision, request.headers)

    # ── the list of tools ────────────────────────────────────────────────────────────────────────────────────────────

    def _takes_time(self, request: HttpRequest, talk: UrlSession) -> bool:
        """Whether a call has to wait for the list of tools, or for the schemas of its tool to be compiled."""
        session, frame = talk.session, request.frame
        if request.method != "POST":
            return False
        if session.lists_first(frame, self._facts(request)) is not None or session.late_contracts(frame):
            return True
        # A cancellation must not overtake a call that waits.
        return session.conversation.tools in self._listings and _cancels(frame)

    async def _prepared_first(self, request: HttpRequest, talk: UrlSession, receive: Receive) -> bool:
        """Do what a call has to wait for; return False if its client has gone meanwhile."""
        work = asyncio.ensure_future(self._prepare(request, talk))
        gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        watch = asyncio.ensure_future(_until_gone(receive, gone))
        try:
            await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
            return not gone.done()
        finally:
            work.cancel()
            watch.cancel()

    async def _prepare(self, request: HttpRequest, talk: UrlSession) -> None:
        await self._list_first(request, talk)
        await TURNS.compile(talk.session.late_contracts(request.frame), request.principal)

    async def _list_first(self, request: HttpRequest, talk: UrlSession) -> None:
        """Wait for the list of tools if *request* calls a tool that is not known; several calls wait for one list."""
        tools = talk.session.conversation.tools
        task = self._listings.get(tools)
        if task is None and talk.session.lists_first(request.frame, self._facts(request)) is None:
            return
        if task is None:
            # A task of its own: others may wait for it when this client has gone.
            task = self._listings[tools] = asyncio.ensure_future(self._list(request, talk))
            task.add_done_callback(lambda _: self._listings.pop(tools, None))
        await asyncio.wait((task,), timeout=LISTING_SECONDS)

    async def _list(self, request: HttpRequest, talk: UrlSession) -> None:
        """Request the tools of the server, in the name of *request*."""
        session, found = talk.session, talk.session.lists_first(request.frame, self._facts(request))
        if found is None:
            return
        try:
            async with asyncio.timeout(LISTING_SECONDS):
                listing = session.listing(found, _IN_SESSION)
                while (asked := listing.request) is not None:
                    async with aclosing(self._answers(request, talk, asked.frame)) as frames:
                        async for frame in frames:
                            if session.listed(listing, frame):
                                break
                    if listing.request is asked:
                        return
        except (NoAnswerError, TimeoutError):
            return
        except Exception as error:
            log_once(error, "the tools of a server could not be requested")
        finally:
            session.listing_over()

    async def _answers(self, request: HttpRequest, talk: UrlSession, frame: bytes) -> AsyncGenerator[bytes, None]:
        """Yield the messages with which the server responds to the guard's own request."""
        pairs = self._beside_headers(request, talk)
        if talk.ident is None:
            pairs.append((b"mcp-method", b"tools/list"))
        answered = await self.target.ask("POST", self.target.with_own(pairs), request.query, frame)
        body = ListBody(answered)
        try:
            limit = talk.session.conversation.limits.frame_bytes
            if answered.head.trouble or answered.head.status >= 300:
                return
            reader = Reader(limit) if answered.head.kind == _EVENTS else None
            held = bytearray()
            while piece := await answered.piece():
                if reader is None:
                    held += piece
                else:
                    for each in reader.feed(piece):
                        if each.is_message and each.whole and each.data:
                            yield each.data
                if len(held) > limit or self.hold(body, talk.who, len(held) if reader is None else reader.held):
                    return
            if held:
                yield bytes(held)
        finally:
            self._held.release(body)
            answered.close()

    def _talk(self, request: HttpRequest, who: Who) -> UrlSession:
        ident, version = request.head.session, request.head.revision
        # What names a revision without a handshake is not looked at twice, unless it may answer a server.
        opens = ident is None and not request.head.is_stateless
        message = peeked(request.frame) if opens or self.talks.awaits else None
        # `true` equals 1 in Python, and is not a valid id.
        if isinstance(message, dict) and "method" not in message and type(message.get("id")) in (str, int):
            asker = self.talks.asker(who, ident, message["id"])
            if asker is not None:
                return asker
        if ident is not None:
            known = version if is_known(version) else UNNAMED
            listens = request.method == "GET"
            return self.talks.find(ident, who) or self.talks.adopted(ident, who, known, listens=listens)
        revision = revision_of(version, message)
        return self.talks.opening(who) if revision is None else self.talks.alone(who, revision)

    async def _carry_out(self, errand: UrlExchange, receive: Receive) -> None:
        """
        Run *errand* in the task of its request, until it ends or the client disconnects.

        Nearly all end within a few milliseconds. Only a longer one gets a task that watches the client.
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

        timer = loop.call_later(min(SOON, self.factory.timeout or SOON), take_care)
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

    async def _listening(self, exchange: UrlExchange, work: Coroutine[Any, Any, None]) -> None:
        """Carry out an exchange without an end of its own until we end; the connection sees the client go."""
        exchange.keep_time()
        closing: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = asyncio.ensure_future(work)
        self._endless.add(closing)
        try:
            await asyncio.wait((task, closing), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                task.result()
                return
            task.cancel()
            await asyncio.wait((task,))
            await exchange.ended()
        finally:
            self._endless.discard(closing)
            task.cancel()

    async def _watched(self, errand: UrlExchange, receive: Receive) -> None:
        """Run an endless *errand* until it ends, the client disconnects, or the guard stops."""
        errand.keep_time()
        closing: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        watch = asyncio.ensure_future(_until_gone(receive, closing))
        work = asyncio.ensure_future(errand.run())
        self._endless.add(closing)
        if self._stopping:
            _close(closing)
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

    async def tell(self, request: HttpRequest, response: GuardResponse, send: Send) -> None:
        """Record a response of our own, and send it."""
        self.factory.records.commit()
        headers = shared(request.headers)
        await reply(send, response.status, response.content, [*headers, CLOSE] if response.status == 413 else headers)

    def say(self, request: HttpRequest, talk: UrlSession, frame: bytes) -> None:
        """Send the server a message without a response, in the name of *request*."""
        if len(self._beside) >= MOST_BESIDE:
            if not self._is_crowded:
                self._is_crowded = True
                self._log("assay: the server does not take the guard's refusals and cancellations; some were dropped")
            return
        task = asyncio.ensure_future(self._say(request, talk, frame))
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    async def _say(self, request: HttpRequest, talk: UrlSession, frame: bytes) -> None:
        pairs = self._beside_headers(request, talk)
        with suppress(NoAnswerError, TimeoutError):
            async with self._saying, asyncio.timeout(BACK_SECONDS):
                (await self.target.ask("POST", self.target.with_own(pairs), request.query, frame)).close()

    def _beside_headers(self, request: HttpRequest, talk: UrlSession) -> list[tuple[bytes, bytes]]:
        """Return the headers of another message in the name of *request*."""
        every = self.forwarding.headers(request.head, session=talk.ident)
        pairs = [pair for pair in every if pair[0] not in _OF_ONE_MESSAGE and not pair[0].startswith(b"mcp-param-")]
        return [*pairs, (b"content-type", _JSON), (b"accept", b"application/json, text/event-stream")]

    def hold(self, exchange: "UrlExchange | ListBody", who: Who, count: int) -> bool:
        """
        Set the number of held bytes of the response of *exchange*.

        Beyond the limit the client that has most of them loses its longest response; return whether it is this one.
        """
        # Without authentication of our own, a client is known by its credentials for the server.
        losing = self._held.hold(exchange, who.principal if self.gated else who, count)
        for each in losing:
            if each is not exchange:
                each.crowd_out()
        return exchange in losing

    def reached(self) -> None:
        """Note that the server responded."""
        if not self.running:
            self.running, self.trouble = True, ""
            self._note_state()

    def unreachable(self, why: str) -> None:
        """Note that the connection to the server failed."""
        changed = self.running or self.trouble != why
        self.running, self.trouble = False, why
        if changed:
            self._note_state()

    def _note_state(self) -> None:
        """Record whether the server can be reached."""
        found = standing(self)
        self.factory.records.event("state", server_state(found.state, found.trouble), "")
        self.factory.records.commit()

    def redirected(self, where: bytes) -> None:
        """Log once that the server redirects clients."""
        # Without query and password, which may be secrets.
        shown = ascii(shown_url(where.decode("latin-1"))[:200])[1:-1]
        if shown not in self._redirects and len(self._redirects) < 10:
            self._redirects.add(shown)
            self._log(f"assay: the server redirects to {shown}, which is past the guard: give that as --target")

    def takes_no_post(self, status: int) -> None:
        """Log once the likely reason why the server rejects the first request."""
        if not self._told_no_post:
            self._told_no_post = True
            self._log(f"assay: the server answers what clients ask first with {status}; {NO_POST}")

    def broke(self, talk: UrlSession, why: str) -> None:
        """Write the last messages of a session to a file, once, after the server was lost with open requests."""
        session = talk.origin or talk
        if session.ident is not None and not session.broken:
            session.broken = True
            session.session.save_recent(self._flights, self._redact, End(why))

    def broke_off(self, why: str) -> None:
        """Log that a response was cut off after part of it was forwarded."""
        self._broken += 1
        if self._broken <= MOST_LOGGED:
            self._log(f"assay: an answer of the server broke off, and so did what the client got of it: {why}")
        elif self._broken == MOST_LOGGED + 1:
            self._log("assay: further answers that break off are not logged")

    def unjudged(self, why: str) -> None:
        """Log that a response was forwarded under audit without being judged, because it was too large to keep."""
        self._unjudged += 1
        if self._unjudged <= MOST_LOGGED:
            self._log(f"assay: an answer of the server was passed on and not judged: {why}")
        elif self._unjudged == MOST_LOGGED + 1:
            self._log("assay: further answers that are not judged are not logged")


def _who(request: HttpRequest, pairs: Pairs) -> Who:
    """Return the client by its credentials for the server, with the names of their headers."""
    shown = [b"%b: %b" % pair for pair in pairs if is_credential(pair[0])]
    return Who(request.principal, sha256(b"\n".join(shown)).digest() if shown else b"")


async def _until_gone(receive: Receive, closing: "asyncio.Future[None]") -> None:
    """Wait until the client disconnects, then set the future."""
    while (await receive())["type"] != "http.disconnect":
        pass
    _close(closing)


def _close(closing: "asyncio.Future[None]") -> None:
    """Set the future."""
    if not closing.done():
        closing.set_result(None)
