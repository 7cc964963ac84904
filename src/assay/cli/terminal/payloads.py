"""Show the frames in a journal: as indented JSON, without control characters."""

import json
from collections.abc import Iterator
from typing import Any, Final

from assay.base.printable import plain

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
