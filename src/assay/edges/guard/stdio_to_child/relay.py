"""
A client on our standard streams and a server in a child process, with the guard between them. One thread.

Nobody is left waiting: what the server owes when it ends is answered here, and when the client goes, the server is
ended.
"""

import time
from collections.abc import Sequence
from typing import Final

from assay.base.verdict import Party, Verdict
from assay.edges.child import CLOSED, Child
from assay.edges.guard.overseer import Watcher
from assay.edges.guard.stdio_to_child.crossing import Crossing
from assay.edges.guard.stdio_to_child.keeper import HANDSHAKE, Keeper, Renewal
from assay.edges.pipes import Inlet, Loop, Outlet, Signals
from assay.edges.recorder import Recorder
from assay.guard.failure import log_once
from assay.guard.flight import End
from assay.guard.guard import Guard, withdrawn
from assay.guard.standing import Reopening, Standing

CLIENT_LEFT: Final = 0
SERVER_ENDED: Final = 3
"""Exit status where the server ended first."""

LINGER: Final = 2.0
"""Seconds that a client has to read what is left for it, once we were asked to stop."""

_HELD: Final = 1.0
_MOST_HELD: Final = 1000
"""Seconds that a message waits for its answer to be put on record with it, and how many do at most."""

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
        redact: Sequence[str] = (),
        source: int = 0,
        sink: int = 1,
    ) -> None:
        """
        What *child* says on stderr goes to *errors*.

        *patience* is how many seconds after the client's last word its requests are still waited for; 0 for ever. With
        *renewal*, which needs a guard that enforces, a server that ends may be followed by another. What looks like a
        secret or is matched by *redact* is left out of what the client gets of stderr.
        """
        self._guard = guard
        self._recorder = recorder
        self._signals = signals
        self._enforcing = guard.mode == "enforce"
        self._most_patience = patience
        self._redact = redact
        self._client_out = Outlet(sink, heeded=True)
        self._errors_out = errors
        self._client = Inlet(source, self._from_client, tells=self._client_out)
        self._loop = Loop((self._client, signals.inlet()), (self._client_out, errors))
        self._keeper = Keeper(child, renewal, self._loop, self._client_out, self._from_server, self._from_stderr)
        self._client.feeds = self._keeper.input
        self._standing = Standing(guard.hear) if renewal is not None else None
        hear = guard.hear if self._standing is None else self._standing.hear
        self._crossing = Crossing(guard, hear, recorder, watcher, self._client_out, self._keeper.input)
        self._opening: Reopening | None = None
        """What the next server is told before anybody else speaks to it, until it has answered all of that."""
        self.lost = 0
        """What the client had told its server, and the next one did not take: a log level, subscriptions."""
        self._calm = True
        """Whether nobody leaves, has left, or is about to come, as nearly always."""
        self._held_until: float | None = None
        """Until when messages wait to be put on record, if any do."""
        self._left_at: float | None = None
        """Until when answers are waited for, although the client says no more."""

    @property
    def reason(self) -> str:
        """Why it ended, where that was the server's doing."""
        return self._keeper.reason

    @property
    def end(self) -> End:
        """How the server ended, where that was its own doing."""
        return End(self._keeper.reason, self._keeper.last_lines())

    @property
    def restarts(self) -> int:
        """How often the server was started again."""
        return self._keeper.count

    def run(self) -> int:
        """Serves until either side ends; the exit status."""
        try:
            while not self._is_over():
                patience = self._patience()
                happened = self._loop.wait(patience, calm=self._calm)
                due = not happened or (patience is not None and patience <= 0.0)
                if due:
                    self._settle_overdue()
                # On record first: nothing that was answered is lost. What was only asked can wait for its answer.
                if self._client_out.size or due or self._recorder.held > _MOST_HELD:
                    self._recorder.flush()
                self._loop.push()
            return self._without_server()
        finally:
            self._recorder.flush()
            self._keeper.life.close()
            self._client_out.restore()

    def _settle_overdue(self) -> None:
        try:
            for settled, told in self._guard.overdue():
                self._crossing.settle(settled)
                if told is not None:
                    self._keeper.input.say(told)
        except Exception as error:
            # Each request is taken off the list before it is settled, so the next look goes on with the others.
            log_once(error, "a late request could not be answered")

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _patience(self) -> float | None:
        """Seconds until something is due that nobody's bytes tell of."""
        patience = self._guard.patience
        if not self._recorder.held:
            self._held_until = None
        else:
            now = time.monotonic()
            if self._held_until is None:
                self._held_until = now + _HELD
            left = max(0.0, self._held_until - now)
            patience = left if patience is None else min(patience, left)
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
            keeper.reason = f"the restarted server could not be used: {self._opening.refusal}"
            return True
        if keeper.life.is_lost(self._signals):
            keeper.reason = keeper.life.last_words()
            self._crossing.feed_end(_SERVER)
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
        for settled in self._guard.server_ended(why, self._last_words()):
            self._crossing.settle(settled)

    def _last_words(self) -> list[str]:
        """Return the last lines of stderr for the requests that are open, without secrets; none if there are none."""
        lines = self._keeper.last_lines()
        if not lines or not self._guard.conversation.open_requests(_CLIENT):
            return []
        from assay.core.redaction import without_secrets  # noqa: PLC0415 - for broken sessions only

        return without_secrets(lines, self._redact)

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
        self._client.feeds = self._crossing.server = keeper.input
        self._opening = self._standing.reopening(limits) if self._standing is not None else None
        self._crossing.split_anew()
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
        self.lost += opening.forgotten
        for verdict in opening.second_half():
            self._say_again(verdict)
        self._take_up()
        for frame in opening.lists_changed:
            self._crossing.feed_one(_SERVER, frame)

    def _take_up(self) -> None:
        """The conversation goes on."""
        self._keeper.opened()
        self._client.feeds = self._crossing.server = self._keeper.input

    def _say_again(self, verdict: Verdict) -> None:
        """What the client has said to the server before."""
        self._keeper.life.input.write(verdict.frame, b"\n")
        self._record_again(verdict)

    def _record_again(self, verdict: Verdict) -> None:
        """What is no part of the client's conversation is on record as one of its own."""
        if not self._recorder.idle:
            try:
                self._recorder.message(verdict, self._recorder.clock(), len(verdict.frame), f"restart {self.restarts}")
            except Exception as error:
                log_once(error, "a message could not be recorded")

    def _from_next_server(self, data: bytes) -> None:
        """What is an answer to the handshake stays here; all else is as ever."""
        for frame in self._crossing.split(_SERVER, data):
            opening = self._opening
            try:
                answer = opening.hear(frame) if opening is not None and not opening.refusal else None
                if opening is not None and answer is not None:
                    self._reopen(opening, answer)
                    continue
            except Exception as error:
                # Without an answer to the handshake the next server is given up when its time is over.
                log_once(error, "the handshake with the next server failed")
                continue
            self._crossing.feed_one(_SERVER, frame)
        if self._opening is None:
            self._keeper.life.output.take = self._from_server

    def _reopen(self, opening: Reopening, answer: Verdict) -> None:
        """The next server has answered something of the handshake."""
        self._record_again(answer)
        self.lost += opening.opened and answer.kind != "result"
        if opening.opened and self._keeper.away:
            self._opened(opening)
        if opening.over:
            self._opening = None

    # ── bytes ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _from_client(self, data: bytes) -> None:
        if self._keeper.away:
            self._crossing.feed_waiting(data)
        else:
            self._crossing.feed(_CLIENT, data)
        if not data:
            self._crossing.feed_end(_CLIENT)

    def _from_server(self, data: bytes) -> None:
        self._crossing.feed(_SERVER, data)

    def _from_stderr(self, data: bytes) -> None:
        self._keeper.life.child.tail.add(data)
        self._errors_out.write(data)
