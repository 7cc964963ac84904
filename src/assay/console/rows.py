"""
The rows of the stream, as JSON, and the records behind them. Bounded: the oldest are dropped and counted. No I/O.

A row is kept as the bytes that a page gets: 100,000 rows are sent without making any of them again, and take a third of
the memory of Python objects.
"""

from array import array
from collections.abc import Hashable, Iterable
from typing import Any, Final

import orjson

from assay.records.filtering import status_of_row
from assay.records.outcomes import recorded_outcome
from assay.records.record import Ident, Record, read_record
from assay.rules.sentences import sentence

COLUMNS: Final = (
    *("seq", "time", "server", "session", "party", "kind", "method", "tool", "id", "of"),
    *("latency", "guard", "in", "out", "verdict", "status", "why", "rules", "at", "principal", "revision", "repeated"),
)
"""The cells of a row of the stream, in order."""

HOW_TO_RECORD: Final = (
    "record messages with `assay wrap --all --payloads`, or `assay guard --set journal.payloads=true`"
)
"""What a page says where it needs a message that is not recorded."""

MOST_ROWS: Final = 100_000
"""Maximal rows: what a page can list without becoming slow."""

DETAIL_BYTES: Final = 96 << 20
"""Maximal bytes of records: some 100,000 without payloads, or the last thousands with payloads."""

ROW_BYTES: Final = 64 << 20
"""Maximal bytes of rows. 100,000 usual ones have 25 MB; one with 20 long places has 16 kB, and a peer chooses them."""

_STEPS: Final = 50
"""A full store drops this part of its rows at once, because removing the first one moves all others."""


class RowStore:
    """The newest rows. Numbers begin with 1 and have no gaps."""

    def __init__(
        self, most_rows: int = MOST_ROWS, most_bytes: int = DETAIL_BYTES, most_row_bytes: int = ROW_BYTES
    ) -> None:
        self.most_rows, self.most_bytes, self._most_row_bytes = most_rows, most_bytes, most_row_bytes
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
        count = min(max(1, self.most_rows // _STEPS), len(self._rows))
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


# ── the cells of a row ───────────────────────────────────────────────────────────────────────────────────────────────

MOST_CELLS: Final = 20
"""Maximal rules, and places, of one row: a record lists as many findings."""

_LONGEST: Final = 200
"""Maximal characters of a text in a row. The guard cuts names before, but another program may have written a file."""

_MOST_OPEN: Final = 20_000
"""Maximal requests whose answers are awaited, and progress tokens."""

_LARGEST_READ: Final = 64 << 10
"""Maximal bytes of a message that is parsed for its progress token or its request."""

_LARGEST_SIZE: Final = 1 << 40
"""Bytes of a message at most, whatever a record claims."""


def _put(places: dict[Hashable, int], key: Hashable, seq: int) -> None:
    """Add an entry to *places*, which drops its oldest one when it is full."""
    if len(places) >= _MOST_OPEN and key not in places:
        del places[next(iter(places))]
    places[key] = seq


def cut(value: Any) -> str | None:
    """Return a text of a row, shortened; None for what is not a text."""
    if not isinstance(value, str):
        return None
    return value if len(value) <= _LONGEST else value[: _LONGEST - 1] + "…"


def ident(value: Ident) -> Ident:
    """Return the id of a message for a row."""
    return cut(value) if isinstance(value, str) else value


def size(value: Any) -> int:
    """Return a number of bytes, within what JSON can carry even as a sum."""
    return min(max(0, value), _LARGEST_SIZE) if isinstance(value, int) else 0


def unique(values: Iterable[str]) -> list[str]:
    """Return texts, shortened, each once."""
    found = dict.fromkeys(cut(each) or "" for each in values)
    return [each for each in found if each][:MOST_CELLS]


def parsed(text: str | None) -> Any:
    """Return the value of a JSON *text*; None if there is none."""
    try:
        return None if text is None else orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def member_of(value: Any, *names: str) -> Any:
    """Return the member of *value* with this name, or inside of it; None if there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def in_frame(record: Record, *names: str) -> Any:
    """Return the member of a message with these names; None without one, and for a message that is large."""
    frame = record.metadata.frame
    return None if frame is None or len(frame) > _LARGEST_READ else member_of(parsed(frame), *names)


class RequestLinks:
    """Finds the request of an answer, of progress and of a cancellation."""

    def __init__(self) -> None:
        self._requests: dict[Hashable, int] = {}
        """The rows of open requests, by their id in the journal."""
        self._by_ident: dict[Hashable, int] = {}
        self._by_token: dict[Hashable, int] = {}

    def of(self, record: Record, seq: int, talk: Hashable) -> int:
        """Return the row of the request that the row *seq* belongs to, 0 if it is unknown; *talk* is its session."""
        metadata, party = record.metadata, record.metadata.party
        if metadata.kind == "request":
            self._opened(record, seq, talk)
            return seq
        if record.is_answer:
            return self._requests.pop(record.request_id, 0)
        if record.method == "notifications/cancelled":
            return self._by_ident.get((talk, party, _key(in_frame(record, "params", "requestId"))), 0)
        if record.method == "notifications/progress":
            return self._by_token.get((talk, party.other, _key(in_frame(record, "params", "progressToken"))), 0)
        return 0

    def _opened(self, record: Record, seq: int, talk: Hashable) -> None:
        metadata = record.metadata
        _put(self._requests, record.request_id, seq)
        if metadata.frame is not None:
            _put(self._by_ident, (talk, metadata.party, _key(metadata.id)), seq)
            if "progressToken" in metadata.frame:
                token = in_frame(record, "params", "_meta", "progressToken")
                _put(self._by_token, (talk, metadata.party, _key(token)), seq)


def _key(value: Any) -> Hashable:
    return value if isinstance(value, str | int | float) else None


def reason(record: Record) -> str | None:
    """Return what is wrong with a message, or why it failed, in one line; None for any other message."""
    if record.findings:
        # The guard lists first what blocks the message.
        return cut(sentence(next((each for each in record.findings if each.stops), record.findings[0])))
    if record.status != "failed":
        return None
    message = record.error.message if record.error is not None else None
    return cut(message) or ("the tool returned isError" if record.metadata.kind == "result" else None)


def latency_of(record: Record) -> float | None:
    """Return the milliseconds from a request to its answer; None for other messages, and where it is unknown."""
    is_unknown = record.transport == "recording" and not record.duration_ms
    return record.duration_ms if record.is_answer and not is_unknown else None


def cells(record: Record, seq: int, time: float, server: int, of: int) -> list[Any]:
    """Return the cells of a row, in the order of `COLUMNS`."""
    metadata = record.metadata
    return [
        seq,
        time,
        server,
        cut(metadata.session) or "",
        metadata.party,
        cut(metadata.kind),
        cut(record.method),
        cut(metadata.tool),
        ident(metadata.id),
        of or None,
        latency_of(record),
        None if record.is_answer or record.transport == "recording" else record.duration_ms,
        size(record.input_bytes),
        size(record.output_bytes),
        recorded_outcome(record).shown,
        status_of_row(record),
        reason(record),
        unique(each.rule for each in record.findings),
        unique(each.at for each in record.findings),
        cut(metadata.principal) or None,
        cut(metadata.revision),
        size(metadata.repeated) or 1,
    ]
