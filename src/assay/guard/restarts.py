"""Whether a server that has ended is started again, and when. No I/O, no clock: the time is handed in."""

from collections import deque
from typing import Final

POLICIES: Final = ("never", "on-failure", "always")
"""Never; unless it has ended with status 0; always."""

FIRST: Final = 0.1
LONGEST: Final = 10.0
"""
Seconds before the first start and before any: doubled each time. A slip is mended in no time, and a server that cannot
run is not tried so often that anybody else on the machine would notice.
"""

RAN_WELL: Final = LONGEST
"""Seconds after which a server has run well: what its end has to do with those before it is not likely to be much."""

WINDOW: Final = 60.0
"""Seconds within which starts are counted."""


class Restarts:
    """How often one server was started again, and whether it is once more."""

    __slots__ = ("_most", "_next", "_policy", "_recent", "count", "refusal")

    def __init__(self, policy: str, most: int) -> None:
        """By one of the `POLICIES`, and no more than *most* of them within `WINDOW`."""
        self._policy = policy
        self._most = most
        self._next = FIRST
        self._recent: deque[float] = deque(maxlen=most)
        self.count = 0
        """How often it was decided that it is."""
        self.refusal = ""
        """What is to be added to the reason of its end, where the policy alone would have it started once more."""

    def after(self, *, began: float, now: float, failed: bool) -> float | None:
        """
        Seconds to wait before the next start of a server that has run from *began* until *now*; None if there is none.

        *failed* says whether that was any other end than one with status 0.
        """
        if self._policy == "never" or (self._policy == "on-failure" and not failed):
            return None
        if len(self._recent) == self._most and now - self._recent[0] < WINDOW:
            self.refusal = f"too often within {WINDOW:g} seconds"
            return None
        if now - began >= RAN_WELL:
            self._next = FIRST
        wait, self._next = self._next, min(2 * self._next, LONGEST)
        self._recent.append(now)
        self.count += 1
        return wait


def times(number: int) -> str:
    """How often, in words."""
    return "once" if number == 1 else f"{number:,} times"
