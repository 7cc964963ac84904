"""
One guarded conversation between a client and a server: every event in, what goes where out, already recorded.

No I/O; the clock is given. The session never waits and never raises.
"""

from collections.abc import Callable, Iterable, Sequence
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple

from assay.base.no_answer import within
from assay.base.verdict import Exchange, Party, Verdict
from assay.core.conversation import NO_FACTS, Conversation, Facts
from assay.guard.backlog import Backlog
from assay.guard.deadlines import ENDLESS, Deadlines
from assay.guard.deliveries import EMPTY, ClientTraits, Delivery, Failed, Loss, Outcome, ServerTraits, State, joined
from assay.guard.failure import failed, log_once
from assay.guard.flight import UNKNOWN, End
from assay.guard.moves import NO_MOVE, Move, Router
from assay.guard.outgoing import answered, at_the_end, deliveries, guard_notification, requests, sent_bytes, unread
from assay.guard.own_frames import cancelled, may_be_cancelled
from assay.guard.restore import LASTING, SessionRestore, SessionState
from assay.guard.sinks import Sinks
from assay.ladder.framing import Rest

if TYPE_CHECKING:
    from assay.guard.backoff import Backoff
    from assay.guard.watch import Watch

_CLIENT: Final = Party.CLIENT
_SERVER: Final = Party.SERVER

CROWD: Final = 1000
"""Requests that fail at once, from which on each error has the last line of stderr only: 10,000 may wait."""

HANDSHAKE: Final = 60.0
"""Seconds that the next server has to answer `initialize`: as long as the clients of the official SDKs give it."""

_LEFT: Final = Loss("closed", "the client left", failed=False)
_CALM: Final = frozenset({State.NEW, State.OPENING, State.OPEN})
_HOLDING: Final = frozenset({State.AWAY, State.RESTORING})


class Timing(NamedTuple):
    """How long a session waits, in seconds."""

    timeout: float = 0.0
    """For an answer of the server, counted anew with each progress; 0 for no limit. Under audit there is no limit."""
    drain: float = 0.0
    """For answers after the client's last message; 0 for no limit."""
    handshake: float = HANDSHAKE
    """For the next server to answer the repeated `initialize`."""
    clock: Callable[[], float] = perf_counter


