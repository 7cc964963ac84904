"""
One guarded conversation at an edge: every message judged, put on record and told to people, in that order.

It knows neither pipes nor HTTP; whoever does carries out what it says. Nothing here waits.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from assay.base.verdict import Exchange, Party, Verdict
from assay.contracts.tool_contracts import Tools
from assay.core.conversation import NO_FACTS, Conversation, Facts
from assay.core.party_state import Id
from assay.edges.recorder import Recorder
from assay.guard.deliveries import UNKNOWN, End
from assay.guard.failure import log_once
from assay.guard.guard import NO_MOVE, Guard, Move, Settled
from assay.guard.terms import Terms

if TYPE_CHECKING:
    from assay.lock.inspection import Inspection
    from assay.lock.locked import Locked
    from assay.records.recording.recording_file import Recording

_CLIENT: Final = Party.CLIENT


class Watcher(Protocol):
    """Whoever wants to know what passes."""

    def heard(self, verdict: Verdict, now: float) -> None:
        """Something is to be said of a message, which came *now*."""

    def passed(self, verdict: Verdict, now: float) -> None:
        """Nothing is; it came *now*."""

    def aside(self, data: bytes) -> None:
        """The server printed something that is no message."""

    def another(self, of: object | None = None, /) -> "Watcher":
        """Whoever wants to know the same of another conversation; those *of* the same are one to people."""

    def flight(self, directory: str, redact: Sequence[str] = (), end: End = UNKNOWN, /) -> str | None:
        """The conversation has broken with the *end* of its server: its last messages go into a file."""


class Heard(NamedTuple):
    """A message, and what goes where for it. What a server printed is told already."""

    verdict: Verdict
    move: Move


class Overseer:
    """The guard of one conversation, with its records and its watcher."""

    __slots__ = ("_recorder", "_watcher", "guard", "session")

    def __init__(self, guard: Guard, recorder: Recorder, watcher: Watcher, *, session: str = "") -> None:
        self.guard = guard
        self.session = session
        """What the records know the conversation by."""
        self._recorder = recorder
        self._watcher = watcher

    def hear(self, party: Party, frame: bytes, facts: Facts = NO_FACTS, *, rest: bytes = b"") -> Heard:
        """
        What becomes of *frame*, which is all that comes of this message; of one that is too long, *rest* is the end.

        The settled requests of the move are on record. What goes to the client may only be sent after the recorder's
        `flush`. Never raises: an internal error is a verdict, and a move, like any other.
        """
        verdict, move = None, NO_MOVE
        try:
            now = self._recorder.clock()
            verdict = self.guard.hear(party, frame, facts)
            if verdict.findings is None:
                self._record(verdict, now, len(frame))
                self._watcher.passed(verdict, now)
                return Heard(verdict, passing(verdict))
            move = self.guard.act(verdict)
            if len(frame) > self.guard.conversation.limits.frame_bytes:
                # Nothing follows: what is known of it now is all.
                move = _both(move, self.guard.rest(party, rest + b"\n"))
            self.tell(verdict, now, move)
        except Exception as error:
            return self.failed(party, frame, error, verdict, move.settled)
        return Heard(verdict, move)

    def tell(self, verdict: Verdict, now: float, move: Move) -> None:
        """Record a message that came *now* and that *move* is made for, and report it to the watcher."""
        if verdict.kind != "blank":
            self._record(verdict, now, len(move.to_client or b"") + len(move.to_server or b""))
            if verdict.findings is not None:
                self._watcher.heard(verdict, now)
            else:
                self._watcher.passed(verdict, now)
        if move.aside is not None:
            self._watcher.aside(move.aside)
        for settled in move.settled:
            self.settle(settled)

    def failed(
        self,
        party: Party,
        frame: bytes,
        error: Exception,
        heard: Verdict | None = None,
        settled: tuple[Settled, ...] = (),
    ) -> Heard:
        """
        Return what to send for a frame after *error*, an internal error; nothing may have been sent for it yet.

        *heard* is the verdict on the frame, if it was judged, and *settled* are the requests that it has given up.
        """
        verdict = self.guard.failed(party, frame, error, heard)
        try:
            move = self.guard.act(verdict)
            # Most likely what failed was one of these two, and the log has the reason already.
            with suppress(Exception):
                self._record(verdict, self._recorder.clock(), len(move.to_client or b"") + len(move.to_server or b""))
                self._watcher.heard(verdict, self._recorder.clock())
        except Exception as another:
            log_once(another)
            back, onward = verdict.back, verdict.onward
            move = Move(back, onward) if party is _CLIENT else Move(onward, back)
        return Heard(verdict, move._replace(settled=move.settled + settled))

    def overdue(self) -> list[tuple[Settled, bytes | None]]:
        """The requests that have waited too long: what the client gets, and what the server is told."""
        late = list(self.guard.overdue())
        for settled, _ in late:
            self.settle(settled)
        return late

    def give_up(self, exchange: Exchange, code: str, why: str, data: Mapping[str, Any] | None = None) -> Settled | None:
        """A request of the client gets no answer, for what *why* says; None if it waits for none any more."""
        settled = self.guard.give_up(exchange, code, why, data)
        if settled is not None:
            self.settle(settled)
        return settled

    def server_ended(self, why: str, last_words: list[str]) -> list[Settled]:
        """The server says no more: the requests that it owes an answer to, each with the one it gets."""
        left = self.guard.server_ended(why, last_words)
        for settled in left:
            self.settle(settled)
        return left

    def forget(self, exchange: Exchange) -> None:
        """Nobody waits for the answer to a request of the client any more, and there is nothing to say of it."""
        self.guard.give_up(exchange, "UPSTREAM_FAILURE", "")

    def answer_server(self, ident: Id, why: str) -> bytes | None:
        """A request of the server that nobody can be asked: what it gets for an answer; None if it is not open."""
        missing = self.guard.conversation.give_up(Party.SERVER, ident, "UPSTREAM_FAILURE", why)
        if missing is None:
            return None
        self.settle(Settled(missing, missing.onward or b""))
        return missing.onward

    def name(self, session: str) -> None:
        """From now on the records know this conversation as *session*."""
        self.session = session

    def aside(self, data: bytes) -> None:
        """The server printed something that no message can carry on."""
        self._watcher.aside(data)

    def broke(self, flights: str, redact: Sequence[str], end: End = UNKNOWN) -> None:
        """The server is lost: what was last said, and its *end*, go into a file, unless *flights* is off."""
        if flights != "off":
            self._watcher.flight(flights, redact, end)

    def settle(self, settled: Settled) -> None:
        """Puts on record that a request is answered here, and not by the server."""
        try:
            now = self._recorder.clock()
            self._record(settled.verdict, now, len(settled.answer))
            self._watcher.heard(settled.verdict, now)
        except Exception as error:
            # The answer is an error already, and must be sent all the same.
            log_once(error, "an unanswered request could not be recorded")

    def _record(self, verdict: Verdict, now: float, sent: int) -> None:
        if not self._recorder.idle:
            self._recorder.message(verdict, now, sent, self.session)


def passing(verdict: Verdict) -> Move:
    """A message that goes on as it came."""
    return Move(to_server=verdict.frame) if verdict.party is _CLIENT else Move(to_client=verdict.frame)


def _both(first: Move, second: Move) -> Move:
    return Move(
        first.to_client or second.to_client,
        first.to_server or second.to_server,
        first.aside or second.aside,
        first.settled + second.settled,
    )


class Oversight:
    """How the conversations of one server are guarded."""

    __slots__ = ("_judge", "_locked", "_recording", "_terms", "_watcher", "recorder")

    def __init__(
        self,
        terms: Terms,
        recorder: Recorder,
        watcher: Watcher,
        locked: "Locked | None" = None,
        *,
        recording: "Recording | None" = None,
        server: str = "",
    ) -> None:
        """
        *locked* is what the server was when it was locked, if it was.

        With *recording* every message is written to that, under the name of the *server*.
        """
        self._recording = recording
        self._judge = Conversation if recording is None else recording.judge(server)
        self._terms = terms
        self._locked = locked
        self._watcher = watcher
        self.recorder = recorder
        """Shared by all of them. Its `flush` comes before anything is sent."""

    @property
    def enforcing(self) -> bool:
        """Whether what is refused stops here."""
        return self._terms.enforcing

    @property
    def timeout(self) -> float | None:
        """Seconds that a server has for an answer; None for ever, as it has under audit."""
        return self._terms.timeout if self._terms.timeout and self.enforcing else None

    @property
    def frame_bytes(self) -> int:
        """How long a message may be."""
        return self._terms.limits.frame_bytes

    def inspection(self) -> "Inspection | None":
        """What a conversation, or several that are one to the client, are held to by the lock, if there is one."""
        if self._locked is None:
            return None
        from assay.lock.inspection import Inspection  # noqa: PLC0415 - for those who have a lock

        return Inspection(self._locked)

    def begin(
        self,
        *,
        session: str = "",
        revision: str | None = None,
        tools: Tools | None = None,
        lock: "Inspection | None" = None,
        watcher: Watcher | None = None,
        of: object | None = None,
    ) -> Overseer:
        """
        A conversation; *revision*, *tools* and *lock* are those of `Conversation`.

        Without *lock* it has one of its own, if there is one. Its last messages are kept apart from those of others,
        unless *watcher* keeps them together. What people are told of one is not told again of others *of* the same.
        """
        guard = Guard(
            mode=self._terms.mode,
            limits=self._terms.limits,
            timeout=self._terms.timeout,
            clock=monotonic,
            revision=revision,
            tools=tools,
            lock=lock or self.inspection(),
            policy=self._terms.policy,
            judge=self._judge,
        )
        watcher = self._watcher.another(of) if watcher is None else watcher
        return Overseer(guard, self.recorder, watcher, session=session)

    def passes(self, frame: bytes) -> bool:
        """Whether the first message of a client goes on to a server. Nothing of it is recorded or remembered."""
        terms = self._terms
        guard = Guard(mode=terms.mode, limits=terms.limits, clock=monotonic, policy=terms.policy)
        return guard.hear(_CLIENT, frame, Facts("http")).onward is not None

    def watcher(self) -> Watcher:
        """Whoever watches over several conversations with one run of a server."""
        return self._watcher.another()

    def handed_down(self, tools: Tools) -> Tools:
        """Return the tools that the conversations with the next run of a server begin with."""
        return tools.handed_down() if self._recording is None else self._recording.hand_down(tools)

    def tools(self) -> Tools:
        """The tools of a server, to be shared by conversations that have no session."""
        return Tools(self._terms.limits.tools, self._terms.limits.contract_bytes)
