"""Whether and when something that failed is tried again: a child process, a stream. No I/O; the time is handed in."""

from collections import deque
from typing import Final

POLICIES: Final = ("never", "on-failure", "always")
"""``on-failure``: unless the server ended with exit status 0."""

FIRST: Final = 0.1
LONGEST: Final = 30.0
"""
Seconds before the second attempt, and before any: doubled each time. A short fault is over soon, and a server that
cannot run is not started so often that others on the machine would notice.
"""

WINDOW: Final = 60.0
"""Seconds within which attempts are counted."""


class Backoff:
    """The attempts to run one server, or to resume one stream."""

    __slots__ = ("_most", "_next", "_policy", "_recent", "_until", "count", "reason", "refusal")

    def __init__(self, policy: str = "always", most: int = 0) -> None:
        """*policy* is one of `POLICIES`; *most* is how many attempts there may be within `WINDOW`, 0 for any number."""
        self._policy = policy
        self._most = most
        self._next = FIRST
        self._until = 0.0
        self._recent: deque[float] = deque(maxlen=most or 1)
        self.count = 0
        """How often another attempt was allowed."""
        self.refusal = ""
        """Why there is no further attempt, where the policy alone would allow one."""
        self.reason = ""
        """
        Why the last attempt failed. Every client may read it, so it has nothing of what a child wrote to stderr: that
        may hold the arguments of another client, or a secret of the server.
        """

    def after(self, *, began: float, now: float, failed: bool = True, reason: str = "") -> float | None:
        """
        Return how many seconds to wait before the next attempt; None if there is to be none.

        The last attempt ran from *began* until *now*; *failed* is False if it ended with exit status 0.
        """
        self.reason = reason
        if self._policy == "never" or (self._policy == "on-failure" and not failed):
            return None
        if self._most and len(self._recent) == self._most and now - self._recent[0] < WINDOW:
            self.refusal = f"too often within {WINDOW:g} seconds"
            return None
        if now - began >= LONGEST:
            # It ran well: its end has little to do with the failures before.
            self._next = FIRST
        wait, self._next = self._next, min(2 * self._next, LONGEST)
        self._recent.append(now)
        self._until = now + wait
        self.count += 1
        return wait

    def is_closed(self, now: float) -> bool:
        """Return whether it is too early for another attempt."""
        return now < self._until

    def is_spent(self, now: float) -> bool:
        """Return whether the last failure is so long ago that it does not count any more."""
        return now - self._until >= LONGEST


def pause(first: float, failures: int) -> float:
    """Return how many seconds to wait after so many *failures* in a row, where a peer names the *first* pause."""
    return min(LONGEST, max(first, 0.05) * (1 << min(failures, 10)))


def times(number: int) -> str:
    """Return how often, in words."""
    return "once" if number == 1 else f"{number:,} times"
