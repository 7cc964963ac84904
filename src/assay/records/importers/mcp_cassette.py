"""Cassettes of mcp-cassette, version 1 and 2: a header, then frames with their time in milliseconds."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from assay.base.verdict import Party
from assay.ladder import syntax
from assay.records.importers.importer import (
    LARGEST_DOCUMENT,
    ImportOptions,
    cut_off,
    first_object,
    records,
    seconds,
)
from assay.records.importers.talks import opened, row
from assay.records.transcript import PARTIES, TranscriptError, TranscriptRow

_VERSIONS: Final = (1, 2)

_MASK: Final = re.compile(r"\[REDACTED:[a-z]+:[0-9a-f]{8}\]")

_NUMBER: Final = 1
"""A cassette has one conversation."""


class _Frame(NamedTuple):
    """A message of a cassette."""

    time: float
    """Milliseconds since the start."""
    line: int
    party: Party
    frame: bytes


def detect(head: bytes, _: str) -> bool:
    """Return whether the first JSON object is the header of a cassette."""
    first = first_object(head)
    return first.get("type") == "header" and "cassetteVersion" in first


def read(lines: Iterable[bytes], _: ImportOptions) -> Iterator[TranscriptRow]:
    """Yield the messages in the order of their times: a stream is written as one line, when it has ended."""
    header: dict[str, Any] = {}
    frames: list[_Frame] = []
    cut, size = [], 0
    for line in records(lines, "mcp-cassette"):
        size += len(line.text)
        if size > LARGEST_DOCUMENT:
            raise TranscriptError(f"more than {LARGEST_DOCUMENT:,} bytes, which is the most for this format")
        if not line.value:
            cut.append(cut_off(line))
        elif line.value.get("type") == "header":
            header = _checked(line.number, line.value)
        else:
            frames.extend(_frames(line.number, line.value, frames[-1].time if frames else 0.0))
    # The sort keeps the order of the file for equal times.
    frames.sort(key=lambda each: each.time)
    yield opened(1, _NUMBER, "")
    if cut:
        # The messages of a stream are written last, whenever they were sent.
        yield TranscriptRow(1, {"event": "gap", "conversation": _NUMBER})
    yield from _rows(header, frames)
    yield from cut


def _checked(number: int, header: dict[str, Any]) -> dict[str, Any]:
    if header.get("cassetteVersion") not in _VERSIONS:
        raise TranscriptError(f"line {number}: a cassette of another version; 1 and 2 are known")
    return header


def _rows(header: dict[str, Any], frames: list[_Frame]) -> Iterator[TranscriptRow]:
    redaction = header.get("redaction")
    masked = isinstance(redaction, dict) and redaction.get("applied") is True
    start = seconds(header.get("startedAt"))
    http: dict[str, Any] | None = {} if header.get("transport") == "http" else None
    for each in frames:
        time = None if start is None else start + each.time / 1000
        mask = _MASK if masked else None
        yield row(each.line, _NUMBER, each.party, each.frame, time=time, http=http, mask=mask)


def _frames(number: int, entry: dict[str, Any], before: float) -> Iterator[_Frame]:
    """
    Yield the messages of one line; without a time they follow those at the time *before*.

    Lines of an unknown type are skipped, as the format demands.
    """
    kind = entry.get("type")
    if kind not in {"frame", "raw", "chunks"}:
        return
    party = PARTIES.get(str(entry.get("dir")))
    if party is None:
        raise TranscriptError(f'line {number}: expected "dir": "c2s" or "s2c"')
    if kind == "raw":
        yield _Frame(_time(entry, before), number, party, str(entry.get("data", "")).encode(errors="replace"))
        return
    chunks = entry.get("chunks") if kind == "chunks" else [entry]
    for chunk in chunks if isinstance(chunks, list) else ():
        if isinstance(chunk, dict) and "frame" in chunk:
            yield _Frame(_time(chunk, before), number, party, syntax.write(chunk["frame"]))


def _time(entry: dict[str, Any], before: float) -> float:
    time = entry.get("t")
    return float(time) if isinstance(time, int | float) else before
