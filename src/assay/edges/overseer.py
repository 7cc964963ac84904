"""
One guarded conversation at an edge: every message judged, put on record and told to people, in that order.

It knows neither pipes nor HTTP; whoever does carries out what it says. Nothing here waits.
"""

from collections.abc import Sequence
from time import monotonic
from typing import Final, NamedTuple, Protocol

from assay.contracts.tools import Tools
from assay.conversation import NO_FACTS, Facts
from assay.edges.recorder import Recorder
from assay.guard.guard import Guard, Mode, Move, Settled
from assay.limits import Limits
from assay.side import Id
from assay.verdict import Party, Verdict

_CLIENT: Final = Party.CLIENT


class Watcher(Protocol):
    """Whoever wants to know what passes."""

    def heard(self, verdict: Verdict, now: float) -> None:
        """Something is to be said of a message, which came *now*."""

    def passed(self, verdict: Verdict, now: float) -> None:
        """Nothing is; it came *now*."""

    def aside(self, data: bytes) -> None:
        """The server printed something that is no message."""

    def another(self) -> "Watcher":
        """Whoever wants to know the same of another conversation."""

    def flight(self, directory: str, redact: Sequence[str] = ()) -> str | None:
        """The conversation has broken: its last messages go into a file."""


class Heard(NamedTuple):
    """A message, and what goes where for it. What a server printed is told already."""

    verdict: Verdict
    move: Move


class Overseer:
    """The guard of one conversation, with its records and its watcher."""

    __slots__ = ("_recorder", "_session", "_watcher", "guard")

    def __init__(self, guard: Guard, recorder: Recorder, watcher: Watcher, *, session: str = "") -> None:
        self.guard = guard
        self._recorder = recorder
        self._watcher = watcher
        self._session = session

    def hear(self, party: Party, frame: bytes, facts: Facts = NO_FACTS, *, rest: bytes = b"") -> Heard:
        """
        What becomes of *frame*, which is all that comes of this message; of one that is too long, *rest* is the end.

        The settled requests of the move are on record. What goes to the client may only be sent after the recorder's
        `flush`.
        """
        now = self._recorder.clock()
        verdict = self.guard.hear(party, frame, facts)
        if verdict.findings is None:
            move = passing(verdict)
            self._record(verdict, now, len(frame))
            self._watcher.passed(verdict, now)
            return Heard(verdict, move)
        move = self.guard.act(verdict)
        if len(frame) > self.guard.conversation.limits.frame_bytes:
            # Nothing follows: what is known of it now is all.
            move = _both(move, self.guard.rest(party, rest + b"\n"))
        if verdict.kind != "blank":
            self._record(verdict, now, len(move.to_client or b"") + len(move.to_server or b""))
            self._watcher.heard(verdict, now)
        if move.aside is not None:
            self._watcher.aside(move.aside)
        for settled in move.settled:
            self.settle(settled)
        return Heard(verdict, move)

    def overdue(self) -> list[tuple[Settled, bytes | None]]:
        """The requests that have waited too long: what the client gets, and what the server is told."""
        late = list(self.guard.overdue())
        for settled, _ in late:
            self.settle(settled)
        return late

    def server_ended(self, why: str, last_words: list[str]) -> list[Settled]:
        """The server says no more: the requests that it owes an answer to, each with the one it gets."""
        left = self.guard.server_ended(why, last_words)
        for settled in left:
            self.settle(settled)
        return left

    def answer_server(self, ident: Id, why: str) -> bytes | None:
        """A request of the server that nobody can be asked: what it gets for an answer; None if it is not open."""
        missing = self.guard.conversation.give_up(Party.SERVER, ident, "UPSTREAM_FAILURE", why)
        if missing is None:
            return None
        self.settle(Settled(missing, missing.onward or b""))
        return missing.onward

    def name(self, session: str) -> None:
        """From now on the records know this conversation as *session*."""
        self._session = session

    def aside(self, data: bytes) -> None:
        """The server printed something that no message can carry on."""
        self._watcher.aside(data)

    def broke(self, flights: str, redact: Sequence[str]) -> None:
        """The server is lost: what was last said goes into a file, unless *flights* is off."""
        if flights != "off":
            self._watcher.flight(flights, redact)

    def settle(self, settled: Settled) -> None:
        """Puts on record that a request is answered here, and not by the server."""
        now = self._recorder.clock()
        self._record(settled.verdict, now, len(settled.answer))
        self._watcher.heard(settled.verdict, now)

    def _record(self, verdict: Verdict, now: float, sent: int) -> None:
        if not self._recorder.idle:
            self._recorder.message(verdict, now, sent, self._session)


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

    __slots__ = ("_limits", "_mode", "_timeout", "_watcher", "recorder")

    def __init__(self, mode: Mode, limits: Limits, timeout: float, recorder: Recorder, watcher: Watcher) -> None:
        self._mode: Mode = mode
        self._limits = limits
        self._timeout = timeout
        self._watcher = watcher
        self.recorder = recorder
        """Shared by all of them. Its `flush` comes before anything is sent."""

    @property
    def enforcing(self) -> bool:
        """Whether what is refused stops here."""
        return self._mode == "enforce"

    @property
    def timeout(self) -> float | None:
        """Seconds that a server has for an answer; None for ever, as it has under audit."""
        return self._timeout if self._timeout and self.enforcing else None

    @property
    def frame_bytes(self) -> int:
        """How long a message may be."""
        return self._limits.frame_bytes

    def begin(
        self,
        *,
        session: str = "",
        revision: str | None = None,
        tools: Tools | None = None,
        watcher: Watcher | None = None,
    ) -> Overseer:
        """
        A conversation; *revision* and *tools* are those of `Conversation`.

        Its last messages are kept apart from those of others, unless *watcher* keeps them together.
        """
        guard = Guard(
            mode=self._mode,
            limits=self._limits,
            timeout=self._timeout,
            clock=monotonic,
            revision=revision,
            tools=tools,
        )
        watcher = self._watcher.another() if watcher is None else watcher
        return Overseer(guard, self.recorder, watcher, session=session)

    def watcher(self) -> Watcher:
        """Whoever watches over several conversations with one run of a server."""
        return self._watcher.another()

    def tools(self) -> Tools:
        """The tools of a server, to be shared by conversations that have no session."""
        return Tools(self._limits.tools)
