"""
Clients over HTTP: which response carries each message of a guarded session.

It knows responses and outcomes, and of the server only a `ServerLink`. Nothing here waits, judges or builds a message.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, Protocol

from assay.edges.compile_turns import TURNS
from assay.edges.http.heads import SESSION, RequestHead
from assay.edges.http.replies import HttpReply, Receive, Send, refusal, reply, shared
from assay.edges.http.sessions import HttpSession
from assay.edges.response_stream import SLOW_BYTES, ResponseStream
from assay.guard.deliveries import Delivery, Loss, Outcome, State
from assay.guard.id_map import key_of
from assay.guard.internal_errors import log_once
from assay.guard.outgoing import is_answer
from assay.guard.session import GuardedSession
from assay.guard.shared_server import FAILED
from assay.judge import render, syntax
from assay.judge.conversation import Facts
from assay.model.json_values import params_of
from assay.model.verdict import Exchange, Party, Verdict
from assay.schema.tool_contract import Contract
from assay.settings.http_section import Http
from assay.spec.revisions import features_of

SLOW: Final = Loss("slow_client", "the client did not take what it was sent")
BROKEN: Final = Loss("internal", FAILED, code="INTERNAL_ERROR")

CANCEL_GRACE: Final = 5.0
"""Seconds in which a server may still answer a cancelled request: some do. Then the response ends."""

KEPT: Final = 256
"""Messages of a server that wait for a client to listen; the oldest are dropped. The SDKs hold about a hundred."""

_STREAMS: Final = 16
"""Streams of a session that a client can resume, beside those with an answer to come."""

EARLY: Final = 0.05
"""
Seconds after which a response becomes a stream in revisions that have an id to resume with: a client that loses the
connection then gets the answer all the same. Most calls are answered before, as plain JSON.
"""

_CLIENT: Final = Party.CLIENT
_SERVER: Final = Party.SERVER
_IN_SESSION: Final = Facts("http")

Key = tuple[bool, Any]
"""What an id is known by: text and numbers never coincide."""


class WholeResponse(NamedTuple):
    """A response that is there at once."""

    status: int
    content: bytes = b""


ACCEPTED: Final = WholeResponse(202)


class ServerLink(Protocol):
    """The way from one session to its server."""

    def has_room(self, size: int) -> bool:
        """Return whether so many bytes more may wait for the server."""

    def send(self, frame: bytes, value: Any = None) -> None:
        """Send one message; *value* is the message, if it was read before."""

    def slow(self, stream: ResponseStream) -> None:
        """React to a client that reads more slowly than the server writes."""

    def leave(self) -> None:
        """End the link, because the session has ended."""


class HttpClient:
    """The client of one session: its responses, its streams, and the messages that wait for a client to listen."""

    def __init__(self, session: GuardedSession, server: ServerLink) -> None:
        self.session = session
        self.server = server
        self.http_session: HttpSession[HttpClient] | None = None
        """The session as HTTP knows it, once it is open."""
        self.ended = False
        self._waiting: dict[Key, deque[ResponseStream]] = {}
        """The responses that wait for the answer to each request."""
        self._tokens: dict[Key, ResponseStream] = {}
        """The responses that get the progress of their requests."""
        self._streaming: dict[ResponseStream, int] = {}
        """The waiting responses that take a stream, in their order, with how many answers each waits for."""
        self._listeners: list[ResponseStream] = []
        self._streams: OrderedDict[int, ResponseStream] = OrderedDict()
        self._kept: deque[tuple[bytes, Exchange | None]] = deque()
        self._kept_bytes = 0
        self._compiling: set[asyncio.Task[None]] = set()
        self._held_keys: set[Key] = set()
        """The requests that wait for the list of tools, and are not judged yet."""
        session.compile_first = self._compile_first

    @property
    def primed(self) -> bool:
        """Whether streams begin with an id to resume with."""
        return features_of(self.session.conversation.revision).primed_streams

    @property
    def owner(self) -> str:
        """The principal that the session belongs to."""
        return self.session.client.owner

    @property
    def is_idle(self) -> bool:
        """
        Whether no request of the client is open.

        A client that listens, or owes the server a response, may have left without a trace.
        """
        return not self._waiting

    @property
    def wants_logs(self) -> bool:
        """A session gets the log messages of its server."""
        return True

    @property
    def opened(self) -> bool:
        """Whether the server has accepted the handshake."""
        return self.session.conversation.revision is not None

    # ── from the client ──────────────────────────────────────────────────────────────────────────────────────────────

    def ask(
        self, frame: bytes, *, as_json: bool, as_stream: bool, patient: bool = True
    ) -> ResponseStream | WholeResponse:
        """
        Return the response to a message of the client, which may wait for the server.

        A *patient* client is one of the handshake era, as far as that is known.
        """
        session = self.session
        if session.calm:
            judged = session.judge(_CLIENT, frame, _IN_SESSION)
            exchange = judged.exchange
            # A cancellation has the exchange of the call that it cancels: the kind says what the message is.
            if judged.kind == "request" and judged.findings is None and exchange is not None and exchange.contract:
                # The call of a tool, as nearly all are: it goes on as it came.
                return self._forward(judged, exchange, as_json=as_json, as_stream=as_stream)
            verdict: Verdict | None = judged
            made = session.outcome(judged, b"")
        else:
            if self._held_keys and (used := self._used_again(frame)) is not None:
                return used
            made = session.from_client(frame, _IN_SESSION)
            verdict = made.verdict
            if made.held is not None:
                return self._held(made, made.held, as_json=as_json, as_stream=as_stream)
        if verdict is None:
            return WholeResponse(404)
        refused = refusal_of(made, verdict, patient=patient)
        if refused is not None:
            return refused
        response = self._opened(made, verdict, as_json=as_json, as_stream=as_stream)
        self._send(made, verdict.value)
        return response or ACCEPTED

    def _held(self, made: Outcome, message: Any, *, as_json: bool, as_stream: bool) -> ResponseStream | WholeResponse:
        """Return the response to a call or a batch that waits for the list of tools, or to a cancellation."""
        response: ResponseStream | None = None
        is_batch = isinstance(message, list)
        asked = [each for each in (message if is_batch else [message]) if isinstance(each, dict) and "id" in each]
        due = [(key_of(each["id"]), each) for each in asked if isinstance(each["id"], str | int | float)]
        if due:
            session, keys = self.http_session, [key for key, _ in due]
            self._held_keys.update(keys)
            response = ResponseStream(
                session, primed=self.primed, as_json=as_json, as_stream=as_stream, batch=is_batch, due=keys
            )
            for key, each in due:
                meta = params_of(each).get("_meta")
                token = meta.get("progressToken") if isinstance(meta, dict) else None
                self._wait(response, key, token if isinstance(token, str | int) else None)
            if as_stream:
                self._streaming[response] = len(due)
            if session is not None:
                session.open_streams.add(response.end)
        self._send(made)
        return response or ACCEPTED

    def _used_again(self, frame: bytes) -> WholeResponse | None:
        """Return the refusal of a request whose id another one has that is not judged yet; None for any other."""
        if not self.session.has_held_calls:
            self._held_keys.clear()
            return None
        message = syntax.read(frame)
        for each in message if isinstance(message, list) else [message]:
            ident = each.get("id") if isinstance(each, dict) and "method" in each else None
            if isinstance(ident, str | int | float) and key_of(ident) in self._held_keys:
                error = render.plain_error(syntax.write(ident), "INVALID_ENVELOPE", "another open request has this id")
                return WholeResponse(400, error)
        return None

    def _send(self, made: Outcome, value: Any = None) -> None:
        """Send the server what an outcome has for it; *value* is the message, if it was read before."""
        try:
            for each in made.to_server:
                self.server.send(each.frame, value if each.author == "peer" else None)
        except Exception as error:
            self._unsent(error)
        self._end_cancelled(made)

    def _end_cancelled(self, made: Outcome) -> None:
        """See that the responses to requests end which the client cancels."""
        for each in made.to_server:
            verdict = each.verdict if each.author == "peer" else None
            for part in () if verdict is None else verdict.parts or (verdict,):
                if part.kind == "notification" and part.method == "notifications/cancelled" and part.exchange:
                    self._end_soon(key_of(part.exchange.id))

    def _unsent(self, error: Exception) -> None:
        """End the session after an internal error: whether the server got the message is not known."""
        log_once(error, "a message could not be sent to a server")
        self.close(BROKEN)

    def _forward(self, verdict: Verdict, exchange: Exchange, *, as_json: bool, as_stream: bool) -> ResponseStream:
        """Return the response that waits for the answer to a call without findings, and send the call."""
        key = type(exchange.id) is str, exchange.id
        session = self.http_session
        primed = features_of(exchange.revision).primed_streams
        response = ResponseStream(session, primed=primed, as_json=as_json, as_stream=as_stream, due=(key,))
        self._wait(response, key, exchange.token)
        if as_stream:
            self._streaming[response] = 1
        if session is not None:
            session.open_streams.add(response.end)
        try:
            self.server.send(verdict.frame, verdict.value)
        except Exception as error:
            self._unsent(error)
        return response

    def _wait(self, response: ResponseStream, key: Key, token: str | int | None) -> None:
        waiting = self._waiting.get(key)
        if waiting is None:
            self._waiting[key] = deque((response,))
        else:
            waiting.append(response)
        if token is not None:
            known = key_of(token)
            self._tokens[known] = response
            response.tokens.append(known)

    def _opened(self, made: Outcome, verdict: Verdict, *, as_json: bool, as_stream: bool) -> ResponseStream | None:
        """Return the response that waits for the answers to a message; None if none are due."""
        due = list(_requests(verdict))
        if not due and not made.to_client:
            return None
        # Whether there is a session is known with the answer to `initialize`, and is in the head of the response.
        opens = any(each.method == "initialize" for each, _ in due)
        response = ResponseStream(
            None if opens else self.http_session,
            primed=self.primed,
            as_json=as_json,
            as_stream=as_stream and not opens,
            batch=verdict.kind == "batch",
            due=[key for _, key in due],
            listens=False,
        )
        for each in made.to_client:
            # The refused entries of a batch.
            for entry in render.entries(each.frame):
                response.answer(entry, *_keys_in(entry))
        if response.as_stream and due:
            self._streaming[response] = len(due)
        for part, key in due:
            self._wait(response, key, part.exchange.token if part.exchange is not None else None)
        if self.http_session is not None and due:
            self.http_session.open_streams.add(response.end)
        return response

    def _end_soon(self, key: Key) -> None:
        for response in self._waiting.get(key, ()):
            response.cancelled.add(key)
            asyncio.get_running_loop().call_later(CANCEL_GRACE, self._drop, key, response)

    def _drop(self, key: Key, response: ResponseStream) -> None:
        """Wait for an answer no longer."""
        if response in self._waiting.get(key, ()):
            self._take(key)
            response.drop(key)
            self._finish(response)

    def _take(self, key: Key) -> ResponseStream | None:
        """Return the response that has waited longest for the answer to a request, and waits no more."""
        waiting = self._waiting.get(key)
        if not waiting:
            return None
        response = waiting.popleft()
        if not waiting:
            del self._waiting[key]
        left = self._streaming.get(response, 0) - 1
        if left > 0:
            self._streaming[response] = left
        else:
            self._streaming.pop(response, None)
        if response.tokens and (not response.due or response.due == {key}):
            # Nothing else is due there: a batch has up to a thousand, so each of its answers must cost little.
            for token in response.tokens:
                if self._tokens.get(token) is response:
                    del self._tokens[token]
        return response

    def _answer(self, frame: bytes, key: Key) -> None:
        response = self._take(key)
        if response is not None:
            response.answer(frame, key)
            if response.ended and self.http_session is not None:
                self.http_session.open_streams.discard(response.end)
            if response.waiting > SLOW_BYTES:
                self.server.slow(response)

    def _finish(self, response: ResponseStream) -> None:
        """A session without open responses is idle."""
        if response.ended and self.http_session is not None:
            self.http_session.open_streams.discard(response.end)

    # ── from the server ──────────────────────────────────────────────────────────────────────────────────────────────

    def from_server(self, frame: bytes, rest: bytes = b"") -> None:
        """
        Handle one message of the server; *rest* is the end of an over-long one.

        An internal error fails only the request that the message answers: the session and its server go on.
        """
        session = self.session
        answered: tuple[Exchange, ...] = ()
        try:
            if session.calm and not rest:
                verdict = session.judge(_SERVER, frame)
                exchange = verdict.exchange
                if verdict.findings is None and verdict.kind == "result" and exchange is not None:
                    answered = (exchange,)
                    self._answer(frame, (type(exchange.id) is str, exchange.id))
                    return
                made = session.outcome(verdict, rest)
            else:
                made = session.from_server(frame, rest)
            answered = tuple(one for each in made.to_client for one in each.answers)
            self.act(made)
        except Exception as error:
            log_once(error, "a message of a server could not be delivered")
            self._undelivered(answered)

    def overhear(self, frame: bytes) -> None:
        """Judge and record a message that the client does not get."""
        self.session.from_server(frame)

    def _undelivered(self, answered: tuple[Exchange, ...]) -> None:
        """Fail the requests that a message answers which could not be delivered."""
        try:
            for exchange in answered:
                self._answer(lost_answer(exchange.id, BROKEN), key_of(exchange.id))
        except Exception as error:
            log_once(error, "a session could not be informed of an internal error")
            self.close(BROKEN)

    def failed(self, ident: Any) -> None:
        """Fail a request whose answer could not be routed to this session, after an internal error."""
        asked = [each for each in self.session.conversation.open_requests(Party.CLIENT) if each.id == ident]
        self.act(self.session.exchange_lost(asked, BROKEN))
        if not asked:
            self._answer(lost_answer(ident, BROKEN), key_of(ident))

    def _compile_first(self, contracts: list[Contract]) -> None:
        """Compile what calls need that have waited for the list of tools, and go on with them then."""
        task = asyncio.ensure_future(TURNS.compile(contracts, self.owner))
        self._compiling.add(task)

        def compiled(_: object) -> None:
            self._compiling.discard(task)
            try:
                self.act(self.session.release())
            except Exception as error:
                self._unsent(error)

        task.add_done_callback(compiled)

    def act(self, made: Outcome) -> None:
        """Send each frame of an outcome where it belongs."""
        for each in made.to_server:
            self.server.send(each.frame)
        self._end_cancelled(made)
        for each in made.to_client:
            self._deliver(each)
        if made.closed is not None:
            self._over(made.closed)

    def _deliver(self, delivery: Delivery) -> None:
        verdict = delivery.verdict
        if verdict is not None and verdict.kind == "batch" and verdict.party is _CLIENT:
            # The refused entries of a batch that waited for the list of tools.
            for entry in render.entries(delivery.frame):
                for key in _keys_in(entry):
                    self._answer(entry, key)
            return
        if verdict is not None and verdict.kind == "batch" and verdict.parts:
            self._deliver_batch(verdict, delivery.frame)
            return
        if delivery.answers:
            for exchange in delivery.answers:
                self._answer(delivery.frame, key_of(exchange.id))
        elif verdict is not None and isinstance(verdict.value, dict):
            self._deliver_message(verdict, delivery.frame)

    def _deliver_message(self, verdict: Verdict, frame: bytes) -> None:
        """Send one message of the server to the response that it belongs to."""
        answered = verdict.exchange.id if verdict.exchange is not None else verdict.value.get("id")
        # An error without an id, or with null, reports that something could not be read: no request is known for it.
        if is_answer(verdict) and answered is not None:
            self._answer(frame, key_of(answered))
            return
        token = params_of(verdict.value).get("progressToken") if verdict.method == "notifications/progress" else None
        asked = verdict.exchange if verdict.kind == "request" else None
        self._hand(self.stream_for(token), frame, asked)

    def _deliver_batch(self, verdict: Verdict, frame: bytes) -> None:
        """Send a batch of one client's answers to it as it is; of any other each message by itself."""
        keys = [key_of(each.exchange.id) for each in verdict.parts if each.exchange is not None]
        responses = {self._waiting[key][0] for key in keys if key in self._waiting}
        if len(responses) == 1 and len(keys) == len(verdict.parts) and frame is verdict.frame:
            response = responses.pop()
            for key in keys:
                self._take(key)
            response.answer(frame, *keys)
            self._finish(response)
            return
        for each in verdict.parts:
            if each.onward is not None and isinstance(each.value, dict):
                self._deliver_message(each, each.onward)

    def _hand(self, stream: ResponseStream | None, frame: bytes, asked: Exchange | None) -> None:
        """Put a message on *stream*, or keep it until a client listens; *asked* is a request of the server."""
        if stream is not None:
            stream.say(frame, asked)
            self._check_pace(stream)
        else:
            self._keep(frame, asked)

    def stream_for(self, token: Any) -> ResponseStream | None:
        """Return where a message of the server goes, by its progress *token*; None if no client listens."""
        response = self._tokens.get(key_of(token)) if isinstance(token, str | int) else None
        if response is not None and response.as_stream:
            return response
        last = next(reversed(self._streaming), None)
        if len(self._streaming) == 1:
            return last
        return self._listeners[-1] if self._listeners else last

    def _keep(self, frame: bytes, asked: Exchange | None) -> None:
        """Keep a message until a client listens. A request that is dropped is answered, or the server would wait."""
        self._kept.append((frame, asked))
        self._kept_bytes += len(frame)
        while len(self._kept) > KEPT or self._kept_bytes > SLOW_BYTES:
            dropped, exchange = self._kept.popleft()
            self._kept_bytes -= len(dropped)
            self.unclaimed([exchange] if exchange is not None else [])

    def unclaimed(self, asked: list[Exchange]) -> None:
        """Answer requests of the server that no client gets, unless they are answered already."""
        for each in asked:
            self.act(self.session.unclaimed(each))

    def _check_pace(self, stream: ResponseStream) -> None:
        if stream.waiting > SLOW_BYTES:
            self.server.slow(stream)

    def cut(self, stream: ResponseStream) -> None:
        """End a stream whose client is too slow; its requests fail, and their server gets to know."""
        self.unclaimed(stream.cut())
        if stream.listens:
            return
        asked = [
            each for each in self.session.conversation.open_requests(Party.CLIENT) if key_of(each.id) in stream.due
        ]
        self.act(self.session.withdraw(asked, SLOW))
        for left in list(stream.due):
            # The session does not track this request, as may be under audit.
            stream.answer(lost_answer(left[1], SLOW), left)  # type: ignore[index]  # keys of ours
            self._drop(left, stream)  # type: ignore[arg-type]

    # ── listening ────────────────────────────────────────────────────────────────────────────────────────────────────

    def listen(self) -> ResponseStream:
        """Return a stream for the messages that belong to no request."""
        stream = ResponseStream(self.http_session, primed=self.primed, listens=True)
        self._attend(stream)
        return stream

    def _attend(self, stream: ResponseStream) -> None:
        self._listeners.append(stream)
        if self.http_session is not None:
            self.http_session.open_streams.add(stream.end)
        while self._kept:
            stream.say(*self._kept.popleft())
        self._kept_bytes = 0

    def resume(self, number: int) -> ResponseStream | None:
        """Return the stream of that number, which a client resumes; None if nothing more will be sent on it."""
        stream = self._streams.get(number)
        if stream is None or stream.ended:
            return None
        if stream.listens and stream not in self._listeners:
            self._attend(stream)
        return stream

    def left(self, stream: ResponseStream) -> None:
        """The client has left a stream, and may resume it, or has already."""
        if stream.attended:
            return
        if stream in self._listeners:
            self._listeners.remove(stream)
        if self.http_session is not None:
            if stream.listens:
                self.http_session.open_streams.discard(stream.end)
            if stream.number is not None and not stream.ended:
                self._streams[stream.number] = stream
                idle = [number for number, each in self._streams.items() if not each.due]
                for number in idle[:-_STREAMS]:
                    del self._streams[number]

    def deserted(self, response: ResponseStream) -> None:
        """The client has gone before its response began: what the server asks goes to another stream."""
        dropped = response.leave()
        if not response.begun:
            self._streaming.pop(response, None)
        for each in dropped:
            self._hand(self.stream_for(None), each.frame, each.asked)

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def tick(self) -> None:
        """Fail the requests that have waited too long."""
        self.act(self.session.tick())

    def close(self, why: Loss) -> None:
        """End the session: each waiting request fails for *why*, and the server is not needed any more."""
        self.lost(why)
        self.server.leave()
        # Session, link and conversation refer to each other: until the collector runs, none of them is freed.
        self.session.conversation.release()

    def stop(self) -> None:
        """End the streams that have no end of their own."""
        for stream in list(self._listeners):
            stream.end()

    def lost(self, why: Loss) -> None:
        """The server is lost: each waiting request fails for *why*."""
        if self.ended:
            return
        made = self.session.close(why) if self.session.state is not State.CLOSED else None
        try:
            if made is not None:
                self.act(made)
        except Exception as error:
            log_once(error, "a session could not be closed")
        self._over(why)

    def _over(self, why: Loss) -> None:
        if self.ended:
            return
        self.ended = True
        self._drop_all(why)
        for stream in [*self._listeners, *self._streams.values()]:
            stream.end()

    def _drop_all(self, why: Loss) -> None:
        """Fail every waiting request that the session does not track, except cancelled ones."""
        for key, response in [(key, response) for key, waiting in self._waiting.items() for response in waiting]:
            if key in response.cancelled:
                response.drop(key)
            else:
                response.answer(lost_answer(key[1], why), key)
            self._finish(response)
        self._waiting.clear()
        self._streaming.clear()
        self._tokens.clear()


