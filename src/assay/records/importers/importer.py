"""What every importer has: how its files are recognised and read, and what they cannot show. No I/O."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import orjson

from assay.base.verdict import Party
from assay.records.importers.source_formats import SourceFormat
from assay.records.lines import numbered_lines
from assay.records.rows import TranscriptRow

LARGEST_DOCUMENT: Final = 128 << 20
"""Maximal bytes of an entry of a JSON document, and of an event of a stream."""

SIZES: Final = frozenset({"framing/size"})
"""Rules about the size of a frame, which is another one after a message was written anew."""

_BOM: Final = b"\xef\xbb\xbf"


class ImportOptions(NamedTuple):
    """The options of the command line for files of other programs."""

    party: Party | None = None
    """The sender of all messages of a one-sided file; None if the file has both sides."""
    fields: Mapping[str, str] = MappingProxyType({})
    """The names of members and values in a file of an unknown format: ``{"msg": "payload", "c2s": "fromClient"}``."""
    remark: Callable[[str], None] = lambda _: None
    """Gets what the summary of the file has to say about what was read."""


Detect = Callable[[bytes, str], bool]
"""Return whether a file with these first bytes, and this name, has the format."""

Read = Callable[[Iterable[bytes], ImportOptions], Iterator[TranscriptRow]]
"""Yield the rows of a file, given its lines, or the pieces of a document. Raises `TranscriptError`."""


class Importer(NamedTuple):
    """The reader of one format."""

    format: SourceFormat
    detect: Detect
    read: Read
    blind: frozenset[str] = frozenset()
    """The rules whose findings such a file cannot prove."""
    is_document: bool = False
    """Whether a file is one JSON document, which is read in pieces of any size, and not by its lines."""


def lines_of(head: bytes) -> Iterator[bytes]:
    """Yield the lines in the first bytes of a file, without line ends and byte order mark. The last may be cut off."""
    for line in head.removeprefix(_BOM).split(b"\n"):
        if stripped := line.strip():
            yield stripped


class LogLine(NamedTuple):
    """A line that is not blank."""

    number: int
    text: bytes
    """The line without its end, and without a byte order mark."""
    is_ended: bool
    """Whether it has its end; a line without it is the last one, and may be cut off."""


def numbered(lines: Iterable[bytes]) -> Iterator[LogLine]:
    """Yield the lines that are not blank."""
    for number, line in numbered_lines(lines):
        text = line.removeprefix(_BOM) if number == 1 else line
        if stripped := text.strip():
            yield LogLine(number, stripped, line.endswith(b"\n"))


@lru_cache(maxsize=1)
def first_object(head: bytes) -> Mapping[str, Any]:
    """
    Return the first line of a file that is a JSON object; empty without one. *head* is the start of the file.

    Every format asks for it, so it is kept; `forget` drops it.
    """
    found = (loosely(line) for line in lines_of(head))
    return next((each for each in found if isinstance(each, dict)), {})


forget: Final = first_object.cache_clear
"""Drop the object that `first_object` keeps, which may be large."""


def loosely(text: bytes) -> Any:
    """Return the JSON value in *text*; None if it is not JSON. Of repeated keys the last one counts."""
    if not text.startswith((b"{", b"[")):
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    try:
        # A recorder may keep bytes that are not UTF-8.
        return orjson.loads(text.decode(errors="replace"))
    except orjson.JSONDecodeError:
        return None


def ends_early(text: bytes) -> bool:
    """Return whether *text* is the beginning of JSON, cut off somewhere."""
    try:
        orjson.loads(text.decode(errors="replace"))
    except orjson.JSONDecodeError as error:
        return is_cut(error)
    return False


def is_cut(error: orjson.JSONDecodeError) -> bool:
    """Return whether JSON is invalid because its end is missing."""
    return "unexpected end" in error.msg


def seconds(moment: Any) -> float | None:
    """
    Return a time in seconds since 1970: from ISO 8601, or from a number of seconds or milliseconds.

    None if it is neither. A time without a zone counts as UTC.
    """
    if isinstance(moment, int | float) and not isinstance(moment, bool):
        # Seconds reach this number in the year 5138, milliseconds have passed it in 1973.
        return moment / 1000 if moment > 1e11 else float(moment)
    if not isinstance(moment, str) or len(moment) > 64:
        return None
    try:
        found = datetime.fromisoformat(moment)
    except ValueError:
        return None
    return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()
