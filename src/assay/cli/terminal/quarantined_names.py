"""The names of quarantined entries, for a summary. What peers called them was made printable before. No I/O."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from assay.base.verdict import ListEntry, Verdict

MOST_NAMES: Final = 20
"""Names of one kind that a line has; the rest are counted."""

_MOST_KEPT: Final = 1000
"""Entries that are told apart: names are the peer's, and may be many."""


class Quarantined:
    """The quarantined entries of many verdicts, each once, in the order they came."""

    __slots__ = ("_entries", "_more")

    def __init__(self) -> None:
        self._entries: dict[ListEntry, None] = {}
        self._more = 0

    def add(self, verdict: Verdict) -> None:
        """Take the entries of one verdict."""
        for each in verdict.quarantined:
            if each in self._entries:
                continue
            if len(self._entries) < _MOST_KEPT:
                self._entries[each] = None
            else:
                self._more += 1

    def lines(self, hidden: Callable[[str], str] = str) -> Iterator[str]:
        """A line for each kind: ``search, delete (2 tools)``. *hidden* takes the secrets out of a name."""
        for kind in dict.fromkeys(each.kind for each in self._entries):
            names = [hidden(each.name) for each in self._entries if each.kind == kind]
            yield f"{listed(names)} ({counted(len(names), kind)})"
        if self._more:
            yield f"{self._more:,} more"


def listed(names: Sequence[str]) -> str:
    """*names* as a list, cut short."""
    rest = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + rest


def counted(number: int, kind: str) -> str:
    """So many of a kind: ``1 tool``, ``2 resource templates``."""
    return f"{number:,} {kind}{'' if number == 1 else 's'}"


def summed(entries: Sequence[ListEntry], where: str, hidden: Callable[[str], str] = str) -> str:
    """What is quarantined of the message *where*: ``2 tools in tools/list #1: search, delete``."""
    names = [hidden(each.name) for each in entries]
    return f"{counted(len(names), entries[0].kind)} in {where}: {listed(names)}"