class HttpPort(NamedTuple):
    """What writing a response needs of its backend."""

    http: Http
    commit: Callable[[], None]
    """Writes the records. Called before every write to a client."""


class AwaitedResponse:
    """One HTTP request, and the response that it waits for."""

    __slots__ = ("early", "head", "port", "release", "response")

    def __init__(self, port: HttpPort, head: RequestHead, response: ResponseStream) -> None:
        self.port = port
        self.head = head
        self.response = response
        self.early: float | None = None
        """Seconds after which the response becomes a stream; None if only a message does that."""
        self.release: Callable[[], None] | None = None
        """Called once at the end."""

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """The headers of the response beside those that every response has."""
        return shared(self.head.headers)

    def reply(self) -> HttpReply | None:
        """Return the whole response; None if it is to be written as a stream."""
        raise NotImplementedError

    def finish(self) -> None:
        """The response was written, or the client has gone."""
        if self.release is not None:
            self.release()

    async def carry_on(self, receive: Receive, send: Send) -> None:
        """Wait for the response and write it, unless the client goes."""
        response = self.response
        try:
            if await response.first(self.early, receive) and not response.ended:
                return
            whole = self.reply()
            self.port.commit()
            if whole is not None:
                await reply(send, *whole)
            else:
                await response.write(self.port.http, self.port.commit, receive, send, self.headers)
        finally:
            self.finish()


