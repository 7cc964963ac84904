"""The records of a journal, without the events between them."""

from pathlib import Path
from typing import Any

import orjson


def records(path: Path) -> list[dict[str, Any]]:
    """Return the records in the file at *path*, or in all files below a directory."""
    files = sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]
    lines = [orjson.loads(line) for each in files for line in each.read_bytes().splitlines()]
    return [each for each in lines if "event" not in each]
