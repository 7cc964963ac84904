"""
Samples of bounded size that do not depend on the order of their elements, or on how the work was split. No I/O.

Of all elements those with the smallest priority are kept. A priority never changes, so an element that is among the
smallest of everything was also among the smallest of every part: nothing of it was dropped before.
"""

from collections.abc import Callable, Hashable, Iterator
from hashlib import blake2b
from typing import Final, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
Priority = tuple[int, ...]

_WIDEST: Final = 1 << 64


def rank(*parts: object) -> int:
    """Return a number below 2**64 that looks random, and is the same in every run."""
    text = "\0".join(map(str, parts)).encode(errors="surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big")


class Smallest(Generic[Key, Value]):
    """The entries with the smallest priorities, at most *most* of them."""

    __slots__ = ("_bound", "_entries", "most")

    def __init__(self, most: int) -> None:
        self.most = most
        self._entries: dict[Key, tuple[Priority, Value]] = {}
        self._bound: Priority | None = None
        """No entry with this priority or a larger one is kept; None while nothing was dropped."""

    def get(self, key: Key) -> Value | None:
        """Return the value of an entry; None if it is not kept."""
        found = self._entries.get(key)
        return None if found is None else found[1]

    def admits(self, priority: Priority) -> bool:
        """Whether a new entry with this priority is kept for now."""
        return self._bound is None or priority < self._bound

    def put(self, key: Key, priority: Priority, value: Value) -> None:
        """Add an entry that `admits` lets in."""
        self._entries[key] = (priority, value)
        if len(self._entries) > 2 * self.most:
            self._trim()

    def merge(self, other: "Smallest[Key, Value]", combine: Callable[[Value, Value], object]) -> None:
        """Add all entries of *other*; *combine* adds the second of two values of one key to the first."""
        if other._bound is not None and self.admits(other._bound):
            self._bound = other._bound
        for key, (priority, value) in other._entries.items():
            mine = self._entries.get(key)
            if mine is not None:
                combine(mine[1], value)
            elif self.admits(priority):
                self._entries[key] = (priority, value)
        self._entries = {key: each for key, each in self._entries.items() if self.admits(each[0])}
        if len(self._entries) > self.most:
            self._trim()

    def __iter__(self) -> Iterator[tuple[Key, Value]]:
        self._trim()
        return ((key, value) for key, (_, value) in self._entries.items())

    def values(self) -> Iterator[Value]:
        """Yield the values, those with the smallest priority first."""
        return (value for _, value in self)

    @property
    def is_partial(self) -> bool:
        """Whether entries were dropped."""
        self._trim()
        return self._bound is not None

    def _trim(self) -> None:
        ordered = sorted(self._entries.items(), key=lambda each: each[1][0])
        if len(ordered) > self.most:
            self._bound = ordered[self.most][1][0]
        self._entries = dict(ordered[: self.most])


class DistinctCount:
    """The number of different things, of which it keeps the smallest ranks: exact up to *most*, else within 5 %."""

    __slots__ = ("_most", "_ranks")

    def __init__(self, most: int = 4096) -> None:
        self._most = most
        self._ranks: set[int] = set()

    def add(self, ranked: int) -> None:
        """Count a thing by its rank."""
        self._ranks.add(ranked)
        if len(self._ranks) > 2 * self._most:
            self._trim()

    def merge(self, other: "DistinctCount") -> None:
        """Count everything that *other* has counted."""
        self._ranks |= other._ranks
        self._trim()

    @property
    def is_exact(self) -> bool:
        """Whether `count` is exact."""
        self._trim()
        return len(self._ranks) < self._most

    @property
    def count(self) -> int:
        """The number, or an estimate."""
        if self.is_exact:
            return len(self._ranks)
        # Of ranks spread evenly, the k-th smallest says how dense they are.
        return round((self._most - 1) * _WIDEST / max(self._ranks))

    def _trim(self) -> None:
        if len(self._ranks) > self._most:
            self._ranks = set(sorted(self._ranks)[: self._most])
