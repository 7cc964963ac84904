"""When a child may be started again. No I/O; the clock is given."""

from collections.abc import Callable
from typing import Final

SHORTEST: Final = 0.1
LONGEST: Final = 30.0
"""Seconds from one failure to the next attempt: twice as many each time, within these."""

WELL: Final = 30.0
"""Seconds after which a child has run well, and its end counts as the first."""


class Backoff:
    """The attempts to run one command."""

    __slots__ = ("_clock", "_pause", "_until", "reason")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._pause = 0.0
        self._until = 0.0
        self.reason = ""
        """
        What happened last. Every caller hears it, so it has nothing of what the child wrote to stderr: that may hold
        the arguments of another caller, or a secret of the server.
        """

    @property
    def closed(self) -> bool:
        """Whether it is too early for another attempt."""
        return self._clock() < self._until

    @property
    def is_spent(self) -> bool:
        """Whether the last failure is so long ago that it does not count any more."""
        return self._clock() - self._until >= WELL

    def failed(self, began: float, reason: str) -> None:
        """An attempt that *began* then has come to nothing, or to an end."""
        now = self._clock()
        self._pause = SHORTEST if now - began >= WELL else min(LONGEST, max(SHORTEST, 2 * self._pause))
        self._until = now + self._pause
        self.reason = reason
