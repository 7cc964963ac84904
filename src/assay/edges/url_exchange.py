"""
One request to a server at a URL, from sending it to the last byte of its response.

It waits for the server within a time limit, and for the client without one; the judged exchange judges the messages.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from assay.edges.backend import HttpRequest
from assay.edges.http.access import METADATA
from assay.edges.http.forwarding import UpstreamHead
from assay.edges.http.replies import CLOSE, JSON, SMALL, STREAM, Pairs, Send, error_body, refuse, shared, status_of
from assay.edges.http.request_headers import address_of
from assay.edges.judged_exchange import GuardResponse, JudgedExchange
from assay.edges.oauth_discovery import challenges_for
from assay.edges.time_slice import Stint
from assay.edges.upstream_client import Headed
from assay.edges.upstream_errors import MOST_BYTES, SECONDS, BrokenError, NoAnswerError
from assay.edges.upstream_target import Answered
from assay.guard.deliveries import LossReason
from assay.guard.own_frames import cancelled, may_be_cancelled
from assay.judge.events import Reader, event
from assay.model.errors import CanonicalError, within

if TYPE_CHECKING:
    from assay.edges.url_backend import UrlBackend


class AuditedBody:
    """One such body."""

    __slots__ = ("_done", "_held", "_hold", "_judge", "_limit", "_unjudged")

    def __init__(
        self,
        limit: int,
        *,
        hold: Callable[[int], None],
        judge: Callable[[bytes], None],
        unjudged: Callable[[str], None],
    ) -> None:
        """
        *limit* is the maximal length of a message; *judge* gets the body, cut one byte past the limit.

        *hold* gets the number of kept bytes, and raises `NoAnswerError` beyond its limit: then *unjudged* gets the
        reason.
        """
        self._limit = limit
        self._hold = hold
        self._judge = judge
        self._unjudged = unjudged
        self._held = bytearray()
        self._done = False

    def more(self, chunk: bytes) -> None:
        """Hear the next bytes, before they go on."""
        if self._done:
            return
        self._held += chunk
        try:
            self._hold(len(self._held))
        except NoAnswerError as error:
            self.give_up(str(error))
            return
        if len(self._held) > self._limit:
            self.end()

    def give_up(self, why: str) -> None:
        """Keep no more of it, and do not judge it."""
        if not self._done:
            self._close()
            self._unjudged(why)

    def end(self) -> None:
        """Judge what there is, since nothing more comes or it is too long already."""
        if not self._done:
            content = bytes(self._held[: self._limit + 1])
            self._close()
            self._judge(content)

    def _close(self) -> None:
        self._done = True
        self._held.clear()
        self._hold(0)


_JSON: Final = b"application/json"
_EVENTS: Final = b"text/event-stream"
_LISTENS: Final = "subscriptions/listen"
_CROWDED: Final = "too many long answers come at once"


class UrlExchange:
    """One request to the server, and its answer."""

    __slots__ = (
        "_answered", "_begun", "_buffered", "_crowded", "_factory", "_hearing", "_held", "_limit", "_pairs", "_proxy",
        "_request", "_send", "_timed", "_turn", "_waits", "endless",
    )  # fmt: skip

    def __init__(
        self,
        proxy: "UrlBackend",
        request: HttpRequest,
        pairs: Headed,
        turn: JudgedExchange,
        send: Send,
        *,
        buffered: bool = False,
    ) -> None:
        """*pairs* are the headers for the server. Where a whole answer is *buffered*, *send* sees to the records."""
        self._buffered = buffered
        self._proxy = proxy
        self._factory = proxy.factory
        self._request = request
        self._pairs = pairs
        self._turn = turn
        self._send = send
        self._begun = False
        self._held = 0
        self._answered: Answered | None = None
        """The response, while it comes."""
        self._crowded = False
        """Whether its response takes too much memory, and is given up."""
        self._hearing: AuditedBody | None = None
        """The response that is kept to be judged, under audit."""
        self._limit: asyncio.Timeout | None = None
        self._timed = False
        """Whether it has a time limit already: most responses come within a millisecond."""
        self._waits = False
        """Whether it is waiting for the server."""
        self.endless = request.method == "GET" or any(each.method == _LISTENS for each in turn.due)
        """Whether it ends only when one side ends it."""

    async def run(self) -> None:
        """Run from the request to the last byte of the response."""
        try:
            await self._carry_out()
        except TimeoutError:
            await self._failed("TIMEOUT", within(self._turn.limit(self._factory.timeout or 0.0)))
        except NoAnswerError as error:
            self._note_break(error)
            await self._failed("UPSTREAM_FAILURE", self._why(error))
        finally:
            self._hold(0)

    async def _carry_out(self) -> None:
        try:
            async with asyncio.timeout(None) as self._limit:
                self._wait()
                request = self._request
                body = self._turn.to_server if request.method == "POST" else None
                answered = await self._proxy.target.ask(request.method, self._pairs, request.query, body)
                self._answered = answered
                try:
                    await self._respond(answered)
                finally:
                    self._answered = None
                    answered.close()
        finally:
            # Its time cannot be set any more.
            self._limit = None

    def _hold(self, count: int) -> None:
        """Set the number of held bytes of the response."""
        if count == self._held:
            return
        if count and self._crowded:
            raise NoAnswerError(_CROWDED)
        self._held = count
        if self._proxy.hold(self, self._turn.talk.who, count):
            # Under audit the response goes on without being kept.
            self._crowded = self._hearing is None
            raise NoAnswerError(_CROWDED)

    def crowd_out(self) -> None:
        """Give up the response, because it takes more memory than others; under audit it is only not judged."""
        if self._hearing is not None:
            self._hearing.give_up(_CROWDED)
        elif self._answered is not None:
            self._crowded = True
            self._answered.close()

    def _why(self, error: NoAnswerError) -> str:
        """Return why there is no response."""
        return _CROWDED if self._crowded else str(error)

    @property
    def _reason(self) -> LossReason:
        return "crowded" if self._crowded else "broken"

    def keep_time(self) -> None:
        """Apply the time limit from now on."""
        self._timed = True
        if self._waits:
            self._wait()

    def _wait(self) -> None:
        """Start the time limit for the server."""
        self._waits = True
        if self._limit is None or not self._timed:
            return
        patience = self._turn.patience
        if patience is None and not self._begun:
            patience = self._factory.timeout
        self._limit.reschedule(None if patience is None else asyncio.get_running_loop().time() + patience)

    def _pause(self) -> None:
        """Pause the time limit while waiting for the client."""
        self._waits = False
        if self._limit is not None and self._timed:
            self._limit.reschedule(None)

    async def _piece(self, answered: Answered) -> bytes:
        """Return the next bytes of the body; empty at its end."""
        self._wait()
        piece = await answered.piece()
        self._pause()
        return piece

    # ── what the server answers ──────────────────────────────────────────────────────────────────────────────────────

    async def _respond(self, answered: Answered) -> None:
        self._pause()
        self._proxy.reached()
        head = answered.head
        if self._turn.note is not None:
            self._turn.note.status = head.status
        redirects = 300 <= head.status < 400
        if redirects:
            self._proxy.redirected(head.location)
        elif head.status in (404, 405) and self._turn.opens:
            self._proxy.takes_no_post(head.status)
        if self._factory.enforcing:
            if head.trouble:
                raise NoAnswerError(head.trouble)
            self._note_session(head)
            await self._written(answered)
        elif redirects and self._proxy.gated:
            # A client that follows it bypasses the guard and its authentication.
            raise NoAnswerError("it redirects, which is not followed")
        else:
            self._note_session(head)
            await self._passed(answered)

    async def _written(self, answered: Answered) -> None:
        """Send the response under enforce: every part is written by the guard, from the judged messages."""
        head, turn, method = answered.head, self._turn, self._request.method
        if head.kind == _EVENTS and head.status < 300:
            await self._stream(answered)
        elif 400 <= head.status < 500:
            await self._refused(answered)
        elif 300 <= head.status < 400:
            raise NoAnswerError("it redirects, which is not followed")
        elif head.kind == _JSON and method == "POST":
            await self._whole(answered)
        elif head.status < 300 and not turn.due and method != "GET":
            await self._reply(answered, GuardResponse(202 if method == "POST" else 200, b""))
        elif head.status < 300:
            shown = head.kind.decode("latin-1")[:100]
            raise NoAnswerError(f"its answer is {f'of type {shown}' if shown else 'empty'}")
        else:
            raise NoAnswerError(f"its answer has HTTP status {head.status}")

    async def _passed(self, answered: Answered) -> None:
        """Send the response under audit: unchanged, except for addresses that lead past the guard."""
        head, status = answered.head, answered.head.status
        if head.trouble:
            await self._unread(answered, head.trouble)
        elif head.kind == _EVENTS and status < 300:
            await self._stream(answered)
        elif head.kind == _JSON and self._request.method == "POST":
            await self._overheard(answered)
        elif 400 <= status < 500 or (not self._turn.due and self._request.method != "GET" and status < 300):
            await self._pass(answered)
        elif status < 300 and self._turn.due:
            shown = head.kind.decode("latin-1")[:100]
            await self._unread(answered, f"its answer is {f'of type {shown}' if shown else 'empty'}")
        else:
            await self._unread(answered, f"its answer has HTTP status {status}")

    def _as_ours(self, answered: Answered) -> Pairs:
        """Return the headers of the response, with challenges that lead to the guard."""
        if not answered.head.challenges and answered.head.status != 401:
            return answered.pairs
        others = [pair for pair in answered.pairs if pair[0] != b"www-authenticate"]
        given = [value for name, value in answered.pairs if name == b"www-authenticate"]
        led = self._challenges(given, answered.head.status)
        return [*others, *((b"www-authenticate", each) for each in led)]

    def _challenges(self, values: Iterable[bytes], status: int) -> list[bytes]:
        """Yield each `WWW-Authenticate` for the client."""
        if self._proxy.gated:
            # The guard has authenticated the client: the server's challenge is not for the client.
            status = 0
        address = address_of(self._request.headers, self._proxy.public_url)
        ours = f"{address}{METADATA}{self._proxy.endpoint}"
        return challenges_for(values, status, self._proxy.target, ours)

    async def _refused(self, answered: Answered) -> None:
        """Send a 4xx status, with its body as a JSON-RPC error."""
        held = bytearray()
        with suppress(NoAnswerError, TimeoutError):
            async with asyncio.timeout(SECONDS):
                while len(held) <= MOST_BYTES and (piece := await answered.piece()):
                    held += piece
        await self._reply(answered, self._turn.refused(bytes(held[:MOST_BYTES]), answered.head.status))

    def _note_session(self, head: UpstreamHead) -> None:
        talks, talk, status = self._proxy.talks, self._turn.talk, head.status
        if status < 400:
            talks.admit(talk)
        verdict = self._turn.verdict
        if status == 404:
            talks.drop(talk)
        elif self._request.method == "DELETE" and status < 300:
            talks.drop(talk.origin or talk)
        elif status < 300 and self._request.method != "DELETE":
            if talk.ident is None and verdict is not None and verdict.method == "initialize":
                if head.session is not None:
                    talks.keep(talk, head.session)
            elif talk.ident is not None and talks.find(talk.ident, talk.who) is None:
                talks.keep(talk, talk.ident)

    def _note_break(self, error: NoAnswerError) -> None:
        if self._crowded or not isinstance(error, BrokenError):
            return
        self._proxy.unreachable(str(error))
        if self._turn.due:
            self._proxy.broke(self._turn.talk, str(error))

    async def _whole(self, answered: Answered) -> None:
        """Judge one JSON value under enforce; of a value that is too long, the start."""
        content = await self._content(answered)
        if not content.strip():
            if self._turn.due and answered.head.status < 400:
                raise NoAnswerError(f"its answer is empty, with HTTP status {answered.head.status}")
            self._turn.forget()
            await self._reply(answered, GuardResponse(answered.head.status, content))
        elif not self._turn.stream.due and answered.head.status == 202:
            # Accepted; there is no body.
            await self._reply(answered, GuardResponse(202, b""))
        else:
            await self._reply(answered, self._turn.body(content, answered.head.status))

    async def _content(self, answered: Answered) -> bytes:
        """Return the body of a response; of one that is too long, one byte past the limit."""
        limit = self._factory.frame_bytes
        piece = await self._piece(answered)
        if answered.is_whole:
            # Nearly all come in one piece, which is already in memory.
            return piece[: limit + 1]
        held = bytearray()
        while piece:
            held += piece
            self._hold(len(held))
            if len(held) > limit:
                break
            piece = await self._piece(answered)
        return bytes(held[: limit + 1])

    async def _overheard(self, answered: Answered) -> None:
        """Forward one JSON value under audit as it comes, and judge it before its end is sent."""
        hearing = self._hearing = AuditedBody(
            self._factory.frame_bytes,
            hold=self._hold,
            judge=partial(self._judge_whole, answered.head.status),
            unjudged=self._proxy.unjudged,
        )
        await self._pass(answered, hearing)

    def _judge_whole(self, status: int, content: bytes) -> None:
        """Judge a body that is forwarded unchanged."""
        if 400 <= status < 500:
            self._turn.refused(content[:MOST_BYTES], status)
        elif content.strip() and (self._turn.stream.due or status != 202):
            self._turn.body(content, status)
        self._go_on()

    async def _unread(self, answered: Answered, why: str) -> None:
        """Forward something that is not a response: nothing is stopped under audit."""
        self._turn.record("UPSTREAM_FAILURE", why)
        await self._pass(answered)

    async def _pass(self, answered: Answered, hearing: AuditedBody | None = None) -> None:
        """
        Forward the rest of the response under audit, while *hearing* judges it.

        Its status answers the open requests. If it is cut off, the client's response is cut off, too.
        """
        await self._start(answered)
        try:
            while piece := await self._piece(answered):
                if hearing is not None:
                    hearing.more(piece)
                await self._more(piece)
        except NoAnswerError as error:
            self._note_break(error)
            self._break_off(self._why(error))
            return
        if hearing is not None:
            hearing.end()
        self._turn.forget()
        await self._end()

    def _break_off(self, why: str) -> None:
        """
        Handle a response that was cut off.

        Nothing more is sent, not even its end: the HTTP server then closes the connection, so that no client treats a
        partial response as complete.
        """
        self._turn.failures("UPSTREAM_FAILURE", why, self._reason)
        self._proxy.broke_off(why)
        self._factory.records.commit()

    async def _stream(self, answered: Answered) -> None:
        """Judge and send a stream."""
        turn = self._turn
        reader = Reader(self._factory.frame_bytes)
        await self._start(answered)
        await self._more(turn.first())
        broken = ""
        try:
            while piece := await self._piece(answered):
                await self._judge(reader, piece)
        except NoAnswerError as error:
            self._note_break(error)
            broken = self._why(error)
        rest = b"" if self._factory.enforcing else reader.rest()
        if turn.due and not (turn.stream.resumable and turn.talk.ident is not None):
            failed = turn.failures("UPSTREAM_FAILURE", broken or "the stream ended without it", self._reason)
            rest += b"".join(map(event, failed)) if self._factory.enforcing else b""
        await self._more(rest)
        if broken and not self._factory.enforcing:
            self._break_off(broken)
        else:
            await self._end()

    async def _judge(self, reader: Reader, chunk: bytes) -> None:
        """
        Judge the events that end in *chunk*, and forward the results.

        A chunk can have thousands of tiny events, so there are pauses for other clients.
        """
        judged: list[bytes] = []
        stint = Stint()
        for each in reader.feed(chunk):
            judged.append(self._turn.event(each))
            if stint.is_over:
                await self._hand_on(reader, judged)
                await asyncio.sleep(0)
                judged = []
                stint = Stint()
        await self._hand_on(reader, judged)

    async def _hand_on(self, reader: Reader, judged: list[bytes]) -> None:
        """Send the client what was *judged*; the rest of the chunk may still be in *reader*."""
        self._hold(reader.held)
        self._go_on()
        await self._more(b"".join(judged))

    def _go_on(self) -> None:
        """Remember the server's requests, and send it the guard's answers."""
        turn, proxy = self._turn, self._proxy
        for ident in turn.asked:
            proxy.talks.asks(turn.talk, ident)
        for frame in turn.back:
            proxy.say(self._request, turn.talk, frame)
        if turn.speaks is not None:
            proxy.spoken = frozenset(turn.speaks)
            turn.speaks = None
        turn.asked.clear()
        turn.back.clear()

    # ── what the client gets ─────────────────────────────────────────────────────────────────────────────────────────

    async def _reply(self, answered: Answered, response: GuardResponse) -> None:
        """Send a complete response."""
        self._go_on()
        if not self._buffered:
            self._factory.records.commit()
        self._begun = True
        length = (b"content-length", b"%d" % len(response.content))
        headers = [*self._headers(answered, JSON if response.content else None), length, *shared(self._request.headers)]
        await self._send({"type": "http.response.start", "status": response.status, "headers": headers})
        # In pieces: with a single write it would be unknown whether the client reads at all.
        content = response.content
        last = max(0, (len(content) - 1) // SMALL * SMALL)
        for at in range(0, last, SMALL):
            await self._send({"type": "http.response.body", "body": content[at : at + SMALL], "more_body": True})
        await self._send({"type": "http.response.body", "body": content[last:]})

    async def _start(self, answered: Answered) -> None:
        self._factory.records.commit()
        self._begun = True
        enforcing = self._factory.enforcing
        headers = [*self._headers(answered), *(STREAM if enforcing else ()), *shared(self._request.headers)]
        status = 200 if enforcing else answered.head.status
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    def _headers(self, answered: Answered, kind: tuple[bytes, bytes] | None = None) -> list[tuple[bytes, bytes]]:
        """Return the headers of the response: under enforce our own, else those of the server."""
        if self._factory.enforcing:
            challenges = self._challenges(answered.head.challenges, answered.head.status)
            forwarding = self._proxy.forwarding
            written = forwarding.answer(answered.head, answered.pairs if forwarding.answers else (), challenges)
            return [*written, kind] if kind is not None else written
        pairs = self._as_ours(answered)
        named = any(name == b"content-type" for name, _ in pairs)
        return [*pairs, kind] if kind is not None and not named else list(pairs)

    async def _more(self, data: bytes) -> None:
        if data:
            self._factory.records.commit()
            await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def _end(self) -> None:
        self._factory.records.commit()
        await self._send({"type": "http.response.body", "body": b""})

    async def _failed(self, code: str, why: str) -> None:
        """Send the errors for a server that gave no response."""
        turn = self._turn
        late = [each for each in turn.due if may_be_cancelled(each)] if code == "TIMEOUT" else []
        frames = turn.failures(code, why, self._reason)
        if turn.talk.ident is not None:
            for exchange in late:
                self._proxy.say(self._request, turn.talk, cancelled(exchange))
        if self._begun:
            if self._factory.enforcing:
                await self._more(b"".join(map(event, frames)))
            await self._end()
        elif frames:
            await self._proxy.tell(self._request, turn.made(frames, code), self._send)
        else:
            content = error_body(code, why or str(CanonicalError.to_jsonrpc_error(code)["message"]), why=why)
            response = GuardResponse(status_of(code), content)
            await self._proxy.tell(self._request, response, self._send)

    def abandoned(self) -> None:
        """Handle a client that disconnected; it may resume."""
        if not (self._turn.stream.resumable and self._turn.talk.ident is not None):
            self._turn.forget()

    async def ended(self) -> None:
        """End a stream because the guard stops."""
        frames = self._turn.failures("UPSTREAM_FAILURE", "the guard was stopped", "stopped")
        if not self._begun:
            headers = [(b"retry-after", b"1"), CLOSE, *shared(self._request.headers)]
            await refuse(self._send, "OVERLOADED", "the guard ends", headers)
            return
        if self._factory.enforcing:
            await self._more(b"".join(map(event, frames)))
        await self._end()
