"""
A client on our standard streams and a server in a child process, with a guarded session between them. One poll loop.

Waits for whichever has something to say, and for nothing else.
"""

from collections.abc import Sequence
from math import inf
from time import perf_counter
from typing import Final

from assay.edges.child import CLOSED, Child
from assay.edges.child_supervisor import ChildSupervisor, RestartPolicy
from assay.edges.pipes import Inlet, Loop, Outlet, Signals
from assay.guard.deliveries import Delivery, End, Loss, Outcome, State
from assay.guard.judged_session import LEFT
from assay.guard.line_feed import LineFeed
from assay.guard.session import GuardedSession
from assay.guard.sinks import server_state
from assay.judge.redaction import without_secrets
from assay.model.verdict import Party

CLIENT_LEFT: Final = 0
SERVER_ENDED: Final = 3
"""Exit status where the server ended first."""

HELD: Final = 0.2
"""Seconds that the record of a request waits for that of its answer."""

LINGER: Final = 2.0
"""Seconds that a client has to read what is left for it, once the guard was asked to stop."""

_HOLDING: Final = frozenset({State.AWAY, State.RESTORING})


class StdioChild:
    """One run of the guard."""

    def __init__(
        self,
        session: GuardedSession,
        child: Child,
        signals: Signals,
        errors: Outlet,
        *,
        patience: float = 0.0,
        policy: RestartPolicy | None = None,
        redact: Sequence[str] = (),
        source: int = 0,
        sink: int = 1,
    ) -> None:
        """
        The stderr of *child* goes to *errors*.

        *patience* is how many seconds after the client's last message its requests are still waited for; 0 for no
        limit. With *policy* a server that ends may be followed by another. What looks like a secret or is matched by
        *redact* is left out of what the client gets of stderr.
        """
        self.session = session
        self._signals = signals
        self._patience = patience
        self._redact = redact
        # Recorded first: nothing that was answered is lost. A request may wait for its answer to be recorded with it.
        self._client_out = Outlet(sink, heeded=True, before=session.records.commit)
        self._errors_out = errors
        self._from_client = LineFeed(session, Party.CLIENT, self._to_server, self._carry_out)
        self._from_server = LineFeed(session, Party.SERVER, self._client_out.write, self._carry_out)
        self._client = Inlet(source, self._from_client.feed, feeds=self, tells=self._client_out)
        self._loop = Loop((self._client, signals.inlet()), (self._client_out, errors))
        self._supervisor = ChildSupervisor(
            child, policy, self._loop, self._client_out, self._from_server.feed, self._from_stderr
        )
        self._from_client.forward = self._supervisor.run.input.write
        self.reason = ""
        """Why the last server ended."""
        self._over = False
        """Whether the session has ended."""
        self._left_open = False
        """Whether requests were open when the last server was lost; these have failed."""
        self._left_at: float | None = None
        """Until when answers are waited for, although the client sends nothing more."""
        self._client_ended = self._blocked = False
        self._commit_at = inf
        """When records that wait for an answer are written without it."""
        self._uneasy = False
        """Whether there were findings, which the journal may count for a while before it writes them."""

    @property
    def end(self) -> End:
        """How the server ended, where it ended by itself."""
        return End(self.reason, self._supervisor.last_lines())

    def run(self) -> int:
        """Serve until either side ends; return the exit status."""
        session, wait, outlets = self.session, self._loop.wait, self._loop.outlets
        client, client_out, signals = self._client, self._client_out, self._signals
        waiting = False
        try:
            while True:
                run = self._supervisor.run
                # Neither side leaves, has left or is about to come, as nearly always. No function of its own: this is
                # done for every message.
                calm = not (
                    (client.ended or client.hung_up or signals.stopping or signals.child_ended or client_out.broken)
                    or (run.troubled or run.output.ended or run.input.broken or self._blocked or not session.calm)
                    or waiting
                )
                if not calm and self._is_over():
                    break
                deadline = min(session.deadline, self._commit_at) if calm else self._due()
                left = None if deadline == inf else deadline - perf_counter()
                if not wait(left, calm=calm) or (left is not None and left <= 0.0):
                    self._tick()
                elif client_out.size and not self._uneasy:
                    # The next write commits what is recorded.
                    self._commit_at = inf
                elif self._commit_at == inf:
                    self._commit_at = session.now + HELD
                waiting = False
                for outlet in outlets:
                    if outlet.size:
                        outlet.push()
                        if outlet.size:
                            waiting = True
            return self._without_server()
        finally:
            session.records.commit()
            self._supervisor.run.close()
            self._client_out.restore()

    def _tick(self) -> None:
        """Fail what is overdue, and write records that have waited for an answer long enough."""
        self._carry_out(self.session.tick())
        self.session.records.commit()
        self._uneasy = False
        self._commit_at = self.session.records.due()

    # ── frames ───────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def full(self) -> bool:
        """Whether so much waits for the server that the client is not to be read."""
        session = self.session
        return session.backlog.full if session.state in _HOLDING else self._supervisor.run.input.full

    def _to_server(self, data: bytes, ending: bytes) -> None:
        self._supervisor.run.input.write(data, ending)

    def _carry_out(self, outcome: Outcome, ending: bytes = b"\n") -> None:
        """Send what a session says; *ending* is that of the line which the outcome is about."""
        self._uneasy = True
        for each in outcome.to_server:
            _send(self._supervisor.run.input, each, ending if each.verdict is outcome.verdict else b"\n")
        for each in outcome.to_client:
            _send(self._client_out, each, ending if each.verdict is outcome.verdict else b"\n")
        if outcome.closed is not None and self.session.state is State.CLOSED and not self._over:
            self._over, self.reason = True, outcome.closed.detail

    def _from_stderr(self, data: bytes) -> None:
        self._supervisor.run.child.tail.add(data)
        self._errors_out.write(data)

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _leaving(self) -> bool:
        return self._client.ended or self._client.hung_up or self._signals.stopping or self._client_out.broken

    def _due(self) -> float:
        """Return when something is due that no bytes announce, while a side leaves or comes."""
        moments = (each for each in (*self._supervisor.due, self._left_at) if each is not None)
        return min(self.session.deadline, self._commit_at, *moments)

    def _is_over(self) -> bool:
        """Return whether there is no server any more, and no other follows."""
        supervisor, leaving = self._supervisor, self._leaving
        self._note_blocked()
        self._note_client_end()
        if leaving and self.session.state in _HOLDING:
            return True
        if supervisor.down:
            return supervisor.is_time() and self._begin()
        if leaving:
            self._wind_up()
        if self._over:
            return True
        return supervisor.run.is_lost(self._signals) and self._lost(leaving=leaving)

    def _note_blocked(self) -> None:
        if self._blocked != self._client_out.full:
            self._blocked = not self._blocked
            self.session.client_blocked(self._blocked)

    def _note_client_end(self) -> None:
        if self._client.ended and not self._client_ended:
            self._client_ended = True
            self._from_client.end()
            if self.session.calm:
                self._carry_out(self.session.client_done())

    def _wind_up(self) -> None:
        """
        End the server one step at a time, since the client has left or sends nothing more, or the guard is to stop.

        Its input, SIGTERM, SIGKILL. What it writes meanwhile still passes.
        """
        now = perf_counter()
        run, stopping = self._supervisor.run, self._signals.stopping
        gone = stopping or self._client_out.broken
        if gone or (self._client.ended and not run.input.waiting and not self.session.has_held_calls):
            run.hang_up()
        if not run.ending and not gone and self._is_owed(now):
            return
        self._left_at = None
        run.end(now, patiently=not gone, at_once=stopping)

    def _is_owed(self, now: float) -> bool:
        """Return whether answers are still to be waited for, although the client sends nothing more."""
        if not self.session.owed:
            return False
        if self._patience and self._left_at is None:
            self._left_at = now + self._patience
        return self._left_at is None or now < self._left_at

    def _without_server(self) -> int:
        """Answer what the server has not answered, now that it has ended for good; return the exit status."""
        run, stopping = self._supervisor.run, self._signals.stopping
        owed = self.session.owed or self._left_open
        left = stopping or self._client_out.broken or (self._client.ended and not owed)
        self._drain_client()
        why = Loss("exited", self.reason)
        if stopping:
            why = Loss("stopped", "the guard was stopped")
        elif self._client_out.broken:
            why = LEFT
        if not left:
            self._note_failure()
        self._carry_out(self.session.close(why._replace(stderr=self._last_words())))
        run.hang_up()
        self._hand_over()
        if not self._supervisor.down and not stopping:
            run.child.wait(CLOSED)
        return CLIENT_LEFT if left else SERVER_ENDED

    def _drain_client(self) -> None:
        """Take what the client has sent by now: it waits for the next server, or fails with the rest."""
        if self.session.enforcing and self.session.state is not State.CLOSED:
            self.session.suspend()
            self._supervisor.run.drain(self._client, bounded=True)
            self._note_client_end()

    def _last_words(self) -> tuple[str, ...]:
        """Return the last lines of stderr for the requests that are open, without secrets."""
        lines = self._supervisor.last_lines()
        waits = self.session.conversation.open_requests(Party.CLIENT) or self.session.has_held_calls
        if not lines or not waits:
            return ()

        return tuple(without_secrets(lines, self._redact))

    def _hand_over(self) -> None:
        """Wait until the client has read the rest; not for long if the guard is to stop."""
        run = self._supervisor.run
        for inlet in (self._client, run.output, run.errors):
            inlet.ended = True
        self._loop.push()
        deadline = None
        while self._client_out.waiting:
            now = perf_counter()
            if self._signals.stopping:
                deadline = now + LINGER if deadline is None else deadline
                if now >= deadline:
                    return
            self._loop.wait(None if deadline is None else deadline - now)
            self._loop.push()

    # ── the next server ──────────────────────────────────────────────────────────────────────────────────────────────

    def _lost(self, *, leaving: bool) -> bool:
        """The child is lost: return whether no other follows."""
        run = self._supervisor.run
        why = run.last_words()
        self._from_server.end()
        loss = Loss("exited", why, failed=run.child.status != 0)
        self.reason = why
        if leaving:
            return True
        self._drain_client()
        return self._goes_down(loss._replace(stderr=self._last_words()))

    def _goes_down(self, loss: Loss) -> bool:
        """Fail what waits for the lost child; return whether no other follows."""
        self.reason = loss.detail
        owed = self.session.owed
        outcome = self.session.server_lost(loss)
        if outcome.restart_in is None:
            self._left_open = owed
            self._carry_out(outcome)
            return True
        self._note_failure()
        self._from_server.anew()
        self._client_out.end_line()
        self._carry_out(outcome)
        self._supervisor.restart_in(outcome.restart_in, loss.detail)
        return False

    def _note_failure(self) -> None:
        """Record that the server has failed."""
        state = server_state("failed", self.reason, "".join(self._supervisor.last_lines()[-1:]))
        self.session.records.event("state", state, self.session.name)
        self.session.records.commit()

    def _begin(self) -> bool:
        """Start the next child; return whether that failed for good."""
        failure = self._supervisor.begin()
        if failure:
            return self._goes_down(Loss("unstartable", failure))
        self._signals.child_ended = True
        self.session.records.event("state", server_state("running"), self.session.name)
        self._carry_out(self.session.server_ready())
        self._from_client.forward = self._supervisor.run.input.write
        return False


def _send(outlet: Outlet, delivery: Delivery, ending: bytes) -> None:
    if delivery.author == "peer":
        outlet.write(delivery.frame, ending)
    elif delivery.replies:
        outlet.reply(delivery.frame)
    else:
        outlet.say(delivery.frame)
