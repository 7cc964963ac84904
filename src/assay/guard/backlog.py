"""Messages for a server that is not there yet. No I/O."""

from typing import Final

from assay.base.verdict import Exchange
from assay.guard.deliveries import Delivery
from assay.guard.outgoing import requests

FULL: Final = 1 << 20
"""Bytes that are kept, from which on the client is not read: as many as wait for a pipe."""

CROWDED: Final = FULL // 2
"""Bytes that are kept, from which on requests fail at once."""


class Backlog:
    """The deliveries that the next server gets, in their order, within bounds."""

    __slots__ = ("_kept", "size")

    def __init__(self) -> None:
        self._kept: list[Delivery] = []
        self.size = 0
        """Bytes that are kept."""

    @property
    def full(self) -> bool:
        """Whether the client is not to be read until the next server has taken what is kept."""
        return self.size >= FULL

    @property
    def crowded(self) -> bool:
        """Whether further requests fail at once."""
        return self.size >= CROWDED

    def add(self, deliveries: tuple[Delivery, ...]) -> None:
        """Keep *deliveries*."""
        self._kept += deliveries
        self.size += sum(len(each.frame) + 1 for each in deliveries)

    def drop(self, exchange: Exchange) -> bool:
        """Drop the message that is this request alone; False if it is not kept, or kept in a batch with others."""
        for number, each in enumerate(self._kept):
            if each.verdict is not None and each.verdict.exchange is exchange and each.verdict.kind == "request":
                del self._kept[number]
                self.size -= len(each.frame) + 1
                return True
        return False

    def requests(self) -> set[Exchange]:
        """Return the requests that are kept."""
        return {each for kept in self._kept if kept.verdict is not None for each in requests(kept.verdict) if each}

    def take(self) -> tuple[Delivery, ...]:
        """Return what was kept, and keep nothing."""
        kept, self._kept, self.size = tuple(self._kept), [], 0
        return kept