class SessionAnswer(AwaitedResponse):
    """One HTTP request in a session."""

    __slots__ = ("_client", "_opens", "_touch")

    def __init__(
        self,
        port: HttpPort,
        head: RequestHead,
        response: ResponseStream,
        client: HttpClient,
        touch: Callable[[HttpSession["HttpClient"]], None],
        *,
        opens: bool,
    ) -> None:
        """
        *touch* is called at the end, since the session was used until then.

        A response that *opens* the session has the id of the session in its head.
        """
        super().__init__(port, head, response)
        self._client = client
        self._touch = touch
        self._opens = opens
        self.early = EARLY if response.as_json and head.as_stream and response.primed else None

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """The headers of the response beside those that every response has."""
        headers = shared(self.head.headers)
        session = self._client.http_session
        if self._opens and self._client.opened and session is not None and not self._client.ended:
            headers.append((SESSION, session.ident.encode()))
        return headers

    def reply(self) -> HttpReply | None:
        """Return the whole response; None if it is to be written as a stream."""
        whole = self.response.whole
        if whole is not None and self.response.as_json:
            plain = not self._opens and b"origin" not in self.head.headers
            return HttpReply(200, whole, () if plain else self.headers)
        return None if self.head.as_stream else HttpReply(202, b"", self.headers)

    def finish(self) -> None:
        """The response was written, or the client has gone: a server that had to wait for the client goes on."""
        response, session = self.response, self._client.http_session
        if response.taken is not None or not response.ended or response.waiting > SLOW_BYTES:
            self._client.deserted(response)
        if response.begun:
            self._client.left(response)
        if session is not None:
            self._touch(session)
        if self.release is not None:
            self.release()


