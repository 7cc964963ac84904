"""The entries of a list in one JSON document, each with its line. No I/O."""

from typing import Any, NamedTuple

import orjson

from assay.records.importers.json_members import entries_of, place_of
from assay.records.transcript import TranscriptError


class Placed(NamedTuple):
    """An entry of a list, and where it is."""

    line: int
    """The line on which it begins; in a document on few lines, the number of the entry."""
    value: dict[str, Any]


def placed_entries(document: bytes, title: str, *path: str) -> list[Placed]:
    """Return the objects in the list at *path* of a document. Raises `TranscriptError`."""
    try:
        found = orjson.loads(document)
    except orjson.JSONDecodeError as error:
        raise TranscriptError(f"line {error.lineno}: expected the JSON of {title}: {_why(error)}") from None
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    if not isinstance(found, list):
        raise TranscriptError(f"expected a list{' at ' + '.'.join(path) if path else ''} in the JSON of {title}")
    lines = _lines(document, path, len(found))
    return [Placed(line, each) for line, each in zip(lines, found, strict=True) if isinstance(each, dict)]


def _lines(document: bytes, path: tuple[str, ...], count: int) -> list[int]:
    """Return the line of each entry."""
    begin = place_of(document, *path)
    starts = [start for start, _ in entries_of(document, begin)] if begin is not None else []
    if len(starts) != count or document.count(b"\n") < count:
        return list(range(1, count + 1))
    lines, line, last = [], 1, 0
    for start in starts:
        near = document[start : start + 4096]
        begin = start + len(near) - len(near.lstrip())
        line += document.count(b"\n", last, begin)
        last = begin
        lines.append(line)
    return lines


def _why(error: orjson.JSONDecodeError) -> str:
    return "it is cut off" if "unexpected end" in error.msg else error.msg
