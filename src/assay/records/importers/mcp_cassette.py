"""Cassettes of mcp-cassette, version 1 and 2: a header, then frames with their time in milliseconds."""

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Final, NamedTuple

from assay.base.verdict import Party
from assay.ladder import syntax
from assay.records.importers.importer import ImportOptions, cut_off, first_object, records, seconds
from assay.records.importers.talks import opened, row
from assay.records.importers.time_sorting import in_order
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
    cassette = _Cassette()
    # The sort keeps the order of the file for equal times.
    frames = in_order(cassette.frames(lines), lambda each: each.time, lambda each: len(each.frame))
    first = next(frames, None)
    yield opened(1, _NUMBER, "")
    is_told = False
    for each in chain([first] if first is not None else [], frames):
        if cassette.cut and not is_told:
            is_told = True
            # The messages of a stream are written last, whenever they were sent.
            yield TranscriptRow(1, {"event": "gap", "conversation": _NUMBER})
        yield cassette.row(each)
    yield from cassette.cut


class _Cassette:
    """What is known of a cassette while it is read."""

    def __init__(self) -> None:
        self._header: dict[str, Any] = {}
        self.cut: list[TranscriptRow] = []
        """The last line, if it is cut off."""

    def frames(self, lines: Iterable[bytes]) -> Iterator[_Frame]:
        """Yield the messages in the order of the file."""
        last = 0.0
        for line in records(lines, "mcp-cassette"):
            if not line.value:
                self.cut.append(cut_off(line))
            elif line.value.get("type") == "header":
                self._header = _checked(line.number, line.value)
            else:
                for frame in _frames(line.number, line.value, last):
                    last = frame.time
                    yield frame

    def row(self, frame: _Frame) -> TranscriptRow:
        """Return the row of a message."""
        redaction = self._header.get("redaction")
        masked = isinstance(redaction, dict) and redaction.get("applied") is True
        start = seconds(self._header.get("startedAt"))
        http: dict[str, Any] | None = {} if self._header.get("transport") == "http" else None
        time = None if start is None else start + frame.time / 1000
        mask = _MASK if masked else None
        return row(frame.line, _NUMBER, frame.party, frame.frame, time=time, http=http, mask=mask)


def _checked(number: int, header: dict[str, Any]) -> dict[str, Any]:
    if header.get("cassetteVersion") not in _VERSIONS:
        raise TranscriptError(f"line {number}: a cassette of another version; 1 and 2 are known")
    return header


def _frames(number: int, entry: dict[str, Any], before: float) -> Iterator[_Frame]:
    """
    Yield the messages of one line; without a time they follow those at the time *before*.

    Lines of an unknown type are skipped, as the format demands.
    """
    kind = entry.get("type")
    if kind not in ("frame", "raw", "chunks"):
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
