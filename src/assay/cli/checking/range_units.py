"""
Divide a large recording of a guard into ranges of bytes that are judged without scanning the file first.

A unit judges the conversations that are opened in its range, to their ends. Whether that was every row of the file,
exactly once, is proved afterwards by counts: see `assay.records.recording.range_judging`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from assay.cli.checking.block_scan import LONGEST
from assay.cli.checking.check_stream import StreamItem, UnitEnd
from assay.cli.checking.evidence import conversation_of_recording, end_of_judging
from assay.cli.checking.tool_evidence import tools_of
from assay.cli.checking.work_units import FindingReader, reason_of
from assay.records.line_blocks import LineBlock, open_binary, split_blocks
from assay.records.recording.judging import MOST_CONVERSATIONS
from assay.records.recording.range_judging import RangeCounts, RangeJudging, UnfitRangeError
from assay.records.transcript import TranscriptError, members_of

if TYPE_CHECKING:
    from assay.cli.checking.check_terms import CheckTerms
    from assay.cli.checking.work_units import Tick
    from assay.core.conversation import Conversation
    from assay.records.recording.judged_talk import RecordingOpening
    from assay.records.recording.listed_tools import ListedTools

SMALLEST_RANGE: Final = 8 << 20
"""Minimal bytes of a range: a conversation of some megabytes must not be skipped in many of them."""

LEAST_BEHIND: Final = 32 << 20
"""Bytes that may be read behind the end of any range, and half of its own size if that is more: long sessions."""

MOST_RANGES: Final = 500
"""Maximal ranges of a file. The results of all of them are kept until the last one is done, each in a file."""

_RANGES_A_JOB: Final = 2
"""Ranges for each process of what is left of the file: the last ones are small, so that all are busy until the end."""


class FileRange(NamedTuple):
    """The conversations that are opened in a range of a recording of a guard."""

    path: str
    shown: str
    offset: int
    size: int
    behind: int
    """Maximal bytes to read behind the end. With more, sessions are so long that ranges are of no use."""

    def results(self, terms: CheckTerms, tick: Tick) -> Iterator[StreamItem]:
        """Judge the conversations. The end has an error if the recording is to be split in another way."""
        reader = FindingReader(terms, self.shown)
        begin = partial(_conversation, terms, tools_of(terms, self.path))
        judging = RangeJudging(begin, terms.policy, every=terms.every, is_first=not self.offset)
        try:
            with open_binary(self.path) as file:
                lines = _RangeLines(file, self, tick)
                yield from reader.checked(judging.follow_range(lines.within(), lines.behind()))
                end = end_of_judging(judging)
                if judging.counts is not None:
                    end.counts = judging.counts._replace(reach=file.tell())
        except (OSError, TranscriptError) as error:
            end = UnitEnd(error=reason_of(error))
        except UnfitRangeError as error:
            end = UnitEnd(error=str(error))
        yield reader.ended(end)


def _conversation(terms: CheckTerms, listed: ListedTools | None, opening: RecordingOpening) -> Conversation:
    made = conversation_of_recording(terms, listed, opening)
    if made.tools.elsewhere is not None:
        made.tools.elsewhere = partial(_unlisted, made.tools.elsewhere)
    return made


def _unlisted(find: Callable[[str], Mapping[str, Any] | None], name: str) -> None:
    # Which list is the nearest depends on the number of the line, which is not known in a range.
    if find(name) is not None:
        raise UnfitRangeError(f"a call of {name[:60]} comes before its list")


class _RangeLines:
    """The lines that begin in a range, and the lines behind it."""

    def __init__(self, file: Any, unit: FileRange, tick: Tick) -> None:
        self._file, self._unit, self._tick = file, unit, tick
        self._left = unit.size
        self._behind = unit.behind

    def within(self) -> Iterator[LineBlock]:
        """Yield the lines that begin in the range."""
        if self._unit.offset:
            # A line belongs to the range in which it begins.
            self._file.seek(self._unit.offset - 1)
            self._left -= len(self._rest_of_line()) - 1
        return split_blocks(self._read, LONGEST, _too_long)

    def _read(self, most: int) -> bytes:
        data: bytes = self._file.read(min(most, self._left)) if self._left > 0 else b""
        self._left -= len(data)
        if self._left <= 0 and data and not data.endswith(b"\n"):
            data += self._rest_of_line()
        self._tick(len(data))
        return data

    def behind(self) -> Iterator[LineBlock]:
        """Yield the lines behind the range. Raises `UnfitRangeError`."""
        return split_blocks(self._read_behind, LONGEST, _too_long)

    def _read_behind(self, most: int) -> bytes:
        if self._behind <= 0:
            raise UnfitRangeError("a conversation goes on far behind the range that it is opened in")
        data: bytes = self._file.read(most)
        self._behind -= len(data)
        # These bytes count in their own range.
        self._tick(0)
        return data

    def _rest_of_line(self) -> bytes:
        rest: bytes = self._file.readline(LONGEST)
        return rest if len(rest) < LONGEST else _too_long(LONGEST)


def _too_long(size: int) -> bytes:
    raise UnfitRangeError(f"a line has {size} bytes or more")


# ── before and after ─────────────────────────────────────────────────────────────────────────────────────────────────


def ranges_of(path: str, shown: str, size: int, jobs: int, largest: int) -> list[FileRange]:
    """Return the ranges of a file of *size* bytes, of at most *largest* each; empty if one or too many are needed."""
    # The first one is small. If sessions are too long for ranges, it is likely to show that before much is judged.
    sizes = [min(SMALLEST_RANGE, size)]
    while (left := size - sum(sizes)) and len(sizes) <= MOST_RANGES:
        sizes.append(min(max(left // (_RANGES_A_JOB * jobs), SMALLEST_RANGE), largest, left))
    offsets = accumulate(sizes, initial=0)
    units = [
        FileRange(path, shown, at, each, max(each // 2, LEAST_BEHIND)) for at, each in zip(offsets, sizes, strict=False)
    ]
    return units if 1 < len(units) <= MOST_RANGES else []


def seems_fit(head: bytes) -> bool:
    """
    Return whether ranges are worth a try for a file that begins with *head*.

    It has to begin as a recording of a guard. Nothing is tried if its first rows show already that it would be in vain.
    """
    first, *others = head.split(b"\n")[:-1] or [b""]
    if _members(first).get("event") != "recording":
        return False
    return not any(_is_in_the_way(_members(line)) for line in others if line.startswith(b'{"event":'))


def _is_in_the_way(event: dict[str, Any]) -> bool:
    """Return whether conversations share tools, or there is only one of them, without a number."""
    return "tools" in (event.get("event"), *event) or (event.get("event") == "open" and "conversation" not in event)


def _members(line: bytes) -> dict[str, Any]:
    try:
        return members_of(1, line + b"\n")
    except TranscriptError:
        return {}


class PlacedRange(NamedTuple):
    """A range whose place in its file is known."""

    before: int
    """The number of lines before it."""
    counts: RangeCounts

    @property
    def more(self) -> int:
        """The lines before the range that its unit did not count."""
        return self.before - self.counts.before


def placed(units: Sequence[FileRange], ends: Sequence[UnitEnd]) -> list[PlacedRange] | None:
    """Return the ranges of a file; None if it is not proved that every row was judged once, as by one process."""
    all_counts = [end.counts for end in ends if end.counts is not None]
    if len(all_counts) < len(units):
        return None
    if sum(each.skipped for each in all_counts) != sum(each.behind for each in all_counts):
        return None
    if any(most >= MOST_CONVERSATIONS for most in _at_a_time(units, all_counts)):
        # One process might have dropped the one that was silent for longest.
        return None
    befores = accumulate((each.lines for each in all_counts), initial=0)
    return list(map(PlacedRange, befores, all_counts))


def _at_a_time(units: Sequence[FileRange], all_counts: Sequence[RangeCounts]) -> Iterator[int]:
    """Yield the conversations that there may be at a time in each range, those of earlier ones included."""
    going: list[RangeCounts] = []
    for unit, counts in zip(units, all_counts, strict=True):
        going = [each for each in going if each.reach > unit.offset]
        yield counts.most + sum(each.alive for each in going)
        going.append(counts)
