"""Child processes as servers of HTTP clients: one for a session, or one that all requests without a session share."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from assay.edges.child import StartError
from assay.edges.child_pipe import ChildPipe, PipeLine, PipeOwner
from assay.edges.client_http import HttpClient
from assay.edges.response_stream import ResponseStream
from assay.guard.backoff import Backoff
from assay.guard.deliveries import Loss
from assay.guard.internal_errors import contained, log_once
from assay.guard.recent_messages import End
from assay.guard.session import CROWD, GuardedSession
from assay.guard.shared_server import FAILED, SharedServer, Sharer
from assay.judge import render, syntax
from assay.model.verdict import Party

WHOSE: Final = "it cannot be said which client this is for"


class UnavailableError(Exception):
    """There is no child to send to; the text has the reason."""


class ChildHome(Protocol):
    """Where children run."""

    def spawn(self, owner: PipeOwner, principal: str) -> ChildPipe:
        """Start one for *principal*. Raises `StartError`."""

    def end(self, pipe: ChildPipe) -> None:
        """End one, soon."""

    def broke(self, client: HttpClient, end: End) -> None:
        """The child of a session has ended by itself."""

    def shown(self, last_words: list[str]) -> list[str]:
        """Return what a client may read of the last lines that its own child wrote to stderr."""


class DedicatedChild:
    """One session, one child. It starts with the first message that is sent to it."""

    def __init__(self, home: ChildHome, backoff: Callable[[], Backoff], clock: Callable[[], float]) -> None:
        """*backoff* returns what counts the children that end before they have answered `initialize`."""
        self._home = home
        self._backoff = backoff
        self._clock = clock
        self._began = 0.0
        self._was_started = False
        self.pipe: ChildPipe | None = None
        """The child, while there is one."""
        self.client: HttpClient | None = None

    def has_room(self, size: int) -> bool:
        """Return whether *size* bytes more may wait for it."""
        return self.pipe is None or self.pipe.has_room(size)

    def send(self, frame: bytes, _: Any = None) -> None:
        """Send one message."""
        if self.pipe is None and not self._was_started:
            self._start()
        if self.pipe is not None:
            self.pipe.send(frame)

    def _start(self) -> None:
        self._was_started = True
        backoff = self._backoff()
        if backoff.is_closed(self._clock()):
            self._fail(backoff.reason)
            return
        self._began = self._clock()
        try:
            self.pipe = self._home.spawn(self, self.client.owner if self.client is not None else "")
        except StartError as error:
            backoff.after(began=self._began, now=self._clock(), reason=str(error))
            self._fail(str(error))

    def _fail(self, reason: str) -> None:
        if self.client is not None:
            self.client.lost(Loss("unstartable", reason))

    def slow(self, stream: ResponseStream) -> None:
        """The client is slow: the child has to wait for it."""
        if self.pipe is not None:
            self.pipe.hold()
            stream.taken = self.pipe.go_on

    def leave(self) -> None:
        """The session is over, and so is its child."""
        pipe, self.pipe = self.pipe, None
        if pipe is not None:
            self._home.end(pipe)

    def heard(self, lines: Sequence[PipeLine]) -> None:
        """Handle the lines that the child wrote at once."""
        if self.client is not None:
            for each in lines:
                if self.pipe is not None:
                    self.client.from_server(*each)

    def ended(self, reason: str, last_words: list[str]) -> None:
        """The child has ended."""
        if self.pipe is None or self.client is None:
            return
        self.pipe = None
        if not self.client.opened:
            self._backoff().after(began=self._began, now=self._clock(), reason=reason)
        # The session has this child to itself, so nothing of another client is in what it wrote.
        shown: list[str] = []
        with contained("the last lines of a server could not be shown"):
            shown = self._home.shown(last_words)
        if len(self.client.session.conversation.open_requests(Party.CLIENT)) > CROWD:
            shown = shown[-1:]
        self.client.lost(Loss("exited", reason, data={"stderr": shown} if shown else None))
        with contained("the end of a server could not be reported"):
            self._home.broke(self.client, End(reason, last_words))


# ── shared ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class ChildSharer(Sharer, Protocol):
    """A session, or a request without one, that shares a child."""

    def from_server(self, frame: bytes, rest: bytes = b"") -> None:
        """Handle a message for it, with its own ids. Never raises."""

    def overhear(self, frame: bytes) -> None:
        """Judge a message that this client does not get."""

    def failed(self, ident: Any) -> None:
        """Fail a request whose answer could not be routed, after an internal error."""

    def lost(self, why: Loss) -> None:
        """The child is lost."""


class SharedChild:
    """A child that is started when a client asks, ended when none does, and started again."""

    def __init__(
        self,
        spawn: Callable[[PipeOwner], ChildPipe],
        begin: Callable[[], GuardedSession],
        clock: Callable[[], float],
        broke: Callable[[GuardedSession, Sequence[ChildSharer], End], None],
    ) -> None:
        """
        *spawn* starts a child, and raises `StartError`; *begin* makes the guard's own session, for messages that do
        not show whom they are for.

        *broke* is called when a child has ended by itself, with that session and all clients that were there.
        """
        self._spawn = spawn
        self._begin = begin
        self._clock = clock
        self._broke = broke
        self._backoff = Backoff()
        self._run: _ChildRun | None = None
        self._began = 0.0
        self._own: GuardedSession | None = None
        self._beside: set[asyncio.Task[None]] = set()
        self.pipe: ChildPipe | None = None
        """The child, while there is one."""
        self.server: SharedServer[ChildSharer] = SharedServer()
        """Whom each message is for, in this run of the child."""
        self.used = 0.0
        """When something was last sent to it."""

    @property
    def own(self) -> GuardedSession:
        """The guard's own session with this run of the child."""
        if self._own is None:
            self._own = self._begin()
        return self._own

    # ── to the child ─────────────────────────────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        """Start a child, unless one is running. Raises `UnavailableError`."""
        if self.pipe is not None:
            return
        now = self._clock()
        if self._backoff.is_closed(now):
            raise UnavailableError(self._backoff.reason)
        self._began = self.used = now
        run = _ChildRun(self)
        try:
            self.pipe = self._spawn(run)
        except StartError as error:
            self._backoff.after(began=self._began, now=self._clock(), reason=str(error))
            raise UnavailableError(str(error)) from None
        self._run = run

    def has_room(self, size: int) -> bool:
        """Return whether *size* bytes more may wait for it."""
        return self.pipe is None or self.pipe.has_room(size)

    def send(self, sender: ChildSharer, frame: bytes, value: Any = None) -> None:
        """Send a message of *sender*, as far as it is meant for the child, and is about the sender's own requests."""
        for each in self.server.send(sender, frame, value):
            self._send(each)

    def leave(self, sender: ChildSharer) -> None:
        """*sender* waits for nothing any more; its requests are cancelled."""
        for each in self.server.leave(sender):
            self._send(each)

    def _send(self, frame: bytes) -> None:
        self.used = self._clock()
        if self.pipe is not None:
            self.pipe.send(frame)

    # ── from the child ───────────────────────────────────────────────────────────────────────────────────────────────

    def heard(self, lines: Sequence[PipeLine]) -> None:
        """Handle what it wrote at once. An internal error fails only the request that a message is about."""
        for each in lines:
            try:
                for to, frame, rest, is_delivered in self.server.route(*each):
                    if to is None:
                        self.from_nobody(frame, rest)
                    elif is_delivered:
                        to.from_server(frame, rest)
                    else:
                        to.overhear(frame)
            except Exception as error:
                log_once(error, "a message of a server could not be routed")
                with contained("a client could not be informed of an internal error"):
                    self._mishandled(each)

    def _mishandled(self, said: PipeLine) -> None:
        for to, ident in self.server.mishandled(*said):
            if to is not None:
                to.failed(ident)
            else:
                self._send(render.plain_error(syntax.write(ident), "INTERNAL_ERROR", FAILED))

    def from_nobody(self, frame: bytes, rest: bytes = b"") -> None:
        """Judge and record a message that does not show whom it is for. If it is a request, it is answered."""
        made = self.own.from_server(frame, rest)
        for each in made.to_server:
            self._send(each.frame)
        verdict = made.verdict
        if verdict is not None and verdict.kind == "request" and verdict.exchange is not None and not made.to_server:
            for each in self.own.unclaimed(verdict.exchange, WHOSE).to_server:
                self._send(each.frame)

    def ended(self, reason: str, last_words: Sequence[str]) -> None:
        """
        It has ended by itself: each waiting request fails, and the next request starts another child.

        Many share the child: what it wrote to stderr may be about any of them, and only the operator gets it.
        """
        self._backoff.after(began=self._began, now=self._clock(), reason=reason)
        own, everybody = self._own, self.server.everybody
        self._forget(Loss("exited", reason))
        with contained("the end of a server could not be reported"):
            self._broke(own or self._begin(), everybody, End(reason, last_words))

    def _forget(self, why: Loss) -> None:
        everybody = self.server.everybody
        self.pipe = self._run = self._own = None
        self.server = SharedServer()
        for each in everybody:
            with contained("a client could not be informed that its server has ended"):
                each.lost(why)

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def is_idle(self, seconds: float) -> bool:
        """Return whether there is a child that no client has needed for so long."""
        if self.server.everybody:
            self.used = self._clock()
        return self.pipe is not None and self._clock() - self.used > seconds

    @property
    def is_spent(self) -> bool:
        """Whether there is nothing to remember about it."""
        return self.pipe is None and not self._backoff.is_closed(self._clock())

    async def end(self, why: Loss, *, at_once: bool = False) -> None:
        """End the child, if there is one. Each waiting request fails for *why*."""
        pipe = self.release(why)
        if pipe is not None:
            await pipe.end(at_once=at_once)

    def release(self, why: Loss) -> ChildPipe | None:
        """Detach and return the child, which is still to be ended. Each waiting request fails for *why*."""
        pipe = self.pipe
        if pipe is not None:
            self._forget(why)
        return pipe


class _ChildRun:
    """One run of a child, which may be over while another begins."""

    __slots__ = ("_child",)

    def __init__(self, child: SharedChild) -> None:
        self._child = child

    def heard(self, lines: Sequence[PipeLine]) -> None:
        if self._child._run is self:
            self._child.heard(lines)

    def ended(self, reason: str, last_words: list[str]) -> None:
        if self._child._run is self:
            self._child.ended(reason, last_words)
