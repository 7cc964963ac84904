"""
The life of a server behind the relay: its streams, its end in steps, and the life after that.

Knows nothing of messages; of what it is given to keep it counts the bytes.
"""

import signal
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from assay.edges.child import CLOSED, TERMINATED, Child, StartError, why
from assay.edges.pipes import NOBODY, Inlet, Loop, Outlet, Signals
from assay.guard.flight import End
from assay.guard.restarts import Restarts

LAST_WORDS: Final = 0.5
"""Seconds that whoever ends has for what it still says: a process that exits, a pipe that others have got hold of."""

HANDSHAKE: Final = 60.0
"""Seconds that the next server has to answer `initialize`: as long as the clients of the official SDKs give it."""

_KILLED: Final = 5.0
"""Seconds after SIGKILL from which on nobody waits for a process that hangs in the kernel."""

_MOST_READS: Final = 64
"""Chunks that are still taken from a stream whose end nobody waits for."""

Take = Callable[[bytes], None]


class Life:
    """One run of a server: the child, and our ends of its streams in the loop."""

    def __init__(self, child: Child, loop: Loop, client: Outlet, output: Take, errors: Take) -> None:
        """What it says goes to *output*, and from there to *client*; what it says on stderr goes to *errors*."""
        self.child = child
        self.began = time.monotonic()
        self.input = Outlet(child.stdin)
        self.output = Inlet(child.stdout, output, feeds=client, tells=self.input)
        self.errors = Inlet(child.stderr, errors)
        self._loop = loop
        loop.add(self.output, self.errors, self.input)
        self.troubled = False
        """Whether it is being ended, or has ended or reads no more: then something may be due, and else nothing."""
        self._next_step: float | None = None
        """When the next step is due to end it."""
        self._told_to_end = False
        self._taken = 0
        """Bytes that it had read when that was last looked at."""
        self._deaf = self._gone = self._told_gone = False
        self._cut_off_at: float | None = None
        """When it counts as lost although its output is open: it has ended, or reads no more."""
        self._stuck_at: float | None = None
        """When nobody waits any more for it to end."""

    @property
    def due(self) -> tuple[float | None, float | None]:
        """When something is to be done about it."""
        return self._next_step, self._cut_off_at

    @property
    def ending(self) -> bool:
        """Whether it is being ended."""
        return self._next_step is not None

    def hang_up(self) -> None:
        """It is told that nothing more comes."""
        self._deaf = self._is_deaf()
        self.input.close()

    def end(self, now: float, *, patiently: bool = False, at_once: bool = False) -> None:
        """
        Ends it, one step at a time: after the end of its input SIGTERM, or *at_once*, then SIGKILL.

        *patiently*, who still reads what was said before is not interrupted.
        """
        self.troubled = True
        reads = patiently and not self._told_to_end and self.input.taken != self._taken
        if self._next_step is None or reads:
            self._taken = self.input.taken
            self._next_step = now + CLOSED
        if at_once and not self._told_to_end:
            self._next_step = now
        if now >= self._next_step:
            self.child.signal(signal.SIGKILL if self._told_to_end else signal.SIGTERM)
            self._told_to_end = True
            self._next_step = now + TERMINATED

    def is_lost(self, signals: Signals) -> bool:
        """
        Whether nothing more is to be expected of it: it has closed its output, or has ended, or reads no more.

        In the last two cases what it has said before must have had the time to arrive.
        """
        if self.output.ended:
            return True
        if signals.child_ended:
            signals.child_ended = False
            self._gone = self.child.status is not None
        self._deaf = self._is_deaf()
        if not self._gone and not self._deaf:
            return False
        self.troubled = True
        now = time.monotonic()
        if self._cut_off_at is None or (self._gone and not self._told_gone):
            self._told_gone = self._gone
            self._cut_off_at = now + (LAST_WORDS if self._gone else CLOSED)
        return now >= self._cut_off_at

    def last_words(self) -> str:
        """Takes what it has said by now; why it counts as lost. What it has left running goes with it."""
        status = self.child.wait(LAST_WORDS)
        self.drain(self.errors)
        self.drain(self.output)
        if status is not None:
            self.child.sweep()
            return why(status)
        return "it closed its output" if self.output.ended else "it closed its input"

    def drain(self, inlet: Inlet) -> None:
        """Takes what has come by now."""
        for _ in range(_MOST_READS):
            if not self._loop.has_more(inlet):
                break
            inlet.read()

    def leave(self) -> None:
        """Nobody listens to it any more: it ends now."""
        self._loop.drop(self.output, self.errors, self.input)
        self.output.ended = self.errors.ended = True
        self.hang_up()
        self._cut_off_at = None
        if self.child.status is None:
            now = time.monotonic()
            self._stuck_at = now + TERMINATED + _KILLED
            self.end(now, at_once=True)

    def is_over(self) -> bool:
        """Whether nothing of it is left, after it had to `leave`."""
        now = time.monotonic()
        if self.child.status is None and self._stuck_at is not None and now < self._stuck_at:
            self.end(now)
            return False
        self.close()
        return True

    def close(self) -> None:
        """Ends it, however long that takes: some seconds at most."""
        self._loop.drop(self.output, self.errors, self.input)
        self.input.close()
        self.child.end()
        self._next_step = None

    def _is_deaf(self) -> bool:
        return self._deaf or (self.input.broken and not self.input.closed)


