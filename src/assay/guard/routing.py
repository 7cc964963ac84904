"""What goes where for a judged message: the frames for each side, and the requests that fail for it. No I/O."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from assay.guard.deliveries import Failed
from assay.guard.own_frames import id_bytes
from assay.judge import render
from assay.judge.conversation import Conversation
from assay.judge.partial_frame import LOOKED_AT, Outline, outline
from assay.model.json_values import Id
from assay.model.verdict import Party, Verdict

_CLIENT: Final = Party.CLIENT


class Move(NamedTuple):
    """The frames to send for one message that has findings."""

    to_client: bytes | None = None
    to_server: bytes | None = None
    aside: bytes | None = None
    """Server output that is not a message."""
    settled: tuple[Failed, ...] = ()
    """Requests that the message was meant to answer, and does not."""


NO_MOVE: Final = Move()


class Router:
    """Decides what goes where in one conversation."""

    __slots__ = ("_enforcing", "_long", "conversation")

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self._enforcing = conversation.mode == "enforce"
        self._long: dict[Party, tuple[Verdict, bytes]] = {}
        """An over-long message and the last of its bytes so far, until its end has come."""

    def act(self, verdict: Verdict) -> Move:
        """Return what goes where for a message with findings."""
        if verdict.kind == "blank":
            # White space between messages, and nothing else: it goes on where everything does.
            return NO_MOVE if self._enforcing else self._onward(verdict, verdict.frame)
        if verdict.kind == "unreadable" and verdict.value is None:
            passes = self._enforcing and verdict.onward is not None
            return self._onward(verdict, verdict.frame) if passes else self._unreadable(verdict)
        if verdict.party is _CLIENT:
            return Move(verdict.back, verdict.onward)
        if verdict.kind == "batch" and not verdict.parts:
            # No batch may be here: what it answers has no other answer.
            settled = tuple(self._in_batch(verdict))
            return Move(settled=settled) if self._enforcing else self._onward(verdict, verdict.frame)
        if verdict.onward is None and verdict.kind == "unreadable":
            # JSON, and no message: some servers log like that.
            return Move(aside=verdict.frame)
        return Move(verdict.onward, verdict.back)

    def rest(self, party: Party, data: bytes) -> Move:
        """
        Return what goes where for *data*, which follows an over-long frame, up to the end of its line.

        To be called once more with a newline where the stream ends without one.
        """
        if party not in self._long:
            return NO_MOVE
        verdict, tail = self._long[party]
        tail = (tail + data)[-LOOKED_AT:]
        self._long[party] = verdict, tail
        if not data.endswith(b"\n"):
            return NO_MOVE
        del self._long[party]
        return self._at_last(verdict, outline(verdict.frame, tail))

    def whole(self, verdict: Verdict, rest: bytes) -> Move:
        """Return what goes where for a message that comes whole; *rest* is the end of an over-long one."""
        move = self.act(verdict)
        if len(verdict.frame) <= self.conversation.limits.frame_bytes:
            return move
        last = self.rest(verdict.party, rest + b"\n")
        return Move(
            move.to_client or last.to_client,
            move.to_server or last.to_server,
            move.aside or last.aside,
            move.settled + last.settled,
        )

    def _unreadable(self, verdict: Verdict) -> Move:
        """
        Return what goes where for a message that cannot be read.

        It may still show which request it is, or answers: then the sender of that request gets an error. The id of an
        over-long message may be at its end, which is yet to come.
        """
        frame = verdict.frame
        long = len(frame) > self.conversation.limits.frame_bytes
        found = outline(frame, b"" if long else frame)
        if long and not found.settles:
            self._long[verdict.party] = verdict, b""
            return NO_MOVE if self._enforcing else self._onward(verdict, frame)
        if not self._enforcing:
            self._at_last(verdict, found)
            return self._onward(verdict, frame)
        return self._at_last(verdict, found)

    def _at_last(self, verdict: Verdict, found: Outline) -> Move:
        """Return what goes where for an unreadable message, once all of it has come."""
        if verdict.party is _CLIENT:
            return Move(self._refusal(verdict, found)) if self._enforcing else NO_MOVE
        settled = self._fail(verdict, found.id, "its answer could not be read") if found.answers else ()
        if not self._enforcing:
            return NO_MOVE
        if settled:
            return Move(settled=settled)
        if len(verdict.frame) > self.conversation.limits.frame_bytes:
            return Move(to_server=self._refusal(verdict, found)) if found.asks and found.id is not None else NO_MOVE
        return Move(aside=verdict.frame)

    def _refusal(self, verdict: Verdict, found: Outline) -> bytes | None:
        """Return the answer to an unreadable request, with its id if it has shown one of its own."""
        if not found.asks or found.id is None or self._is_open(verdict.party, found.id):
            return verdict.back
        return render.refusal(found.token, verdict.violations, verdict.more, self.conversation.revision)

    def _is_open(self, asker: Party, ident: Id) -> bool:
        return any(each.id == ident for each in self.conversation.open_requests(asker))

    def _in_batch(self, verdict: Verdict) -> Iterator[Failed]:
        """Yield the requests that are answered in a batch where no batch is allowed."""
        for each in verdict.value:
            if isinstance(each, dict) and "method" not in each:
                yield from self._fail(verdict, each.get("id"), "its answer came in a batch")

    def _fail(self, verdict: Verdict, ident: Any, why: str) -> tuple[Failed, ...]:
        """Fail the request of that id for what is wrong with its answer; nothing if it is not open."""
        if type(ident) not in (str, int):
            return ()
        missing = self.conversation.give_up(_CLIENT, ident, "UPSTREAM_INVALID", why)
        if missing is None or missing.exchange is None:
            return ()
        token = id_bytes(missing.exchange)
        answer = render.failure(token, "UPSTREAM_INVALID", verdict.violations, verdict.more, missing.revision)
        return (Failed(missing, answer, "UPSTREAM_INVALID"),)

    def _onward(self, verdict: Verdict, frame: bytes) -> Move:
        return Move(to_server=frame) if verdict.party is _CLIENT else Move(to_client=frame)
