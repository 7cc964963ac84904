"""Parts of a record for a terminal: times, titles, outcomes, payloads."""

import json
from collections.abc import Container, Iterator
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from assay.base.printable import plain
from assay.records.journal.reading import Record, is_audited, quarantined


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


_NAMELESS = {"blank": "(blank line)", "batch": "a batch"}


def nameless(kind: str, rules: Container[str]) -> str | None:
    """Return the title of a message without a name that breaks these *rules*; None for a kind that has a name."""
    if kind == "unreadable":
        # Bytes that are not UTF-8, a line that is too long, or JSON that is not JSON-RPC may look like a message.
        return "(not JSON)" if "syntax/json" in rules else "(not a message)"
    return _NAMELESS.get(kind)


class RecordOutcome(NamedTuple):
    """The names of one outcome."""

    word: str
    """For a column of `WIDEST` characters."""
    short: str
    """For a narrow column, of eight."""
    counted: str
    """The word after a count of such messages."""
    colour: str


OK: Final = RecordOutcome("ok", "ok", "ok", "green")
REPORTED: Final = RecordOutcome("reported", "reported", "reported", "yellow")
QUARANTINED: Final = RecordOutcome("quarantined", "reported", "quarantined", "yellow")
WOULD_QUARANTINE: Final = RecordOutcome("reported", "reported", "would be quarantined", "yellow")
REFUSED: Final = RecordOutcome("refused", "refused", "refused", "red")
WOULD_REFUSE: Final = RecordOutcome("would refuse", "passed", "would be refused", "yellow")
FAILED: Final = RecordOutcome("failed", "failed", "failed", "red")
NOT_SUPPORTED: Final = RecordOutcome("not supported", "failed", "not supported", "dim")

OUTCOMES: Final = (OK, REPORTED, QUARANTINED, WOULD_QUARANTINE, REFUSED, WOULD_REFUSE, FAILED, NOT_SUPPORTED)
"""All outcomes, in the order of the summary."""

WIDEST: Final = max(len(each.word) for each in OUTCOMES)

_BY_STATUS: Final = {"ok": OK, "reported": REPORTED, "refused": REFUSED, "failed": FAILED}

_METHOD_NOT_FOUND: Final = -32601


def outcome(record: Record) -> RecordOutcome:
    """Return the outcome of the message of *record*."""
    status = record["status"]
    if status == "refused" and record["metadata"].get("passed") is True:
        return WOULD_REFUSE
    if status == "reported" and quarantined(record):
        return WOULD_QUARANTINE if is_audited(record) else QUARANTINED
    if status == "failed" and _answers_probe(record):
        return NOT_SUPPORTED
    # An unknown status may come from another version.
    return _BY_STATUS.get(status) or RecordOutcome(status, status, status, "bold")


def _answers_probe(record: Record) -> bool:
    """
    Whether a server responds to `server/discover` with the usual error of servers before 2026-07-28.

    Clients of several revisions send it first and continue with `initialize`, so this is not a fault.
    """
    asked = record["method"] == "server/discover" and record["metadata"].get("kind") == "error"
    return asked and (record["error"] or {}).get("jsonrpcCode") == _METHOD_NOT_FOUND


MOST_LINES: Final = 30
"""Maximal lines of one frame to show without --wide."""


def has_payload(metadata: dict[str, Any]) -> bool:
    """Whether a record has its frame, or a note that it was left out."""
    return any(name in metadata for name in ("frame", "frameBase64", "omitted"))


def payload_lines(metadata: dict[str, Any], *, whole: bool) -> Iterator[str]:
    """Yield the lines of the frame of a record with this *metadata*; without *whole*, only the first ones."""
    if metadata.get("omitted"):
        yield "(frame left out: more than 4 MiB or 50,000 values)"
        return
    if metadata.get("redacted"):
        yield "(secrets are hidden)"
    lines = _lines(metadata)
    shown = lines if whole else lines[:MOST_LINES]
    yield from map(plain, shown)
    if len(shown) < len(lines):
        yield f"({len(lines) - len(shown):,} more lines; --wide shows them)"


def _lines(metadata: dict[str, Any]) -> list[str]:
    text, encoded = metadata.get("frame"), metadata.get("frameBase64")
    if not isinstance(text, str):
        return [f"base64 {encoded}"] if isinstance(encoded, str) else []
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False).split("\n")
    except (ValueError, RecursionError):
        # A frame that is not JSON, or nested too deeply.
        return text.splitlines()
