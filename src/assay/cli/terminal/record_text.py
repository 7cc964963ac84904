"""Parts of a record for a terminal: times and payloads."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from assay.base.printable import plain
from assay.records.record import Metadata


class Clock:
    """Shows times in one zone."""

    def __init__(self, *, utc: bool = False) -> None:
        self._zone = UTC if utc else None

    def read(self, ts: str) -> datetime | None:
        """Return the time of a record in this zone; None if it has no valid time."""
        try:
            return datetime.fromisoformat(ts).astimezone(self._zone)
        except (ValueError, OverflowError, OSError):
            return None

    def at(self, seconds: float) -> datetime:
        """Return the time *seconds* after the start of 1970, in this zone."""
        return datetime.fromtimestamp(seconds, UTC).astimezone(self._zone)


def whole(moment: datetime) -> str:
    """Return date, time and zone: ``2026-11-16 18:20:31.123+01:00``."""
    shown = moment.isoformat(sep=" ", timespec="milliseconds")
    return f"{shown.removesuffix('+00:00')}Z" if moment.tzinfo is UTC else shown


def zone(moment: datetime) -> str:
    """Return the zone: ``UTC``, or ``UTC+01:00``."""
    if moment.tzinfo is UTC:
        return "UTC"
    shown = moment.strftime("%z")
    return f"local time, UTC{shown[:3]}:{shown[3:5]}"


MOST_LINES: Final = 30
"""Maximal lines of one frame to show without --wide."""


def payload_lines(metadata: Metadata, *, whole: bool) -> Iterator[str]:
    """Yield the lines of the frame of a record with this *metadata*; without *whole*, only the first ones."""
    if metadata.omitted:
        yield "(frame left out: more than 4 MiB or 50,000 values)"
        return
    if metadata.redacted:
        yield "(secrets are hidden)"
    lines = _lines(metadata)
    shown = lines if whole else lines[:MOST_LINES]
    yield from map(plain, shown)
    if len(shown) < len(lines):
        yield f"({len(lines) - len(shown):,} more lines; --wide shows them)"


def _lines(metadata: Metadata) -> list[str]:
    text, encoded = metadata.frame, metadata.frame_base64
    if text is None:
        return [f"base64 {encoded}"] if encoded is not None else []
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False).split("\n")
    except (ValueError, RecursionError):
        # A frame that is not JSON, or nested too deeply.
        return text.splitlines()
