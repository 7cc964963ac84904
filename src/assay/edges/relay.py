"""
A client on our standard streams and a server in a child process, with the guard between them. One thread.

Nobody is left waiting: what the server owes when it ends is answered here, and when the client goes, the server is
ended.
"""

import time
from typing import Final

from assay.edges.child import CLOSED, Child
from assay.edges.keeper import HANDSHAKE, Keeper, Renewal
from assay.edges.overseer import Overseer, Watcher, passing
from assay.edges.pipes import Inlet, Loop, Outlet, Signals
from assay.edges.recorder import Recorder
from assay.guard.guard import Guard, Move, Settled, withdrawn
from assay.guard.standing import Reopening, Standing
from assay.ladder.framing import Rest, Splitter
from assay.verdict import Party, Verdict

CLIENT_LEFT: Final = 0
SERVER_ENDED: Final = 3
"""Exit status where the server ended first."""

LINGER: Final = 2.0
"""Seconds that a client has to read what is left for it, once we were asked to stop."""

_CLIENT: Final = Party.CLIENT
_SERVER: Final = Party.SERVER


class Relay:
    """One run of the guard."""

    def __init__(
        self,
        guard: Guard,
        child: Child,
        recorder: Recorder,
        watcher: Watcher,
        signals: Signals,
        errors: Outlet,
        *,
        patience: float = 0.0,
        renewal: Renewal | None = None,
        source: int = 0,
        sink: int = 1,
    ) -> None:
        """
        What *child* says on stderr goes to *errors*.

        *patience* is how many seconds after the client's last word its requests are still waited for; 0 for ever. With
        *renewal*, which needs a guard that enforces, a server that ends may be followed by another.
        """
        self._guard = guard
        self._recorder = recorder
        self._watcher = watcher
        self._overseer = Overseer(guard, recorder, watcher)
        self._signals = signals
        self._enforcing = guard.mode == "enforce"
        self._most_patience = patience
        limit = guard.conversation.limits.frame_bytes
        self._splitters = {party: Splitter(limit, passing=True) for party in Party}
        self._client_out = Outlet(sink, heeded=True)
        self._errors_out = errors
        self._client = Inlet(source, self._from_client, tells=self._client_out)
        self._loop = Loop((self._client, signals.inlet()), (self._client_out, errors))
        self._keeper = Keeper(child, renewal, self._loop, self._client_out, self._from_server, self._from_stderr)
        self._client.feeds = self._keeper.input
        self._standing = Standing(guard.hear) if renewal is not None else None
        self._hear = guard.hear if self._standing is None else self._standing.hear
        self._opening: Reopening | None = None
        """What the next server is told before anybody else speaks to it, until it has answered all of that."""
        self.lost = 0
        """What the client had told its server, and the next one did not take: a log level, subscriptions."""
        self._calm = True
        """Whether nobody leaves, has left, or is about to come, as nearly always."""
        self._left_at: float | None = None
        """Until when answers are waited for, although the client says no more."""

    @property
    def reason(self) -> str:
        """Why it ended, where that was the server's doing."""
        return self._keeper.reason

    @property
    def restarts(self) -> int:
        """How often the server was started again."""
        return self._keeper.count

    def run(self) -> int:
        """Serves until either side ends; the exit status."""
        try:
            while not self._is_over():
                self._loop.wait(self._patience())
                for settled, told in self._guard.overdue():
                    self._settle(settled)
                    if told is not None:
                        self._keeper.input.say(told)
                # On record first: nothing that was answered is lost.
                self._recorder.flush()
                self._loop.push()
            return self._without_server()
        finally:
            self._recorder.flush()
            self._keeper.life.close()
            self._client_out.restore()

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _patience(self) -> float | None:
        """Seconds until something is due that nobody's bytes tell of."""
        patience = self._guard.patience
        if self._calm:
            return patience
        for moment in (*self._keeper.due, self._left_at):
            if moment is not None:
                left = max(0.0, moment - time.monotonic())
                patience = left if patience is None else min(patience, left)
        return patience

    def _is_over(self) -> bool:
        """Whether there is no server any more, and no other follows."""
        client, keeper, signals = self._client, self._keeper, self._signals
        leaving = client.ended or client.hung_up or signals.stopping or self._client_out.broken
        life = keeper.life
        lost = signals.child_ended or life.output.ended or life.input.broken
        self._calm = not (leaving or lost or life.troubled or keeper.away)
        return not self._calm and self._is_all_over(leaving=leaving)

    def _is_all_over(self, *, leaving: bool) -> bool:
        """The same, where somebody leaves, has left, or is about to come."""
        keeper = self._keeper
        if keeper.away and leaving:
            return True
        if keeper.down:
            return keeper.is_time() and not self._begin()
        if leaving:
            self._wind_up()
        if self._opening is not None and self._opening.refusal:
            keeper.reason = f"the next server was no good: {self._opening.refusal}"
            return True
        if keeper.life.is_lost(self._signals):
            keeper.reason = keeper.life.last_words()
            self._feed_end(_SERVER)
            return leaving or not self._goes_on(failed=keeper.life.child.status != 0)
        if keeper.is_too_late():
            keeper.reason = "the next server did not answer initialize in time"
            return True
        return False

    def _wind_up(self) -> None:
        """
        The client has left, or says no more, or we are to stop: ends the server, one step at a time.

        Its input, SIGTERM, SIGKILL. What it says meanwhile still passes.
        """
        now = time.monotonic()
        life, stopping = self._keeper.life, self._signals.stopping
        gone = stopping or self._client_out.broken
        if gone or (self._client.ended and not life.input.waiting):
            life.hang_up()
        if not life.ending and not gone and self._is_owed(now):
            return
        self._left_at = None
        life.end(now, patiently=not gone, at_once=stopping)

    def _is_owed(self, now: float) -> bool:
        """Whether answers are still to be waited for, although the client says no more."""
        if not self._guard.owed:
            return False
        if self._most_patience and self._left_at is None:
            self._left_at = now + self._most_patience
        return self._left_at is None or now < self._left_at

    def _without_server(self) -> int:
        """The server has ended for good: what it owes is answered, and nobody waits for it."""
        life = self._keeper.life
        if self._enforcing:
            # What the client had asked by then fails like all the rest.
            life.drain(self._client)
        left = self._signals.stopping or self._client_out.broken or (self._client.ended and not self._guard.owed)
        self._fail_open("the guard was stopped" if self._signals.stopping else self._keeper.reason)
        self._recorder.flush()
        life.hang_up()
        self._hand_over()
        if not self._keeper.down and not self._signals.stopping:
            life.child.wait(CLOSED)
        return CLIENT_LEFT if left else SERVER_ENDED

    def _fail_open(self, why: str) -> None:
        for settled in self._guard.server_ended(why, self._keeper.life.child.tail.lines()):
            self._settle(settled)

    def _hand_over(self) -> None:
        """The client has as long as it likes to read the rest, unless we are to stop."""
        life = self._keeper.life
        for inlet in (self._client, life.output, life.errors):
            inlet.ended = True
        self._loop.push()
        deadline = None
        while self._client_out.waiting:
            now = time.monotonic()
            if self._signals.stopping:
                deadline = now + LINGER if deadline is None else deadline
                if now >= deadline:
                    return
            self._loop.wait(None if deadline is None else deadline - now)
            self._loop.push()

    # ── the next server ──────────────────────────────────────────────────────────────────────────────────────────────

    def _goes_on(self, *, failed: bool) -> bool:
        """The server is lost: whether there is a next one, for which what the client says from now on is kept."""
        keeper = self._keeper
        asked, limits = self._guard.conversation.open_requests(_SERVER), self._guard.conversation.limits
        if keeper.renew(failed=failed) is None:
            return False
        self._client.feeds = keeper.input
        self._opening = self._standing.reopening(limits) if self._standing is not None else None
        self._splitters[_SERVER] = Splitter(limits.frame_bytes, passing=True)
        for frame in withdrawn(asked):
            self._client_out.say(frame)
        self._fail_open(keeper.reason)
        self._guard.conversation.renew()
        self._recorder.restarted(keeper.count)
        self._recorder.flush()
        return True

    def _begin(self) -> bool:
        """Starts the next server and says the client's handshake to it; whether there is one, or will be."""
        timeout = self._most_patience or HANDSHAKE
        if not self._keeper.begin(min(timeout, HANDSHAKE)):
            return self._goes_on(failed=True)
        self._signals.child_ended = True
        if self._opening is None:
            self._take_up()
        else:
            self._keeper.life.output.take = self._from_next_server
            self._say_again(self._opening.initialize)
        return True

    def _opened(self, opening: Reopening) -> None:
        """The next server is where the one before was."""
        for verdict in opening.rest_of_it():
            self._say_again(verdict)
        self._take_up()
        for frame in opening.lists_changed:
            self._act(self._hear(_SERVER, frame), self._recorder.clock(), b"\n")

    def _take_up(self) -> None:
        """The conversation goes on."""
        self._keeper.opened()
        self._client.feeds = self._keeper.input

    def _say_again(self, verdict: Verdict) -> None:
        """What the client has said to the server before."""
        self._keeper.life.input.write(verdict.frame, b"\n")
        self._record_again(verdict)

    def _record_again(self, verdict: Verdict) -> None:
        """What is no part of the client's conversation is on record as one of its own."""
        if not self._recorder.idle:
            self._recorder.message(verdict, self._recorder.clock(), len(verdict.frame), f"restart {self.restarts}")

    def _from_next_server(self, data: bytes) -> None:
        """What is an answer to the handshake stays here; all else is as ever."""
        for frame in self._splitters[_SERVER].feed(data):
            opening = self._opening
            answer = opening.hear(frame) if opening is not None and not opening.refusal else None
            if opening is None or answer is None:
                self._feed_one(_SERVER, frame, self._client_out)
                continue
            self._record_again(answer)
            self.lost += answer.kind == "error" and opening.opened
            if opening.opened and self._keeper.away:
                self._opened(opening)
            if opening.over:
                self._opening = None
        if self._opening is None:
            self._keeper.life.output.take = self._from_server

    # ── bytes ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _from_client(self, data: bytes) -> None:
        if self._keeper.away:
            for frame in self._splitters[_CLIENT].feed(data):
                self._feed_one(_CLIENT, frame, self._keeper.input)
        else:
            self._feed(_CLIENT, data, self._keeper.input)
        if not data:
            self._feed_end(_CLIENT)

    def _from_server(self, data: bytes) -> None:
        self._feed(_SERVER, data, self._client_out)

    def _from_stderr(self, data: bytes) -> None:
        self._keeper.life.child.tail.add(data)
        self._errors_out.write(data)

    def _feed(self, party: Party, data: bytes, other: Outlet) -> None:
        hear, clock, passed = self._hear, self._recorder.clock, self._watcher.passed
        record = None if self._recorder.idle else self._recorder.message
        good: list[bytes] = []
        for frame in self._splitters[party].feed(data):
            if type(frame) is not Rest:
                now = clock()
                verdict = hear(party, frame)
                if verdict.findings is None:
                    if record is not None:
                        record(verdict, now, len(frame))
                    passed(verdict, now)
                    good.append(frame)
                    continue
            # One after the other: what came before goes first.
            if good:
                other.write(b"\n".join(good), b"\n")
                good.clear()
            if type(frame) is Rest:
                self._feed_rest(party, frame, other)
            else:
                self._act(verdict, now, b"\n")
        if good:
            other.write(b"\n".join(good), b"\n")

    def _feed_one(self, party: Party, frame: bytes, other: Outlet) -> None:
        """One frame, or more of a long one, where many are not to be expected."""
        if type(frame) is Rest:
            self._feed_rest(party, frame, other)
            return
        now = self._recorder.clock()
        verdict = self._hear(party, frame)
        if party is _CLIENT and self._keeper.crowded and _asks(verdict):
            self._turn_away(verdict, now)
        else:
            self._act(verdict, now, b"\n")

    def _turn_away(self, verdict: Verdict, now: float) -> None:
        """Too much waits for the next server: what else is asked fails at once."""
        if not self._recorder.idle:
            self._recorder.message(verdict, now, 0)
        self._watcher.passed(verdict, now)
        for each in (verdict, *verdict.parts):
            if each.exchange is not None and each.exchange.state == "open":
                for settled in self._guard.turn_away(each.exchange, "too much waits for the next server already"):
                    self._settle(settled)

    def _feed_rest(self, party: Party, rest: bytes, other: Outlet) -> None:
        """More of a line that is too long."""
        if not self._enforcing:
            other.write(rest)
        self._carry_out(party, self._guard.rest(party, rest))

    def _feed_end(self, party: Party) -> None:
        """The last line of a stream, if it has no newline."""
        last = self._splitters[party].end()
        if last is not None:
            now = self._recorder.clock()
            self._act(self._hear(party, last), now, b"")
        self._carry_out(party, self._guard.rest(party, b"\n"))

    def _act(self, verdict: Verdict, now: float, ending: bytes) -> None:
        """Does what is to be done about one frame."""
        if verdict.kind == "blank":
            self._carry_out(verdict.party, self._guard.act(verdict), verdict.frame, ending)
            return
        move = self._guard.act(verdict) if verdict.findings is not None else passing(verdict)
        if not self._recorder.idle:
            self._recorder.message(verdict, now, len(move.to_client or b"") + len(move.to_server or b""))
        if verdict.findings is not None:
            self._watcher.heard(verdict, now)
        else:
            self._watcher.passed(verdict, now)
        if len(verdict.frame) > self._guard.conversation.limits.frame_bytes:
            # The rest of the line follows, and brings its end.
            ending = b""
        self._carry_out(verdict.party, move, verdict.frame, ending)

    def _carry_out(self, speaker: Party, move: Move, frame: bytes = b"", ending: bytes = b"") -> None:
        for party, outlet, data in (
            (_SERVER, self._keeper.input, move.to_server),
            (_CLIENT, self._client_out, move.to_client),
        ):
            if data is None:
                continue
            if data is frame:
                outlet.write(data, ending)
            elif party is speaker:
                outlet.reply(data)
            else:
                outlet.say(data)
        if move.aside is not None:
            self._watcher.aside(move.aside)
        for settled in move.settled:
            self._settle(settled)

    def _settle(self, settled: Settled) -> None:
        """A request that the server does not answer is answered here."""
        self._overseer.settle(settled)
        if settled.answer:
            self._client_out.reply(settled.answer)


def _asks(verdict: Verdict) -> bool:
    """Whether somebody waits for an answer to it, and it would go on."""
    return any(each.kind == "request" and each.onward is not None for each in (verdict, *verdict.parts))
