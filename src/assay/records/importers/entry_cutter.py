"""Cut the entries of a list out of a JSON document that arrives in pieces, in bounded memory. No I/O."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from assay.records.importers.json_members import string_of
from assay.records.rows import TranscriptError

_STRING: Final = rb'"(?:[^"\\]++|\\.)*+"'
_OUTSIDE: Final = re.compile(rb'[^"{}\[\],:]*+(' + _STRING + rb"|[{}\[\],:])", re.DOTALL)
"""The next token before and behind the list."""
_BETWEEN: Final = re.compile(rb'(?:[^"{}\[\],]++|' + _STRING + rb")*+([{}\[\],])", re.DOTALL)
"""The next token that may begin or end an entry."""
_INSIDE: Final = re.compile(rb'(?:[^"{}\[\]]++|' + _STRING + rb")*+([{}\[\]])", re.DOTALL)
"""The next bracket inside an entry."""

_WRITTEN: Final = re.compile(rb"\S")
_OPENING: Final = b"{["

_LONGEST_NAME: Final = 100
"""Maximal bytes of a name in a path. Longer strings are something else."""


class CutEntry(NamedTuple):
    """The text of an entry, and the line on which it begins."""

    line: int
    text: bytes


class EntryCutter:
    """
    The entries of the list at a path of a document, given one piece after the other.

    Only brackets and strings are looked at. Whether an entry is JSON shows when it is parsed.
    """

    def __init__(self, title: str, path: tuple[str, ...], most: int) -> None:
        """*title* names the format in errors; *path* has names of members; an entry has at most *most* bytes."""
        self._title, self._path, self._most = title, path, most
        self._held = bytearray()
        self._at = 0
        """How far the bytes that are held were looked at."""
        self._due = 0
        """Look again when there are so many bytes: a long string is not looked at with each piece of it."""
        self._line = 1
        """The line of the first byte that is held."""
        self._depth = 0
        self._matched = 0
        """The number of names of the path that lead to where we are."""
        self._name = b""
        self._is_named = not path
        """Whether the next value is the one at the next name of the path."""
        self._list_depth = 0
        """The depth inside the list; 0 outside of it."""
        self.is_found = False
        """Whether the list was found."""

    def feed(self, piece: bytes) -> Iterator[CutEntry]:
        """Yield the entries that end in *piece*. Raises `TranscriptError` for one that is too large."""
        self._held += piece
        if len(self._held) < self._due and len(self._held) <= self._most:
            return
        yield from self._cut()
        self._check(len(self._held))
        self._due = self._at + 2 * (len(self._held) - self._at)

    def end(self) -> Iterator[CutEntry]:
        """Yield the last entries. Raises `TranscriptError` for a document that is cut off, or lacks the list."""
        yield from self._cut()
        if self._depth or self._held.strip():
            raise TranscriptError(f"line {self._line}: expected the JSON of {self._title}: it is cut off")
        if not self.is_found:
            raise TranscriptError(f"expected a list at {'.'.join(self._path)} in the JSON of {self._title}")

    def _cut(self) -> Iterator[CutEntry]:
        while True:
            if self._list_depth:
                token = (_BETWEEN if self._depth == self._list_depth else _INSIDE).match(self._held, self._at)
            else:
                token = _OUTSIDE.match(self._held, self._at)
            if token is None:
                return
            mark, begin, self._at = token[1], token.start(1), token.end()
            if self._list_depth:
                yield from self._entry(mark, begin)
            else:
                self._outside(mark)
                self._drop(self._at)

    def _entry(self, mark: bytes, begin: int) -> Iterator[CutEntry]:
        """Follow a token in the list; yield the entry that it ends."""
        if mark in _OPENING:
            self._depth += 1
            return
        if mark != b",":
            self._depth -= 1
        if self._depth < self._list_depth or mark == b",":
            start = _begin(self._held, begin)
            self._drop(start)
            self._check(begin - start)
            if begin > start:
                yield CutEntry(self._line, bytes(self._held[: begin - start]))
            self._drop(self._at)
        if self._depth < self._list_depth:
            self._list_depth = 0

    def _check(self, size: int) -> None:
        if size > self._most:
            raise TranscriptError(f"line {self._line}: expected an entry of at most {self._most:,} bytes")

    def _outside(self, mark: bytes) -> None:
        """Follow a token outside of the list."""
        if mark in _OPENING:
            self._depth += 1
            if self._is_named and self._depth > len(self._path) and mark == b"[" and not self.is_found:
                self._list_depth, self.is_found = self._depth, True
            elif self._is_named:
                self._matched += 1
            self._is_named = False
        elif mark in b"}]":
            self._depth -= 1
            self._matched = min(self._matched, max(self._depth - 1, 0))
        elif mark == b":":
            is_here = self._depth == self._matched + 1 and self._matched < len(self._path)
            self._is_named = is_here and string_of(self._name) == self._path[self._matched]
            if self._is_named and self.is_found:
                # The last one of equal names counts, and the entries of another one are judged already.
                name = ".".join(self._path[: self._matched + 1])
                raise TranscriptError(f"line {self._line}: expected one {name} in the JSON of {self._title}")
        elif mark == b",":
            self._is_named = False
        self._name = mark if mark[:1] == b'"' and len(mark) <= _LONGEST_NAME else b""

    def _drop(self, until: int) -> None:
        """Forget the bytes before *until*."""
        self._line += self._held.count(b"\n", 0, until)
        del self._held[:until]
        self._at -= until


def _begin(text: bytearray, end: int) -> int:
    """Return the place of the first byte before *end* that is not a blank; *end* without one."""
    found = _WRITTEN.search(text, 0, end)
    return end if found is None else found.start()
