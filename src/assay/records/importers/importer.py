"""What every format has: how its files are recognised and read, and what they cannot show. No I/O."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import orjson

from assay.model.verdict import Party
from assay.records.lines import numbered_lines
from assay.records.rows import TranscriptRow

LARGEST_DOCUMENT: Final = 128 << 20
"""Maximal bytes of an entry of a JSON document, and of an event of a stream."""

REWRITTEN: Final = "the original bytes (spacing, repeated keys, invalid UTF-8)"
"""What a recorder hides that records values in place of bytes."""

ONE_SIDED: Final = "the messages of the other party, and everything that depends on them"
"""What a file with the messages of one party cannot show."""

RECORD: Final = "assay guard --record FILE -- COMMAND records them"
"""What to do to get messages."""

_BOM: Final = b"\xef\xbb\xbf"


class ImportOptions(NamedTuple):
    """The options of the command line for files of other programs."""

    party: Party | None = None
    """The sender of all messages of a one-sided file; None if the file has both sides."""
    fields: Mapping[str, str] = MappingProxyType({})
    """The names of members and values in a file of an unknown format: ``{"msg": "payload", "c2s": "fromClient"}``."""
    remark: Callable[[str], None] = lambda _: None
    """Gets what the summary of the file has to say about what was read."""


class Head:
    """The start of a file, in which its format must show. Its last line may be cut off."""

    def __init__(self, data: bytes, name: str) -> None:
        self.data, self.name = data, name
        self.text = data.removeprefix(_BOM).lstrip()

    @cached_property
    def lines(self) -> list[bytes]:
        """The lines that are not blank, without their ends."""
        return [stripped for line in self.text.split(b"\n") if (stripped := line.strip())]

    @cached_property
    def first(self) -> Mapping[str, Any]:
        """The first line that is a JSON object; empty without one."""
        found = (loosely(line) for line in self.lines)
        return next((each for each in found if isinstance(each, dict)), {})


class Importer(NamedTuple):
    """One format of recordings."""

    name: str
    """The name for ``--from``."""
    title: str
    """The name for people."""
    where: str
    """Where people find such files, in Markdown."""
    cannot: tuple[str, ...]
    """What cannot be found in such a file, for people. Not observed is not passed."""
    detect: Callable[[Head], bool]
    """Return whether a file with this start has the format."""
    read: Callable[[Iterable[bytes], ImportOptions], Iterator[TranscriptRow]]
    """Yield the rows of a file, given its lines, or the pieces of a document. Raises `TranscriptError`."""
    is_document: bool = False
    """Whether a file is one JSON document, which is read in pieces of any size, and not by its lines."""

    @property
    def blind(self) -> frozenset[str]:
        """The rules whose findings such a file cannot prove: a message that was written anew has another size."""
        return frozenset({"framing/size"} if REWRITTEN in self.cannot else ())


def numbered(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes, bool]]:
    """
    Yield the number and the text of each line that is not blank, and whether it has its end.

    A line without its end is the last one, and may be cut off.
    """
    for number, line in numbered_lines(lines):
        text = line.removeprefix(_BOM) if number == 1 else line
        if stripped := text.strip():
            yield number, stripped, line.endswith(b"\n")


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


def seconds_after(begin: float | None, milliseconds: Any) -> float | None:
    """Return the time of something that took so many *milliseconds*; None if it is unknown."""
    is_known = isinstance(milliseconds, int | float) and not isinstance(milliseconds, bool) and milliseconds >= 0
    # Rounded to microseconds: a sum may be a little later than the same time as it is written.
    return round(begin + milliseconds / 1000, 6) if begin is not None and is_known else None
