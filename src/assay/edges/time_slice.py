"""How long one peer may keep the event loop busy before everybody else has a turn."""

from time import monotonic
from typing import Final

SECONDS: Final = 0.005
"""Longest work at a stretch. Small, since many peers may be at it at once; a turn of the loop costs far less."""


class Stint:
    """Work on what one peer has said at once, such as thousands of tiny messages, from its beginning to a pause."""

    __slots__ = ("_until",)

    def __init__(self) -> None:
        self._until = monotonic() + SECONDS

    @property
    def is_over(self) -> bool:
        """Whether the others are to have a turn before the work goes on."""
        return monotonic() >= self._until
