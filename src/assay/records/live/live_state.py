"""Small values of a live feed, for modules that must not import the rest. No I/O."""

from math import inf
from typing import Final, NamedTuple


class LiveState(NamedTuple):
    """Whether a server runs."""

    state: str = "running"
    """``running``, ``idle``, ``failed``, or ``ended`` after the client left."""
    why: str = ""
    stderr: str = ""
    """The last line on stderr of a server that failed, as it was written."""


RUNNING: Final = LiveState()


class FlushTime:
    """When waiting lines are to be sent, by `time.perf_counter`; infinity if none wait."""

    __slots__ = ("due",)

    def __init__(self) -> None:
        self.due = inf
