"""
One child process that many clients share: started when somebody asks, ended when nobody does, and started again.

Who a message is for `Remap` says; what becomes of it, each client's own conversation.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from assay.base.collector import loaded
from assay.base.message import answers
from assay.base.verdict import Party
from assay.core import render
from assay.edges.child import StartError
from assay.edges.guard.http_to_child.backoff import Backoff
from assay.edges.guard.http_to_child.mistakes import FAILED, Subject, contained, lost, subjects, tell
from assay.edges.guard.http_to_child.outflow import SLOW_BYTES, Stream
from assay.edges.guard.http_to_child.pipe import Line, Owner, Pipe
from assay.edges.guard.overseer import Overseer
from assay.guard.deliveries import End
from assay.guard.guard import line
from assay.guard.remap import Remap, Routed, answer_as, key_of
from assay.ladder import syntax

_CANCELLED: Final = (
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d,"reason":"the client has gone"}}'
)

WHOSE: Final = "it cannot be said which client this is for"


class UnavailableError(Exception):
    """There is no child to ask, and why."""


class Client(Protocol):
    """Somebody who shares a child."""

    @property
    def principal(self) -> str:
        """Who it is."""

    @property
    def wants_logs(self) -> bool:
        """Whether it has asked to hear what the child logs."""

    def from_server(self, frame: bytes, rest: bytes = b"") -> None:
        """A message for it, in its own words. Never raises."""

    def overhear(self, frame: bytes) -> None:
        """Judge a message that this client does not get."""

    def failed(self, subject: Subject) -> None:
        """The guard failed to handle what the child said about *subject*, in the words of this client."""

    def server_ended(self, reason: str) -> None:
        """The child says no more."""


class Share:
    """A child, while there is one, and everybody who speaks to it."""

    stateless = True

    def __init__(
        self,
        spawn: Callable[[Owner], Pipe],
        begin: Callable[[], Overseer],
        flush: Callable[[], None],
        clock: Callable[[], float],
        broke: Callable[[Overseer, Sequence["Client"], End], None],
    ) -> None:
        """
        *spawn* starts a child, and raises `StartError`; *begin* makes a conversation for what is said to nobody.

        *flush* puts on record what was heard. *broke* is told that a child has ended by itself, with that conversation
        and everybody who was there.
        """
        self._spawn = spawn
        self._begin = begin
        self._flush = flush
        self._clock = clock
        self._broke = broke
        self._backoff = Backoff(clock)
        self._pipe: Pipe | None = None
        self._run: _Run | None = None
        self._began = self._used = 0.0
        self._remap: Remap[Client] = Remap(stateless=self.stateless)
        self._nobody: Overseer | None = None
        self.clients: dict[Client, None] = {}
        """Those who stay, in the order in which they came."""
        self._principals: set[str] = set()
        """Who has used this run of the child: the first two principals."""

    @property
    def nobody(self) -> Overseer:
        """The conversation of what the child says to nobody in particular."""
        if self._nobody is None:
            self._nobody = self._begin()
        return self._nobody

    # ── to the child ─────────────────────────────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        """Sees that there is a child. Raises `UnavailableError`."""
        self._used = self._clock()
        if self._pipe is not None:
            return
        if self._backoff.closed:
            raise UnavailableError(self._backoff.reason)
        self._began = self._clock()
        run = _Run(self)
        try:
            self._pipe = self._spawn(run)
        except StartError as error:
            self._backoff.failed(self._began, str(error))
            raise UnavailableError(str(error)) from None
        self._run = run

    @property
    def pipe(self) -> Pipe | None:
        """The child, while there is one."""
        return self._pipe

    @property
    def used(self) -> float:
        """When something was last sent to it."""
        return self._used

    @property
    def is_running(self) -> bool:
        """Whether there is a child."""
        return self._pipe is not None

    def has_room(self, size: int) -> bool:
        """Whether *size* bytes more may wait for it."""
        return self._pipe is None or self._pipe.has_room(size)

    def say(self, client: Client, frame: bytes) -> None:
        """Sends any message of *client*, as far as it is the child's business, and its own."""
        if len(self._principals) < 2:
            self._principals.add(client.principal)
        value = loaded(frame)
        if isinstance(value, list):
            for entry in render.entries(frame):
                self.say(client, entry)
        elif isinstance(value, dict):
            self._say(client, frame, value)

    def _say(self, client: Client, frame: bytes, value: dict[str, Any]) -> None:
        sent: bytes | None = frame
        if "method" not in value:
            sent = frame if self._remap.owed(client, frame) else None
        elif "id" in value:
            sent = self._remap.ask(client, frame)[1]
        elif value["method"] == "notifications/cancelled":
            sent = self._remap.cancel(client, frame)
        if sent is not None:
            self._send(sent)

    def leave(self, client: Client) -> None:
        """*client* waits for nothing any more, and the child is told so."""
        self.clients.pop(client, None)
        for number in self._remap.leave(client):
            self._send(_CANCELLED % number)

    def _send(self, frame: bytes) -> None:
        self._used = self._clock()
        if self._pipe is not None:
            self._pipe.say(line(frame))

    # ── from the child ───────────────────────────────────────────────────────────────────────────────────────────────

    def heard(self, lines: Sequence[Line]) -> None:
        """What it said at once."""
        for each in lines:
            self._heard(each)
        with contained("what was heard could not be put on record"):
            self._flush()

    def _heard(self, said: Line) -> None:
        """Handle one message. A mistake of ours fails only the request that it is about; the child goes on."""
        try:
            self._dispatch(said)
        except Exception as error:  # a mistake of ours
            tell("what a server said could not be dealt with", error)
            with contained("a client could not be told that the guard failed"):
                for each in subjects(*said):
                    self._mishandled(each)

    def _mishandled(self, subject: Subject) -> None:
        """Leave nobody waiting for a message of the child that the guard failed to route."""
        if subject.kind == "answer" and type(subject.id) is int:
            asked = self._remap.taken(subject.id)
            if asked is not None:
                asked.owner.failed(Subject("answer", asked.key[1]))
        elif subject.kind == "request":
            self._remap.asked.pop(key_of(subject.id), None)
            self._send(lost(subject.id, FAILED))

    def _dispatch(self, said: Line) -> None:
        # Read as the judge does: what it cannot read, because it is nested too deep, is not looked into either.
        value = None if said.rest else syntax.read(said.frame)
        if isinstance(value, list):
            for entry in render.entries(said.frame):
                self._heard(Line(entry))
        elif isinstance(value, dict):
            self._route(said.frame, value)
        else:
            routed, rest = self._remap.unreadable(said.frame, said.rest)
            if routed.owner is not None:
                routed.owner.from_server(routed.frame, rest)
            else:
                self.from_nobody(said.frame, said.rest)

    def _route(self, frame: bytes, value: dict[str, Any]) -> None:
        routed: Routed[Client] = Routed(None, frame)
        if answers(value):
            routed = self._remap.answer(frame)
        elif "id" not in value:
            routed = self._remap.told(frame)
        if routed.owner is not None:
            routed.owner.from_server(routed.frame)
        elif not self._claimed(frame, value) and not self._overheard(frame, value):
            self.from_nobody(frame)

    def _claimed(self, frame: bytes, value: dict[str, Any]) -> bool:
        """
        Hand a log message to the one open request, if that asked for logs; return whether it did.

        A log message does not name its request, so it may be about any that is open. It may also be about one that
        was answered or cancelled before: so once two principals have used this run of the child, neither gets any.
        """
        if value.get("method") != "notifications/message" or len(self._principals) > 1:
            return False
        waiting = self._remap.everybody()
        if len(waiting) != 1 or not waiting[0].wants_logs:
            return False
        waiting[0].from_server(frame)
        return True

    def _overheard(self, frame: bytes, value: dict[str, Any]) -> bool:
        """
        Judge a log message that no request asked for beside one that is open; return whether there is one.

        No client gets it: which request it is about is not known, only that none of them asked for it.
        """
        if not self.stateless or value.get("method") != "notifications/message":
            return False
        waiting = self._remap.everybody()
        if not waiting or any(each.wants_logs for each in self._remap.known()):
            return False
        waiting[0].overhear(frame)
        return True

    def from_nobody(self, frame: bytes, rest: bytes = b"") -> None:
        """A message that is for nobody: judged, told, and gone. If it asks something, it is answered."""
        verdict, move = self.nobody.hear(Party.SERVER, frame, rest=rest)
        if move.to_server is not None:
            self._send(move.to_server)
        elif verdict.kind == "request" and verdict.exchange is not None:
            back = self.nobody.answer_server(verdict.exchange.id, WHOSE)
            if back is not None:
                self._send(back)
        elif move.to_client is not None and verdict.kind == "unreadable":
            self.nobody.aside(frame)

    def ended(self, reason: str, last_words: Sequence[str]) -> None:
        """
        It has ended by itself: everybody is told, and the next who asks starts another.

        Many share the child: what it wrote to stderr may be about any of them, and only the operator gets it.
        """
        self._backoff.failed(self._began, reason)
        nobody, everybody = self._nobody, self._everybody()
        self._forget(reason)
        with contained("the end of a server could not be reported"):
            self._broke(nobody or self._begin(), everybody, End(reason, last_words))

    def _everybody(self) -> list[Client]:
        return list(dict.fromkeys([*self.clients, *self._remap.everybody()]))

    def _forget(self, reason: str) -> None:
        everybody = self._everybody()
        self._pipe = self._run = self._nobody = None
        self._principals = set()
        self._remap = Remap(stateless=self.stateless)
        self.clients = {}
        for client in everybody:
            with contained("a client could not be told that its server has ended"):
                client.server_ended(reason)
        with contained("what was heard could not be put on record"):
            self._flush()

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def is_idle(self, seconds: float) -> bool:
        """Whether there is a child that nobody has needed for so long."""
        if self.clients or self._remap.everybody():
            self._used = self._clock()
        return self._pipe is not None and self._clock() - self._used > seconds

    @property
    def is_spent(self) -> bool:
        """Whether there is nothing to know about it any more."""
        return self._pipe is None and not self._backoff.closed

    async def end(self, reason: str, *, at_once: bool = False) -> None:
        """Ends the child, if there is one. Whoever still waits is told the *reason*."""
        pipe = self.release(reason)
        if pipe is not None:
            await pipe.end(at_once=at_once)

    def release(self, reason: str) -> Pipe | None:
        """Lets go of the child, which is still to be ended. Whoever still waits is told the *reason*."""
        pipe = self._pipe
        if pipe is not None:
            self._forget(reason)
        return pipe


