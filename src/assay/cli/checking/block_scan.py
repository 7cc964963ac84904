"""
Find the conversations of a large recording without judging it: which rows belong together, and where they are.

A row is attributed by its head alone, which takes a twentieth of the time of judging it. The process that judges the
row reads it as a whole, and notices a row that belongs elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from assay.records.line_blocks import open_binary
from assay.records.recording.judging import EVENTS_OF_ALL
from assay.records.recording.plain_rows import as_object, conversation_of, head_of
from assay.records.recording.range_judging import LARGEST_SHARED, MOST_SHARED
from assay.records.transcript import TranscriptError, members_of

if TYPE_CHECKING:
    from assay.cli.checking.check_terms import CheckTerms
    from assay.cli.checking.work_units import Tick

PAGE: Final = 1 << 20
"""Bytes of a page: the unit in which places in a file are known."""

LONGEST: Final = 16 << 20
"""Maximal bytes of a line in a file that is split; of a file with a longer one little would be gained."""


_MANY_BLANKS: Final = 1000
"""Blank lines without a row between them that no recorder writes."""


class ScannedPage(NamedTuple):
    """Some lines of a recording, all of them between two ``recording`` events."""

    offset: int
    size: int
    lines: int
    begins: bool = False
    """Whether the first line is a ``recording`` event."""
    rows: dict[int, int] = {}  # noqa: RUF012 - never changed
    """The number of rows of each conversation."""
    links: tuple[tuple[int, int], ...] = ()
    """Conversations that share tools, two by two."""
    shared: tuple[tuple[int, bytes], ...] = ()
    """Rows that belong to no conversation, with their newlines, each with its index in the page."""


class SplitRefused(NamedTuple):
    """A file cannot be split, because a line of it cannot be attributed, or too many belong to all conversations."""

    offset: int


class BlockScan(NamedTuple):
    """A scan of the lines that begin in a range of a file."""

    path: str
    offset: int
    size: int
    page: int

    def results(self, _: CheckTerms, tick: Tick) -> Iterator[ScannedPage | SplitRefused]:
        """Yield the pages of the range. A problem with reading is reported by the process that judges."""
        del tick
        rows = size = 0
        try:
            with open_binary(self.path) as file:
                for offset, text, is_last in _pages(file, self):
                    for page in _scanned(offset, text, is_last=is_last):
                        rows += len(page.shared)
                        size += sum(len(line) for _, line in page.shared)
                        if rows > MOST_SHARED or size > LARGEST_SHARED:
                            raise _UnfitFileError
                        yield page
        except (OSError, TranscriptError, _UnfitFileError):
            yield SplitRefused(self.offset)


class _UnfitFileError(Exception):
    """A line is so long, or so many rows belong to no conversation, that the file is not split."""


def _pages(file: Any, scan: BlockScan) -> Iterator[tuple[int, bytes, bool]]:
    """Yield whole lines with their offset, and whether they are the last of the file."""
    offset, end = scan.offset, scan.offset + scan.size
    file.seek(offset)
    if offset:
        # A line belongs to the range in which it begins.
        file.seek(offset - 1)
        offset += len(_rest_of_line(file)) - 1
    while offset < end:
        text = file.read(min(scan.page, end - offset))
        if not text:
            return
        if not text.endswith(b"\n"):
            text += _rest_of_line(file)
        yield offset, text, not text.endswith(b"\n")
        offset += len(text)


def _rest_of_line(file: Any) -> bytes:
    rest: bytes = file.readline(LONGEST)
    if len(rest) >= LONGEST:
        raise _UnfitFileError
    return rest


def _scanned(offset: int, text: bytes, *, is_last: bool) -> Iterator[ScannedPage]:
    if text.isspace() and text.count(b"\n") > _MANY_BLANKS:
        # One process skips them at once.
        raise _UnfitFileError
    lines = text.split(b"\n")
    last = lines.pop()
    # A row without a message, such as an event, is its own head.
    heads = Counter([head_of(line) for line in lines])
    known = {head: _of_head(head) for head in heads}
    if not is_last and all(known.values()):
        page = _MixedPage(offset)
        for head, members in known.items():
            if members is not None:
                page.note(members, heads[head])
        yield page.scanned(len(text), len(lines))
        return
    mixed = _MixedPage(offset)
    for line in lines:
        mixed = yield from mixed.take(line + b"\n", known[head_of(line)])
    if is_last:
        # A line without an end may be cut off, which only its whole text shows.
        mixed = yield from mixed.take(last, None)
    yield mixed.scanned()


def _of_head(head: bytes) -> dict[str, Any] | None:
    """Return the members of all rows with this head; None if each row has to be read as a whole."""
    try:
        members = orjson.loads(as_object(head))
    except orjson.JSONDecodeError:
        return None
    is_read = isinstance(members, dict) and members and members.get("event") not in EVENTS_OF_ALL
    return members if is_read else None


class _MixedPage:
    """A page with events, or with rows that have to be read as a whole."""

    def __init__(self, offset: int) -> None:
        self._offset = offset
        self._size = self._lines = 0
        self._begins = False
        self._rows: Counter[int] = Counter()
        self._links: list[tuple[int, int]] = []
        self._shared: list[tuple[int, bytes]] = []

    def take(self, line: bytes, members: dict[str, Any] | None) -> Generator[ScannedPage, None, _MixedPage]:
        """Add a line with these *members*, None if it has to be read as a whole; return the page for the next one."""
        page = self
        if line.strip():
            if members is None:
                # A number beyond the first line: only there a line that is cut off is an error.
                members = members_of(2 if self._offset or self._lines else 1, line)
            if members.get("event") == "recording" and self._lines:
                yield self.scanned()
                page = _MixedPage(self._offset + self._size)
            if not members or members.get("event") in EVENTS_OF_ALL:
                page._begins = page._begins or members.get("event") == "recording"
                page._shared.append((page._lines, line))
            else:
                page.note(members, 1)
        page._size += len(line)
        page._lines += 1
        return page

    def note(self, members: dict[str, Any], rows: int) -> None:
        """Add *rows* equal rows of a conversation."""
        number, event = conversation_of(members), members.get("event")
        self._rows[number] += rows
        other = members.get("tools") if event == "open" else members.get("from") if event == "tools" else None
        if isinstance(other, int):
            self._links.append((number, other))

    def scanned(self, size: int | None = None, lines: int | None = None) -> ScannedPage:
        """Return the page; *size* and *lines* if its lines were not added one by one."""
        return ScannedPage(
            self._offset,
            self._size if size is None else size,
            self._lines if lines is None else lines,
            self._begins,
            dict(self._rows),
            tuple(self._links),
            tuple(self._shared),
        )
