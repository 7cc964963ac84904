"""
The rows of the stream, as JSON, and the records behind them. Bounded: the oldest are dropped and counted. No I/O.

A row is kept as the bytes that a page gets: 100,000 rows are sent without making any of them again, and take a third of
the memory of Python objects.
"""

from array import array
from collections.abc import Iterable
from typing import Any, Final

import orjson

from assay.records.record import Record, read_record

MOST_ROWS: Final = 100_000
"""Maximal rows: what a page can list without becoming slow."""

DETAIL_BYTES: Final = 96 << 20
"""Maximal bytes of records: some 100,000 without payloads, or the last thousands with payloads."""

ROW_BYTES: Final = 64 << 20
"""Maximal bytes of rows. 100,000 usual ones have 25 MB; one with 20 long places has 16 kB, and a peer chooses them."""

_STEP: Final = 2_000
"""Rows that are dropped at once, because removing the first one moves all others."""

_LEAST_STEP: Final = 50
"""A store of few rows drops this part of them at once."""


class RowStore:
    """The newest rows. Numbers begin with 1 and have no gaps."""

    def __init__(
        self, most_rows: int = MOST_ROWS, most_bytes: int = DETAIL_BYTES, most_row_bytes: int = ROW_BYTES
    ) -> None:
        self.most_rows, self.most_bytes, self._most_row_bytes = most_rows, most_bytes, most_row_bytes
        self._step = max(1, min(_STEP, most_rows // _LEAST_STEP))
        self.oldest = 1
        """The number of the first row that is here; one more than `newest` in an empty store."""
        self._rows: list[bytes] = []
        self._records: list[bytes | None] = []
        self._of = array("Q")
        self._size = self._row_size = 0
        self._bare = 0
        """How many of the first rows have no record any more."""
        self.dropped_rows = 0
        self.dropped_details = 0

    @property
    def newest(self) -> int:
        """The number of the last row; 0 without one."""
        return self.oldest + len(self._rows) - 1

    def add(self, cells: list[Any], record: bytes, of: int) -> int:
        """Add a row, whose first cell is its number, and its *record*; *of* is the number of its request, or 0."""
        row = _trimmed(orjson.dumps(cells))
        while self._rows and (len(self._rows) >= self.most_rows or self._row_size + len(row) > self._most_row_bytes):
            self._drop_rows()
        self._row_size += len(row)
        self._rows.append(row)
        self._records.append(_trimmed(record))
        self._of.append(of)
        self._size += len(record)
        while self._size > self.most_bytes and self._bare < len(self._records):
            self._drop_detail()
        return self.newest

    def after(self, seq: int, most: int = MOST_ROWS) -> list[bytes]:
        """Return the rows behind *seq*, oldest first, at most *most*."""
        begin = max(0, seq + 1 - self.oldest)
        return self._rows[begin : begin + most]

    def last(self, most: int) -> list[bytes]:
        """Return the last rows."""
        return self._rows[max(0, len(self._rows) - most) :]

    def row(self, seq: int) -> list[Any] | None:
        """Return the cells of a row; None if it is not here."""
        if not self.oldest <= seq <= self.newest:
            return None
        found: list[Any] = orjson.loads(self._rows[seq - self.oldest])
        return found

    def record(self, seq: int) -> Record | None:
        """Return the record of a row; None if it was dropped."""
        if not self.oldest <= seq <= self.newest:
            return None
        raw = self._records[seq - self.oldest]
        return None if raw is None else read_record(raw)

    def raw_records(self, seqs: Iterable[int] | None) -> list[tuple[int, bytes | None]]:
        """Return the records of some rows, or of all, as JSON; None for one that was dropped."""
        if seqs is None:
            return list(enumerate(self._records, self.oldest))
        return [(seq, self._records[seq - self.oldest]) for seq in sorted(seqs) if self.oldest <= seq <= self.newest]

    def related(self, seq: int) -> list[int]:
        """Return the numbers of all rows that belong to the same request."""
        if not self.oldest <= seq <= self.newest:
            return []
        of = self._of[seq - self.oldest]
        if not of:
            return [seq]
        return [self.oldest + at for at, each in enumerate(self._of) if each == of]

    def _drop_rows(self) -> None:
        count = min(self._step, len(self._rows))
        self._row_size -= sum(map(len, self._rows[:count]))
        self._size -= sum(len(each) for each in self._records[:count] if each is not None)
        del self._rows[:count], self._records[:count], self._of[:count]
        self._bare = max(0, self._bare - count)
        self.oldest += count
        self.dropped_rows += count

    def _drop_detail(self) -> None:
        raw = self._records[self._bare]
        if raw is not None:
            self._size -= len(raw)
            self._records[self._bare] = None
            self.dropped_details += 1
        self._bare += 1


def _trimmed(made: bytes) -> bytes:
    """Return a copy: what orjson returns keeps several kilobytes of the buffer that it was made in."""
    return bytes(memoryview(made))
