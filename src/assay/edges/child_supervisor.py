"""
The child process behind a poll loop: its streams, its end in steps, and the next one after it.

It does not handle messages.
"""

import signal
from collections.abc import Callable
from time import perf_counter
from typing import Final, NamedTuple

from assay.edges.child import CLOSED, TERMINATED, Child, StartError, why
from assay.edges.pipes import Inlet, Loop, Outlet, Signals
from assay.guard.deliveries import End

LAST_WORDS: Final = 0.5
"""Seconds to wait for remaining output: of a process that exits, or in a pipe that other processes hold open."""

_KILLED: Final = 5.0
"""Seconds to wait after SIGKILL for a process that hangs in the kernel."""

_MOST_READS: Final = 64
"""Maximal chunks to read from a stream without waiting for its end."""

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
        """Whether it is being ended, has ended, or no longer reads: only then is there a time limit."""
        self._next_step: float | None = None
        """The time of the next step to end it."""
        self._terminated = False
        self._taken = 0
        """Bytes that it had read at the last check."""
        self._deaf = self._gone = self._gone_noted = False
        self._cut_off_at: float | None = None
        """The time when it counts as lost although its output is open: it has ended, or no longer reads."""
        self._stuck_at: float | None = None
        """The time when waiting for its end stops."""

    @property
    def due(self) -> tuple[float | None, float | None]:
        """The time of its next step."""
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
        Return whether it is lost: it has closed its output, has ended, or no longer reads.

        In the last two cases its earlier output must have had time to arrive.
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
        """Read its remaining output; return why it counts as lost. Its own children end with it."""
        status = self.child.wait(LAST_WORDS)
        self.drain(self.errors)
        self.drain(self.output)
        if status is not None:
            self.child.sweep()
            return why(status)
        return "it closed its output" if self.output.ended else "it closed its input"

    def drain(self, inlet: Inlet, *, bounded: bool = False) -> None:
        """Read the available output; if *bounded*, only while there is room."""
        for _ in range(_MOST_READS):
            if not self._loop.has_more(inlet) or (bounded and not inlet.ready):
                break
            inlet.read()

    def leave(self) -> None:
        """Stop reading its output, and start to end it."""
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
    """How a server is restarted."""

    start: Callable[[], Child]
    """Raises `StartError`."""
    report: Callable[[End, float], None]
    """Called with the end of a server, and the seconds until the next start."""


class ChildSupervisor:
    """The server of a poll loop: one run after the other."""

    def __init__(
        self, child: Child, policy: RestartPolicy | None, loop: Loop, client: Outlet, output: Take, errors: Take
    ) -> None:
        self._policy = policy
        self._loop = loop
        self._client = client
        self._takes = output, errors
        self.run = ChildRun(child, loop, client, output, errors)
        self._next_at: float | None = None
        """The time of the next start."""
        self._began = self.run.began
        """The time of the last start."""

    @property
    def due(self) -> tuple[float | None, ...]:
        """The times of the next steps."""
        # Everything else that the next run waits for wakes the loop by itself.
        waits = self.run.ending or self._client.full
        return (*self.run.due, None if waits else self._next_at)

    @property
    def down(self) -> bool:
        """Whether no child runs, and the next one waits to be started."""
        return self._next_at is not None

    def last_lines(self) -> list[str]:
        """Return the last lines on stderr of the last run, if there was one."""
        return self.run.child.tail.lines() if self._began == self.run.began else []

    def restart_in(self, seconds: float, reason: str) -> None:
        """End the last run, and start the next one in *seconds*."""
        if self._policy is None:
            return
        self.run.leave()
        self._next_at = perf_counter() + seconds
        self._policy.report(End(reason, self.last_lines()), seconds)

    def is_time(self) -> bool:
        """
        Return whether the last run is over and the next one is to begin.

        Not while the client does not read: it could not read the result of the handshake either.
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
