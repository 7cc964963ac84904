"""
The child process behind a poll loop: its streams, its end in steps, and the next one after it.

Knows nothing of messages.
"""

import signal
from collections.abc import Callable
from time import perf_counter
from typing import Final, NamedTuple

from assay.edges.child import CLOSED, TERMINATED, Child, StartError, why
from assay.edges.pipes import Inlet, Loop, Outlet, Signals
from assay.guard.flight import End

LAST_WORDS: Final = 0.5
"""Seconds for output that is still on its way: of a process that exits, or in a pipe that others hold open."""

_KILLED: Final = 5.0
"""Seconds after SIGKILL, from which on a process that hangs in the kernel is not waited for."""

_MOST_READS: Final = 64
"""Chunks that are still taken from a stream whose end is not waited for."""

Take = Callable[[bytes], None]


class ChildRun:
    """One run of a server: the child, and our ends of its streams in the loop."""

    def __init__(self, child: Child, loop: Loop, client: Outlet, output: Take, errors: Take) -> None:
        """What it writes goes to *output*, and from there to *client*; its stderr goes to *errors*."""
        self.child = child
        self.began = perf_counter()
        self.input = Outlet(child.stdin)
        self.output = Inlet(child.stdout, output, feeds=client, tells=self.input)
        self.errors = Inlet(child.stderr, errors)
        self._loop = loop
        loop.add(self.output, self.errors, self.input)
        self.troubled = False
        """Whether it is being ended, or has ended, or reads no more: only then can something be due."""
        self._next_step: float | None = None
        """When the next step is due to end it."""
        self._terminated = False
        self._taken = 0
        """Bytes that it had read when that was last looked at."""
        self._deaf = self._gone = self._gone_noted = False
        self._cut_off_at: float | None = None
        """When it counts as lost although its output is open: it has ended, or reads no more."""
        self._stuck_at: float | None = None
        """When its end is not waited for any more."""

    @property
    def due(self) -> tuple[float | None, float | None]:
        """When something is to be done about it."""
        return self._next_step, self._cut_off_at

    @property
    def ending(self) -> bool:
        """Whether it is being ended."""
        return self._next_step is not None

    def hang_up(self) -> None:
        """Close its input."""
        self._deaf = self._is_deaf()
        self.input.close()

    def end(self, now: float, *, patiently: bool = False, at_once: bool = False) -> None:
        """
        End it, one step at a time: after the end of its input SIGTERM, or *at_once*, then SIGKILL.

        *patiently*, a child that still reads what was sent before is not interrupted.
        """
        self.troubled = True
        reads = patiently and not self._terminated and self.input.taken != self._taken
        if self._next_step is None or reads:
            self._taken = self.input.taken
            self._next_step = now + CLOSED
        if at_once and not self._terminated:
            self._next_step = now
        if now >= self._next_step:
            self.child.signal(signal.SIGKILL if self._terminated else signal.SIGTERM)
            self._terminated = True
            self._next_step = now + TERMINATED

    def is_lost(self, signals: Signals) -> bool:
        """
        Return whether nothing more is to be expected of it: it has closed its output, or has ended, or reads no more.

        In the last two cases what it has written before must have had the time to arrive.
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
        now = perf_counter()
        if self._cut_off_at is None or (self._gone and not self._gone_noted):
            self._gone_noted = self._gone
            self._cut_off_at = now + (LAST_WORDS if self._gone else CLOSED)
        return now >= self._cut_off_at

    def last_words(self) -> str:
        """Take what it has written by now; return why it counts as lost. Its own children end with it."""
        status = self.child.wait(LAST_WORDS)
        self.drain(self.errors)
        self.drain(self.output)
        if status is not None:
            self.child.sweep()
            return why(status)
        return "it closed its output" if self.output.ended else "it closed its input"

    def drain(self, inlet: Inlet, *, bounded: bool = False) -> None:
        """Take what has come by now; if *bounded*, only while there is room for it."""
        for _ in range(_MOST_READS):
            if not self._loop.has_more(inlet) or (bounded and not inlet.ready):
                break
            inlet.read()

    def leave(self) -> None:
        """Stop reading from it, and begin to end it."""
        self._loop.drop(self.output, self.errors, self.input)
        self.output.ended = self.errors.ended = True
        self.hang_up()
        self._cut_off_at = None
        if self.child.status is None:
            now = perf_counter()
            self._stuck_at = now + TERMINATED + _KILLED
            self.end(now, at_once=True)

    def is_over(self) -> bool:
        """Return whether nothing of it is left, after `leave`."""
        now = perf_counter()
        if self.child.status is None and self._stuck_at is not None and now < self._stuck_at:
            self.end(now)
            return False
        self.close()
        return True

    def close(self) -> None:
        """End it, and wait for that: some seconds at most."""
        self._loop.drop(self.output, self.errors, self.input)
        self.input.close()
        self.child.end()
        self._next_step = None

    def _is_deaf(self) -> bool:
        return self._deaf or (self.input.broken and not self.input.closed)


class RestartPolicy(NamedTuple):
    """How a server is started again."""

    start: Callable[[], Child]
    """Raises `StartError`."""
    report: Callable[[End, float], None]
    """Called with how a server has ended, and how many seconds later the next one is started."""


class ChildSupervisor:
    """The server of a poll loop: one run after the other, as long as there is to be a next."""

    def __init__(
        self, child: Child, policy: RestartPolicy | None, loop: Loop, client: Outlet, output: Take, errors: Take
    ) -> None:
        self._policy = policy
        self._loop = loop
        self._client = client
        self._takes = output, errors
        self.run = ChildRun(child, loop, client, output, errors)
        self._next_at: float | None = None
        """When the next run is to begin."""
        self._began = self.run.began
        """When the last one began, or should have."""

    @property
    def due(self) -> tuple[float | None, ...]:
        """When something is to be done."""
        # What else the next run has to wait for wakes the loop by itself.
        waits = self.run.ending or self._client.full
        return (*self.run.due, None if waits else self._next_at)

    @property
    def down(self) -> bool:
        """Whether no child runs, and the next one waits to be started."""
        return self._next_at is not None

    def last_lines(self) -> list[str]:
        """Return what the last run wrote to stderr at the end, if there was one at all."""
        return self.run.child.tail.lines() if self._began == self.run.began else []

    def restart_in(self, seconds: float, reason: str) -> None:
        """Leave the last run, and start the next one so many *seconds* from now."""
        if self._policy is None:
            return
        self.run.leave()
        self._next_at = perf_counter() + seconds
        self._policy.report(End(reason, self.last_lines()), seconds)

    def is_time(self) -> bool:
        """
        Return whether the last run is over and the next one is to begin.

        Not while the client does not read: the answer to the handshake could not be read either.
        """
        over = self.run.is_over() and not self._client.full
        return over and self._next_at is not None and perf_counter() >= self._next_at

    def begin(self) -> str:
        """Start the next run; return why that failed, or ""."""
        if self._policy is None:
            return "it cannot be started again"
        self._next_at = None
        self._began = perf_counter()
        try:
            child = self._policy.start()
        except StartError as error:
            return str(error)
        self.run = ChildRun(child, self._loop, self._client, *self._takes)
        self._began = self.run.began
        return ""
