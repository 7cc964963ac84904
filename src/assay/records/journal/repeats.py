"""
Garbage that comes again and again, as one record: the first is written at once, those after it are counted. No I/O.

A line of two bytes makes a record of several hundred, so a peer that sends nothing else would fill a disk.
"""

from collections.abc import Callable
from typing import Final

from assay.base.verdict import Kind, Party, Verdict
from assay.records.journal.record_ids import Moment

GARBAGE: Final[frozenset[Kind]] = frozenset({"unreadable", "batch"})
"""What may be no message at all; a batch is none if nothing is in it."""

SECONDS: Final = 1.0
"""How long messages are counted before that is written down."""

MOST_ROWS: Final = 1000
"""Conversations in which something is counted at once: sessions are the peer's, and may be many."""

LONGEST: Final = 1024
"""Bytes of a message that is counted. A longer one makes no record that is much longer, and the last one is kept."""

Place = tuple[str, Party]
"""The session, and who speaks."""


class RepeatRow:
    """Messages of one speaker, one after the other, in which the same is wrong."""

    __slots__ = ("began", "came", "count", "key", "last", "moment", "sent")

    def __init__(self, key: object, began: float) -> None:
        self.key = key
        self.began = began
        self.count = self.came = self.sent = 0
        """How many came after the first, and the bytes that came and went for them."""
        self.last: Verdict | None = None
        self.moment: Moment | None = None

    def add(self, verdict: Verdict, sent: int) -> None:
        """One more."""
        self.count += 1
        self.came += len(verdict.frame)
        self.sent += sent
        self.last = verdict


class Repeats:
    """What is counted in the conversations of one run."""

    __slots__ = ("_clock", "_look_at", "_spell", "_verbatim", "rows")

    def __init__(self, spell: Callable[[RepeatRow], bytes], clock: Callable[[], float], *, verbatim: bool) -> None:
        """*spell* makes the record of a row. With *verbatim* messages of one row have the same bytes."""
        self._spell = spell
        self._clock = clock
        self._verbatim = verbatim
        self._look_at = 0.0
        self.rows: dict[Place, RepeatRow] = {}
        """Empty unless the last message of some conversation was garbage."""

    def heard(self, verdict: Verdict, session: str) -> tuple[RepeatRow | None, bytes]:
        """The row that *verdict* goes on with, None if it has a record of its own; and what is to be written first."""
        place = session, verdict.party
        key = self._key(verdict)
        row = self.rows.get(place)
        if row is not None and key is not None and row.key == key:
            return row, b""
        ended = self._end(place) if row is not None else b""
        if key is not None:
            if len(self.rows) >= MOST_ROWS:
                ended += self.all()
            now = self._clock()
            self._look_at = min(self._look_at, now + SECONDS) if self.rows else now + SECONDS
            self.rows[place] = RepeatRow(key, now)
        return None, ended

    def due(self) -> bytes:
        """What has been counted long enough."""
        now = self._clock()
        if not self.rows or now < self._look_at:
            return b""
        old = [place for place, row in self.rows.items() if now - row.began >= SECONDS]
        lines = b"".join(map(self._end, old))
        self._look_at = min((row.began for row in self.rows.values()), default=now) + SECONDS
        return lines

    def all(self) -> bytes:
        """All that has been counted."""
        return b"".join(map(self._end, list(self.rows)))

    def _end(self, place: Place) -> bytes:
        row = self.rows.pop(place)
        return self._spell(row) if row.count else b""

    def _key(self, verdict: Verdict) -> object:
        """What the messages of a row have in common; None for what is no garbage, or may answer something."""
        if verdict.kind not in GARBAGE or not verdict.violations or len(verdict.frame) > LONGEST:
            return None
        if verdict.exchange is not None or verdict.parts:
            return None
        wrong = tuple((each.rule, each.at, each.action) for each in verdict.violations)
        return verdict.kind, wrong, verdict.onward is None, verdict.frame if self._verbatim else None