class _Run:
    """One run of a child, which may be over while another begins."""

    __slots__ = ("_share",)

    def __init__(self, share: Share) -> None:
        self._share = share

    def heard(self, lines: Sequence[Line]) -> None:
        if self._share._run is self:
            self._share.heard(lines)

    def ended(self, reason: str, last_words: list[str]) -> None:
        if self._share._run is self:
            self._share.ended(reason, last_words)


class Session(Client, Protocol):
    """A session that shares a child."""

    def cut(self, stream: Stream) -> None:
        """Nobody can wait for whoever reads *stream*."""


class SharedWire:
    """What leads from one session to a child that it shares."""

    __slots__ = ("_share", "talk")

    def __init__(self, share: Share) -> None:
        self._share = share
        self.talk: Session | None = None

    def has_room(self, size: int) -> bool:
        """Whether *size* bytes more may wait for it."""
        return self._share.has_room(size)

    def say(self, frame: bytes) -> None:
        """Sends one message."""
        if self.talk is None:
            return
        try:
            self._share.start()
        except UnavailableError as error:
            self.talk.server_ended(str(error))
        else:
            self._share.say(self.talk, frame)

    def leave(self) -> None:
        """The session is over; the child goes on for the others."""
        if self.talk is not None:
            self._share.leave(self.talk)

    def slow(self, stream: Stream) -> None:
        """A client that is too slow is cut off: the others would have to wait for it."""
        if stream.behind > SLOW_BYTES and self.talk is not None:
            self.talk.cut(stream)


