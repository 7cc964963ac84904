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


class JournalEntry(NamedTuple):
    """A line of a journal."""

    number: int
    raw: bytes
    """As it stands there, without its newline."""
    record: Record | None
    """None for a line that is no record."""


def entries(lines: Iterable[bytes]) -> Iterator[JournalEntry]:
    """Every line that is not blank."""
    for number, line in enumerate(lines, 1):
        found = entry_of(number, line)
        if found is not None:
            yield found


def entry_of(number: int, line: bytes) -> JournalEntry | None:
    """The line with this *number*; None for a blank one."""
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
    """The rules that were broken, each with its place."""
    found = (record["error"] or {}).get("violations")
    listed = found if isinstance(found, list) else []
    return [(str(each.get("rule")), str(each.get("at"))) for each in listed if isinstance(each, dict)]


def quarantined(record: Record) -> list[str]:
    """The entries of a list that were quarantined, or would be under enforce: ``tool legacy``."""
    found = (record["error"] or {}).get("quarantined")
    listed = found if isinstance(found, list) else []
    return [f"{each.get('kind')} {each.get('name')}" for each in listed if isinstance(each, dict)]


def is_audited(record: Record) -> bool:
    """Whether a guard in audit mode wrote *record*; False also for one that does not have the mode."""
    return bool(record["metadata"].get("mode") == "audit")


def server_of(record: Record) -> str:
    """The name of the server; "" for a record that has none."""
    name = record["metadata"].get("server")
    return name if isinstance(name, str) else ""


class Filter(NamedTuple):
    """Which records are wanted: by each of these that is given, one of its words."""

    statuses: Sequence[str] = ()
    methods: Sequence[str] = ()
    tools: Sequence[str] = ()
    rules: Sequence[str] = ()
    """A rule, or a rung for all of its rules."""
    servers: Sequence[str] = ()
    """Names of servers. A record without a name passes: its file was chosen by the name of its folder."""
    quarantined: bool = False
    """Only records of lists with quarantined entries."""

    def wants(self, record: Record) -> bool:
        """Whether *record* is one of them."""
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
