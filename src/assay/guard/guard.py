"""
Between a client and a server: a frame in, and what goes where for it. No I/O; the clock is given.

Accepted frames go on as they came, in the order they came, and none waits for another.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from assay.base.limits import Limits
from assay.base.message import params_of
from assay.base.no_answer import within
from assay.base.verdict import Exchange, Party, Verdict
from assay.contracts.tool_contracts import Tools
from assay.core import render
from assay.core.conversation import NO_FACTS, Conversation, Facts
from assay.core.party_state import Id
from assay.core.policy import Policy
from assay.guard.failure import failed, log_once
from assay.guard.outline import LOOKED_AT, Outline, outline
from assay.ladder import framing, syntax

if TYPE_CHECKING:
    from assay.lock.inspection import Inspection

Mode = Literal["audit", "enforce"]

_CLIENT: Final = Party.CLIENT
CROWD: Final = 1000
"""Requests that fail at once, from which on each is told the last line of the server's stderr only: 10,000 may wait."""

_ENDLESS: Final = "subscriptions/listen"
"""The one request whose answer is not waited for: it comes when whoever asked has had enough."""


class Settled(NamedTuple):
    """A request of the client that gets no answer from the server: the verdict on that, and what is said instead."""

    verdict: Verdict
    answer: bytes


class Move(NamedTuple):
    """What comes of one frame that something is to be said of."""

    to_client: bytes | None = None
    to_server: bytes | None = None
    aside: bytes | None = None
    """What a server printed where only messages belong."""
    settled: tuple[Settled, ...] = ()
    """Requests that it was meant to answer, and does not."""


