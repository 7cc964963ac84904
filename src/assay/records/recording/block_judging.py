"""
Judge a large recording in our own format: rows are read in blocks, and most of them are known by their head. No I/O.

Every verdict, count and note is what `Judging` gives for the rows one by one; tests/recording compares the two.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import count
from operator import itemgetter
from typing import Any, Final

import orjson

from assay.base.verdict import Party
from assay.core.conversation import NO_FACTS, Conversation, Facts
from assay.core.policy import Policy
from assay.records.journal.record import is_failed_result
from assay.records.line_blocks import LineBlock, blank_lines
from assay.records.recording.beginnings import Beginnings
from assay.records.recording.judged_talk import JudgedTalk, RecordingOpening
from assay.records.recording.judging import END, EVENTS_OF_ALL, Judging, RecordingPart
from assay.records.recording.listed_tools import ListedTools
from assay.records.recording.plain_rows import (
    CLOSING,
    GUARDED_HEAD,
    MESSAGE,
    claimed,
    conversation_of,
    head_members,
    untimed,
)
from assay.records.recording.row_batches import BatchReader, RowBatch
from assay.records.recording.rows import read_facts
from assay.records.transcript import (
    PARTIES,
    Judged,
    Meeting,
    TranscriptError,
    TranscriptRow,
    members_of,
    party_of,
    row_of,
    seconds_of,
)

_MOST_HEADS: Final = 100_000
"""Maximal heads of rows to remember, some 200 bytes each. A conversation over STDIO has two."""

_LONGEST_HEAD: Final = 1_000
"""Maximal bytes of a head to remember. One with HTTP headers has some hundred; a hostile one may have megabytes."""

_Plain = tuple[
    JudgedTalk,
    Callable[[Any], object],
    tuple[Callable[[Party, bytes, Facts], bool] | None, Party, Facts],
]
"""
What is known of a row by its head. The functions hear a good call or result, the first one a message that is read and
the second one its frame. If a verdict on every message is needed, the first one hears nothing, and there is no second
one; with other limits only the first one hears nothing.
"""

_head: Final = itemgetter(0)


def _hears_nothing(_: Any) -> None:
    """Leave every message to a closer look."""


class MisreadRowError(Exception):
    """A row may be something else than its head claims, so the recording cannot be judged in parts."""


class BlockJudging(Judging):
    """The verdicts on a recording whose lines come in blocks."""

    def __init__(
        self,
        begin: Callable[[RecordingOpening], Conversation],
        policy: Policy | None = None,
        *,
        every: bool = True,
        part: RecordingPart | None = None,
        listed: ListedTools | None = None,
    ) -> None:
        """As `Judging`. With *part*, all other rows are skipped."""
        super().__init__(begin, policy, every=every, part=part, listed=listed)
        self._part = part
        self._beginnings = Beginnings(self._go_on)
        self._heads: dict[bytes, _Plain | tuple[()]] = {}
        """What is known of rows by their head; empty for a row of another part."""
        self._reader: BatchReader | None = None
        """Reads rows in batches, with the limits of the first conversation; None if each verdict is needed."""
        self.others = 0
        """Rows of other parts that were skipped."""
        self._is_mixed = part is not None
        """Whether the next block is likely to have such rows, which are then skipped before they are parsed."""

    def follow_blocks(self, blocks: Iterable[LineBlock], before: int = 0) -> Iterator[Judged | Meeting]:
        """
        Yield the same for the lines of a recording in our own format; *before* lines come before the first block.

        Raises `TranscriptError`, and `MisreadRowError` for a part of a recording.
        """
        line = before
        for block in blocks:
            blank = blank_lines(block)
            if not blank:
                yield from self._block(block, line)
            line += blank or len(block)
        yield from self._finish(END if self._part is None else self._part.end)

    def _block(self, block: LineBlock, line: int) -> Iterator[Judged | Meeting]:
        """Judge the rows of *block*; *line* lines come before them."""
        others = self.others
        batch = None if self._reader is None else self._reader.read(block, self._heads if self._is_mixed else None)
        yield from self._singly(block, line) if batch is None else self._together(block, batch, line)
        self._is_mixed = self.others > others

    def _together(self, block: LineBlock, batch: RowBatch, before: int) -> Iterator[Judged | Meeting]:
        """
        Judge the rows of *block*, which were read as *batch*, in order; *before* lines come before them.

        This is the inner loop of every large recording: a good call or result, in a row with nothing else, is only
        counted, by what is left when all others are subtracted.
        """
        line, others, rest, failed = before, 0, 0, 0
        try:
            # What is known of a head is asked for when its row is judged: the row before it may have changed that.
            for line, plain, value in zip(
                count(before + 1), map(self._heads.get, map(_head, batch.rows)), batch.values, strict=False
            ):
                if plain:
                    talk, quick, _ = plain
                    if quick(value) is not None:
                        talk.touched = line
                        if "result" in value and value["result"].get("isError"):
                            failed += 1
                        continue
                elif plain is not None:
                    others += 1
                    continue
                rest += 1
                yield from self._other_row(line, plain, batch, block, line - before - 1)
        finally:
            self.good += line - before - others - rest
            self.failed += failed
            self.others += others

    def _other_row(
        self, line: int, plain: _Plain | None, batch: RowBatch, block: LineBlock, index: int
    ) -> Iterator[Judged | Meeting]:
        """Judge the row at *index* in *block*, which is not known to be good; *plain* is what is known of its head."""
        head, _, rest = batch.rows[index]
        value = batch.values[index]
        # The value of an object is that of a row with nothing but its message.
        is_proved = type(value) is dict
        found = self._plain_head(head) if plain is None and is_proved else plain
        if found is None:
            yield from self._line(line, head, block[index])
            return
        if not found:
            self.others += 1
            return
        talk, quick, (skims, party, facts) = found
        if not is_proved or (quick is _hears_nothing and skims is not None):
            yield from self._singly([block[index]], line - 1)
            return
        talk.touched = line
        if plain is None and quick(value) is not None:
            self.good += 1
            self.failed += is_failed_result("result", value)
            return
        frame, time = batch.message(rest)
        yield from self._plain_message(talk, party, frame, facts, TranscriptRow(line, {}, time=time))
        if skims is None:
            self._heads[head] = self._plain(talk, party, facts)

    def _singly(self, block: LineBlock, line: int) -> Iterator[Judged | Meeting]:
        """Read and judge the rows of *block* one by one; *line* lines come before them."""
        heads, loads, good, others, failed = self._heads, orjson.loads, 0, 0, 0
        try:
            for text in block:
                line += 1
                head, _, tail = text.partition(MESSAGE)
                head, time = untimed(head)
                plain = heads.get(head)
                if plain is None:
                    plain = self._plain_head(head)
                if plain:
                    if tail.endswith(CLOSING):
                        try:
                            message = loads(tail[:-2])
                        except orjson.JSONDecodeError:
                            message = None
                        if type(message) is str:
                            talk, _, (skims, party, facts) = plain
                            talk.touched = line
                            frame = message.encode()
                            if skims is not None and skims(party, frame, facts):
                                good += 1
                                failed += b"isError" in frame and is_failed_result("result", loads(frame))
                            else:
                                row = TranscriptRow(line, {}, time=seconds_of(int(time)) if time else None)
                                yield from self._plain_message(talk, party, frame, facts, row)
                                if skims is None and not self._every:
                                    heads[head] = self._plain(talk, party, facts)
                            continue
                elif plain is not None:
                    others += 1
                    continue
                yield from self._line(line, head, text)
        finally:
            self.good += good
            self.failed += failed
            self.others += others

    def _plain_message(
        self, talk: JudgedTalk, party: Party, frame: bytes, facts: Facts, row: TranscriptRow
    ) -> Iterator[Judged | Meeting]:
        """Judge the message of a row that has nothing else but its time; *row* has no members."""
        self._go_to(talk, row)
        before = talk.beginning
        if before is None or facts is not NO_FACTS:
            yield from self._conclude(talk, row, talk.conversation.hear(party, frame, facts))
            return
        known = before.next.get((party, frame)) if talk.is_waiting else None
        if known is None:
            conversation = talk.hearing()
            heard = conversation.hear(party, frame)
            talk.beginning = self._beginnings.heard(before, heard, conversation.revision)
            yield from self._conclude(talk, row, heard)
            return
        talk.beginning = known
        self._prefer(known.revision, row.line)
        if not talk.is_met:
            yield self._meet(talk, (row.line, 0))
        self.good += 1
        self.failed += known.is_failure

    def _plain_head(self, head: bytes) -> _Plain | tuple[()] | None:
        """Return what is known of rows with this head, and remember it, if it is spelt as the guard spells it."""
        spelt = GUARDED_HEAD.fullmatch(head)
        if spelt is None:
            return None
        number = int(spelt["conversation"])
        if self._is_of_others(number):
            self._pass_over(number, head)
            return ()
        talk = self._talks.get(number)
        if talk is None or not talk.is_plain:
            return None
        plain = self._plain(talk, PARTIES[spelt["side"].decode()], NO_FACTS)
        self._remember(head, plain)
        return plain

    def _line(self, number: int, head: bytes, text: bytes) -> Iterator[Judged | Meeting]:
        """Judge a line that is not known by its head, and remember the head if it says all but the message."""
        if not text.strip():
            return
        part = self._part
        try:
            members = members_of(number, text)
        except TranscriptError:
            if part is None or claimed(text) in {None, *part.numbers}:
                raise
            return
        if part is not None and not self._is_ours(part, text, members):
            self.others += 1
            if type(members.get("msg")) is str and self._is_plain_head(head, members):
                self._remember(head, ())
            return
        yield from self._members(number, head, members)

    def _members(self, number: int, head: bytes, members: dict[str, Any]) -> Iterator[Judged | Meeting]:
        """Judge a row that was read as a whole, and remember its head as above."""
        row = row_of(number, members)
        yield from self._row(row)
        talk = self._talks.get(conversation_of(members))
        if talk is None:
            return
        if "event" not in members and type(members.get("msg")) is str and self._is_plain_head(head, members):
            if talk.is_plain and talk.is_met:
                self._remember(head, self._plain(talk, party_of(row), read_facts(members)))
        else:
            self._forget(talk)

    def _is_of_others(self, number: int) -> bool:
        """Return whether all rows of a conversation belong to another part."""
        return self._part is not None and number not in self._part.numbers

    def _pass_over(self, number: int, head: bytes) -> None:
        """Skip the rows with this head, of a conversation of another part."""
        del number
        self._remember(head, ())

    def _is_ours(self, part: RecordingPart, text: bytes, members: dict[str, Any]) -> bool:
        """Return whether a row belongs to *part*. Raises `MisreadRowError`."""
        if "event" in members and MESSAGE in text and claimed(text) in part.numbers:
            # No guard writes such a row. Behind the message, its event and the tools that it shares were not seen.
            raise MisreadRowError
        if not members or members.get("event") in EVENTS_OF_ALL:
            return False
        if conversation_of(members) in part.numbers:
            return True
        if claimed(text) in part.numbers:
            raise MisreadRowError
        return False

    def _is_plain_head(self, head: bytes, members: dict[str, Any]) -> bool:
        """
        Return whether *head* has all *members* of a row but the message, so that it says the same in every row.

        A time of the message is left out of both. A head that is too long to remember says nothing.
        """
        if len(head) > _LONGEST_HEAD:
            return False
        known = head_members(head)
        beside = 1 if row_of(0, members).time is None else 2
        return known is not None and len(known) + beside == len(members) and known.items() <= members.items()

    def _plain(self, talk: JudgedTalk, party: Party, facts: Facts) -> _Plain:
        """Return what is known of the plain rows of one party of *talk*."""
        if self._every or not talk.is_met or talk.is_waiting or talk.beginning is not None:
            return talk, _hears_nothing, (None, party, facts)
        conversation = talk.conversation
        fits = self._reader is not None and self._reader.fits(conversation.limits)
        quick = conversation.skimming(party, facts) if fits else _hears_nothing
        return talk, quick, (conversation.skims, party, facts)

    def _remember(self, head: bytes, plain: _Plain | tuple[()]) -> None:
        if len(self._heads) >= _MOST_HEADS:
            self._forget_all()
        self._heads[head] = plain
        if plain:
            plain[0].heads.append(head)

    # ── conversations ────────────────────────────────────────────────────────────────────────────────────────────────

    def _begun(self, number: int, opening: RecordingOpening, line: int) -> JudgedTalk:
        beginning = None
        if self._reader is not None and opening.tools is None:
            beginning = self._beginnings.root((opening._replace(effect=None), opening.effect is None))
        talk = JudgedTalk(number, self._begin, opening, line, beginning)
        if self._reader is None and not self._every:
            self._reader = BatchReader.of(talk.conversation.limits)
        return talk

    def _forget(self, talk: JudgedTalk) -> None:
        for head in talk.heads:
            self._heads.pop(head, None)
        talk.heads.clear()

    def _forget_all(self) -> None:
        self._heads.clear()
        for each in self._talks.values():
            each.heads.clear()

    def _go_on(self) -> None:
        """Let every conversation go on by itself: thousands of them must not keep the messages that they began with."""
        for each in (*self._talks.values(), *self._tools.values()):
            if isinstance(each, JudgedTalk) and each.beginning is not None:
                # That is all it takes.
                _ = each.conversation
