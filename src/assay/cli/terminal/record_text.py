"""Parts of a record for a terminal: times, titles, colours of outcomes, payloads."""

import json
from collections.abc import Container, Iterator
from datetime import UTC, datetime
from typing import Final

import orjson

from assay.base.printable import plain
from assay.base.verdict import UNNAMED
from assay.records.outcomes import WOULD_BLOCK
from assay.records.record import Metadata, Record


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


COLOURS: Final = {
    "ok": "green",
    "reported": "yellow",
    "repaired": "cyan",
    "blocked": "red",
    WOULD_BLOCK: "yellow",
    "failed": "magenta",
}
"""The colour of each word; `style.css` has the same ones."""

MARKS: Final = {"ok": "✓", "reported": "!", "repaired": "~", "blocked": "✗", WOULD_BLOCK: "✗", "failed": "E"}
"""The mark of each word, for lists in which the word itself would not fit."""


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


_NAMED: Final = {"prompts/get": "name", "resources/read": "uri"}
"""The parameter with the name of a prompt or resource, by method."""

_LONGEST_NAME: Final = 40


def title(record: Record) -> str:
    """Return a short title of a message."""
    metadata = record.metadata
    found = nameless(metadata.kind, [each.rule for each in record.findings])
    if found is not None:
        return f"{found} × {metadata.repeated:,}" if metadata.repeated else found
    kind, ident = metadata.kind, metadata.id
    about = metadata.tool[:_LONGEST_NAME] if metadata.tool else _asked_for(record)
    named = " ".join(each for each in (record.method, about) if each and each != UNNAMED)
    if not named:
        without = f"{kind} without an id" if kind == "error" else kind
        return without if ident is None else f"{kind} #{ident}"
    shown = named if ident is None else f"{named} #{ident}"
    if kind in {"result", "error"}:
        # An error without an id: the server could not read the request, or never sends an id.
        return f"{kind} of {shown}{' without an id' if kind == 'error' and ident is None else ''}"
    return f"never answered: {shown}" if kind == "missing" else shown


def _asked_for(record: Record) -> str:
    """Return the prompt or the resource in a request, if its message is recorded."""
    key, frame = _NAMED.get(record.method or ""), record.metadata.frame
    if key is None or frame is None or record.metadata.kind != "request":
        return ""
    try:
        name = orjson.loads(frame)["params"][key]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return ""
    return name[:_LONGEST_NAME] if isinstance(name, str) else ""
