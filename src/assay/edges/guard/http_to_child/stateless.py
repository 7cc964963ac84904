"""
Requests without a session (2026-07-28): each is a conversation of its own with the one child that all of them share.

Nothing here waits but for the response of one request.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import orjson

from assay.conversation import Facts
from assay.edges.guard.front.guarded import Request
from assay.edges.guard.http_to_child.childtalk import Whole, is_answer, refusal, requests, unread
from assay.edges.guard.http_to_child.mistakes import FAILED, Subject, contained, lost, subjects, tell
from assay.edges.guard.http_to_child.outflow import SLOW, SLOW_BYTES, Post
from assay.edges.guard.http_to_child.share import Share, UnavailableError
from assay.edges.guard.overseer import Overseer, Oversight
from assay.guard.guard import Settled, cancelled
from assay.message import params_of, versions_of
from assay.meta import LEVEL_KEY
from assay.spec.revisions import LATEST
from assay.verdict import Party, Verdict

LISTENS: Final = "subscriptions/listen"

_MOST_SPARE: Final = 64
"""Conversations that are kept for the next request, some 10 kB each."""


class Asking:
    """One request of a client, or one message that is none."""

    def __init__(self, overseer: Overseer, stateless: "Stateless", principal: str) -> None:
        self.overseer = overseer
        self.principal = principal
        self.post: Post | None = None
        self.listens = False
        self.wants_logs = False
        self.clean = True
        """Whether its conversation may serve another request."""
        self.retired = False
        """Whether it does."""
        self.ident: Any = None
        self._stateless = stateless
        self._share = stateless.share

    def from_server(self, frame: bytes, rest: bytes = b"") -> None:
        """
        Handle a message of the child, in the words of this client.

        A mistake of ours fails this request only: the child and its other clients go on.
        """
        try:
            if self.retired:
                self._share.from_nobody(frame, rest)
            else:
                self._from_server(frame, rest)
        except Exception as error:  # a mistake of ours
            tell("what a server said could not be dealt with", error)
            with contained("a client could not be told that the guard failed"):
                for each in subjects(frame, rest):
                    self.failed(each, None if rest or self.overseer.guard.enforcing else frame)

    def overhear(self, frame: bytes) -> None:
        """Judge a message of the child that the client does not get, and put it on record."""
        if not self.retired:
            self.clean = False
            self.overseer.hear(Party.SERVER, frame)

    def failed(self, subject: Subject, frame: bytes | None = None) -> None:
        """
        The guard failed to handle what the child said about *subject*.

        With *frame* the client gets that as it came, as under audit; without, it gets an error for an answer.
        """
        self.clean = False
        if self.retired or self.post is None or not self.post.due:
            return
        if subject.kind == "answer":
            self.post.answer(frame or lost(self.ident, FAILED), self.ident)
        elif frame is not None and subject.kind == "notification":
            self._say(self.post, frame)

    def _from_server(self, frame: bytes, rest: bytes) -> None:
        verdict, move = self.overseer.hear(Party.SERVER, frame, rest=rest)
        self.clean = self.clean and verdict.findings is None
        for settled in move.settled:
            self._settled(settled)
        if move.to_server is not None:
            self._share.say(self, move.to_server)
        if move.to_client is None or self.post is None:
            return
        if verdict.value is None:
            raw = unread(frame, rest, self.overseer)
            if raw is not None:
                self.post.answer(raw[1], self.ident)
        elif is_answer(verdict):
            if verdict.kind == "result":
                self._stateless.useful = True
            if verdict.method == "server/discover" and verdict.kind == "result" and verdict.accepted:
                # A revision that has no such method leaves its result unjudged, so that it may say anything.
                self._stateless.spoken = frozenset(versions_of(verdict.value)) or self._stateless.spoken
            self.post.answer(move.to_client, self.ident)
        else:
            self._say(self.post, move.to_client)

    def _say(self, post: Post, frame: bytes) -> None:
        if post.as_stream:
            post.say(frame)
            if post.behind > SLOW_BYTES:
                self._cut(post)

    def _cut(self, post: Post) -> None:
        """The client is too slow, and nobody can wait for it: what it has asked fails."""
        post.cut()
        for exchange in self.overseer.guard.conversation.open_requests(Party.CLIENT):
            self._share.say(self, cancelled(exchange, SLOW))
            settled = self.overseer.give_up(exchange, "UPSTREAM_FAILURE", SLOW)
            if settled is not None:
                self._settled(settled)
        if post.due:
            post.answer(lost(self.ident, SLOW), self.ident)

    def _settled(self, settled: Settled) -> None:
        self.clean = False
        answer = settled.answer or settled.verdict.onward
        if self.post is not None and answer:
            self.post.answer(answer, self.ident)

    def server_ended(self, reason: str) -> None:
        """The child says no more."""
        try:
            for settled in self.overseer.server_ended(reason, []):
                self._settled(settled)
        except Exception as error:  # a mistake of ours
            tell("a request could not be ended as it should", error)
            self.clean = False
        if self.post is not None and self.post.due - self.post.cancelled:
            self.post.answer(lost(self.ident, reason), self.ident)
        elif self.post is not None:
            self.post.end()

    def tick(self) -> None:
        """Answers it if it has waited too long."""
        if self.overseer.guard.patience == 0.0:
            for settled, told in self.overseer.overdue():
                if told is not None:
                    self._share.say(self, told)
                self._settled(settled)

    def cancel(self) -> None:
        """The client has gone, which cancels what it has asked."""
        self.clean = False
        exchange = next(iter(self.overseer.guard.conversation.open_requests(Party.CLIENT)), None)
        if exchange is None:
            self._share.leave(self)
            return
        note = cancelled(exchange, "the client has gone")
        self.overseer.hear(Party.CLIENT, note)
        self._share.say(self, note)


class Stateless:
    """All requests without a session."""

    def __init__(self, oversight: Oversight, share: Callable[[Callable[[], Overseer]], Share]) -> None:
        """*share* makes what leads to the child, given what begins a conversation."""
        self._oversight = oversight
        self._tools, self._lock = oversight.tools(), oversight.inspection()
        self._watcher = oversight.watcher()
        self._spare: list[Overseer] = []
        self.open: dict[Asking, None] = {}
        self.share = share(self.begin)
        self.spoken: frozenset[str] | None = None
        """The revisions that the child has said it speaks."""
        self.useful = False
        """Whether the child has given a result: one that only refuses what it is asked needs a session first."""

    def begin(self) -> Overseer:
        """A conversation. Those with one run of a child know the same tools, and their last messages are together."""
        return self._oversight.begin(revision=LATEST, tools=self._tools, lock=self._lock, watcher=self._watcher)

    def renew(self) -> None:
        """The child is lost. Until the next one lists its tools, calls are held to those of this one."""
        self._tools, self._lock = self._oversight.handed_down(self._tools), self._oversight.inspection()
        self._watcher = self._oversight.watcher()
        self._spare = []
        self.useful = False

    def hear(self, request: Request, version: str | None, *, as_json: bool, as_stream: bool) -> "Asking | Whole":
        """What comes of one message: an answer at once, or what the child says to it."""
        asking = Asking(self._spare.pop() if self._spare else self.begin(), self, request.principal)
        facts = Facts("http", version, request.headers, served=True, spoken=self.spoken)
        heard = asking.overseer.hear(Party.CLIENT, request.frame, facts)
        told = refusal(heard, patient=False)
        if told is not None:
            return told._replace(content=self._narrowed(heard.verdict, told.content))
        due = list(requests(heard.verdict))
        frame = heard.move.to_server or b""
        if not due:
            if heard.verdict.kind == "notification":
                self._note(request, asking, heard.verdict, frame)
            # Anything else answers something; but in this era no server asks its clients.
            return Whole(202)
        self._fill(asking, heard.verdict, due[0][1], as_json=as_json, as_stream=as_stream)
        self.open[asking] = None
        try:
            self.share.start()
            self.share.say(asking, frame)
        except UnavailableError as error:
            asking.server_ended(str(error))
        except Exception as error:  # a mistake of ours
            self._failed(asking, "a message could not be sent to a server", error)
        return asking

    def _failed(self, asking: Asking, what: str, error: Exception) -> None:
        """A mistake of ours, in what is done for *asking*: it is told so."""
        tell(what, error)
        asking.server_ended(FAILED)
        # What is still open of it on the way to the child would count as somebody who waits.
        with contained("a request could not be cancelled"):
            self.share.leave(asking)

    def _fill(self, asking: Asking, verdict: Verdict, ident: Any, *, as_json: bool, as_stream: bool) -> None:
        asking.post = Post(as_json=as_json, as_stream=as_stream)
        asking.post.due = {ident}
        asking.ident = ident
        asking.clean = verdict.findings is None
        asking.listens = verdict.method == LISTENS
        meta = params_of(verdict.value).get("_meta")
        # What a server logs is never said on a subscription.
        asking.wants_logs = isinstance(meta, dict) and LEVEL_KEY in meta and not asking.listens

    def _narrowed(self, verdict: Verdict, content: bytes) -> bytes:
        """
        Where the client was told which revisions there are, tells it which of them the child speaks, too.

        A client picks one of those, and must not pick in vain.
        """
        named = any(each.rule == "protocol/unsupported-revision" for each in verdict.violations)
        if not named or self.spoken is None:
            return content
        answer = orjson.loads(content)
        data = answer.get("error", {}).get("data", {})
        data["supported"] = [each for each in data.get("supported", ()) if each in self.spoken]
        return orjson.dumps(answer)

    def _note(self, request: Request, asking: Asking, verdict: Verdict, frame: bytes) -> None:
        """
        A notification has passed.

        Over HTTP a request is cancelled by leaving it. One that is cancelled by its id has to be known as this
        principal's: ids of clients that nobody can tell apart coincide.
        """
        if verdict.method != "notifications/cancelled":
            with suppress(UnavailableError):
                self.share.start()
                self.share.say(asking, frame)
            return
        if request.principal == "anonymous":
            return
        ident = params_of(verdict.value).get("requestId")
        found = [each for each in self.open if each.principal == request.principal and each.ident == ident]
        if len(found) == 1 and found[0].post is not None:
            found[0].clean = False
            found[0].post.cancelled.add(found[0].ident)
            self.share.say(found[0], frame)

    def done(self, asking: Asking) -> None:
        """It is answered, or nobody waits for it any more."""
        self.open.pop(asking, None)
        conversation = asking.overseer.guard.conversation
        clean = asking.clean and not conversation.open_requests(Party.CLIENT) and conversation.tools is self._tools
        # A late answer may still come for it: what that could make us hold is let go of.
        asking.post = None
        if clean and len(self._spare) < _MOST_SPARE:
            asking.retired = True
            conversation.forget_settled()
            self._spare.append(asking.overseer)

    def tick(self) -> None:
        """Answers what has waited too long."""
        for asking in list(self.open):
            try:
                asking.tick()
            except Exception as error:  # a mistake of ours: the others still have their time
                self._failed(asking, "a request could not be looked after", error)
