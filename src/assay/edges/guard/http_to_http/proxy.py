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

import orjson

from assay.conversation import Facts
from assay.edges.guard.front.guarded import Request
from assay.edges.guard.http_to_http.errand import Errand
from assay.edges.guard.http_to_http.talks import Stream, Talk, Talks, Who
from assay.edges.guard.http_to_http.target import NoAnswerError, Target
from assay.edges.guard.http_to_http.turn import Told, Turn
from assay.edges.guard.overseer import Oversight
from assay.edges.guard.stdio_to_http.upstream import shown_url
from assay.edges.http.asking import ENDPOINT, UNNAMED, names_revision
from assay.edges.http.replies import CLOSE, Receive, Send, refuse, reply, shared
from assay.edges.http.section import Http
from assay.edges.http.statuses import is_patient
from assay.edges.http.streams import close, until_gone
from assay.spec.revisions import LATEST, REVISIONS, handshake

_SESSION: Final = b"mcp-session-id"
_VERSION: Final = b"mcp-protocol-version"
_JSON: Final = b"application/json"
_SHOWN: Final = (b"authorization", b"x-api-key")
"""What a client shows to be let in."""

_IN_SESSION: Final = Facts("http")

BACK_SECONDS: Final = 10.0
"""How long telling a server something may take that it does not wait for."""


TOLD: Final = 100
"""Answers that broke off of which people are told, as many as there are messages whose findings they are told."""

HELD_BYTES: Final = 256 << 20
"""Of all answers together that are not whole yet. One may have 16 MiB; nearly all have some thousand."""