class GuardedSession:
    """One client, one server, and the guard between them."""

    __slots__ = (
        "_backoff", "_began", "_blocked_at", "_clock", "_deadlines", "_drain", "_handshake", "_hear", "_now",
        "_phase_due", "_restore", "_router", "_since", "_state", "_suspended", "_timeout", "backlog", "calm", "client",
        "conversation", "deadline", "enforcing", "lost", "memory", "name", "records", "restarts", "server", "watch",
    )  # fmt: skip

    def __init__(
        self,
        conversation: Conversation,
        records: Sinks,
        client: ClientTraits,
        server: ServerTraits,
        *,
        timing: Timing = Timing(),  # noqa: B008 - a value that cannot change
        name: str = "",
        backoff: "Backoff | None" = None,
        watch: "Watch | None" = None,
    ) -> None:
        """*name* is the session's name in the records. Without *backoff* a lost server is not followed by another."""
        self.conversation = conversation
        self.records = records
        self.client = client
        self.server = server
        self.name = name
        self.watch = watch
        """The summary of this session, which is one of the sinks, and keeps its recent messages."""
        self.enforcing = conversation.mode == "enforce"
        self.deadline = inf
        """When to call `tick`, by the session's clock. May be early, is never late."""
        self.backlog = Backlog()
        """What the next server gets; a port does not read the client while it is full."""
        self.lost = 0
        """Settings of the client that the next server did not take: a log level, subscriptions."""
        self.restarts = 0
        """How often another server, or another session of it, took the place of a lost one."""
        self.memory = SessionState() if server.restorable else None
        self._hear = conversation.hear
        self._router = Router(conversation)
        self._timeout = timing.timeout if self.enforcing else 0.0
        self._deadlines = Deadlines(self._timeout)
        self._since = self._deadlines.since
        self._drain = timing.drain
        self._handshake = timing.handshake
        self._clock = timing.clock
        self._backoff = backoff
        self._began = self._now = timing.clock()
        self._phase_due = inf
        self._blocked_at: float | None = None
        self._restore: SessionRestore | None = None
        self._suspended = False
        self._enter(State.OPEN if conversation.revision is not None else State.NEW)

    @property
    def state(self) -> State:
        """Where the session stands."""
        return self._state

    @property
    def owed(self) -> bool:
        """Whether the client waits for an answer that can be expected to come."""
        return any(each.method != ENDLESS for each in self.conversation.open_requests(_CLIENT))

    # ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def judge(self, party: Party, frame: bytes, facts: Facts = NO_FACTS) -> Verdict:
        """
        Return the verdict on a frame. While the session is `calm`, one without findings is forwarded as it came.

        It is in the records then. All others go to `outcome`.
        """
        now = self._now = self._clock()
        verdict = None
        try:
            verdict = self._hear(party, frame, facts)
            exchange = verdict.exchange
            if exchange is None or exchange.contract is None or exchange.token is not None:
                self._note(verdict, now)
            elif self._timeout:
                # The call of a tool or its answer, as nearly all are.
                if exchange.state != "open":
                    self._since.pop(exchange.id, None)
                elif verdict.findings is None and verdict.kind == "request":
                    self._since[exchange.id] = now
                    if self.deadline == inf:
                        self.deadline = now + self._timeout
                else:
                    self._note(verdict, now)
        except Exception as error:
            verdict = self._unjudged(party, frame, error, verdict)
        if verdict.findings is None and self.calm:
            for passed in self.records.passes:
                try:
                    passed(verdict, now, self.name)
                except Exception as error:
                    self.records.skipped(error)
        return verdict

    def outcome(self, verdict: Verdict, rest: bytes | None = None) -> Outcome:
        """
        Return what goes where for a judged frame.

        *rest* is the end of an over-long frame; None if its rest follows by `more`.
        """
        try:
            return self._outcome(verdict, rest)
        except Exception as error:
            return self._fail_frame(verdict, error)

    def from_client(self, frame: bytes, facts: Facts = NO_FACTS, rest: bytes | None = b"") -> Outcome:
        """Return what goes where for a whole message of the client; *rest* is the end of an over-long one."""
        if self._state in (State.DRAINING, State.CLOSED):
            return self._unexpected("a message of the client")
        return self.outcome(self.judge(_CLIENT, frame, facts), rest)

    def from_server(self, frame: bytes, rest: bytes | None = b"", *, facts: Facts = NO_FACTS) -> Outcome:
        """Return what goes where for a whole message of the server; *rest* is the end of an over-long one."""
        if self._state in (State.AWAY, State.CLOSED):
            # Of a run that is over.
            return EMPTY
        if self._restore is not None:
            again = self._from_restored(self._restore, frame)
            if again is not None:
                return again
        return self.outcome(self.judge(_SERVER, frame, facts), rest)

    def more(self, party: Party, data: bytes) -> Outcome:
        """
        Return what goes where for *data*, which follows an over-long frame, its newline included.

        To be called once more with a newline where the stream ends without one.
        """
        try:
            if self._restore is not None and party is _SERVER:
                again = self._from_restored(self._restore, Rest(data))
                if again is not None:
                    return again
            move = self._router.rest(party, data)
            return joined(at_the_end(party, move), self._settled(move)) if move is not NO_MOVE else EMPTY
        except Exception as error:
            log_once(error)
            return EMPTY

    def _outcome(self, verdict: Verdict, rest: bytes | None) -> Outcome:
        move = _passing(verdict)
        raw = None
        if verdict.findings is not None:
            if verdict.value is None and verdict.party is _SERVER and not self.enforcing:
                raw = unread(verdict, rest or b"", self.conversation)
            move = self._router.act(verdict) if rest is None else self._router.whole(verdict, rest)
        elif self.calm:
            return self._drained(deliveries(verdict, move))
        if self._state in _HOLDING and self.backlog.crowded and any(requests(verdict)):
            return self._turn_away(verdict)
        self._record(verdict, sent_bytes(move))
        made = deliveries(verdict, move, None if self.client.carries_raw else raw)
        for each in made.stray:
            self.records.event("stray", each, self.name)
        return self._drained(self._held(joined(made, self._settled(move))))

    def _record(self, verdict: Verdict, sent: int) -> None:
        if verdict.kind == "blank":
            return
        if verdict.findings is None and sent == len(verdict.frame):
            self.records.passed(verdict, self._now, self.name)
        else:
            self.records.found(verdict, self._now, self.name, sent)

    def _settled(self, move: Move) -> Outcome:
        """Record what a move says beside its frames; return the answers to the requests that fail for it."""
        if move.aside is not None:
            self.records.event("stray", move.aside, self.name)
        stray = () if move.aside is None else (move.aside,)
        return self._answers(move.settled)._replace(stray=stray)

    def _answers(self, left: Iterable[Failed]) -> Outcome:
        """Record requests that the guard answers itself; return the answers."""
        made = tuple(left)
        for each in made:
            self.records.found(each.verdict, self._now, self.name, len(each.answer))
            if each.exchange is not None:
                self._deadlines.forget(each.exchange)
                self._note_opening(each.verdict)
        return Outcome(to_client=answered(made), failed=made) if made else EMPTY

    def _held(self, made: Outcome) -> Outcome:
        """Return *made* without the frames for a server that is away: they are kept, except answers to it."""
        if self._state not in _HOLDING or not made.to_server or made.to_server[0].replies:
            return made
        self.backlog.add(made.to_server)
        return made._replace(to_server=())

    def _turn_away(self, verdict: Verdict) -> Outcome:
        """Fail the requests in a message, because too much is kept for the next server already."""
        self.records.found(verdict, self._now, self.name, 0)
        why = Loss("broken", "too much waits for the next server already")
        refused = deliveries(verdict, Move(verdict.back))
        return joined(refused, self.exchange_lost([each for each in requests(verdict) if each is not None], why))

    def _note(self, verdict: Verdict, now: float) -> None:
        if self._timeout:
            self._deadlines.note(verdict, now)
            self.deadline = min(self.deadline, self._deadlines.due)
        exchange = verdict.exchange
        if exchange is None or exchange.entry.name in LASTING:
            if self.memory is not None:
                self.memory.note(verdict)
            if exchange is not None:
                self._note_opening(verdict)

    def _note_opening(self, verdict: Verdict) -> None:
        if verdict.exchange is not None and verdict.exchange.method == "initialize" and self._state in _CALM:
            self._enter(self._phase())

    def _phase(self) -> State:
        if self.conversation.revision is not None:
            return State.OPEN
        opening = any(each.method == "initialize" for each in self.conversation.open_requests(_CLIENT))
        return State.OPENING if opening else State.NEW

    def _enter(self, state: State, due: float = inf) -> None:
        self._state = state
        self._phase_due = due
        self.deadline = min(self.deadline, due)
        self.calm = state in _CALM and self._restore is None
        """Whether messages without findings are forwarded as they came, with nothing else to be looked at."""

    # ── the server ───────────────────────────────────────────────────────────────────────────────────────────────────

    def server_ready(self) -> Outcome:
        """Return what the next server gets first: the client's handshake, or the messages that were kept for it."""
        if self._state is not State.AWAY:
            return EMPTY if self._state is not State.CLOSED else self._unexpected("a server")
        now = self._began = self._now = self._clock()
        if self._restore is None:
            self._enter(self._phase())
            return Outcome(to_server=self.backlog.take())
        self._enter(State.RESTORING, now + self._handshake)
        return self._repeated((self._restore.initialize,))

    def suspend(self) -> None:
        """The server takes nothing more: keep what the client sends from now on, until `server_lost` or `close`."""
        if self._state in _CALM:
            self._suspended = True
            self._enter(State.AWAY)

    def server_lost(self, why: Loss) -> Outcome:
        """Fail what waits for the server. The session then is away until the next one, or closed."""
        if self._state is State.CLOSED:
            return EMPTY
        try:
            return self._server_lost(why)
        except Exception as error:
            return self.fail("the end of a server could not be handled", error)

    def _server_lost(self, why: Loss) -> Outcome:
        now = self._now = self._clock()
        wait = self._restart_after(why, now)
        if wait is None:
            refusal = self._backoff.refusal if self._backoff is not None else ""
            return self.close(why._replace(detail=f"{why.detail}, {refusal}") if refusal else why)
        asked = self.conversation.open_requests(_SERVER)
        withdrawn = tuple(
            Delivery(cancelled(each, "the server ended"), "guard", about=each)
            for each in asked
            if may_be_cancelled(each)
        )
        if not self._suspended:
            # The messages that were kept for it are lost with it.
            self.backlog.take()
        self._suspended = False
        left = self._fail_open(why)
        self.conversation.renew()
        self._restore = self.memory.restore(self.conversation.limits) if self.memory is not None else None
        self._enter(State.AWAY)
        self.restarts += 1
        self.records.event("restart", b"%d" % self.restarts, self.name)
        return joined(Outcome(to_client=withdrawn), left)._replace(restart_in=wait)

    def _restart_after(self, why: Loss, now: float) -> float | None:
        if self._state is State.DRAINING:
            return None
        if why.reason == "session_gone":
            # A server may end a session; it does not run any worse for that. Twice in a row it is lost.
            known = self.memory is not None and self.memory.initialize is not None
            return 0.0 if known and self._state not in _HOLDING else None
        if self._backoff is None or not self.enforcing:
            return None
        return self._backoff.after(began=self._began, now=now, failed=why.failed, reason=why.detail)

    def _from_restored(self, restore: SessionRestore, frame: bytes) -> Outcome | None:
        """Return what goes where for an answer to the repeated handshake; None for any other message."""
        try:
            answer = restore.hear(frame)
            if answer is None:
                return None
            self._record_again(answer)
            if restore.refusal:
                return self.close(Loss("broken", f"the restarted server could not be used: {restore.refusal}"))
            return self._restored(restore) if self._state is State.RESTORING else self._settings_taken(restore)
        except Exception as error:
            # Without an answer to the handshake the next server is given up when its time is over.
            log_once(error, "the handshake with the next server failed")
            return EMPTY

    def _restored(self, restore: SessionRestore) -> Outcome:
        """The next server is where the one before was: it gets the rest of the handshake, and what was kept."""
        made = self._repeated(restore.second_half())
        self._enter(self._phase())
        made = joined(made, Outcome(to_server=self.backlog.take()))
        for frame in restore.lists_changed:
            made = joined(made, self.outcome(self.judge(_SERVER, frame)))
        return joined(made, self._settings_taken(restore))

    def _settings_taken(self, restore: SessionRestore) -> Outcome:
        if restore.over:
            self.lost += restore.lost + restore.forgotten
            self._restore = None
            self._enter(self._state, self._phase_due)
        return EMPTY

    def _repeated(self, verdicts: Iterable[Verdict]) -> Outcome:
        """Return messages of the client that the next server gets again; they are recorded as a session of its own."""
        said = tuple(verdicts)
        for each in said:
            self._record_again(each)
        return Outcome(to_server=tuple(Delivery(each.frame, "guard", verdict=each) for each in said))

    def _record_again(self, verdict: Verdict) -> None:
        self.records.guard_frame(verdict, self._clock(), f"restart {self.restarts}")

    def exchange_lost(self, exchanges: Iterable[Exchange], why: Loss) -> Outcome:
        """Fail requests whose HTTP request failed, while the server goes on; those that are not open are left out."""
        left = [self._given_up(each, why) for each in exchanges]
        return self._drained(self._answers(each for each in left if each is not None))

    def unclaimed(self, exchange: Exchange, why: str = "no client listens") -> Outcome:
        """Answer a request of the server that no client takes."""
        self._now = self._clock()
        missing = self.conversation.give_up(_SERVER, exchange.id, "UPSTREAM_FAILURE", why)
        if missing is None or missing.onward is None:
            return EMPTY
        self.records.found(missing, self._now, self.name, len(missing.onward))
        return self._held(
            Outcome(to_server=(Delivery(missing.onward, "guard", (exchange,), verdict=missing, replies=True),))
        )

    # ── the client ───────────────────────────────────────────────────────────────────────────────────────────────────

    def client_done(self) -> Outcome:
        """The client sends nothing more, and still reads: `closed` is set as soon as no answer is due."""
        if self._state in (State.CLOSED, State.DRAINING):
            return EMPTY
        if self._state in _HOLDING:
            return self.close(_LEFT)
        self._enter(State.DRAINING, self._clock() + self._drain if self._drain else inf)
        return self._drained(EMPTY)

    def client_gone(self, exchanges: Sequence[Exchange] | None = None) -> Outcome:
        """
        The client reads no more: cancel its requests.

        With *exchanges* it has only left the response of these, and the session goes on.
        """
        if self._state is State.CLOSED:
            return EMPTY
        self._now = self._clock()
        left = self.conversation.open_requests(_CLIENT) if exchanges is None else exchanges
        notice = [self._cancel(each, "the client has gone") for each in left if self.conversation.is_open(each)]
        made = self._held(Outcome(to_server=tuple(each for each in notice if each is not None)))
        return made if exchanges is not None else joined(made, self.close(_LEFT))

    def client_blocked(self, blocked: bool) -> None:
        """Say whether the client does not read what waits for it: that time does not count for any deadline."""
        now = self._clock()
        if blocked and self._blocked_at is None:
            self._blocked_at = now
        elif not blocked and self._blocked_at is not None:
            self._deadlines.shift(now - self._blocked_at)
            self._phase_due += now - self._blocked_at
            self._blocked_at = None
            self.deadline = min(self._deadlines.due, self._phase_due)

    # ── time ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def tick(self, now: float | None = None) -> Outcome:
        """Fail what has waited too long. To be called at the `deadline`; calling it earlier does no harm."""
        now = self._now = self._clock() if now is None else now
        made = EMPTY
        if self._state is State.CLOSED or self._blocked_at is not None:
            self.deadline = inf
            return made
        try:
            for ident in self._deadlines.overdue(now):
                made = joined(made, self._timed_out(ident))
            if now >= self._phase_due:
                made = joined(made, self.close(self._phase_over()))
        except Exception as error:
            # Each request is taken off the list before it is failed, so the next tick goes on with the others.
            log_once(error, "a late request could not be answered")
        self.deadline = min(self._deadlines.due, self._phase_due)
        return self._drained(made)

    def due_of(self, exchange: Exchange) -> float:
        """Return when a request of the client is overdue; infinity if it never is."""
        return self._deadlines.due_of(exchange.id)

    def _timed_out(self, ident: str | int) -> Outcome:
        missing = self.conversation.give_up(_CLIENT, ident, "TIMEOUT", within(self._timeout))
        exchange = missing.exchange if missing is not None else None
        if missing is None or exchange is None or missing.onward is None:
            return EMPTY
        made = self._answers((Failed(missing, missing.onward, "TIMEOUT"),))
        if not may_be_cancelled(exchange) or self.backlog.drop(exchange):
            return made
        notice = self._cancelled(exchange, "timed out")
        return joined(made, self._held(Outcome(to_server=(notice,)))) if notice is not None else made

    def _phase_over(self) -> Loss:
        if self._state is State.RESTORING:
            return Loss("timeout", "the next server did not answer initialize in time")
        return Loss("timeout", "it did not answer in time")

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def fail(self, what: str, error: Exception) -> Outcome:
        """Log an internal error, answer what is open and close the session; under audit the session goes on."""
        log_once(error, what)
        if not self.enforcing or self._state is State.CLOSED:
            return EMPTY
        try:
            return self.close(Loss("internal", "the guard failed; its log says why", code="INTERNAL_ERROR"))
        except Exception as another:
            log_once(another, "a session could not be closed")
            self._enter(State.CLOSED)
            return Outcome(closed=Loss("internal"))

    def close(self, why: Loss) -> Outcome:
        """Fail what is open, and take no further event."""
        if self._state is State.CLOSED:
            return EMPTY
        self._now = self._clock()
        self.backlog.take()
        made = self._fail_open(why)
        self._enter(State.CLOSED)
        self.deadline = inf
        return made._replace(closed=why)

    def save_recent(self, directory: str, redact: Sequence[str], end: End = UNKNOWN) -> str | None:
        """Write the last messages and the *end* of the server to a file, unless *directory* is off; return its path."""
        return self.watch.flight(directory, redact, end) if self.watch is not None and directory != "off" else None

    def _fail_open(self, why: Loss) -> Outcome:
        """
        Fail every request of the client that the server has got; what is kept waits for the next server.

        Under audit a client that sees the loss itself gets no answer.
        """
        lines = list(why.stderr) if self.client.transport == "stdio" else []
        kept = self.backlog.requests()
        left = [each for each in self.conversation.open_requests(_CLIENT) if each not in kept]
        if len(left) > CROWD:
            lines = lines[-1:]
        data = {**(why.data or {}), **({"stderr": lines} if lines else {})} or None
        if kept or why.code != "UPSTREAM_FAILURE":
            return self.exchange_lost(left, why._replace(data=data))
        self._deadlines.clear()
        missing = self.conversation.end(_SERVER, why.detail, data, unstarted=why.reason == "unstartable")
        return self._answers(Failed(each, b"" if self._is_seen else each.onward or b"", why.code) for each in missing)

    @property
    def _is_seen(self) -> bool:
        return self.client.sees_loss and not self.enforcing

    def _given_up(self, exchange: Exchange, why: Loss) -> Failed | None:
        self._now = self._clock()
        if not self.conversation.is_open(exchange):
            return None
        self.backlog.drop(exchange)
        unstarted = why.reason == "unstartable"
        missing = self.conversation.give_up(_CLIENT, exchange.id, why.code, why.detail, why.data, unstarted=unstarted)
        if missing is None:
            return None
        return Failed(missing, b"" if self._is_seen else missing.onward or b"", why.code)

    def _cancel(self, exchange: Exchange, why: str) -> Delivery | None:
        """Close a request that no client waits for; return the frame for the server, if any."""
        notice = self._cancelled(exchange, why) if may_be_cancelled(exchange) else None
        if notice is not None:
            # The judge has to know it too: an answer may still cross the notification.
            self._hear(_CLIENT, notice.frame)
        else:
            self.conversation.give_up(_CLIENT, exchange.id, "UPSTREAM_FAILURE", why)
        self._deadlines.forget(exchange)
        return notice

    def _cancelled(self, exchange: Exchange, why: str) -> Delivery | None:
        """Record and return the notification that cancels a request; None where closing the response cancels it."""
        if self.server.cancels_by == "closing":
            return None
        made = guard_notification(_CLIENT, cancelled(exchange, why), exchange, self.conversation.revision)
        self.records.guard_frame(made, self._now, self.name)
        return Delivery(made.frame, "guard", about=exchange, verdict=made)

    def _drained(self, made: Outcome) -> Outcome:
        """Return *made*, closed if the client has left and no answer is due."""
        if self._state is not State.DRAINING or self.owed:
            return made
        return made._replace(closed=_LEFT)

    def _unjudged(self, party: Party, frame: bytes, error: Exception, heard: Verdict | None) -> Verdict:
        """Return the verdict on a frame after an internal error, so that every request in it gets one answer."""
        verdict = failed(self.conversation, party, frame, error, heard)
        try:
            self._deadlines.note(verdict, self._now)
        except Exception as another:
            log_once(another)
        return verdict

    def _fail_frame(self, heard: Verdict, error: Exception) -> Outcome:
        """Return what goes where for a frame after an internal error; nothing was sent for it yet."""
        verdict = self._unjudged(heard.party, heard.frame, error, heard)
        try:
            move = self._router.act(verdict)
        except Exception as another:
            log_once(another)
            back, onward = verdict.back, verdict.onward
            move = Move(back, onward) if heard.party is _CLIENT else Move(onward, back)
        self.records.found(verdict, self._now, self.name, sent_bytes(move))
        return self._held(deliveries(verdict, move))

    def _unexpected(self, what: str) -> Outcome:
        if self._state is not State.CLOSED:
            log_once(RuntimeError(f"{what} while {self._state.value}"), "an event was ignored")
        return EMPTY


def _passing(verdict: Verdict) -> Move:
    return Move(to_server=verdict.frame) if verdict.party is _CLIENT else Move(to_client=verdict.frame)
