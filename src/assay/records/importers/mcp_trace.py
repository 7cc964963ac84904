"""Traces of mcp-trace: one JSON object a line, with ``direction`` and ``payload``."""

from collections.abc import Iterable, Iterator
from typing import Final

from assay.base.verdict import Party
from assay.records.importers.importer import ImportOptions, cut_off, first_object, records, seconds
from assay.records.importers.json_members import frame_in
from assay.records.importers.talks import Talks
from assay.records.transcript import TranscriptError, TranscriptRow

_PARTIES: Final = {"client-to-server": Party.CLIENT, "server-to-client": Party.SERVER}


def detect(head: bytes, _: str) -> bool:
    """Return whether the first JSON object is an event of a trace."""
    first = first_object(head)
    return first.get("direction") in (*_PARTIES,) and "kind" in first and "seq" in first


def read(lines: Iterable[bytes], _: ImportOptions) -> Iterator[TranscriptRow]:
    """Yield the messages of a trace. Other events have nothing to judge."""
    talks = Talks()
    for line in records(lines, "mcp-trace"):
        if not line.value:
            yield cut_off(line)
            continue
        frame = frame_in(line.text, "payload") if line.value.get("kind") == "message" else None
        if frame is None:
            continue
        party = _PARTIES.get(str(line.value.get("direction")))
        if party is None:
            raise TranscriptError(f'line {line.number}: expected "direction": "client-to-server" or "server-to-client"')
        yield from talks.rows(line.number, party, frame, time=seconds(line.value.get("ts")))
