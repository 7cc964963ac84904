"""
A server at a URL, behind the guard: each request of a client is judged, passed on, and answered with what is judged of
the server's answer.

Nobody is left waiting: where the server is down, late, or breaks off, the client gets an error that says so.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from hashlib import sha256
from time import monotonic
from typing import Any, Final

import orjson

from assay.conversation import Facts
from assay.edges.http.asking import ENDPOINT, UNNAMED, media_type, names_revision
from assay.edges.http.events import Reader, event
from assay.edges.http.guarded import Request
from assay.edges.http.oauth import challenge
from assay.edges.http.replies import CLOSE, Receive, Send, error_body, refuse, reply, shared
from assay.edges.http.section import Http
from assay.edges.http.statuses import is_patient
from assay.edges.http.streams import close, until_gone
from assay.edges.http.talks import Stream, Talk, Talks, Who
from assay.edges.http.target import Answered, NoAnswerError, Target
from assay.edges.http.turn import Told, Turn
from assay.edges.overseer import Oversight
from assay.errors import CanonicalError
from assay.ladder import syntax
from assay.spec.revisions import LATEST, REVISIONS, handshake

_SESSION: Final = b"mcp-session-id"
_VERSION: Final = b"mcp-protocol-version"
_JSON: Final = b"application/json"
_EVENTS: Final = b"text/event-stream"
_SHOWN: Final = (b"authorization", b"x-api-key")
"""What a client shows to be let in."""

_LISTENS: Final = "subscriptions/listen"
_IN_SESSION: Final = Facts("http")

BACK_SECONDS: Final = 10.0
"""How long telling a server something may take that it does not wait for."""


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
    ) -> None:
        self._oversight = oversight
        self.target = target
        self.endpoint = endpoint
        """Its path at the guard."""
        self._log = log
        self.talks = Talks(oversight, http or Http(), clock)
        self._spoken: frozenset[str] | None = None
        """The revisions that the server has said it speaks, without a handshake or with one."""
        self._stopping = False
        self._endless: set[asyncio.Future[None]] = set()
        self._beside: set[asyncio.Task[None]] = set()
        self._redirects: set[bytes] = set()

    @property
    def sessions(self) -> int:
        """How many there are."""
        return len(self.talks)

    async def answer(self, request: Request, receive: Receive, send: Send) -> None:
        """Answers *request*, whole or as a stream."""
        turn, talk = self._turn(request)
        talk.hands += 1
        try:
            if turn.told is not None:
                await self._tell(request, turn.told, send)
            else:
                await self._watched(_Exchange(self, request, turn, send), receive)
        finally:
            talk.hands -= 1
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

    def _turn(self, request: Request) -> tuple[Turn, Talk]:
        version = request.headers.get(_VERSION, b"").decode("latin-1") or None
        ident = request.headers.get(_SESSION)
        if version is not None and version in REVISIONS and not handshake(version):
            # Revisions without handshake have no sessions: there the header means nothing.
            ident = None
        talk = self._talk(request, version, ident)
        patient = is_patient(version, in_session=ident is not None)
        turn = Turn(talk, patient=patient, enforcing=self._oversight.enforcing)
        if request.method == "POST":
            turn.hear(request.frame, _IN_SESSION if ident else Facts("http", version, request.headers))
            if self._spoken is not None:
                turn.narrow(self._spoken)
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
            return self.talks.find(ident, who) or self.talks.adopted(ident, who, known)
        revision = _revision(version, message)
        return self.talks.opening(who) if revision is None else self.talks.alone(who, revision)

    async def _watched(self, exchange: "_Exchange", receive: Receive) -> None:
        """Carries out *exchange* until it is over, the client goes, or, if it has no end of its own, we end."""
        closing: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        watch = asyncio.ensure_future(until_gone(receive, closing))
        work = asyncio.ensure_future(exchange.run())
        if exchange.endless:
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
                exchange.abandoned()
            elif work.cancelled():
                await exchange.ended()
            else:
                work.result()
        finally:
            self._endless.discard(closing)
            watch.cancel()
            work.cancel()

    # ── beside the answer ────────────────────────────────────────────────────────────────────────────────────────────

    async def _tell(self, request: Request, told: Told, send: Send) -> None:
        """An answer of our own, on record."""
        self._oversight.recorder.flush()
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

    def redirected(self, where: bytes) -> None:
        """The server sends clients elsewhere: an operator should know, once."""
        if where not in self._redirects and len(self._redirects) < 10:
            self._redirects.add(where)
            shown = ascii(where.decode("latin-1")[:200])[1:-1]
            self._log(f"assay: the server redirects to {shown}, which is past the guard: give that as --target")


class _Exchange:
    """One request to the server, and its answer."""

    __slots__ = ("_begun", "_limit", "_oversight", "_proxy", "_request", "_send", "_turn", "endless")

    def __init__(self, proxy: Proxy, request: Request, turn: Turn, send: Send) -> None:
        self._proxy = proxy
        self._oversight = proxy._oversight
        self._request = request
        self._turn = turn
        self._send = send
        self._begun = False
        self._limit: asyncio.Timeout | None = None
        self.endless = request.method == "GET" or any(each.method == _LISTENS for each in turn.due)
        """Whether it ends only when somebody has had enough."""

    async def run(self) -> None:
        """From the request to the last byte of the answer."""
        try:
            async with asyncio.timeout(None) as self._limit:
                self._wait()
                request = self._request
                body = self._turn.to_server if request.method == "POST" else None
                async with self._proxy.target.ask(request.method, request.pairs, request.query, body) as answered:
                    await self._respond(answered)
        except TimeoutError:
            await self._failed("TIMEOUT", "")
        except NoAnswerError as error:
            await self._failed("UPSTREAM_FAILURE", str(error))

    def _wait(self) -> None:
        """From now on the server is waited for, as long as it may take."""
        if self._limit is None:
            return
        patience = self._turn.patience
        if patience is None and not self._begun:
            patience = self._oversight.timeout
        self._limit.reschedule(None if patience is None else asyncio.get_running_loop().time() + patience)

    async def _chunks(self, answered: Answered) -> AsyncIterator[bytes]:
        """The body, as it comes. While somebody else is waited for, it does not count how long that takes."""
        async for chunk in answered.chunks:
            if self._limit is not None:
                self._limit.reschedule(None)
            yield chunk
            self._wait()

    # ── what the server answers ──────────────────────────────────────────────────────────────────────────────────────

    async def _respond(self, answered: Answered) -> None:
        answered = self._as_ours(answered)
        self._note_session(answered)
        status = answered.status
        kind = media_type(answered.headers.get(b"content-type", b""))
        if 300 <= status < 400:
            self._proxy.redirected(answered.headers.get(b"location", b""))
        plain = answered.headers.get(b"content-encoding", b"identity").lower() == b"identity"
        if not plain:
            await self._unread(answered, "its answer is compressed, which was not asked for")
        elif kind == _EVENTS and status < 300:
            await self._stream(answered)
        elif kind == _JSON and self._request.method == "POST":
            await self._whole(answered)
        elif 400 <= status < 500 or (not self._turn.due and self._request.method != "GET" and status < 300):
            self._turn.forget()
            await self._pass(answered)
        elif status < 300 and self._turn.due:
            shown = kind.decode("latin-1")[:100]
            await self._unread(answered, f"its answer is {f'of type {shown}' if shown else 'empty'}")
        else:
            await self._unread(answered, f"its answer has HTTP status {status}")

    def _as_ours(self, answered: Answered) -> Answered:
        """The answer with a challenge that leads to us, if it has one."""
        if b"www-authenticate" not in answered.headers:
            return answered
        origin, endpoint = self._proxy.target.origin, self._proxy.endpoint
        address = f"http://{self._request.headers.get(b'host', b'localhost').decode('latin-1')}"
        pairs = [
            (name, challenge(value, origin, address, endpoint) if name == b"www-authenticate" else value)
            for name, value in answered.pairs
        ]
        return answered._replace(pairs=pairs)

    def _note_session(self, answered: Answered) -> None:
        talks, talk, status = self._proxy.talks, self._turn.talk, answered.status
        verdict = self._turn.verdict
        if status == 404 or (self._request.method == "DELETE" and status < 300):
            talks.drop(talk)
        elif status < 300 and self._request.method != "DELETE":
            if talk.ident is None and verdict is not None and verdict.method == "initialize":
                ident = answered.headers.get(_SESSION)
                if ident:
                    talks.keep(talk, ident)
            elif talk.ident is not None and talks.find(talk.ident, talk.who) is None:
                talks.keep(talk, talk.ident)

    async def _whole(self, answered: Answered) -> None:
        """One JSON value."""
        limit = self._oversight.frame_bytes
        held = bytearray()
        async for chunk in self._chunks(answered):
            held += chunk
            if len(held) > limit:
                await self._endless_body(answered, bytes(held))
                return
        content = bytes(held)
        if not content.strip():
            if self._turn.due and answered.status < 400 and self._oversight.enforcing:
                raise NoAnswerError(f"its answer is empty, with HTTP status {answered.status}")
            self._turn.forget()
            await self._reply(answered, Told(answered.status, content))
        elif not self._turn.stream.due and answered.status == 202:
            # Taken, which is all that there is to say.
            await self._reply(answered, Told(202, b"" if self._oversight.enforcing else content))
        else:
            await self._reply(answered, self._turn.body(content, answered.status))

    async def _endless_body(self, answered: Answered, begun: bytes) -> None:
        """A body that is longer than a message may be: judged by its beginning, and passed on where nothing stops."""
        limit = self._oversight.frame_bytes
        told = self._turn.body(begun[: limit + 1], answered.status)
        if self._oversight.enforcing:
            await self._reply(answered, told)
        else:
            await self._pass(answered, begun)

    async def _unread(self, answered: Answered, why: str) -> None:
        """What is no answer goes to the client only where nothing is stopped."""
        if self._oversight.enforcing:
            raise NoAnswerError(why)
        self._turn.record("UPSTREAM_FAILURE", why)
        await self._pass(answered)

    async def _pass(self, answered: Answered, begun: bytes = b"") -> None:
        """The rest of the answer as it comes, under enforce no more of it than a message may have."""
        left = self._oversight.frame_bytes if self._oversight.enforcing else None
        await self._start(answered)
        if begun:
            await self._more(begun)
        async for chunk in self._chunks(answered):
            if left is not None:
                left -= len(chunk)
                if left < 0:
                    break
            await self._more(chunk)
        await self._end()

    async def _stream(self, answered: Answered) -> None:
        turn = self._turn
        reader = Reader(self._oversight.frame_bytes)
        await self._start(answered)
        await self._more(turn.first())
        broken = ""
        try:
            async for chunk in self._chunks(answered):
                judged = b"".join(map(turn.event, reader.feed(chunk)))
                self._go_on()
                await self._more(judged)
        except NoAnswerError as error:
            broken = str(error)
        rest = b"" if self._oversight.enforcing else reader.rest()
        if turn.due and not (turn.stream.resumable and turn.talk.ident is not None):
            failed = turn.failures("UPSTREAM_FAILURE", broken or "the stream ended without it")
            rest += b"".join(map(event, failed)) if self._oversight.enforcing else b""
        await self._more(rest)
        await self._end()

    def _go_on(self) -> None:
        """What the server has asked is remembered, and it is told what it has to be told."""
        turn, proxy = self._turn, self._proxy
        for ident in turn.asked:
            proxy.talks.asks(turn.talk, ident)
        for frame in turn.back:
            proxy.say(self._request, turn.talk, frame)
        if turn.speaks is not None:
            proxy._spoken = frozenset(turn.speaks[:100])
            turn.speaks = None
        turn.asked.clear()
        turn.back.clear()

    # ── what the client gets ─────────────────────────────────────────────────────────────────────────────────────────

    async def _reply(self, answered: Answered, told: Told) -> None:
        """A whole answer, with the server's headers."""
        self._go_on()
        self._oversight.recorder.flush()
        self._begun = True
        kind = [] if b"content-type" in answered.headers or not told.content else [(b"content-type", _JSON)]
        length = (b"content-length", b"%d" % len(told.content))
        headers = [*answered.pairs, *kind, length, *shared(self._request.headers)]
        await self._send({"type": "http.response.start", "status": told.status, "headers": headers})
        await self._send({"type": "http.response.body", "body": told.content})

    async def _start(self, answered: Answered) -> None:
        self._oversight.recorder.flush()
        self._begun = True
        headers = [*answered.pairs, *shared(self._request.headers)]
        await self._send({"type": "http.response.start", "status": answered.status, "headers": headers})

    async def _more(self, data: bytes) -> None:
        if data:
            self._oversight.recorder.flush()
            await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def _end(self) -> None:
        self._oversight.recorder.flush()
        await self._send({"type": "http.response.body", "body": b""})

    async def _failed(self, code: str, why: str) -> None:
        """The server has given no answer, and gives none any more."""
        turn = self._turn
        late = [each for each in turn.due if each.method != "initialize"] if code == "TIMEOUT" else []
        frames = turn.failures(code, why)
        if turn.talk.ident is not None:
            for exchange in late:
                self._proxy.say(self._request, turn.talk, _cancelled(exchange.id))
        if self._begun:
            if self._oversight.enforcing:
                await self._more(b"".join(map(event, frames)))
            await self._end()
        elif frames:
            await self._proxy._tell(self._request, turn.made(frames, code), self._send)
        else:
            content = error_body(code, why or CanonicalError.to_jsonrpc_error(code)["message"])  # type: ignore[arg-type]
            told = Told(CanonicalError.to_http_status(code), content)
            await self._proxy._tell(self._request, told, self._send)

    def abandoned(self) -> None:
        """The client has gone. It may come back for what it can come back for."""
        if not (self._turn.stream.resumable and self._turn.talk.ident is not None):
            self._turn.forget()

    async def ended(self) -> None:
        """We end while the client still listens."""
        frames = self._turn.failures("UPSTREAM_FAILURE", "the guard ends")
        if not self._begun:
            headers = [(b"retry-after", b"1"), CLOSE, *shared(self._request.headers)]
            await refuse(self._send, "OVERLOADED", "the guard ends", headers)
            return
        if self._oversight.enforcing:
            await self._more(b"".join(map(event, frames)))
        await self._end()


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


def _cancelled(ident: str | int) -> bytes:
    params = {"requestId": ident, "reason": "timed out"}
    return syntax.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
