"""
What a journal says beside its records: lines with the member ``event``, about a server and its sessions. No I/O.

Every file of a run begins with the event ``server`` of each server, so that a reader of its end knows them. A
deterministic journal has no events: they say when and where a run was.
"""

import os
from collections.abc import Sequence
from shlex import join
from time import time_ns
from typing import Any, Final, NamedTuple

import orjson

from assay import __version__
from assay.core.masked_commands import masked_command
from assay.core.masking import masked_url
from assay.records.journal.line_templates import shown
from assay.records.journal.reading import Record, is_event, is_record, line_value
from assay.records.journal.record import RunIdentity, cut

RECORD: Final = "record"
"""The event of an item that is a record."""

_LONGEST: Final = 500
"""Maximal characters of a text in an event."""


class JournalItem(NamedTuple):
    """A record, or an event."""

    event: str
    """One of `reading.EVENTS`, or ``record``."""
    data: dict[str, Any]
    """The members of the line."""

    @property
    def record(self) -> Record | None:
        """The record, which has all members that a record must have; None for an event."""
        return self.data if self.event == RECORD else None


def item_of(line: bytes) -> JournalItem | None:
    """Parse a *line* of a journal; None for one that is neither a record nor a known event."""
    value = line_value(line)
    if value is None:
        return None
    if is_record(value):
        return JournalItem(RECORD, value)
    return JournalItem(value["event"], value) if is_event(value) else None


def text_of(data: dict[str, Any], name: str) -> str:
    """Return a member of an event as text; "" if it is missing or is not text."""
    value = data.get(name)
    return value if isinstance(value, str) else ""


class ServerPlace(NamedTuple):
    """Where a guarded server is, for the event ``server``."""

    command: Sequence[str] = ()
    url: str = ""
    address: str = ""
    """Where clients connect to, over HTTP."""
    locked: bool = False


def event_line(kind: str, route: str, run: RunIdentity, members: dict[str, Any]) -> bytes:
    """Return the line of an event of the server at *route*, without secrets; empty in a deterministic run."""
    if run.deterministic:
        return b""
    whole = {"ts": shown(time_ns()), "event": kind, "server": run.server_of(route), **_shown(members, run)}
    return orjson.dumps(whole, option=orjson.OPT_APPEND_NEWLINE)


def server_line(transport: str, route: str, run: RunIdentity, place: ServerPlace) -> bytes:
    """Return the event ``server``: what is guarded, and how."""
    if run.deterministic:
        return b""
    members = {
        "transport": transport,
        "route": route,
        "address": place.address,
        "mode": run.mode,
        "payloads": run.payloads,
        "lock": "locked" if place.locked else "none",
        "what": _masked(place),
        "pid": os.getpid(),
        "assay": __version__,
    }
    return event_line("server", route, run, members)


def _shown(value: Any, run: RunIdentity) -> Any:
    """Return *value*, whose texts may be those of peers, without secrets, cut."""
    if isinstance(value, str):
        # Redact first, then cut: part of a secret is not recognized.
        return cut(run.redactor.text(value[: 4 * _LONGEST]), _LONGEST) if value else value
    if isinstance(value, dict):
        return {name: _shown(each, run) for name, each in value.items()}
    return [_shown(each, run) for each in value] if isinstance(value, list) else value


def _masked(place: ServerPlace) -> str:
    return masked_url(place.url) if place.url else join(masked_command(place.command))