def lost_answer(ident: Any, why: Loss) -> bytes:
    """Return the answer to a request that its session does not track, or tracks no more."""
    return render.plain_error(syntax.write(ident), why.code, why.detail, why=why.detail)


def refusal_of(made: Outcome, verdict: Verdict, *, patient: bool) -> WholeResponse | None:
    """Return the response to a message that is not forwarded; None for one that is."""
    if verdict.kind != "blank" and made.to_server and verdict.value is not None:
        return None
    # Also under audit: what is not JSON may not be one line.
    answer = made.to_client[0].frame if made.to_client else None
    return WholeResponse(*refusal(verdict, answer, render.code_of(verdict), patient=patient))


def _keys_in(answer: bytes) -> list[Key]:
    """Return the key of the request that *answer* answers, if it has an id."""
    value = syntax.read(answer)
    ident = value.get("id") if isinstance(value, dict) else None
    return [key_of(ident)] if ident is not None else []


def _requests(verdict: Verdict) -> Iterator[tuple[Verdict, Key]]:
    """Yield the requests of a message that go on to the server, each with the key of its id."""
    for each in verdict.parts or (verdict,):
        if each.kind == "request" and each.onward is not None:
            # Under audit an id is anything that an answer may echo; 1e300 is read as a number near it.
            exact = render.usable_id(each.frame, each.value) if each.exchange is None else each.exchange.id
            ident = exact if exact is not None else each.value.get("id")
            if isinstance(ident, str | int | float):
                yield each, key_of(ident)