class SessionShare(Share):
    """A child that sessions share which are opened in the same way: it is opened once, for all of them."""

    stateless = False

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._result: bytes | None = None
        """The answer to `initialize`, once there is one."""
        self._opening: list[tuple[Client, bytes]] = []
        """Those who wait for it, with what they have asked; the first has been sent."""
        self._initialized = False
        self._beside: set[asyncio.Task[None]] = set()

    def _say(self, client: Client, frame: bytes, value: dict[str, Any]) -> None:
        method = value.get("method")
        if method == "initialize" and "id" in value:
            self.clients[client] = None
            self._open(client, frame)
        elif method == "notifications/initialized":
            if not self._initialized:
                self._initialized = True
                self._send(frame)
        else:
            super()._say(client, frame, value)

    def leave(self, client: Client) -> None:
        """*client* waits for nothing any more; but `initialize` is for all, and may not be cancelled."""
        if not self._opening:
            super().leave(client)
            return
        self.clients.pop(client, None)
        if not self.clients:
            # Nobody has got an answer, and nobody would: the next tries another child.
            self._end_soon("it did not answer initialize")

    def _mishandled(self, subject: Subject) -> None:
        """Give up a child whose answer to `initialize` was lost: no session is open yet, and none could be opened."""
        if subject.kind == "answer" and self._opening:
            self._end_soon(FAILED)
        else:
            super()._mishandled(subject)

    def _end_soon(self, reason: str) -> None:
        task = asyncio.ensure_future(self.end(reason))
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    def _open(self, client: Client, frame: bytes) -> None:
        if self._result is not None:
            client.from_server(answer_as(self._result, frame))
            return
        self._opening.append((client, frame))
        if len(self._opening) == 1:
            super()._say(client, frame, {"method": "initialize", "id": None})

    def _route(self, frame: bytes, value: dict[str, Any]) -> None:
        super()._route(frame, value)
        # Nothing else is asked before it is answered.
        if answers(value) and self._opening and self._result is None:
            waiting, self._opening = self._opening, []
            if "result" in value and "method" not in value:
                self._result = frame
            for client, asked in waiting[1:]:
                client.from_server(answer_as(frame, asked))

    def _claimed(self, frame: bytes, value: dict[str, Any]) -> bool:
        """A question goes to the one who has asked something; news to everybody."""
        if "method" not in value:
            return False
        if "id" in value:
            asking = self._remap.everybody()
            if len(asking) != 1:
                return False
            self._remap.asked[key_of(value["id"])] = asking[0]
            asking[0].from_server(frame)
            return True
        for client in list(self.clients):
            client.from_server(frame)
        return bool(self.clients)

    def _forget(self, reason: str) -> None:
        self._result, self._opening, self._initialized = None, [], False
        super()._forget(reason)
