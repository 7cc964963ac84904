"""
Judge the conversations that a guard opened in one range of a large recording. No I/O.

A range is known without looking at the rest of the file, so the result has counts that prove, together with those of
all other ranges, that every row was judged exactly once:

* A row that is judged is read as a whole, so it belongs to a conversation that was opened in the range.
* A row that is judged behind the end of a range is skipped by the range that it is in. Otherwise that range would have
  the same conversation; but an opening is never skipped by its head, so judging behind the end would have failed there.
* For the same reason no row is judged behind the end of two ranges.

So the rows that are judged behind the end of ranges are some of those that are skipped, and if there are as many, they
are the same. A row that no range judges, such as one of a conversation that was never opened, or one whose head claims
another conversation, makes a difference.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from assay.core.conversation import Conversation
from assay.core.policy import Policy
from assay.records.line_blocks import LineBlock, blank_lines
from assay.records.recording.block_judging import BlockJudging
from assay.records.recording.judged_talk import JudgedTalk, RecordingOpening
from assay.records.recording.judging import EVENTS_OF_ALL, RecordingPart
from assay.records.recording.plain_rows import MESSAGE, conversation_of, head_of
from assay.records.transcript import Judged, Meeting, members_of

MOST_SHARED: Final = 20_000
"""
Maximal rows of one range that belong to no conversation. The main process keeps them, some 600 bytes each. A recording
has two of them, so a file of recordings with more than 3 KB is still split.
"""

LARGEST_SHARED: Final = 4 << 20
"""Maximal bytes of these rows."""


class UnfitRangeError(Exception):
    """A range cannot be judged apart from the rest of its recording; the message has the reason, which no one sees."""


class RangeCounts(NamedTuple):
    """What is known at the end of a range beside its verdicts, to put it together with all others."""

    before: int
    """Lines that were counted as before the range, although there are more."""
    lines: int
    """Lines that begin in the range."""
    skipped: int
    """Rows in the range of conversations that were opened elsewhere."""
    behind: int
    """Rows behind the end of the range that were judged."""
    shared: tuple[tuple[int, bytes], ...]
    """Rows in the range that belong to no conversation, with their newlines, each with its line as counted here."""
    most: int
    """The largest number of conversations at a time."""
    alive: int
    """The number of conversations at the end of the range."""
    reach: int = 0
    """Bytes of the file before the place up to which rows were read."""


class RangeJudging(BlockJudging):
    """The verdicts on the conversations that are opened in a range."""

    def __init__(
        self,
        begin: Callable[[RecordingOpening], Conversation],
        policy: Policy | None = None,
        *,
        every: bool = True,
        is_first: bool,
    ) -> None:
        """As `BlockJudging`; *is_first* for the range in which the file begins."""
        super().__init__(begin, policy, every=every, part=RecordingPart(frozenset(), begin=1))
        self._is_mixed = not is_first
        # One is enough to show that a line is not the first one of the file, which may not be cut off.
        self._before = 0 if is_first else 1
        self.counts: RangeCounts | None = None
        """The counts of the range, after the last verdict."""
        self._is_behind = False
        self._aside = 0
        """Lines that are blank, or belong to no conversation."""
        self._kept: list[tuple[int, bytes]] = []
        self._kept_bytes = 0
        self._most = 0
        self._passed: dict[int, list[bytes]] = {}
        """The heads of rows that are skipped, by their conversation: it may be opened here later."""

    def follow_range(self, within: Iterable[LineBlock], behind: Iterable[LineBlock]) -> Iterator[Judged | Meeting]:
        """
        Yield the verdicts, with lines as counted here; *behind* are blocks behind the end of the range.

        No more of *behind* is read than needed. Raises `TranscriptError`, and `UnfitRangeError`.
        """
        line = self._before
        for block in within:
            self._check_blanks(block)
            yield from self._block(block, line)
            line += len(block)
        lines, skipped, alive = line - self._before, self.others, len(self._talks)
        self._is_behind, self._aside, self.others, self._is_mixed = True, 0, 0, True
        end = line
        for block in behind if self._talks else ():
            self._check_blanks(block)
            yield from self._block(block, line)
            line += len(block)
            if not self._talks:
                break
        behind_end = line - end - self._aside - self.others
        self.counts = RangeCounts(self._before, lines, skipped, behind_end, tuple(self._kept), self._most, alive)

    def _check_blanks(self, block: LineBlock) -> None:
        """Raise `UnfitRangeError` for many blank lines: no guard writes them."""
        if blank_lines(block) > 1:
            raise UnfitRangeError("many blank lines")

    def _block(self, block: LineBlock, line: int) -> Iterator[Judged | Meeting]:
        if block[-1].endswith(b"\n"):
            yield from super()._block(block, line)
            return
        # The last line of the file may be cut off, which only its whole text shows.
        *ended, last = block
        if ended:
            yield from super()._block(ended, line)
        yield from self._line(line + len(block), head_of(last), last)

    # ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _line(self, number: int, head: bytes, text: bytes) -> Iterator[Judged | Meeting]:
        if not text.strip():
            self._aside += 1
            return
        members = members_of(number, text)
        if not members or members.get("event") in EVENTS_OF_ALL:
            self._aside += 1
            self._share(number, members, text)
        elif self._is_for_us(text, members):
            yield from self._members(number, head, members)
        else:
            self.others += 1
            if type(members.get("msg")) is str and self._is_plain_head(head, members):
                self._pass_over(conversation_of(members), head)

    def _is_for_us(self, text: bytes, members: dict[str, Any]) -> bool:
        """Return whether a row belongs to a conversation of the range. Raises `UnfitRangeError`."""
        is_known = conversation_of(members) in self._talks
        if "event" not in members:
            return is_known
        if MESSAGE in text:
            # No guard writes such a row. By its head it is a message, so another range may have skipped it.
            raise UnfitRangeError("an event has a message")
        if "tools" in (members["event"], *members):
            raise UnfitRangeError("conversations share tools")
        if members["event"] != "open":
            return is_known
        if is_known and self._is_behind:
            raise UnfitRangeError("a conversation is opened again before its end")
        return not self._is_behind

    def _share(self, number: int, members: dict[str, Any], text: bytes) -> None:
        """Keep a row that belongs to no conversation for the main process."""
        if self._is_behind:
            return
        if members.get("event") == "recording" and number > 1:
            raise UnfitRangeError("another recording begins")
        self._kept.append((number, text))
        self._kept_bytes += len(text)
        if len(self._kept) > MOST_SHARED or self._kept_bytes > LARGEST_SHARED:
            raise UnfitRangeError("too many rows belong to no conversation")

    def _is_of_others(self, number: int) -> bool:
        return number not in self._talks

    def _pass_over(self, number: int, head: bytes) -> None:
        super()._pass_over(number, head)
        self._passed.setdefault(number, []).append(head)

    # ── conversations ────────────────────────────────────────────────────────────────────────────────────────────────

    def _add(self, number: int, opening: RecordingOpening, line: int) -> JudgedTalk:
        for head in self._passed.pop(number, ()):
            self._heads.pop(head, None)
        talk = super()._add(number, opening, line)
        self._most = max(self._most, len(self._talks))
        return talk

    def _forget_all(self) -> None:
        super()._forget_all()
        self._passed.clear()
