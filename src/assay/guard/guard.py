"""One conversation of a pairing that does not use `GuardedSession` yet."""

from collections.abc import Callable, Iterator, Mapping
from math import inf
from typing import TYPE_CHECKING, Any, Final

from assay.base.limits import Limits
from assay.base.no_answer import within
from assay.base.verdict import Exchange, Party, Verdict
from assay.contracts.tool_contracts import Tools
from assay.core.conversation import NO_FACTS, Conversation, Facts
from assay.core.party_state import Id
from assay.core.policy import Policy
from assay.guard.deadlines import ENDLESS, Deadlines
from assay.guard.deliveries import Failed
from assay.guard.failure import failed, log_once
from assay.guard.moves import NO_MOVE, Move, Router
from assay.guard.own_frames import cancelled, line, may_be_cancelled
from assay.guard.session import CROWD
from assay.guard.terms import Mode

if TYPE_CHECKING:
    from assay.lock.inspection import Inspection

__all__ = ("NO_MOVE", "Guard", "Mode", "Move", "Settled", "cancelled", "line", "may_be_cancelled")

_CLIENT: Final = Party.CLIENT

Settled = Failed


class Guard:
    """One conversation under guard."""

    def __init__(
        self,
        *,
        mode: Mode,
        limits: Limits,
        timeout: float = 0.0,
        clock: Callable[[], float],
        revision: str | None = None,
        tools: Tools | None = None,
        lock: "Inspection | None" = None,
        policy: Policy | None = None,
        lines: bool = False,
        judge: Callable[..., Conversation] = Conversation,
    ) -> None:
        """*timeout* is in seconds; *revision*, *tools*, *lock*, *policy* and *lines* are those of `Conversation`."""
        self.conversation = judge(
            mode=mode, limits=limits, revision=revision, tools=tools, lock=lock, policy=policy, lines=lines
        )
        self.mode = mode
        self.enforcing = mode == "enforce"
        self._clock = clock
        self._deadlines = Deadlines(timeout if self.enforcing else 0.0)
        self._router = Router(self.conversation)

    def hear(self, party: Party, frame: bytes, facts: Facts = NO_FACTS) -> Verdict:
        """Return the verdict on *frame*."""
        verdict = None
        try:
            verdict = self.conversation.hear(party, frame, facts)
            if self._deadlines.timeout:
                self._deadlines.note(verdict, self._clock())
        except Exception as error:
            return self.failed(party, frame, error, verdict)
        return verdict

    def failed(self, party: Party, frame: bytes, error: Exception, heard: Verdict | None = None) -> Verdict:
        """Return the verdict on a frame after an internal error, so that every request in it gets one answer."""
        verdict = failed(self.conversation, party, frame, error, heard)
        if self._deadlines.timeout:
            try:
                self._deadlines.note(verdict, self._clock())
            except Exception as another:
                log_once(another)
        return verdict

    def act(self, verdict: Verdict) -> Move:
        """Return what goes where for a message with findings."""
        return self._forgotten(self._router.act(verdict))

    def rest(self, party: Party, data: bytes) -> Move:
        """Return what goes where for *data*, which follows an over-long frame."""
        return self._forgotten(self._router.rest(party, data))

    def _forgotten(self, move: Move) -> Move:
        for each in move.settled:
            if each.exchange is not None:
                self._deadlines.forget(each.exchange)
        return move

    @property
    def owed(self) -> bool:
        """Whether the client waits for an answer that can be expected to come."""
        return any(each.method != ENDLESS for each in self.conversation.open_requests(_CLIENT))

    @property
    def patience(self) -> float | None:
        """Seconds until the next request has waited too long; None if none ever does."""
        due = self._deadlines.due
        return None if due == inf else max(0.0, due - self._clock())

    def patience_for(self, ident: Id) -> float | None:
        """Seconds until that request of the client has waited too long; None if it never does."""
        due = self._deadlines.due_of(ident)
        return None if due == inf else max(0.0, due - self._clock())

    def overdue(self) -> Iterator[tuple[Failed, bytes | None]]:
        """Yield the requests that have waited too long: the answer for the client, and what the server gets."""
        for ident in self._deadlines.overdue(self._clock()):
            missing = self.conversation.give_up(_CLIENT, ident, "TIMEOUT", within(self._deadlines.timeout))
            if missing is not None and missing.exchange is not None and missing.onward is not None:
                self._deadlines.forget(missing.exchange)
                told = cancelled(missing.exchange) if may_be_cancelled(missing.exchange) else None
                yield Failed(missing, missing.onward, "TIMEOUT"), told

    def give_up(self, exchange: Exchange, code: str, why: str, data: Mapping[str, Any] | None = None) -> Failed | None:
        """Fail a request of the client; None if it is not open."""
        if not self.conversation.is_open(exchange):
            return None
        missing = self.conversation.give_up(_CLIENT, exchange.id, code, why, data)
        self._deadlines.forget(exchange)
        return Failed(missing, missing.onward or b"", code) if missing is not None else None

    def server_ended(self, why: str, last_words: list[str]) -> list[Failed]:
        """Fail every request of the client, once. Under audit the answers are empty."""
        if len(self.conversation.open_requests(_CLIENT)) > CROWD:
            last_words = last_words[-1:]
        self._deadlines.clear()
        data = {"stderr": last_words} if last_words else None
        missing = self.conversation.end(Party.SERVER, why, data, unstarted=why.startswith("cannot start "))
        return [Failed(each, each.onward or b"" if self.enforcing else b"") for each in missing]
