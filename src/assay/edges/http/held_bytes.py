"""Bytes that are held for peers, and which of them lose theirs when there are too many. No I/O, no clock."""

from collections.abc import Hashable
from ipaddress import ip_address
from typing import Generic, TypeVar

from assay.model.bounded import Shares

H = TypeVar("H", bound=Hashable)


class HeldBytes(Generic[H]):
    """
    Bytes by holder, such as a connection, and by the owner of the holders, such as a principal.

    Beyond the limit the owner with the most bytes loses: the holder with the most of them gives up. So no owner can
    push out another one that holds less, in however many pieces.
    """

    __slots__ = ("_held", "_shares")

    def __init__(self, limit: int) -> None:
        self._shares = Shares(limit)
        self._held: dict[H, tuple[Hashable, int]] = {}

    @property
    def total(self) -> int:
        """All held bytes."""
        return self._shares.total

    def __contains__(self, holder: object) -> bool:
        return holder in self._held

    def hold(self, holder: H, owner: Hashable, count: int) -> list[H]:
        """Set the bytes of *holder*, which belongs to *owner*; return the holders that give up, already released."""
        self.release(holder)
        if count > 0:
            self._held[holder] = owner, count
            self._shares.add(owner, count)
        losing = []
        # One holder alone is bounded by the longest message.
        while self._shares.total > self._shares.most and len(self._held) > 1:
            losing.append(self._loser())
            self.release(losing[-1])
        return losing

    def _loser(self) -> H:
        most = self._shares.largest
        own = (each for each, (owner, _) in self._held.items() if owner == most)
        return max(own, key=lambda each: self._held[each][1])

    def release(self, holder: H) -> None:
        """Forget *holder*."""
        # Nearly no holder has any, and this is called for every request.
        if holder in self._held:
            self._shares.give_back(*self._held.pop(holder))


def network_of(address: str) -> Hashable:
    """Return the owner of connections from *address*: the address, or of IPv6 the network, which one host may have."""
    if ":" not in address:
        return address
    try:
        return ip_address(address.partition("%")[0]).packed[:8]
    except ValueError:
        return address
