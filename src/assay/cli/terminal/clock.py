"""Format times of records in the local time zone or in UTC, always with the date. Reads no clock."""

from datetime import UTC, datetime


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
