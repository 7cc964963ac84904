"""
One session's conversation with a child process: what each message of either side leads to, and on which response it
goes.

It knows streams and verdicts, neither pipes nor HTTP requests. Nothing here waits.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol

from assay import render
from assay.conversation import Facts
from assay.edges.guard.http_to_child.mistakes import FAILED, Subject, contained, lost, subjects, tell
from assay.edges.guard.http_to_child.outflow import SLOW, SLOW_BYTES, Post, Stream
from assay.edges.guard.overseer import Heard, Overseer
from assay.edges.http.idleness import Idleness
from assay.edges.http.sessions import Session
from assay.edges.http.statuses import refusal as refused
from assay.guard.guard import cancelled, may_be_cancelled
from assay.guard.outline import outline
from assay.message import params_of
from assay.rules import violation
from assay.side import Id
from assay.spec.revisions import features_of
from assay.verdict import Party, Verdict

_IN_SESSION: Final = Facts("http")

CANCELLED_SECONDS: Final = 5.0
"""How long a server may still answer what was cancelled: some do, and nobody has to. Then the response ends."""

KEPT: Final = 256
"""Messages of a server that wait for a client to listen; the oldest are dropped. The SDKs hold about a hundred."""

_STREAMS: Final = 16
"""Streams of a session that a client can come back to, beside those with an answer to come."""


class Whole(NamedTuple):
    """An answer that is there at once."""

    status: int
    content: bytes = b""


class Wire(Protocol):
    """What leads to a child."""

    def has_room(self, size: int) -> bool:
        """Whether so many bytes more may wait for it."""

    def say(self, frame: bytes) -> None:
        """Sends one message."""

    def slow(self, stream: Stream) -> None:
        """A client takes what it is sent more slowly than the child says it."""

    def leave(self) -> None:
        """The session is over."""


class Talk:
    """A session's conversation."""

    def __init__(self, overseer: Overseer, wire: Wire) -> None:
        self.overseer = overseer
        self.session: Session[Talk] | None = None
        self.ended = False
        self.wire = wire
        self._posts: dict[Id, deque[Post]] = {}
        self._tokens: dict[Id, Post] = {}
        self._streaming: dict[Post, int] = {}
        """Those of the posts that take a stream, in their order, with how many answers each waits for."""
        self._listeners: list[Stream] = []
        self._streams: OrderedDict[int, Stream] = OrderedDict()
        self._kept: deque[tuple[bytes, Id | None]] = deque()
        self._kept_bytes = 0

    @property
    def primed(self) -> bool:
        """Whether streams begin with an id to come back with."""
        return features_of(self.overseer.guard.conversation.revision).primed_streams

    @property
    def principal(self) -> str:
        """Whose session it is."""
        return self.session.principal if self.session is not None else ""

    @property
    def idleness(self) -> Idleness:
        """How little would be lost with it."""
        if self._posts:
            return Idleness.BUSY
        if self.overseer.guard.conversation.open_requests(Party.SERVER):
            return Idleness.ASKED
        return Idleness.LISTENS if self._listeners else Idleness.IDLE

    @property
    def wants_logs(self) -> bool:
        """Whether it hears what the server logs: a session does."""
        return True

    @property
    def opened(self) -> bool:
        """Whether the handshake has come as far as an answer of the server that counts."""
        return self.overseer.guard.conversation.revision is not None

    # ── the client ───────────────────────────────────────────────────────────────────────────────────────────────────

    def hear(self, frame: bytes, *, as_json: bool, as_stream: bool, patient: bool = True) -> Post | Whole:
        """
        What the client gets for *frame*: an answer at once, or what the server says to it.

        A *patient* client is one of the handshake era, by what is known of it.
        """
        heard = self.overseer.hear(Party.CLIENT, frame, _IN_SESSION)
        told = refusal(heard, patient=patient)
        if told is not None:
            return told
        post = self._asked(heard, as_json=as_json, as_stream=as_stream)
        assert heard.move.to_server is not None  # noqa: S101 - all else is refused
        try:
            self.wire.say(heard.move.to_server)
        except Exception as error:  # a mistake of ours: whether it has reached the server nobody knows
            tell("a message could not be sent to a server", error)
            self.drop(FAILED)
        for each in heard.verdict.parts or (heard.verdict,):
            if each.method == "notifications/cancelled" and each.exchange is not None:
                self._let_go_soon(each.exchange.id)
        return post or Whole(202)

    def _asked(self, heard: Heard, *, as_json: bool, as_stream: bool) -> Post | None:
        """What waits for the answers to a message; None if none are due."""
        verdict = heard.verdict
        due = list(requests(verdict))
        if not due and heard.move.to_client is None:
            return None
        batch = verdict.kind == "batch"
        opens = any(each.method == "initialize" for each, _ in due)
        session = None if opens else self.session
        post = Post(session, primed=self.primed, as_json=as_json, as_stream=as_stream, batch=batch)
        if opens:
            # Whether there is a session is known with the answer, and is told in the head of the response.
            post.as_stream = False
        post.due = {ident for _, ident in due}
        if heard.move.to_client is not None:
            # The bad ones of a batch.
            for entry in render.entries(heard.move.to_client):
                post.answer(entry)
        if post.as_stream and due:
            self._streaming[post] = len(due)
        for each, ident in due:
            self._posts.setdefault(ident, deque()).append(post)
            if each.exchange is not None and each.exchange.token is not None:
                self._tokens[each.exchange.token] = post
                post.tokens.append(each.exchange.token)
        if self.session is not None and due:
            self.session.open_streams.add(post.end)
        return post

    def _let_go_soon(self, ident: Id) -> None:
        for post in self._posts.get(ident, ()):
            post.cancelled.add(ident)
            asyncio.get_running_loop().call_later(CANCELLED_SECONDS, self._let_go, ident, post)

    def _let_go(self, ident: Id, post: Post) -> None:
        posts = self._posts.get(ident)
        if posts and post in posts:
            self._take(ident)
            post.drop(ident)
            self._finish(post)

    def _take(self, ident: Any) -> Post | None:
        """Whoever waits for the answer to that request, longest if there are several, waits no more."""
        posts = self._posts.get(ident)
        if not posts:
            return None
        post = posts.popleft()
        if not posts:
            del self._posts[ident]
        left = self._streaming.get(post, 0) - 1
        if left > 0:
            self._streaming[post] = left
        else:
            self._streaming.pop(post, None)
        if not post.due or post.due == {ident}:
            # Nothing else is due there: a batch has up to a thousand, so each of its answers must cost little.
            for token in post.tokens:
                if self._tokens.get(token) is post:
                    del self._tokens[token]
        return post

    def _answer(self, frame: bytes, ident: Any) -> None:
        post = self._take(ident) if isinstance(ident, Hashable) else None
        if post is not None:
            post.answer(frame, ident)
            self._finish(post)
            self._check_pace(post)

    def _finish(self, post: Post) -> None:
        """A session that nobody waits for an answer in is idle."""
        if post.ended and self.session is not None:
            self.session.open_streams.discard(post.end)

    # ── the server ───────────────────────────────────────────────────────────────────────────────────────────────────

    def from_server(self, frame: bytes, rest: bytes = b"") -> None:
        """
        Handle one line of the server; *rest* is the end of an over-long one.

        A mistake of ours fails only the requests that this line is about: the session and its child go on.
        """
        try:
            self._from_server(frame, rest)
        except Exception as error:  # a mistake of ours
            tell("what a server said could not be dealt with", error)
            self._mishandled(frame, rest)

    def _mishandled(self, frame: bytes, rest: bytes) -> None:
        """Leave nobody waiting for a line of the server that the guard failed to handle."""
        try:
            found = subjects(frame, rest)
            whole = len(found) == 1 and not rest and not self.overseer.guard.enforcing
            for each in found:
                self.failed(each, frame if whole else None)
        except Exception as error:  # another one: now it is not known who waits for what
            tell("a session could not be told that the guard failed", error)
            with contained("a session could not be ended as it should"):
                self.drop(FAILED)

    def failed(self, subject: Subject, frame: bytes | None = None) -> None:
        """
        The guard failed to handle what the server said about *subject*.

        With *frame* the client gets that as it came, as under audit; without, whoever waits gets an error.
        """
        if subject.kind == "answer" and isinstance(subject.id, str | int | float):
            self._forget(subject.id)
            self._answer(frame or lost(subject.id, FAILED), subject.id)
        elif frame is not None and subject.kind != "none":
            self._hand(self._stream_for(None), frame, None)
        elif subject.kind == "request":
            self.wire.say(lost(subject.id, FAILED))

    def _forget(self, ident: Any) -> None:
        """Close a request that the guard answers itself: else its id would count as in use."""
        for exchange in self.overseer.guard.conversation.open_requests(Party.CLIENT):
            if exchange.id == ident:
                with contained("what was heard could not be put on record"):
                    self.overseer.give_up(exchange, "INTERNAL_ERROR", FAILED)

    def _from_server(self, frame: bytes, rest: bytes) -> None:
        verdict, move = self.overseer.hear(Party.SERVER, frame, rest=rest)
        if move.to_server is not None:
            self.wire.say(move.to_server)
        for settled in move.settled:
            if settled.verdict.exchange is not None:
                self._answer(settled.answer, settled.verdict.exchange.id)
        if move.to_client is None:
            return
        if verdict.value is None or (verdict.kind in {"blank", "unreadable"} and not is_answer(verdict)):
            self._pass_unread(frame, rest, blank=verdict.kind == "blank")
        elif verdict.kind == "batch":
            self._deliver_batch(verdict, move.to_client)
        else:
            self._deliver(verdict, move.to_client)

    def _pass_unread(self, frame: bytes, rest: bytes, *, blank: bool) -> None:
        """
        Under audit everything passes: a broken answer to whoever waits for it.

        No response can carry what is no message at all; it goes where such things belong.
        """
        answer = unread(frame, rest, self.overseer)
        if answer is not None and answer[0] in self._posts:
            self._answer(answer[1], answer[0])
        elif not blank:
            self.overseer.aside(frame)

    def _deliver(self, verdict: Verdict, frame: bytes) -> None:
        answered = verdict.exchange.id if verdict.exchange is not None else verdict.value.get("id")
        # An error without an id, or with null, says that something could not be read: no request is known for it.
        if is_answer(verdict) and answered is not None:
            self._answer(frame, answered)
            return
        told = params_of(verdict.value).get("progressToken") if verdict.method == "notifications/progress" else None
        asked = verdict.exchange.id if verdict.kind == "request" and verdict.exchange else None
        self._hand(self._stream_for(told), frame, asked)

    def _hand(self, stream: Stream | None, frame: bytes, asked: Id | None) -> None:
        """Put a message on *stream*, or keep it until a client listens; *asked* is the id of a server's request."""
        if stream is not None:
            stream.say(frame)
            self._check_pace(stream)
        else:
            self._keep(frame, asked)

    def _deliver_batch(self, verdict: Verdict, frame: bytes) -> None:
        """A batch of one client's answers goes to it as it is; of any other each message goes its own way."""
        idents = [each.exchange.id for each in verdict.parts if each.exchange is not None]
        posts = {self._posts[ident][0] for ident in idents if ident in self._posts}
        if len(posts) == 1 and len(idents) == len(verdict.parts) and frame is verdict.frame:
            post = posts.pop()
            for ident in idents:
                self._take(ident)
            post.answer(frame, *idents)
            self._finish(post)
            return
        for each in verdict.parts or ():
            if each.onward is not None:
                self._deliver(each, each.onward)

    def _stream_for(self, token: Any) -> Stream | None:
        """Where a request or notification of the server goes, by its progress *token*; None if nobody listens."""
        post = self._tokens.get(token) if isinstance(token, str | int) else None
        if post is not None and post.as_stream:
            return post
        last = next(reversed(self._streaming), None)
        if len(self._streaming) == 1:
            return last
        return self._listeners[-1] if self._listeners else last

    def _keep(self, frame: bytes, asked: Id | None) -> None:
        """Keeps a message until somebody listens. A request that is dropped is answered, or the server would wait."""
        self._kept.append((frame, asked))
        self._kept_bytes += len(frame)
        while len(self._kept) > KEPT or self._kept_bytes > SLOW_BYTES:
            dropped, ident = self._kept.popleft()
            self._kept_bytes -= len(dropped)
            back = self.overseer.answer_server(ident, "no client listens") if ident is not None else None
            if back is not None:
                self.wire.say(back)

    def _check_pace(self, stream: Stream) -> None:
        if stream.waiting > SLOW_BYTES:
            self.wire.slow(stream)

    def cut(self, stream: Stream) -> None:
        """The client is too slow, and nobody can wait for it: what it has asked on *stream* fails, and that ends."""
        stream.cut()
        if not isinstance(stream, Post):
            return
        asked = {each.id: each for each in self.overseer.guard.conversation.open_requests(Party.CLIENT)}
        for ident in [each for each in asked if each in stream.due]:
            if may_be_cancelled(asked[ident]):
                self.wire.say(cancelled(asked[ident], SLOW))
            settled = self.overseer.give_up(asked[ident], "UPSTREAM_FAILURE", SLOW)
            if settled is not None:
                self._answer(settled.answer, ident)
        left: Any
        for left in list(stream.due):
            # The conversation knows nothing of it, as may be under audit.
            stream.answer(lost(left, SLOW), left)
            self._let_go(left, stream)

    # ── listening ────────────────────────────────────────────────────────────────────────────────────────────────────

    def listen(self) -> Stream:
        """A stream for what the server says by itself."""
        stream = Stream(self.session, primed=self.primed)
        self._attend(stream)
        return stream

    def _attend(self, stream: Stream) -> None:
        self._listeners.append(stream)
        if self.session is not None:
            self.session.open_streams.add(stream.end)
        while self._kept:
            stream.say(self._kept.popleft()[0])
        self._kept_bytes = 0

    def resume(self, number: int) -> Stream | None:
        """The stream of that number, to which a client comes back; None if nothing more will be said on it."""
        stream = self._streams.get(number)
        if stream is None or stream.ended:
            return None
        if not isinstance(stream, Post) and stream not in self._listeners:
            self._attend(stream)
        return stream

    def left(self, stream: Stream) -> None:
        """The client has left a stream, and may come back, or has already."""
        if stream.attended:
            return
        if stream in self._listeners:
            self._listeners.remove(stream)
        if self.session is not None:
            if not isinstance(stream, Post):
                self.session.open_streams.discard(stream.end)
            if stream.number is not None and not stream.ended:
                self._streams[stream.number] = stream
                while len(self._streams) > _STREAMS + len(self._posts):
                    self._streams.popitem(last=False)

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def tick(self) -> None:
        """Answers what has waited too long."""
        if self.overseer.guard.patience != 0.0:
            return
        for settled, told in self.overseer.overdue():
            if settled.verdict.exchange is not None:
                self._answer(settled.answer, settled.verdict.exchange.id)
            if told is not None:
                self.wire.say(told)

    def drop(self, reason: str) -> None:
        """The session is over: whoever waits is told the *reason*, and the child is not needed any more."""
        if not self.ended:
            self.server_ended(reason)
        self.wire.leave()
        # Session, wire and conversation know each other: until the collector comes by, none of them is freed.
        self.overseer.guard.conversation.release()

    def stop(self) -> None:
        """Ends what has no end of its own."""
        for stream in list(self._listeners):
            stream.end()

    def server_ended(self, reason: str, last_words: Sequence[str] = ()) -> None:
        """The server says no more: whoever waits is told so, with those *last_words* of it."""
        if self.ended:
            return
        self.ended = True
        try:
            for settled in self.overseer.server_ended(reason, list(last_words)):
                if settled.verdict.exchange is not None:
                    # Under audit too: a response has to end somehow, and this says most.
                    self._answer(settled.answer or settled.verdict.onward or b"", settled.verdict.exchange.id)
        except Exception as error:  # a mistake of ours
            tell("a session could not be ended as it should", error)
        self._let_all_go(reason)
        for stream in [*self._listeners, *self._streams.values()]:
            stream.end()

    def _let_all_go(self, reason: str) -> None:
        """Whoever waits for what the conversation knows nothing of is told as well; but not what was cancelled."""
        for ident, post in [(ident, post) for ident, posts in self._posts.items() for post in posts]:
            if ident in post.cancelled:
                post.drop(ident)
            else:
                post.answer(lost(ident, reason), ident)
            self._finish(post)
        self._posts.clear()
        self._streaming.clear()
        self._tokens.clear()


