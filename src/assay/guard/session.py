"""
One guarded conversation between a client and a server: every event in, what goes where out, already recorded.

No I/O; the clock is given. The session never waits and never raises.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import Any, Final, NamedTuple

from assay.guard.deliveries import EMPTY, UNKNOWN, Delivery, End, Failed, Loss, Outcome, State, joined
from assay.guard.internal_errors import log_once
from assay.guard.judged_session import CALM, CROWD, HANDSHAKE, HOLDING, LEFT, HeldCall, JudgedSession, Timing
from assay.guard.outgoing import at_the_end, guard_notification
from assay.guard.own_frames import CANCELLED, cancelled, may_be_cancelled
from assay.guard.restore import SessionRestore
from assay.guard.routing import NO_MOVE
from assay.guard.tool_listing import LISTED_AGAIN, LISTING_SECONDS, ToolListing
from assay.judge import render, syntax
from assay.judge.conversation import NO_FACTS, Facts
from assay.judge.framing import Rest
from assay.model.errors import within
from assay.model.json_values import params_of
from assay.model.limits import Limits
from assay.model.verdict import Exchange, Party, Verdict
from assay.schema.tool_contract import Contract
from assay.schema.tool_contracts import Tools

_CLIENT: Final = Party.CLIENT
_SERVER: Final = Party.SERVER

MOST_HELD: Final = 1000
HELD_BYTES: Final = 16 << 20
"""Calls that wait for a list of tools at once, and their bytes. Any more are forwarded, and reported as not judged."""

__all__ = ("CROWD", "HANDSHAKE", "GuardedSession", "Timing")


def _may_call(frame: bytes) -> bool:
    """Whether *frame* may call a tool: the method may be written with escapes."""
    return b"tools/call" in frame or b"\\" in frame


def late_contracts(tools: Tools, limits: Limits, frame: bytes) -> list[Contract]:
    """Return the contracts of *tools* that *frame* calls, and that are not compiled yet."""
    if not tools.is_late or not _may_call(frame) or len(frame) > limits.frame_bytes:
        return []
    message: Any = syntax.read(frame, limits.depth, limits.values)
    return _late(tools, message if isinstance(message, list) else [message])


def _late(tools: Tools, messages: Iterable[Any]) -> list[Contract]:
    names = (params_of(each).get("name") for each in messages if isinstance(each, dict))
    return [each for each in map(tools.late, names) if each is not None]


class UnlistedCall(NamedTuple):
    """A message with a call of a tool whose contract is not known."""

    message: Any
    """The message, or the batch, that has the call."""
    call: dict[str, Any]
    revision: str


class GuardedSession(JudgedSession):
    """One client, one server, and the guard between them."""

    __slots__ = ()

    # ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def from_client(self, frame: bytes, facts: Facts = NO_FACTS, rest: bytes | None = b"") -> Outcome:
        """Return what goes where for a whole message of the client; *rest* is the end of an over-long one."""
        if self._state in (State.DRAINING, State.CLOSED):
            return self._unexpected("a message of the client")
        if self._holds and not self.calm:
            held = self._hold_call(frame, facts)
            if held is not None:
                return held
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
        if self._listing is not None:
            listed = self._from_listing(self._listing, frame)
            if listed is not None:
                return listed
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

    # ── tools ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def lists_first(self, frame: bytes, facts: Facts = NO_FACTS) -> UnlistedCall | None:
        """
        Return the call in *frame* before which the guard has to request the tools.

        None for any other message, and if the tools were requested a moment ago.
        """
        conversation = self.conversation
        tools, limits = conversation.tools, conversation.limits
        if not self.enforcing or tools.complete or not _may_call(frame) or len(frame) > limits.frame_bytes:
            return None
        if tools.listed_at is not None and self._listing is None and self._clock() - tools.listed_at < LISTED_AGAIN:
            return None
        message: Any = syntax.read(frame, limits.depth, limits.values)
        found = conversation.unlisted(message)
        if found is None:
            return None
        if isinstance(message, dict):
            # What is refused anyway must not cost the server a list.
            if conversation.refuses(frame, found[1], facts):
                return None
            if isinstance(message["id"], float):
                # As the conversation knows it.
                message["id"] = render.exact_id(frame)
        return UnlistedCall(message, *found)

    def late_contracts(self, frame: bytes) -> list[Contract]:
        """Return the contracts of tools that *frame* calls, and that have to be compiled first, which may take long."""
        return late_contracts(self.conversation.tools, self.conversation.limits, frame)

    def listing(self, found: UnlistedCall, facts: Facts) -> ToolListing:
        """Return a new request for the tools, because of a call; its first page is recorded as sent."""
        self.now = self._clock()
        made = ToolListing(self.conversation, found.call, found.revision, facts)
        if made.request is not None:
            self.records.guard_frame(made.request, self.now, self.name)
        return made

    def listed(self, listing: ToolListing, frame: bytes) -> bool:
        """Take a page of the guard's own *listing*, and record it; return False for any other message."""
        verdict = listing.hear(frame)
        if verdict is None:
            return False
        self.now = self._clock()
        if verdict.findings is None:
            self.records.guard_frame(verdict, self.now, self.name)
        else:
            self.records.found(verdict, self.now, self.name, 0)
        if verdict.kind == "result":
            self._note_listed()
        if listing.request is not None:
            self.records.guard_frame(listing.request, self.now, self.name)
        return True

    def listing_over(self) -> None:
        """Note that the guard's own list has come, or does not: until then every call of an unknown tool waits."""
        self.now = self._clock()
        self.conversation.tools.listed_at = self.now
        self.abandon()

    def abandon(self) -> None:
        """End the guard's own listing here. Another session that waits for it goes on, or lists by itself."""
        tools = self.conversation.tools
        if tools.lister is not self:
            return
        tools.lister = None
        waiting, tools.waiting = tools.waiting, []
        for each in waiting:
            if each.on_listed is not None:
                each.on_listed()

    def release(self) -> Outcome:
        """Return what goes where after another session has listed the tools, or after contracts were compiled."""
        if not self._held_calls or self._listing is not None:
            return EMPTY
        tools = self.conversation.tools
        if tools.complete or self._is_compiled or tools.listed_at is not None:
            return self._release_calls()
        return self._list_again()

    def _hold_call(self, frame: bytes, facts: Facts) -> Outcome | None:
        """Have a call of an unknown tool wait for the list of tools; None for any other message."""
        try:
            found = self.lists_first(frame, facts)
            message = self._cancels_held(frame) if found is None else found.message
            if message is None:
                return None
            if len(self._held_calls) >= MOST_HELD or self._held_bytes + len(frame) > HELD_BYTES:
                return None
            if found is not None and self._listing is None and self._state in CALM and not self._held_calls:
                if not self._is_listed_elsewhere():
                    listing = self.listing(found, facts)
                    if listing.request is None:
                        return None
                    self._listing, self.conversation.tools.lister = listing, self
                self._wait_for_list()
        except Exception as error:
            log_once(error, "the tools of a server could not be requested")
            return None
        first = not self._held_calls
        self._held_calls.append(HeldCall(frame, facts, message))
        self._held_bytes += len(frame)
        self.refresh()
        return Outcome(to_server=self._next_page() if first else (), held=message)

    def _wait_for_list(self) -> None:
        """Set how long calls wait here: no longer than for an answer, so that the deadline is early for them too."""
        self._listing_due = self._clock() + min(LISTING_SECONDS, self._timeout or inf)
        self.deadline = min(self.deadline, self._listing_due)

    def _is_listed_elsewhere(self) -> bool:
        """Whether another session requests the list for all that share it, and wakes this one then."""
        tools = self.conversation.tools
        if tools.lister is None or tools.lister is self or self.on_listed is None:
            return False
        tools.waiting.append(self)
        return True

    def _cancels_held(self, frame: bytes) -> dict[str, Any] | None:
        """Return the message in *frame* if it cancels a call that waits: it must not get to the server before that."""
        if not self._held_calls or (CANCELLED.encode() not in frame and b"\\" not in frame):
            return None
        message = syntax.read(frame)
        if not isinstance(message, dict) or message.get("method") != CANCELLED:
            return None
        ident = params_of(message).get("requestId")
        return message if any(ident == each.get("id", NO_FACTS) for each in self._held_messages()) else None

    def _held_messages(self) -> Iterator[dict[str, Any]]:
        for each in self._held_calls:
            yield from (one for one in each.messages if isinstance(one, dict))

    def _next_page(self) -> tuple[Delivery, ...]:
        request = self._listing.request if self._listing is not None else None
        return () if request is None else (Delivery(request.frame, "guard", verdict=request),)

    def _from_listing(self, listing: ToolListing, frame: bytes) -> Outcome | None:
        """Return what goes where for a page of the guard's own listing; None for any other message."""
        try:
            if not self.listed(listing, frame):
                return None
        except Exception as error:
            log_once(error, "the tools of a server could not be taken")
            return self._release_calls()
        return Outcome(to_server=self._next_page()) if listing.request is not None else self._release_calls()

    def _release_calls(self) -> Outcome:
        """Judge the calls that have waited, by the list if it has come."""
        listing, self._listing = self._listing, None
        if listing is not None:
            self.listing_over()
        late = [] if self._is_compiled else _late(self.conversation.tools, self._held_messages())
        if late and self.compile_first is not None:
            # Not here, where every other client would wait.
            self._is_compiled = True
            self._wait_for_list()
            self.compile_first(late)
            return EMPTY
        calls, self._held_calls, self._held_bytes = self._held_calls, [], 0
        self._is_compiled, self._listing_due, self._lost_listings = False, inf, 0
        self.refresh()
        made = EMPTY
        for each in calls:
            made = joined(made, self.outcome(self.judge(_CLIENT, each.frame, each.facts), b""))
        return made

    def _list_again(self) -> Outcome:
        """Request the tools of the next server for the calls that wait, unless two servers were lost meanwhile."""
        calls, self._held_calls, self._held_bytes = self._held_calls, [], 0
        if self._lost_listings > 1:
            self._lost_listings = 0
            self.listing_over()
        self.refresh()
        made = EMPTY
        for each in calls:
            made = joined(made, self.from_client(each.frame, each.facts)._replace(held=None))
        return made

    # ── the server ───────────────────────────────────────────────────────────────────────────────────────────────────

    def server_ready(self) -> Outcome:
        """Return what the next server gets first: the client's handshake, or the messages that were kept for it."""
        if self._state is not State.AWAY:
            return EMPTY if self._state is not State.CLOSED else self._unexpected("a server")
        now = self._began = self.now = self._clock()
        if self._restore is None:
            self._enter(self._phase())
            return joined(Outcome(to_server=self.backlog.take()), self._list_again())
        self._enter(State.RESTORING, now + self._handshake)
        return self._repeated((self._restore.initialize,))

    def suspend(self) -> None:
        """The server takes nothing more: keep what the client sends from now on, until `server_lost` or `close`."""
        if self._state in CALM:
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
        now = self.now = self._clock()
        wait = self._restart_after(why, now)
        if wait is None:
            refusal = self._backoff.refusal if self._backoff is not None else ""
            return self.close(why._replace(detail=f"{why.detail}, {refusal}") if refusal else why)
        asked = [each for each in self.conversation.open_requests(_SERVER) if may_be_cancelled(each)]
        withdrawn = tuple(self._notified(_SERVER, each, "the server ended") for each in asked)
        if not self._suspended:
            # The messages that were kept for it are lost with it.
            self.backlog.take()
        self._suspended = False
        left = self._fail_open(why)
        # The calls that wait for the list wait for the next server.
        self._lost_listings += self._listing is not None
        self._listing, self._listing_due = None, inf
        self.abandon()
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
            return 0.0 if known and self._state not in HOLDING else None
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
        return joined(joined(made, self._settings_taken(restore)), self._list_again())

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

    def withdraw(self, exchanges: Iterable[Exchange], why: Loss) -> Outcome:
        """Fail requests that the client cannot get an answer to, and cancel them at the server, which goes on."""
        self.now = self._clock()
        left = [each for each in exchanges if self.conversation.is_open(each)]
        notices = [self._cancelled(each, why.detail) for each in left if may_be_cancelled(each)]
        made = self._held(Outcome(to_server=tuple(each for each in notices if each is not None)))
        return joined(made, self.exchange_lost(left, why))

    def forget(self, exchange: Exchange) -> None:
        """Close a request of the client that gets no message for an answer: a status was enough, or the client left."""
        self._deadlines.forget(exchange)
        missing = self.conversation.give_up(_CLIENT, exchange.id, "UPSTREAM_FAILURE", "")
        if missing is not None:
            self._note_opening(missing)

    def unclaimed(self, exchange: Exchange, why: str = "no client listens") -> Outcome:
        """Answer a request of the server that no client takes."""
        self.now = self._clock()
        missing = self.conversation.give_up(_SERVER, exchange.id, "UPSTREAM_FAILURE", why)
        if missing is None or missing.onward is None:
            return EMPTY
        self.records.found(missing, self.now, self.name, len(missing.onward))
        return self._held(
            Outcome(to_server=(Delivery(missing.onward, "guard", (exchange,), verdict=missing, replies=True),))
        )

    # ── the client ───────────────────────────────────────────────────────────────────────────────────────────────────

    def client_done(self) -> Outcome:
        """The client sends nothing more, and still reads: `closed` is set as soon as no answer is due."""
        if self._state in (State.CLOSED, State.DRAINING):
            return EMPTY
        if self._state in HOLDING:
            return self.close(LEFT)
        self._enter(State.DRAINING, self._clock() + self._drain if self._drain else inf)
        return self._drained(EMPTY)

    def client_gone(self, exchanges: Sequence[Exchange] | None = None) -> Outcome:
        """
        The client reads no more: cancel its requests.

        With *exchanges* it has only left the response of these, and the session goes on.
        """
        if self._state is State.CLOSED:
            return EMPTY
        self.now = self._clock()
        left = self.conversation.open_requests(_CLIENT) if exchanges is None else exchanges
        notices = [self._cancel(each, "the client has gone") for each in left if self.conversation.is_open(each)]
        made = self._held(Outcome(to_server=tuple(each for each in notices if each is not None)))
        return made if exchanges is not None else joined(made, self.close(LEFT))

    def client_blocked(self, blocked: bool) -> None:
        """Say whether the client does not read what waits for it: that time does not count for any deadline."""
        now = self._clock()
        if blocked and self._blocked_at is None:
            self._blocked_at = now
        elif not blocked and self._blocked_at is not None:
            self._deadlines.shift(now - self._blocked_at)
            self._phase_due += now - self._blocked_at
            self._blocked_at = None
            self.deadline = min(self._deadlines.due, self._phase_due, self._listing_due)

    # ── time ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def tick(self, now: float | None = None) -> Outcome:
        """Fail what has waited too long. To be called at the `deadline`; calling it earlier does no harm."""
        now = self.now = self._clock() if now is None else now
        made = EMPTY
        if self._state is State.CLOSED or self._blocked_at is not None:
            self.deadline = inf
            return made
        try:
            for ident, limit in self._deadlines.overdue(now):
                made = joined(made, self._timed_out(ident, limit))
            if now >= self._listing_due:
                made = joined(made, self._release_calls())
            if now >= self._phase_due:
                made = joined(made, self.close(self._phase_over()))
        except Exception as error:
            # Each request is taken off the list before it is failed, so the next tick goes on with the others.
            log_once(error, "a late request could not be answered")
        self.deadline = min(self._deadlines.due, self._phase_due, self._listing_due)
        return self._drained(made)

    def due_of(self, exchange: Exchange) -> float:
        """Return when a request of the client is overdue; infinity if it never is."""
        return self._deadlines.due_of(exchange.id)

    def _timed_out(self, ident: str | int, limit: float) -> Outcome:
        missing = self.conversation.give_up(_CLIENT, ident, "TIMEOUT", within(limit))
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
        self.now = self._clock()
        # Calls that wait for the list have to be answered as all open requests are.
        self._is_compiled = True
        made = self._release_calls()._replace(to_server=()) if self._held_calls else EMPTY
        self.abandon()
        self.backlog.take()
        made = joined(made, self._fail_open(why))
        self._enter(State.CLOSED)
        self.deadline = inf
        self.records.event("closed", why.detail.encode(errors="replace"), self.name)
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
        unstarted = why.reason == "unstartable"
        missing = self.conversation.end(_SERVER, why.detail, data, unstarted=unstarted, excused=why.excuses)
        return self._answers(Failed(each, b"" if self._is_seen else each.onward or b"", why.code) for each in missing)

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
        return self._notified(_CLIENT, exchange, why)

    def _notified(self, party: Party, exchange: Exchange, why: str) -> Delivery:
        """Record and return the notification that cancels a request of *party*."""
        made = guard_notification(party, cancelled(exchange, why), exchange, self.conversation.revision)
        self.records.guard_frame(made, self.now, self.name)
        return Delivery(made.frame, "guard", about=exchange, verdict=made)

    def _unexpected(self, what: str) -> Outcome:
        if self._state is not State.CLOSED:
            log_once(RuntimeError(f"{what} while {self._state.value}"), "an event was ignored")
        return EMPTY
