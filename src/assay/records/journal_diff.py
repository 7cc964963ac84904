"""
Compare two journals: the same traffic gives the same records, except for times and ids. No I/O.

Lines are compared in order; if one journal has lines that the other lacks, the rest is aligned.
"""

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, Final, NamedTuple

import orjson

from assay.records.reading import JournalEntry

_MAY_DIFFER: Final = frozenset({"ts", "durationMs", "requestId", "traceId", "spanId"})
_OF_A_TRANSPORT: Final = frozenset({"transport", "route"})
_OF_HTTP: Final = ("metadata.http.", "metadata.principal")
"""The beginnings of fields that only messages over HTTP have."""

_MOST_ALIGNED: Final = 2_000
"""Maximal lines to align: the time grows with their square. Longer journals are compared line by line."""

Flat = dict[str, Any]
"""A flattened record: its fields by path."""


class Field(NamedTuple):
    """A field that differs; `ABSENT` if one record lacks it."""

    name: str
    one: Any
    other: Any


class Absent:
    """Marks a missing field."""

    def __repr__(self) -> str:
        return "nothing"


ABSENT: Final = Absent()


class JournalDifference(NamedTuple):
    """Two lines that differ, or a line that the other journal lacks."""

    one: JournalEntry | None
    other: JournalEntry | None
    fields: Sequence[Field] = ()


class _Comparable:
    """Removes from records what differs between any two runs."""

    def __init__(self, *, across_transports: bool) -> None:
        self._ignored = _MAY_DIFFER | _OF_A_TRANSPORT if across_transports else _MAY_DIFFER
        self._across = across_transports
        self._sessions: dict[str, int] = {}

    def line(self, entry: JournalEntry) -> "_Line":
        found: Flat = {}
        if entry.record is None:
            found["line"] = entry.raw
        else:
            # All members of the line: those of a later version, too.
            for name, value in orjson.loads(entry.raw).items():
                if name not in self._ignored:
                    _flatten(name, value, found)
        # Every record repeats the mode of its run. Its effects are in `passed` and the bytes sent.
        found.pop("metadata.mode", None)
        session = found.pop("metadata.session", None)
        # The header has the session once more.
        found.pop("metadata.http.headers.Mcp-Session-Id", None)
        if self._across:
            found = {name: value for name, value in found.items() if not name.startswith(_OF_HTTP)}
        elif session is not None:
            # Session names are random: they are matched by their order.
            found["metadata.session"] = self._sessions.setdefault(str(session), len(self._sessions) + 1)
        return _Line(entry, found, tuple(found.items()))


class _Line(NamedTuple):
    entry: JournalEntry
    flat: Flat
    key: tuple[tuple[str, Any], ...]


def differences(
    one: Iterable[JournalEntry], other: Iterable[JournalEntry], *, across_transports: bool = False
) -> Iterator[JournalDifference]:
    """Yield the differences between two journals, in order."""
    here, there = (_Comparable(across_transports=across_transports) for _ in range(2))
    left, right = map(here.line, one), map(there.line, other)
    for ours, theirs in zip_longest(left, right):
        if ours is None or theirs is None or ours.key != theirs.key:
            # Everything is the same up to here; only the rest is held in memory.
            yield from _aligned(_rest(ours, left), _rest(theirs, right))
            return


def _rest(first: _Line | None, more: Iterator[_Line]) -> list[_Line]:
    return [] if first is None else [first, *more]


def _aligned(left: list[_Line], right: list[_Line]) -> Iterator[JournalDifference]:
    """Yield the differences of two lists, of which either may lack lines."""
    while left and right and left[-1].key == right[-1].key:
        left.pop()
        right.pop()
    if max(len(left), len(right)) > _MOST_ALIGNED:
        yield from _paired(left, right)
        return

    matcher = SequenceMatcher(None, [each.key for each in left], [each.key for each in right], autojunk=False)
    for what, begin, stop, other_begin, other_stop in matcher.get_opcodes():
        if what != "equal":
            yield from _paired(left[begin:stop], right[other_begin:other_stop])


def _paired(left: list[_Line], right: list[_Line]) -> Iterator[JournalDifference]:
    for ours, theirs in zip(left, right, strict=False):
        both = {name: (ours.flat.get(name, ABSENT), theirs.flat.get(name, ABSENT)) for name in ours.flat | theirs.flat}
        fields = [Field(name, *values) for name, values in both.items() if values[0] != values[1]]
        if fields:
            yield JournalDifference(ours.entry, theirs.entry, fields)
    yield from (JournalDifference(each.entry, None) for each in left[len(right) :])
    yield from (JournalDifference(None, each.entry) for each in right[len(left) :])


def _flatten(name: str, value: Any, found: Flat) -> None:
    if not isinstance(value, dict | list):
        found[name] = value
    elif not value:
        # An empty object or array is a value, too.
        found[name] = repr(value)
    else:
        for step, item in value.items() if isinstance(value, dict) else enumerate(value):
            _flatten(f"{name}.{step}", item, found)
