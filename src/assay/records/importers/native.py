"""Our own recordings: ``{"dir", "msg"}`` lines, and the files of `assay guard --record`."""

from collections.abc import Iterable, Iterator

from assay.records import transcript
from assay.records.importers.importer import ImportOptions, first_object
from assay.records.transcript import TranscriptRow

_MEMBERS = frozenset({"msg", "base64", "dir", "party"})
_EVENTS = ("recording", "open")
"""No set: a file may have a list as its event, and a set cannot look for one."""


def detect(head: bytes, _: str) -> bool:
    """Return whether the first JSON object is a row of a recording."""
    first = first_object(head)
    return ("type" not in first and not _MEMBERS.isdisjoint(first)) or first.get("event") in _EVENTS


def read(lines: Iterable[bytes], _: ImportOptions) -> Iterator[TranscriptRow]:
    """Yield the rows of a recording."""
    return transcript.read(lines)
