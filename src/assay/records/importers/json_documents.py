"""
The entries of a list in a JSON document of any size, in the order of time and in bounded memory. No I/O.

Entries, and the members of an object, are cut out of the text to the byte: a parser keeps one of two equal keys, and
one fault in a document is not the end of all of it.
"""

import re
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from itertools import count
from math import inf, nextafter
from typing import Any, Final, NamedTuple, TypeVar

import orjson

from assay.records.importers.importer import LARGEST_DOCUMENT
from assay.records.rows import TranscriptError

_T = TypeVar("_T")

# ── cutting ──────────────────────────────────────────────────────────────────────────────────────────────────────────

_STRING: Final = rb'"(?:[^"\\]++|\\.)*+"'
_TOKEN: Final = re.compile(_STRING + rb"|[{}\[\],:]", re.DOTALL)
_OUTSIDE: Final = re.compile(rb'[^"{}\[\],:]*+(' + _STRING + rb"|[{}\[\],:])", re.DOTALL)
"""The next token before and behind the list."""
_BETWEEN: Final = re.compile(rb'(?:[^"{}\[\],]++|' + _STRING + rb")*+([{}\[\],])", re.DOTALL)
"""The next token that may begin or end an entry."""
_INSIDE: Final = re.compile(rb'(?:[^"{}\[\]]++|' + _STRING + rb")*+([{}\[\]])", re.DOTALL)
"""The next bracket inside an entry."""

_WRITTEN: Final = re.compile(rb"\S")

_LONGEST_NAME: Final = 100
"""Maximal bytes of a name in a path. Longer strings are something else."""


class Entry(NamedTuple):
    """An entry of a list, and where it is."""

    line: int
    """The line on which it begins; in a document on few lines, the number of the entry."""
    value: dict[str, Any]


def entries_of(pieces: Iterable[bytes], title: str, *path: str, is_rescued: bool = False) -> Iterator[Entry]:
    """
    Yield the objects in the list at *path* of the document in *pieces*. Raises `TranscriptError`.

    *title* names the format in errors. Of a broken document the entries before the fault are yielded first; with
    *is_rescued* an entry that is not JSON is no fault if it has members that can be told apart.
    """
    for number, (line, text) in enumerate(_Cutter(title, path).cut(pieces), 1):
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            value = {name: value_of(each) for name, each in members_of(text).items()} if is_rescued else {}
            if not value:
                reason = f"line {line + error.lineno - 1}: expected the JSON of {title}: {error.msg}"
                raise TranscriptError(reason) from None
        if isinstance(value, dict):
            yield Entry(max(line, number), value)


