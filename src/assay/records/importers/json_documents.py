"""The entries of a list in one JSON document, each with its line. No I/O."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

import orjson

from assay.records.importers.entry_cutter import CutEntry, EntryCutter
from assay.records.importers.importer import LARGEST_DOCUMENT, is_cut
from assay.records.rows import TranscriptError

MOST_WHOLE: Final = 32 << 20
"""Maximal bytes of a document that is parsed as a whole, which is faster. A larger one is cut into its entries."""

_BOM: Final = b"\xef\xbb\xbf"


class Placed(NamedTuple):
    """An entry of a list, and where it is."""

    line: int
    """The line on which it begins; in a document on few lines, the number of the entry."""
    value: dict[str, Any]


Rescue = Callable[[bytes], dict[str, Any]]
"""Returns what can be read of an entry that is not JSON; empty if nothing can."""


def _raises(_: bytes) -> dict[str, Any]:
    return {}


def placed_entries(pieces: Iterable[bytes], title: str, *path: str, rescue: Rescue = _raises) -> Iterator[Placed]:
    """
    Yield the objects in the list at *path* of a document. Raises `TranscriptError`.

    *rescue* gets each entry that is not JSON. Of a large document that is broken, the entries before the fault are
    yielded first.
    """
    rest = iter(pieces)
    begin, size = [], 0
    for piece in rest:
        begin.append(piece)
        size += len(piece)
        if size > MOST_WHOLE:
            yield from _cut_entries(begin, rest, title, path, rescue)
            return
    yield from _whole_entries(b"".join(begin).removeprefix(_BOM), title, path, rescue)


def _cut_entries(
    begin: list[bytes], rest: Iterable[bytes], title: str, path: tuple[str, ...], rescue: Rescue
) -> Iterator[Placed]:
    cutter = EntryCutter(title, path, LARGEST_DOCUMENT)
    for number, entry in enumerate(_all_cut(cutter, begin, rest), 1):
        try:
            value = orjson.loads(entry.text)
        except orjson.JSONDecodeError as error:
            value = rescue(entry.text)
            if not value:
                line = entry.line + error.lineno - 1
                raise TranscriptError(f"line {line}: expected the JSON of {title}: {error.msg}") from None
        # As in `_lines`: in a document on few lines the number of the entry says more.
        if isinstance(value, dict):
            yield Placed(max(entry.line, number), value)


def _all_cut(cutter: EntryCutter, begin: list[bytes], rest: Iterable[bytes]) -> Iterator[CutEntry]:
    while begin:
        yield from cutter.feed(begin.pop(0))
    for piece in rest:
        yield from cutter.feed(piece)
    yield from cutter.end()


def _whole_entries(document: bytes, title: str, path: tuple[str, ...], rescue: Rescue) -> Iterable[Placed]:
    try:
        found = orjson.loads(document)
    except orjson.JSONDecodeError as error:
        if rescue is not _raises and not is_cut(error):
            return _cut_entries([document], (), title, path, rescue)
        raise TranscriptError(f"line {error.lineno}: expected the JSON of {title}: {_why(error)}") from None
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    if not isinstance(found, list):
        raise TranscriptError(f"expected a list{' at ' + '.'.join(path) if path else ''} in the JSON of {title}")
    lines = _lines(EntryCutter(title, path, LARGEST_DOCUMENT), document, len(found))
    return [Placed(line, each) for line, each in zip(lines, found, strict=True) if isinstance(each, dict)]


def _lines(cutter: EntryCutter, document: bytes, count: int) -> list[int]:
    """Return the line of each entry."""
    numbers = list(range(1, count + 1))
    if document.count(b"\n") < count:
        return numbers
    try:
        lines = [each.line for each in _all_cut(cutter, [document], ())]
    except TranscriptError:
        # The list is there twice; the parser has taken the last one.
        return numbers
    return lines if len(lines) == count else numbers


def _why(error: orjson.JSONDecodeError) -> str:
    return "it is cut off" if is_cut(error) else error.msg
