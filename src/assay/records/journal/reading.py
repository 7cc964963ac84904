"""
Parse a journal, line by line.

The last line of a killed run may be cut off; an invalid line is returned as such, and is never an error.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import orjson

Record = dict[str, Any]

# Members that every record has. A record may have more.
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


class JournalEntry(NamedTuple):
    """A line of a journal."""

    number: int
    raw: bytes
    """The bytes of the line, without its newline."""
    record: Record | None
    """None for a line that is not a record."""


def entries(lines: Iterable[bytes]) -> Iterator[JournalEntry]:
    """Yield every line that is not blank."""
    for number, line in enumerate(lines, 1):
        found = entry_of(number, line)
        if found is not None:
            yield found


def entry_of(number: int, line: bytes) -> JournalEntry | None:
    """Parse the line with this *number*; None for a blank one."""
    raw = line.rstrip(b"\r\n")
    return JournalEntry(number, raw, _record(raw)) if raw else None


def _record(raw: bytes) -> Record | None:
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(value, dict):
        return None
    return value if all(name in value and isinstance(value[name], kind) for name, kind in _MEMBERS) else None


def violations(record: Record) -> list[tuple[str, str]]:
    """Return the violated rules, each with its place."""
    found = (record["error"] or {}).get("violations")
    listed = found if isinstance(found, list) else []
    return [(str(each.get("rule")), str(each.get("at"))) for each in listed if isinstance(each, dict)]


def quarantined(record: Record) -> list[str]:
    """Return the entries of a list that were quarantined, or would be under enforce: ``tool legacy``."""
    found = (record["error"] or {}).get("quarantined")
    listed = found if isinstance(found, list) else []
    return [f"{each.get('kind')} {each.get('name')}" for each in listed if isinstance(each, dict)]


def is_audited(record: Record) -> bool:
    """Whether a guard in audit mode wrote *record*; False also for one that does not have the mode."""
    return bool(record["metadata"].get("mode") == "audit")


def server_of(record: Record) -> str:
    """Return the name of the server; "" for a record without one."""
    name = record["metadata"].get("server")
    return name if isinstance(name, str) else ""


class Filter(NamedTuple):
    """A filter for records: a record must match one value of each given filter."""

    statuses: Sequence[str] = ()
    methods: Sequence[str] = ()
    tools: Sequence[str] = ()
    rules: Sequence[str] = ()
    """A rule, or a rung for all of its rules."""
    servers: Sequence[str] = ()
    """Names of servers. A record without a name passes: its file was already chosen by the folder name."""
    quarantined: bool = False
    """Only records of lists with quarantined entries."""

    def wants(self, record: Record) -> bool:
        """Whether *record* matches."""
        return (
            (not self.statuses or record["status"] in self.statuses)
            and (not self.methods or record["method"] in self.methods)
            and (not self.tools or record["metadata"].get("tool") in self.tools)
            and (not self.rules or any(self._names(rule) for rule, _ in violations(record)))
            and (not self.servers or (server_of(record) or self.servers[0]) in self.servers)
            and (not self.quarantined or bool(quarantined(record)))
        )

    def _names(self, rule: str) -> bool:
        return any(rule == wanted or rule.startswith(f"{wanted}/") for wanted in self.rules)