class _Cutter:
    """
    Cuts the entries out of the list at a path.

    Only brackets and strings are looked at. Whether an entry is JSON shows when it is parsed.
    """

    def __init__(self, title: str, path: tuple[str, ...]) -> None:
        self._title, self._path = title, path
        self._names = [""] * len(path)
        """The names that lead to where we are, as deep as the path."""
        self._name = b""
        """The string before, if it may be a name."""
        self._held = bytearray()
        self._at = 0
        """How far the bytes that are held were looked at."""
        self._line = 1
        """The line of the first byte that is held."""
        self._depth = 0
        self._list_depth = 0
        """The depth inside the list; 0 outside of it."""
        self._is_found = False

    def cut(self, pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
        """Yield each entry with its line. Raises `TranscriptError` if one is too large, or the list is not whole."""
        due = 0
        for piece in pieces:
            self._held += piece
            if due <= len(self._held) or len(self._held) > LARGEST_DOCUMENT:
                yield from self._entries()
                self._check(len(self._held))
                # A long string is not looked at with each piece of it.
                due = 2 * len(self._held) - self._at
        yield from self._entries()
        if self._depth or self._held.strip():
            raise TranscriptError(f"line {self._line}: expected the JSON of {self._title}: it is cut off")
        if not self._is_found:
            place = f" at {'.'.join(self._path)}" if self._path else ""
            raise TranscriptError(f"expected a list{place} in the JSON of {self._title}")

    def _entries(self) -> Iterator[tuple[int, bytes]]:
        """Yield the entries that end in the bytes that are held."""
        while True:
            between = _BETWEEN if self._depth == self._list_depth else _INSIDE
            token = (between if self._list_depth else _OUTSIDE).match(self._held, self._at)
            if token is None:
                return
            mark, end, self._at = token[1], token.start(1), token.end()
            if not self._list_depth:
                self._outside(mark)
                self._drop(self._at)
                continue
            if mark != b",":
                self._depth += 1 if mark in b"{[" else -1
            if self._depth < self._list_depth or mark == b",":
                written = _WRITTEN.search(self._held, 0, end)
                begin = end if written is None else written.start()
                self._drop(begin)
                self._check(end - begin)
                if end > begin:
                    yield self._line, bytes(self._held[: end - begin])
                self._drop(self._at)
            if self._depth < self._list_depth:
                self._list_depth = 0

    def _outside(self, mark: bytes) -> None:
        """Follow a token outside of the list."""
        is_named = 0 < self._depth <= len(self._path)
        if mark in b"{[":
            is_here = self._depth == len(self._path) and tuple(self._names) == self._path
            self._depth += 1
            if is_here and mark == b"[" and not self._is_found:
                self._list_depth, self._is_found = self._depth, True
            elif 0 < self._depth <= len(self._path):
                self._names[self._depth - 1] = ""
        elif mark in b"}]":
            self._depth -= 1
        elif mark == b":" and is_named:
            self._names[self._depth - 1] = str(value_of(self._name))
            if self._is_found and tuple(self._names[: self._depth]) == self._path[: self._depth]:
                # The last one of equal names counts, and the entries of another one are judged already.
                name = ".".join(self._path[: self._depth])
                raise TranscriptError(f"line {self._line}: expected one {name} in the JSON of {self._title}")
        elif mark == b"," and is_named:
            self._names[self._depth - 1] = ""
        self._name = mark if mark[:1] == b'"' and len(mark) <= _LONGEST_NAME else b""

    def _check(self, size: int) -> None:
        if size > LARGEST_DOCUMENT:
            raise TranscriptError(f"line {self._line}: expected an entry of at most {LARGEST_DOCUMENT:,} bytes")

    def _drop(self, until: int) -> None:
        """Forget the bytes before *until*."""
        self._line += self._held.count(b"\n", 0, until)
        del self._held[:until]
        self._at -= until


def members_of(text: bytes) -> dict[str, bytes]:
    """Return the text of each member of the JSON object *text*, as far as it is one; of repeated keys the last one."""
    found: dict[str, bytes] = {}
    name, begin, depth = "", 0, 0
    is_name = True
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if depth == 1 and is_name and mark[:1] == b'"':
            name = str(value_of(mark))
        elif depth == 1 and is_name and mark == b":":
            begin, is_name = token.end(), False
        elif mark in b"{[":
            depth += 1
        elif mark in b"}]":
            depth -= 1
        if not is_name and (depth == 0 or (depth == 1 and mark == b",")):
            found[name] = text[begin : token.start()].strip()
            is_name = True
    return found


def value_of(text: bytes) -> Any:
    """Return the value of the JSON *text*; *text* itself if it is not JSON."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


# ── the order of time ────────────────────────────────────────────────────────────────────────────────────────────────

MOST_HELD: Final = 32 << 20
"""Bytes of entries to hold at a time. Recorders write in the order of time, but for streams, written at their end."""

MOST_ITEMS: Final = 500_000
"""Moments to hold at a time, some 300 bytes each beside the message: a message may be empty."""


class Times(NamedTuple):
    """The times of an item, such as a request with its response."""

    begin: float | None
    """Its beginning in seconds; None if it is unknown."""
    end: float | None
    """Its end; None for an item that ends at its beginning."""
    size: int
    """The bytes that it takes in memory."""
    is_stream: bool = False
    """Whether it may end long after everything else: nothing is put behind its end."""


def in_order(items: Iterable[tuple[Times, _T]]) -> Iterator[tuple[_T, bool]]:
    """
    Yield each item at its beginning, with False, and at its end, with True, in the order of time.

    At one time ends come first, and then the order of the file. Not more than `MOST_HELD` bytes are held, and not more
    than `MOST_ITEMS`. In a larger file, what comes later than so many bytes after its time is not moved to its place.
    """
    held: list[tuple[float, float, int, int, bool, _T]] = []
    total, order = 0, count()
    for place, (_, end, size, _), item in _placed(items):
        heappush(held, (place, place, next(order), 0, False, item))
        heappush(held, (place if end is None else end, place, next(order), size, True, item))
        total += size
        while total > MOST_HELD or len(held) > MOST_ITEMS:
            *_, freed, is_end, first = heappop(held)
            total -= freed
            yield first, is_end
    while held:
        *_, is_end, first = heappop(held)
        yield first, is_end


def _placed(items: Iterable[tuple[Times, _T]]) -> Iterator[tuple[float, Times, _T]]:
    """
    Yield *items* in the order of the file, each with its time; one without a time is put between its neighbours.

    It is put as late as possible, just before the next one with a time: what ended in between most likely comes before
    it. At the end of the file it is put behind everything.
    """
    undated: list[tuple[Times, _T]] = []
    held, last, latest = 0, 0.0, 0.0
    for times, item in items:
        begin, end, size, is_stream = times
        if begin is not None:
            # In a file that runs backwards the next one is the earlier one.
            between = begin if begin >= last else nextafter(last, -inf)
            latest = max(latest, begin, begin if end is None or is_stream else end)
            last = begin
        else:
            undated.append((times, item))
            held += size
            if held <= MOST_HELD and len(undated) <= MOST_ITEMS:
                continue
            between = last
        yield from ((between, *each) for each in undated)
        undated, held = [], 0
        if begin is not None:
            yield begin, times, item
    yield from ((latest, *each) for each in undated)
