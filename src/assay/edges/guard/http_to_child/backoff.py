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

    __slots__ = ("_clock", "_pause", "_until", "last_words", "reason")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._pause = 0.0
        self._until = 0.0
        self.reason = ""
        """What happened last."""
        self.last_words: list[str] = []

    @property
    def closed(self) -> bool:
        """Whether it is too early for another attempt."""
        return self._clock() < self._until

    def failed(self, began: float, reason: str, last_words: list[str]) -> None:
        """An attempt that *began* then has come to nothing, or to an end."""
        now = self._clock()
        self._pause = SHORTEST if now - began >= WELL else min(LONGEST, max(SHORTEST, 2 * self._pause))
        self._until = now + self._pause
        self.reason, self.last_words = reason, last_words
