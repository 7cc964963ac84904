"""What a feed says, line by line, as typed values. No I/O: any bytes are accepted, and text of peers stays data."""

from typing import Any, Final, NamedTuple

import orjson

from assay.records.journal.reading import Record, entry_of

RECORD: Final = "record"
"""The event of an item that is a record of the journal."""

EVENTS: Final = frozenset(
    {"hello", "server", "tools", "restart", "state", "session", "streams", "dropped", "refused", "bye"}
)
"""The events of version 1. A reader ignores others."""


class FeedItem(NamedTuple):
    """A record, or an event of a guard."""

    event: str
    """One of `EVENTS`, or ``record``."""
    data: dict[str, Any]
    """The members of the line."""

    @property
    def record(self) -> Record | None:
        """The record, which has all members that a record must have; None for an event."""
        return self.data if self.event == RECORD else None


def item_of(line: bytes) -> FeedItem | None:
    """Parse a *line* of a feed or of a journal; None for one that is neither a record nor a known event."""
    entry = entry_of(1, line)
    if entry is None:
        return None
    if entry.record is not None:
        return FeedItem(RECORD, entry.record)
    try:
        value = orjson.loads(entry.raw)
    except orjson.JSONDecodeError:
        return None
    event = value.get("event") if isinstance(value, dict) else None
    return FeedItem(event, value) if isinstance(event, str) and event in EVENTS else None


def rows_of(hello: dict[str, Any], member: str = "servers") -> list[dict[str, Any]]:
    """Return the rows of a *hello*: its servers or its sessions; what is not a row is left out."""
    found = hello.get(member)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def text_of(row: dict[str, Any], name: str) -> str:
    """Return a member of a row as text; "" if it is missing or is not text."""
    value = row.get(name)
    return value if isinstance(value, str) else ""
