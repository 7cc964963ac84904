"""Bounds on what peers can make us keep: a dict that forgets, and shares of a bound. No I/O."""

from collections.abc import Hashable
from typing import TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Bounded(dict[_Key, _Value]):
    """A dict that forgets its oldest entry for one too many. An entry that is set again keeps its age."""

    __slots__ = ("most",)

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def __setitem__(self, key: _Key, value: _Value) -> None:
        super().__setitem__(key, value)
        if len(self) > self.most:
            del self[next(iter(self))]


class Shares:
    """
    What each owner has of something that is bounded for all of them together.

    An owner gets more as long as there is room, and beyond that up to an equal share of the bound. So all of them
    together have at most twice the bound, and an owner that has little never waits for one that has much.
    """

    __slots__ = ("_owned", "most", "total")

    def __init__(self, most: int) -> None:
        self.most = most
        self._owned: dict[Hashable, int] = {}
        self.total = 0
        """What all have together."""

    def has_room(self, owner: Hashable, count: int) -> bool:
        """Whether *owner* may have *count* more."""
        if self.total + count <= self.most:
            return True
        own = self._owned.get(owner, 0)
        owners = len(self._owned) + (owner not in self._owned)
        return own + count <= self.most // owners

    def take(self, owner: Hashable, count: int) -> bool:
        """Count *count* more for *owner*; return False, and count nothing, if there is no room."""
        if not self.has_room(owner, count):
            return False
        self.add(owner, count)
        return True

    def add(self, owner: Hashable, count: int) -> None:
        """Count *count* more for *owner*, whether there is room or not."""
        if count:
            self.total += count
            self._owned[owner] = self._owned.get(owner, 0) + count

    @property
    def largest(self) -> Hashable:
        """The owner that has most; there must be one."""
        return max(self._owned, key=self._owned.__getitem__)

    def give_back(self, owner: Hashable, count: int) -> None:
        """Count *count* less for *owner*."""
        if not count:
            return
        self.total -= count
        left = self._owned[owner] - count
        if left:
            self._owned[owner] = left
        else:
            del self._owned[owner]


class BoundedSizes(dict[_Key, _Value]):
    """
    A dict that forgets its oldest entries for one too many, or for entries that are too large all together.

    Entries are added with `put` and removed with `take`, which count their sizes.
    """

    __slots__ = ("_sizes", "is_cut", "most", "most_size", "size")

    def __init__(self, most: int, most_size: int) -> None:
        super().__init__()
        self.most = most
        self.most_size = most_size
        self.size = 0
        """The size of all entries."""
        self.is_cut = False
        """Whether an entry was forgotten."""
        self._sizes: dict[_Key, int] = {}

    def put(self, key: _Key, value: _Value, size: int) -> None:
        """Keep an entry. One that is kept already keeps its age, and one beyond the bound is forgotten at once."""
        self.size += size - self._sizes.get(key, 0)
        self._sizes[key] = size
        self[key] = value
        while len(self) > self.most or self.size > self.most_size:
            self.is_cut = True
            self.take(next(iter(self)))

    def take(self, key: _Key) -> _Value | None:
        """Remove and return an entry; None if there is none."""
        self.size -= self._sizes.pop(key, 0)
        return self.pop(key, None)