class Renewal(NamedTuple):
    """How a server is started again."""

    start: Callable[[], Child]
    """Raises `StartError`."""
    restarts: Restarts
    told: Callable[[End, float], None]
    """Is told how a server has ended, and how many seconds later the next one is started."""


class Keeper:
    """
    The server of a relay: one life after the other, as long as there is to be a next.

    Between two of them, and until the next one is open, what is meant for it is kept.
    """

    def __init__(
        self, child: Child, renewal: Renewal | None, loop: Loop, client: Outlet, output: Take, errors: Take
    ) -> None:
        self._renewal = renewal
        self._loop = loop
        self._client = client
        self._takes = output, errors
        self.life = Life(child, loop, client, output, errors)
        self.input = self.life.input
        """Where to say what is meant for it."""
        self.away = False
        """Whether what is meant for it is being kept."""
        self._next_at: float | None = None
        """When the next life is to begin."""
        self._open_until: float | None = None
        """When the next life must have been opened."""
        self._handshake = 0.0
        self.reason = ""
        """Why the last one ended."""
        self._began = self.life.began
        """When the last one began, or should have."""

    @property
    def count(self) -> int:
        """How often there was a next one."""
        return self._renewal.restarts.count if self._renewal is not None else 0

    @property
    def due(self) -> tuple[float | None, ...]:
        """When something is to be done."""
        # What else the next one has to wait for wakes us by itself.
        waits = self.life.ending or self._client.full
        return (*self.life.due, None if waits else self._next_at, self._open_until)

    @property
    def down(self) -> bool:
        """Whether none runs that could still be lost."""
        return self._next_at is not None

    def last_lines(self) -> list[str]:
        """What the last one has said on stderr at the end, if there was one at all."""
        return self.life.child.tail.lines() if self._began == self.life.began else []

    def renew(self, *, failed: bool) -> float | None:
        """
        The last one is lost: seconds until the next one begins, or None if none does.

        From now on it is away. What was meant for the last one is gone.
        """
        if self._renewal is None:
            return None
        now, restarts = time.monotonic(), self._renewal.restarts
        wait = restarts.after(began=self._began, now=now, failed=failed)
        if wait is None:
            if restarts.refusal:
                self.reason = f"{self.reason}, {restarts.refusal}"
            return None
        self.life.leave()
        self.input = Outlet(NOBODY)
        self.away = True
        self._next_at, self._open_until = now + wait, None
        self._renewal.told(End(self.reason, self.last_lines()), wait)
        return wait

    def is_time(self) -> bool:
        """
        Whether the last one is gone and the next one is to begin.

        Not while the client does not read: nothing that a server says would be heard, not even its handshake.
        """
        over = self.life.is_over() and not self._client.full
        return over and self._next_at is not None and time.monotonic() >= self._next_at

    def begin(self, handshake: float) -> bool:
        """Starts the next one; False if that cannot be done. It must be open within *handshake* seconds."""
        if self._renewal is None:
            return False
        self._next_at = None
        self._began = time.monotonic()
        try:
            child = self._renewal.start()
        except StartError as error:
            self.reason = str(error)
            return False
        self.life = Life(child, self._loop, self._client, *self._takes)
        self._began = self.life.began
        # Replies to it go where all that is meant for it goes.
        self.life.output.tells = self.input
        self._handshake = handshake
        self._open_until = self._began + handshake
        return True

    def is_too_late(self) -> bool:
        """Whether the next one has had all the time that it gets to be opened."""
        now = time.monotonic()
        if self._open_until is None or now < self._open_until:
            return False
        if not self._client.full:
            return True
        # It may well have answered, and the client keeps us from hearing it.
        self._open_until = now + self._handshake
        return False

    def opened(self) -> None:
        """The next one is there: it gets what was kept for it."""
        self.input.pour(self.life.input)
        self.input = self.life.output.tells = self.life.input
        self.away = False
        self._open_until = None