NO_MOVE: Final = Move()


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
        """
        *timeout* is how many seconds a server has for an answer, counted anew with each progress; 0 for ever.

        Under audit it has for ever. *revision*, *tools*, *lock*, *policy* and *lines* are those of
        `Conversation`, which *judge* makes.
        """
        self.conversation = judge(
            mode=mode, limits=limits, revision=revision, tools=tools, lock=lock, policy=policy, lines=lines
        )
        self.mode = mode
        self._enforcing = mode == "enforce"
        self._timeout = timeout if self._enforcing else 0.0
        self._clock = clock
        self._since: dict[Id, float] = {}
        """When each open request of the client was last heard of, the one longest ago first."""
        self._tokens: dict[Id, Id] = {}
        """The requests among them that want to hear of progress, by their token."""
        self._long: dict[Party, tuple[Verdict, bytes]] = {}
        """A message that is too long to be read, and the last of it so far, until its end has come."""

    @property
    def enforcing(self) -> bool:
        """Whether what is refused stops here."""
        return self._enforcing

    def hear(self, party: Party, frame: bytes, facts: Facts = NO_FACTS) -> Verdict:
        """The verdict on *frame*. Without findings it goes on as it came; otherwise `act` says what becomes of it."""
        verdict = None
        try:
            verdict = self.conversation.hear(party, frame, facts)
            if self._timeout:
                exchange = verdict.exchange
                if exchange is not None and exchange.contract is not None and exchange.token is None:
                    # The call of a tool or its answer, as nearly all are.
                    if exchange.state != "open":
                        self._since.pop(exchange.id, None)
                    elif verdict.findings is None and verdict.kind == "request":
                        self._since[exchange.id] = self._clock()
                    else:
                        self._note(verdict)
                else:
                    self._note(verdict)
        except Exception as error:
            # Whatever it is, it is ours, and nobody may be left waiting for it.
            return self.failed(party, frame, error, verdict)
        return verdict

    def failed(self, party: Party, frame: bytes, error: Exception, heard: Verdict | None = None) -> Verdict:
        """
        Return the verdict on a frame after *error*, an internal error, so that every request in it gets one answer.

        *heard* is the verdict on it, if it was judged. Nothing may have been sent for the frame yet.
        """
        verdict = failed(self.conversation, party, frame, error, heard)
        if self._timeout:
            try:
                self._note(verdict)
            except Exception as another:
                log_once(another)
        return verdict

    def act(self, verdict: Verdict) -> Move:
        """What goes where for a frame that something is to be said of."""
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
        What comes of *data*, which follows on a frame that was too long, up to the end of its line.

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

    # ── what cannot be read ──────────────────────────────────────────────────────────────────────────────────────────

    def _unreadable(self, verdict: Verdict) -> Move:
        """
        What cannot be read may still show which request it is, or answers: then whoever asked need not wait in vain.

        The id of a message that is too long may be at its end, which is yet to come.
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
        """What comes of an unreadable message of which everything is known that ever will be."""
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
        """The answer to an unreadable request, by its id if it has shown one that is its own."""
        if not found.asks or found.id is None or self._is_open(verdict.party, found.id):
            return verdict.back
        return render.refusal(found.token, verdict.violations, verdict.more, self.conversation.revision)

    def _is_open(self, asker: Party, ident: Id) -> bool:
        return any(each.id == ident for each in self.conversation.open_requests(asker))

    def _in_batch(self, verdict: Verdict) -> Iterator[Settled]:
        """The requests that a batch answers which may not be one."""
        for each in verdict.value:
            if isinstance(each, dict) and "method" not in each:
                yield from self._fail(verdict, each.get("id"), "its answer came in a batch")

    def _fail(self, verdict: Verdict, ident: Any, why: str) -> tuple[Settled, ...]:
        """The request of that id fails for what is wrong with its answer; none if there is none."""
        if type(ident) not in (str, int):
            return ()
        missing = self.conversation.give_up(_CLIENT, ident, "UPSTREAM_INVALID", why)
        if missing is None or missing.exchange is None:
            return ()
        self._forget(missing.exchange)
        token = _spelt(missing.exchange)
        answer = render.failure(token, "UPSTREAM_INVALID", verdict.violations, verdict.more, missing.revision)
        return (Settled(missing, answer),)

    def _onward(self, verdict: Verdict, frame: bytes) -> Move:
        return Move(to_server=frame) if verdict.party is _CLIENT else Move(to_client=frame)

    # ── waiting ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def owed(self) -> bool:
        """Whether the client still waits for an answer that can be expected to come."""
        return any(each.method != _ENDLESS for each in self.conversation.open_requests(_CLIENT))

    @property
    def patience(self) -> float | None:
        """Seconds until the next request has waited too long; None if none ever does."""
        if not self._since:
            return None
        return max(0.0, next(iter(self._since.values())) + self._timeout - self._clock())

    def overdue(self) -> Iterator[tuple[Settled, bytes | None]]:
        """The requests that have waited too long: what the client gets, and what the server is told."""
        now = self._clock()
        while self._since:
            ident, since = next(iter(self._since.items()))
            if since + self._timeout > now:
                return
            del self._since[ident]
            missing = self.conversation.give_up(_CLIENT, ident, "TIMEOUT", within(self._timeout))
            if missing is not None and missing.exchange is not None and missing.onward is not None:
                self._forget(missing.exchange)
                told = cancelled(missing.exchange) if may_be_cancelled(missing.exchange) else None
                yield Settled(missing, missing.onward), told

    def patience_for(self, ident: Id) -> float | None:
        """Seconds until that request of the client has waited too long; None if it never does."""
        since = self._since.get(ident)
        return None if since is None else max(0.0, since + self._timeout - self._clock())

    def give_up(self, exchange: Exchange, code: str, why: str, data: Mapping[str, Any] | None = None) -> Settled | None:
        """A request of the client gets no answer, for what *why* says; None if it waits for none any more."""
        if not self.conversation.is_open(exchange):
            return None
        missing = self.conversation.give_up(_CLIENT, exchange.id, code, why, data)
        self._forget(exchange)
        return Settled(missing, missing.onward or b"") if missing is not None else None

    def server_ended(self, why: str, last_words: list[str]) -> list[Settled]:
        """
        The server says no more: each request that it owes an answer to fails, once.

        Under audit the client is told nothing that the server has not said; what is left open is still on record.
        """
        if len(self.conversation.open_requests(_CLIENT)) > CROWD:
            last_words = last_words[-1:]
        self._since.clear()
        self._tokens.clear()
        missing = self.conversation.end(Party.SERVER, why, {"stderr": last_words} if last_words else None)
        return [Settled(each, each.onward or b"" if self._enforcing else b"") for each in missing]

    def _note(self, verdict: Verdict) -> None:
        """Remembers when a request was made, and when there was a sign that somebody works on it."""
        exchange = verdict.exchange
        if exchange is None:
            if verdict.kind == "notification":
                self._note_progress(verdict)
            for part in verdict.parts:
                self._note(part)
        elif exchange.asker is not _CLIENT:
            return
        elif exchange.state != "open":
            self._since.pop(exchange.id, None)
            if exchange.token is not None:
                self._tokens.pop(exchange.token, None)
        elif verdict.kind == "request" and (verdict.findings is None or verdict.accepted):
            if exchange.method != _ENDLESS:
                self._since[exchange.id] = self._clock()
            if exchange.token is not None:
                self._tokens[exchange.token] = exchange.id

    def _note_progress(self, verdict: Verdict) -> None:
        if verdict.party is _CLIENT or verdict.method != "notifications/progress" or not verdict.accepted:
            return
        # What is wrong with it may have passed all the same.
        token = params_of(verdict.value).get("progressToken")
        ident = self._tokens.get(token) if isinstance(token, str | int) else None
        if ident is not None and self._since.pop(ident, None) is not None:
            self._since[ident] = self._clock()

    def _forget(self, exchange: Exchange) -> None:
        self._since.pop(exchange.id, None)
        if exchange.token is not None:
            self._tokens.pop(exchange.token, None)


def _spelt(exchange: Exchange) -> bytes:
    return exchange.spelling or syntax.write(exchange.id)


def may_be_cancelled(exchange: Exchange) -> bool:
    """Whether whoever is asked may be told that nobody waits any more."""
    return exchange.method != "initialize"


def cancelled(exchange: Exchange, why: str = "timed out") -> bytes:
    """The notification that an answer is not waited for any more."""
    return b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%b,"reason":%b}}' % (
        _spelt(exchange),
        syntax.write(why),
    )


def withdrawn(asked: Iterable[Exchange]) -> Iterator[bytes]:
    """What a client is told of the requests of a server that has ended."""
    for exchange in asked:
        if may_be_cancelled(exchange):
            yield cancelled(exchange, "the server ended")


def line(frame: bytes) -> bytes:
    """*frame* as it goes over a stream; one that holds a line break, which HTTP may bring, is spelt without."""
    if frame.endswith(b"\r"):
        # A carriage return before the newline is part of the line's end, to everybody.
        return framing.write(framing.one_line(frame[:-1]) + b"\r")
    return framing.write(framing.one_line(frame))
