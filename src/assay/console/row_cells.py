"""Make the row of a record, and find the request that it belongs to. Bounded. No I/O, no clock."""

from collections.abc import Hashable, Iterable
from typing import Any, Final, TypeVar

import orjson

from assay.records.filtering import status_of_row
from assay.records.outcomes import recorded_outcome
from assay.records.record import Ident, Record

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

_PROGRESS: Final = "notifications/progress"
_CANCELLED: Final = "notifications/cancelled"

_Value = TypeVar("_Value")


class BoundedMap(dict[Hashable, _Value]):
    """A mapping that drops its oldest entry when it is full."""

    def put(self, key: Hashable, value: _Value, most: int = _MOST_OPEN) -> None:
        """Add an entry."""
        if len(self) >= most and key not in self:
            del self[next(iter(self))]
        self[key] = value


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


def frame_value(record: Record) -> Any:
    """Return the message of *record* as a value; None if it is not recorded, large, or not JSON."""
    frame = record.metadata.frame
    if frame is None or len(frame) > _LARGEST_READ:
        return None
    try:
        return orjson.loads(frame)
    except orjson.JSONDecodeError:
        return None


class RequestLinks:
    """Finds the request of an answer, of progress and of a cancellation."""

    def __init__(self) -> None:
        self._requests: BoundedMap[int] = BoundedMap()
        """The rows of open requests, by their id in the journal."""
        self._by_ident: BoundedMap[int] = BoundedMap()
        self._by_token: BoundedMap[int] = BoundedMap()

    def of(self, record: Record, seq: int, talk: Hashable) -> int:
        """Return the row of the request that the row *seq* belongs to, 0 if it is unknown; *talk* is its session."""
        if record.metadata.kind == "request":
            return self._opened(record, seq, talk)
        if record.is_answer:
            return self._requests.pop(record.request_id, 0)
        if record.method in {_PROGRESS, _CANCELLED}:
            return self._mentioned(record, talk)
        return 0

    def _opened(self, record: Record, seq: int, talk: Hashable) -> int:
        metadata = record.metadata
        self._requests.put(record.request_id, seq)
        if metadata.frame is not None:
            party = metadata.party
            self._by_ident.put((talk, party, _key(metadata.id)), seq)
            if "progressToken" in metadata.frame:
                token = _member(_member(_member(frame_value(record), "params"), "_meta"), "progressToken")
                self._by_token.put((talk, party, _key(token)), seq)
        return seq

    def _mentioned(self, record: Record, talk: Hashable) -> int:
        params = _member(frame_value(record), "params")
        party = record.metadata.party
        if record.method == _CANCELLED:
            return self._by_ident.get((talk, party, _key(_member(params, "requestId"))), 0)
        return self._by_token.get((talk, party.other, _key(_member(params, "progressToken"))), 0)


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _key(value: Any) -> Hashable:
    return value if isinstance(value, str | int | float) else None


def cells(record: Record, seq: int, time: float, server: int, of: int) -> list[Any]:
    """Return the cells of a row, in the order of `console_rows.COLUMNS`."""
    metadata, duration = record.metadata, record.duration_ms
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
        duration if record.is_answer else None,
        None if record.is_answer else duration,
        size(record.input_bytes),
        size(record.output_bytes),
        recorded_outcome(record).shown,
        status_of_row(record),
        unique(each.rule for each in record.findings),
        unique(each.at for each in record.findings),
        cut(metadata.principal) or None,
        cut(metadata.revision),
        size(metadata.repeated) or 1,
    ]
