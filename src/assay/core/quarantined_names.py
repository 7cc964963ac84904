"""List the names of quarantined entries for a summary. The names are already printable. No I/O."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from assay.base.printable import counted
from assay.base.verdict import ListEntry

MOST_NAMES: Final = 20
"""Maximal names of one kind in a line; the rest are counted."""

_MOST_KEPT: Final = 1000
"""Maximal entries to remember: a peer can send any number of names."""


class Quarantined:
    """The quarantined entries of many messages, each once, in order of appearance."""

    __slots__ = ("_entries", "_more")

    def __init__(self) -> None:
        self._entries: dict[ListEntry, None] = {}
        self._more = 0

    def add(self, entries: Iterable[ListEntry]) -> None:
        """Add the entries of one message."""
        for each in entries:
            if each in self._entries:
                continue
            if len(self._entries) < _MOST_KEPT:
                self._entries[each] = None
            else:
                self._more += 1

    def lines(self, hidden: Callable[[str], str] = str) -> Iterator[str]:
        """Return a line for each kind: ``search, delete (2 tools)``. *hidden* masks secrets in a name."""
        for kind in dict.fromkeys(each.kind for each in self._entries):
            names = [hidden(each.name) for each in self._entries if each.kind == kind]
            yield f"{listed(names)} ({counted(len(names), kind)})"
        if self._more:
            yield f"{self._more:,} more"


def listed(names: Sequence[str]) -> str:
    """Return *names* as a list, shortened."""
    rest = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + rest


def summed(entries: Sequence[ListEntry], where: str, hidden: Callable[[str], str] = str) -> str:
    """Return the quarantined entries of the message *where*: ``2 tools in tools/list #1: search, delete``."""
    names = [hidden(each.name) for each in entries]
    return f"{counted(len(names), entries[0].kind)} in {where}: {listed(names)}"
