"""Our own files: ``{"dir", "msg"}`` lines, the recordings of `assay guard --record`, and journals."""

from collections.abc import Iterable, Iterator
from itertools import chain

from assay.records import rows
from assay.records.importers import journal
from assay.records.importers.importer import ImportOptions, first_object
from assay.records.rows import TranscriptRow

_MEMBERS = frozenset({"msg", "base64", "dir", "party"})
_EVENTS = ("recording", "open")
"""No set: a file may have a list as its event, and a set cannot look for one."""


def detect(head: bytes, _: str) -> bool:
    """Return whether the file is a journal, or its first JSON object is a row of a recording."""
    first = first_object(head)
    is_row = ("type" not in first and not _MEMBERS.isdisjoint(first)) or first.get("event") in _EVENTS
    return is_row or journal.is_journal(head)


def read(lines: Iterable[bytes], _: ImportOptions) -> Iterator[TranscriptRow]:
    """Yield the rows of a recording or of a journal."""
    rest = iter(lines)
    head = []
    for line in rest:
        head.append(line)
        if line.strip():
            break
    read_rows = journal.read if head and journal.is_journal(head[-1]) else rows.read
    return read_rows(chain(head, rest))