class Proxy:
    """The backend for a URL."""

    def __init__(
        self,
        oversight: Oversight,
        target: Target,
        http: Http | None = None,
        *,
        endpoint: str = ENDPOINT,
        clock: Callable[[], float] = monotonic,
        log: Callable[[str], None] = lambda _: None,
        flights: str = "off",
        redact: Sequence[str] = (),
    ) -> None:
        """The last messages of a broken session go to *flights*, without what *redact* says."""
        self.oversight = oversight
        self.target = target
        self.endpoint = endpoint
        """Its path at the guard."""
        self._log = log
        self._flights, self._redact = flights, tuple(redact)
        self.talks = Talks(oversight, http or Http(), clock)
        self.spoken: frozenset[str] | None = None
        """The revisions that the server has said it speaks, without a handshake or with one."""
        self._held = 0
        self._stopping = False
        self._endless: set[asyncio.Future[None]] = set()
        self._beside: set[asyncio.Task[None]] = set()
        self._redirects: set[str] = set()
        self._broken = 0

    @property
    def sessions(self) -> int:
        """How many there are."""
        return len(self.talks)

    async def answer(self, request: Request, receive: Receive, send: Send) -> None:
        """Answers *request*, whole or as a stream."""
        version = request.headers.get(_VERSION, b"").decode("latin-1") or None
        ident = request.headers.get(_SESSION)
        if version is not None and version in REVISIONS and not handshake(version):
            # Revisions without handshake have no sessions: there the header means nothing.
            ident = None
        if ident is not None and self.talks.is_anothers(ident, request.principal):
            # As if there were none, so that nothing is learned by trying.
            gone = "there is no such session; begin with initialize"
            await refuse(send, "METHOD_NOT_FOUND", gone, shared(request.headers), status=404)
            return
        turn, talk = self._turn(request, version, ident)
        held = talk.origin or talk
        held.hands += 1
        try:
            if turn.told is not None:
                await self.tell(request, turn.told, send)
            else:
                await self._watched(Errand(self, request, turn, send), receive)
        finally:
            held.hands -= 1
            self.talks.done(talk)

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

    def _turn(self, request: Request, version: str | None, ident: bytes | None) -> tuple[Turn, Talk]:
        talk = self._talk(request, version, ident)
        patient = is_patient(version, in_session=ident is not None)
        turn = Turn(talk, patient=patient, enforcing=self.oversight.enforcing)
        if request.method == "POST":
            turn.hear(request.frame, _IN_SESSION if ident else Facts("http", version, request.headers))
            if self.spoken is not None:
                turn.narrow(self.spoken)
        elif request.method == "GET":
            turn.stream = talk.stream_of(request.headers.get(b"last-event-id")) or Stream()
        return turn, talk

    def _talk(self, request: Request, version: str | None, ident: bytes | None) -> Talk:
        who = _who(request)
        message = _loaded(request.frame) if ident is None or self.talks.awaits else None
        if isinstance(message, dict) and "method" not in message and isinstance(message.get("id"), str | int):
            asker = self.talks.asker(who, ident, message["id"])
            if asker is not None:
                return asker
        if ident is not None:
            known = version if version in REVISIONS and version is not None else UNNAMED
            listens = request.method == "GET"
            return self.talks.find(ident, who) or self.talks.adopted(ident, who, known, listens=listens)
        revision = _revision(version, message)
        return self.talks.opening(who) if revision is None else self.talks.alone(who, revision)

    async def _watched(self, errand: Errand, receive: Receive) -> None:
        """Carries out *errand* until it is over, the client goes, or, if it has no end of its own, we end."""
        closing: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        watch = asyncio.ensure_future(until_gone(receive, closing))
        work = asyncio.ensure_future(errand.run())
        if errand.endless:
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
        self.oversight.recorder.flush()
        headers = shared(request.headers)
        await reply(send, told.status, told.content, [*headers, CLOSE] if told.status == 413 else headers)

    def say(self, request: Request, talk: Talk, frame: bytes) -> None:
        """Sends the server something that nobody waits for, in the name of *request*."""
        if len(self._beside) < 100:
            task = asyncio.ensure_future(self._say(request, talk, frame))
            self._beside.add(task)
            task.add_done_callback(self._beside.discard)

    async def _say(self, request: Request, talk: Talk, frame: bytes) -> None:
        replaced = {b"content-type", b"accept", b"last-event-id", _SESSION, b"mcp-method", b"mcp-name"}
        pairs = [(name, value) for name, value in request.pairs if name not in replaced]
        pairs += [(b"content-type", _JSON), (b"accept", b"application/json, text/event-stream")]
        if talk.ident is not None:
            pairs.append((_SESSION, talk.ident))
        with suppress(NoAnswerError, TimeoutError):
            async with asyncio.timeout(BACK_SECONDS), self.target.ask("POST", pairs, request.query, frame):
                pass

    def hold(self, more: int) -> None:
        """So many bytes more, or fewer, are held of answers. Raises `NoAnswerError` if that is too much."""
        self._held += more
        if more > 0 and self._held > HELD_BYTES:
            raise NoAnswerError("too many long answers come at once")

    def redirected(self, where: bytes) -> None:
        """The server sends clients elsewhere: an operator should know, once."""
        # Without a query and a password, in either of which there may be a secret.
        shown = ascii(shown_url(where.decode("latin-1"))[:200])[1:-1]
        if shown not in self._redirects and len(self._redirects) < 10:
            self._redirects.add(shown)
            self._log(f"assay: the server redirects to {shown}, which is past the guard: give that as --target")

    def broke(self, talk: Talk) -> None:
        """The server is lost while it owes an answer: what was last said in that session goes into a file, once."""
        session = talk.origin or talk
        if session.ident is not None and not session.broken:
            session.broken = True
            session.overseer.broke(self._flights, self._redact)

    def broke_off(self, why: str) -> None:
        """An answer of the server's broke off that a client has half of."""
        self._broken += 1
        if self._broken <= TOLD:
            self._log(f"assay: an answer of the server broke off, and so did what the client got of it: {why}")
        elif self._broken == TOLD + 1:
            self._log("assay: further answers that break off are not told")


def _who(request: Request) -> Who:
    shown = [request.headers[name] for name in _SHOWN if name in request.headers]
    return Who(request.principal, sha256(b"\n".join(shown)).digest() if shown else b"")


def _loaded(frame: bytes) -> Any:
    try:
        return orjson.loads(frame) if frame else None
    except ValueError:
        return None


def _revision(version: str | None, message: Any) -> str | None:
    """The revision that a message without a session counts as opened in; None for one that opens."""
    if version is not None and version in REVISIONS and not handshake(version):
        return version
    if isinstance(message, dict) and message.get("method") == "initialize":
        return None
    if version is not None:
        return version if version in REVISIONS else LATEST
    return LATEST if isinstance(message, dict) and names_revision(message) else UNNAMED
