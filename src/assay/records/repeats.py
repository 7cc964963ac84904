"""
Combine repeated garbage into one record: the first message is written at once, the next ones are counted. No I/O.

A line of two bytes makes a record of several hundred, so a peer that sends nothing else would fill a disk.
"""

from collections.abc import Callable
from typing import Final

from assay.base.verdict import Kind, Party, Verdict
from assay.records.moments import Moment

GARBAGE: Final[frozenset[Kind]] = frozenset({"unreadable", "batch"})
"""Kinds that may not be messages at all, such as an empty batch."""

SECONDS: Final = 1.0
"""Seconds of counting before a record is written."""

MOST_ROWS: Final = 1000
"""Maximal conversations with a count: peers can open many sessions."""

LONGEST: Final = 1024
"""Maximal bytes of a counted message. A longer one is not much smaller than its record, and the last one is kept."""

Place = tuple[str, Party]
"""The session and the sender."""


class RepeatRow:
    """Consecutive messages of one sender with the same findings."""

    __slots__ = ("began", "came", "count", "key", "last", "moment", "sent")

    def __init__(self, key: object, began: float) -> None:
        self.key = key
        self.began = began
        self.count = self.came = self.sent = 0
        """The number of messages after the first, and the bytes received and sent for them."""
        self.last: Verdict | None = None
        self.moment: Moment | None = None

    def add(self, verdict: Verdict, sent: int) -> None:
        """Count one more message."""
        self.count += 1
        self.came += len(verdict.frame)
        self.sent += sent
        self.last = verdict


class Repeats:
    """The counts of all conversations of one run."""

    __slots__ = ("_clock", "_look_at", "_spell", "_verbatim", "rows")

    def __init__(self, spell: Callable[[RepeatRow], bytes], clock: Callable[[], float], *, verbatim: bool) -> None:
        """*spell* makes the record of a row. With *verbatim* all messages of a row have the same bytes."""
        self._spell = spell
        self._clock = clock
        self._verbatim = verbatim
        self._look_at = 0.0
        self.rows: dict[Place, RepeatRow] = {}
        """Rows in progress; empty unless the last message of a conversation was garbage."""

    def heard(self, verdict: Verdict, session: str) -> tuple[RepeatRow | None, bytes]:
        """Return the row that *verdict* continues, None if it needs its own record; and the lines to write first."""
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
        """Yield the records of rows that are due."""
        now = self._clock()
        if not self.rows or now < self._look_at:
            return b""
        old = [place for place, row in self.rows.items() if now - row.began >= SECONDS]
        lines = b"".join(map(self._end, old))
        self._look_at = min((row.began for row in self.rows.values()), default=now) + SECONDS
        return lines

    def all(self) -> bytes:
        """Yield the records of all rows."""
        return b"".join(map(self._end, list(self.rows)))

    def _end(self, place: Place) -> bytes:
        row = self.rows.pop(place)
        return self._spell(row) if row.count else b""

    def _key(self, verdict: Verdict) -> object:
        """Return the key of a row; None for a message that is not garbage, or may be a response."""
        if verdict.kind not in GARBAGE or not verdict.violations or len(verdict.frame) > LONGEST:
            return None
        if verdict.exchange is not None or verdict.parts:
            return None
        wrong = tuple((each.rule, each.at, each.action) for each in verdict.violations)
        return verdict.kind, wrong, verdict.onward is None, verdict.frame if self._verbatim else None
