"""
Reads a journal back, line by line. Knows no command.

The last line of a run that was killed may be cut off; a line that is no record is given as such, never an error.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import orjson

Record = dict[str, Any]

# What every record has, and whoever reads one may rely on. A record may have more.
_MEMBERS: Final[tuple[tuple[str, type | tuple[type, ...]], ...]] = (
    ("ts", str),
    ("requestId", str),
    ("transport", str),
    ("route", str),
    ("method", (str, type(None))),
    ("status", str),
    ("durationMs", (int, float)),
    ("inputBytes", int),
    ("outputBytes", int),
    ("error", (dict, type(None))),
    ("metadata", dict),
)


class Entry(NamedTuple):
    """A line of a journal."""

    number: int
    raw: bytes
    """As it stands there, without its newline."""
    record: Record | None
    """None for a line that is no record."""


def entries(lines: Iterable[bytes]) -> Iterator[Entry]:
    """Every line that is not blank."""
    for number, line in enumerate(lines, 1):
        raw = line.rstrip(b"\r\n")
        if raw:
            yield Entry(number, raw, _record(raw))


def _record(raw: bytes) -> Record | None:
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(value, dict):
        return None
    return value if all(name in value and isinstance(value[name], kind) for name, kind in _MEMBERS) else None


def violations(record: Record) -> list[tuple[str, str]]:
    """The rules that were broken, each with its place."""
    found = (record["error"] or {}).get("violations")
    listed = found if isinstance(found, list) else []
    return [(str(each.get("rule")), str(each.get("at"))) for each in listed if isinstance(each, dict)]


class Filter(NamedTuple):
    """Which records are wanted: by each of these that is given, one of its words."""

    statuses: Sequence[str] = ()
    methods: Sequence[str] = ()
    tools: Sequence[str] = ()
    rules: Sequence[str] = ()
    """A rule, or a rung for all of its rules."""

    def wants(self, record: Record) -> bool:
        """Whether *record* is one of them."""
        return (
            (not self.statuses or record["status"] in self.statuses)
            and (not self.methods or record["method"] in self.methods)
            and (not self.tools or record["metadata"].get("tool") in self.tools)
            and (not self.rules or any(self._names(rule) for rule, _ in violations(record)))
        )

    def _names(self, rule: str) -> bool:
        return any(rule == wanted or rule.startswith(f"{wanted}/") for wanted in self.rules)
