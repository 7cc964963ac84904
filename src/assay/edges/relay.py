"""
A client on our standard streams and a server in a child process, with the guard between them. One thread.

Nobody is left waiting: what the server owes when it ends is answered here, and when the client goes, the server is
ended.
"""

import signal
import time
from typing import Final

from assay.edges.child import CLOSED, TERMINATED, Child, why
from assay.edges.overseer import Overseer, Watcher, passing
from assay.edges.pipes import Inlet, Loop, Outlet, Signals
from assay.edges.recorder import Recorder
from assay.guard.guard import Guard, Move, Settled
from assay.ladder.framing import Rest, Splitter
from assay.verdict import Party, Verdict

CLIENT_LEFT: Final = 0
SERVER_ENDED: Final = 3
"""Exit status where the server ended first."""

LAST_WORDS: Final = 0.5
"""Seconds that whoever ends has for what it still says: a process that exits, a pipe that others have got hold of."""

LINGER: Final = 2.0
"""Seconds that a client has to read what is left for it, once we were asked to stop."""

_MOST_READS: Final = 64
"""Chunks that are still taken from a stream whose end nobody waits for."""

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
        source: int = 0,
        sink: int = 1,
    ) -> None:
        """
        What *child* says on stderr goes to *errors*.

        *patience* is how many seconds after the client's last word its requests are still waited for; 0 for ever.
        """
        self._guard = guard
        self._child = child
        self._recorder = recorder
        self._watcher = watcher
        self._overseer = Overseer(guard, recorder, watcher)
        self._signals = signals
        self._enforcing = guard.mode == "enforce"
        self._most_patience = patience
        limit = guard.conversation.limits.frame_bytes
        self._splitters = {party: Splitter(limit, passing=True) for party in Party}
        self._client_out = Outlet(sink, heeded=True)
        self._server_in = Outlet(child.stdin)
        self._errors_out = errors
        self._client = Inlet(source, self._from_client, feeds=self._server_in, tells=self._client_out)
        self._server = Inlet(child.stdout, self._from_server, feeds=self._client_out, tells=self._server_in)
        self._errors = Inlet(child.stderr, self._from_stderr)
        self._loop = Loop(
            (self._client, self._server, self._errors, signals.inlet()), (self._client_out, self._server_in, errors)
        )
        self._next_step: float | None = None
        """When the next step is due to end the server."""
        self._told_to_end = False
        self._taken = 0
        """Bytes that the server had read when that was last looked at."""
        self._left_at: float | None = None
        """Until when answers are waited for, although the client says no more."""
        self._gone = self._told_gone = False
        self._cut_off_at: float | None = None
        """When a server that has ended, or reads no more, counts as lost although its output is open."""
        self.reason = ""
        """Why it ended, where that was the server's doing."""

    def run(self) -> int:
        """Serves until either side ends; the exit status."""
        try:
            while not self._server.ended:
                self._loop.wait(self._patience())
                for settled, told in self._guard.overdue():
                    self._settle(settled)
                    if told is not None:
                        self._server_in.say(told)
                # On record first: nothing that was answered is lost.
                self._recorder.flush()
                self._loop.push()
                client = self._client
                if client.ended or client.hung_up or self._signals.stopping or self._client_out.broken:
                    self._wind_up()
                if (self._signals.child_ended or self._gone or self._server_in.broken) and self._is_cut_off():
                    break
            return self._without_server()
        finally:
            self._recorder.flush()
            self._server_in.close()
            self._client_out.restore()

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _patience(self) -> float | None:
        """Seconds until something is due that nobody's bytes tell of."""
        patience = self._guard.patience
        for moment in (self._next_step, self._left_at, self._cut_off_at):
            if moment is not None:
                left = max(0.0, moment - time.monotonic())
                patience = left if patience is None else min(patience, left)
        return patience

    def _wind_up(self) -> None:
        """
        The client has left, or says no more, or we are to stop: ends the server, one step at a time.

        Its input, SIGTERM, SIGKILL. What it says meanwhile still passes.
        """
        now = time.monotonic()
        stopping = self._signals.stopping
        gone = stopping or self._client_out.broken
        if gone or (self._client.ended and not self._server_in.waiting):
            self._server_in.close()
        if self._next_step is None and not gone and self._is_owed(now):
            return
        # Who still reads what the client has said before is not to be interrupted.
        reads = not gone and not self._told_to_end and self._server_in.taken != self._taken
        if self._next_step is None or reads:
            self._left_at = None
            self._taken = self._server_in.taken
            self._next_step = now + CLOSED
        if stopping and not self._told_to_end:
            self._next_step = now
        if now >= self._next_step:
            self._child.signal(signal.SIGKILL if self._told_to_end else signal.SIGTERM)
            self._told_to_end = True
            self._next_step = now + TERMINATED

    def _is_owed(self, now: float) -> bool:
        """Whether answers are still to be waited for, although the client says no more."""
        if not self._guard.owed:
            return False
        if self._most_patience and self._left_at is None:
            self._left_at = now + self._most_patience
        return self._left_at is None or now < self._left_at

    def _is_cut_off(self) -> bool:
        """
        Whether the server is lost although its output is open: it has ended and others hold that, or reads no more.

        What it has said before must have had the time to arrive.
        """
        if self._signals.child_ended:
            self._signals.child_ended = False
            self._gone = self._child.status is not None
        deaf = self._server_in.broken and not self._server_in.closed
        if not self._gone and not deaf:
            return False
        now = time.monotonic()
        if self._cut_off_at is None or (self._gone and not self._told_gone):
            self._told_gone = self._gone
            self._cut_off_at = now + (LAST_WORDS if self._gone else CLOSED)
        return now >= self._cut_off_at

    def _without_server(self) -> int:
        """The server has ended: what it owes is answered, and nobody waits for it."""
        status = self._child.wait(LAST_WORDS)
        self._drain(self._errors)
        self._drain(self._server)
        if status is not None:
            self.reason = why(status)
        else:
            self.reason = "it closed its output" if self._server.ended else "it closed its input"
        self._feed_end(_SERVER)
        if self._enforcing:
            # What the client had asked by then fails like all the rest.
            self._drain(self._client)
        left = self._signals.stopping or self._client_out.broken or (self._client.ended and not self._guard.owed)
        said = "the guard was stopped" if self._signals.stopping else self.reason
        for settled in self._guard.server_ended(said, self._child.tail.lines()):
            self._settle(settled)
        self._recorder.flush()
        self._server_in.close()
        self._hand_over()
        if status is None:
            self._child.wait(CLOSED)
        return CLIENT_LEFT if left else SERVER_ENDED

    def _drain(self, inlet: Inlet) -> None:
        """Takes what has come by now."""
        for _ in range(_MOST_READS):
            if not self._loop.has_more(inlet):
                break
            inlet.read()

    def _hand_over(self) -> None:
        """The client has as long as it likes to read the rest, unless we are to stop."""
        for inlet in (self._client, self._server, self._errors):
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

    # ── bytes ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _from_client(self, data: bytes) -> None:
        self._feed(_CLIENT, data, self._server_in)
        if not data:
            self._feed_end(_CLIENT)

    def _from_server(self, data: bytes) -> None:
        self._feed(_SERVER, data, self._client_out)

    def _from_stderr(self, data: bytes) -> None:
        self._child.tail.add(data)
        self._errors_out.write(data)

    def _feed(self, party: Party, data: bytes, other: Outlet) -> None:
        hear, clock, passed = self._guard.hear, self._recorder.clock, self._watcher.passed
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
            self._act(self._guard.hear(party, last), now, b"")
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
            (_SERVER, self._server_in, move.to_server),
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
            self._client_out.say(settled.answer)
