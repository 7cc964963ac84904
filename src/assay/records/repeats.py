"""
Combine repeated garbage into one record: the first message is written at once, the next ones are counted. No I/O.

A line of two bytes makes a record of several hundred, so a peer that sends nothing else would fill a disk.
"""

from collections.abc import Callable
from typing import Final

from assay.model.verdict import Kind, Party, Verdict
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
        """The moment of the second message."""


class Repeats:
    """The counts of all conversations of one run."""

    __slots__ = ("_clock", "_line", "_verbatim", "rows")

    def __init__(self, line: Callable[..., bytes], clock: Callable[[], float], *, verbatim: bool) -> None:
        """
        *line* makes the line of a message, of its moment and of the bytes that were sent for it; *repeated* and *came*
        are those of a row. With *verbatim* all messages of a row have the same bytes.
        """
        self._line = line
        self._clock = clock
        self._verbatim = verbatim
        self.rows: dict[Place, RepeatRow] = {}
        """Rows in progress; empty unless the last message of a conversation was garbage."""

    def heard(self, verdict: Verdict, session: str, sent: int, moment: Callable[[], Moment]) -> tuple[bool, bytes]:
        """Return whether *verdict* is only counted, and the lines to write first if it is not."""
        place, key = (session, verdict.party), self._key(verdict)
        row = self.rows.get(place)
        if row is not None and key is not None and row.key == key:
            row.moment = row.moment or moment()
            row.count += 1
            row.came += len(verdict.frame)
            row.sent += sent
            row.last = verdict
            return True, b""
        ended = self._end(place) if row is not None else b""
        if key is not None:
            if len(self.rows) >= MOST_ROWS:
                ended += self.all()
            self.rows[place] = RepeatRow(key, self._clock())
        return False, ended

    def due(self) -> bytes:
        """Return the lines of rows that are due, and forget those."""
        before = self._clock() - SECONDS
        return b"".join(self._end(place) for place, row in list(self.rows.items()) if row.began <= before)

    def all(self) -> bytes:
        """Return the lines of all rows, and forget them."""
        return b"".join(map(self._end, list(self.rows)))

    def _end(self, place: Place) -> bytes:
        row = self.rows.pop(place)
        if row.last is None or row.moment is None:
            return b""
        return self._line(row.last, row.moment, row.sent, repeated=row.count, came=row.came)

    def _key(self, verdict: Verdict) -> object:
        """Return the key of a row; None for a message that is not garbage, or may be a response."""
        if verdict.kind not in GARBAGE or not verdict.violations or len(verdict.frame) > LONGEST:
            return None
        if verdict.exchange is not None or verdict.parts:
            return None
        wrong = tuple((each.rule, each.at, each.action) for each in verdict.violations)
        return verdict.kind, wrong, verdict.onward is None, verdict.frame if self._verbatim else None