def refusal(heard: Heard, *, patient: bool) -> Whole | None:
    """What the client gets for a message that goes no further; None for one that does."""
    verdict, move = heard
    if verdict.kind != "blank" and move.to_server is not None and verdict.value is not None:
        return None
    # Also under audit: what is no JSON cannot be one line for the server.
    return Whole(*refused(verdict, move.to_client, render.code_of(verdict), patient=patient))


def unread(frame: bytes, rest: bytes, overseer: Overseer) -> tuple[Id, bytes] | None:
    """The request that an unreadable line answers, as far as its ends show, and what goes to whoever waits for it."""
    found = outline(frame, rest or frame)
    if not found.answers or found.id is None:
        return None
    if len(frame) <= overseer.guard.conversation.limits.frame_bytes:
        return found.id, frame
    # Nobody has all of it.
    wrong = violation("framing/size", expected="a shorter answer", found="one that is too long")
    return found.id, render.failure(found.token, "UPSTREAM_INVALID", (wrong,), 0, None)


def is_answer(verdict: Verdict) -> bool:
    """
    Whether a message of the server ends a request of the client.

    One with neither result nor error, or with a method beside them, does by its id: nothing else will come for it.
    """
    exchange = verdict.exchange
    if verdict.kind in {"result", "error"} or exchange is None:
        return verdict.kind in {"result", "error"}
    return verdict.kind in {"request", "unreadable"} and exchange.asker is Party.CLIENT


def requests(verdict: Verdict) -> Iterator[tuple[Verdict, Id]]:
    """The requests of a message that go on to the server, each with its id."""
    for each in verdict.parts or (verdict,):
        if each.kind == "request" and each.onward is not None:
            ident = each.exchange.id if each.exchange is not None else each.value.get("id")
            if isinstance(ident, str | int | float):
                yield each, ident  # type: ignore[misc]  # under audit, anything that an answer may echo
