"""Rows as files that other commands open: recordings, journals, and reports that the command line adds. No I/O."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import orjson

from assay import __version__
from assay.console.finding_board import action_of
from assay.console.row_cells import faults
from assay.records.journal.reading import Record
from assay.records.recording.rows import VERSION
from assay.spec.revisions import handshake, is_known

MOST_EXPORTED: Final = 100_000
"""Maximal rows of one export: all that a console has."""

Numbered = tuple[int, Record]
"""The number of a row, and its record."""


class ExportFile(NamedTuple):
    """A file for the browser to save."""

    content: bytes
    kind: str
    """Its media type."""
    ending: str
    """The end of its name."""
    left_out: int = 0
    """Rows that are not in it."""


Exporter = Callable[[Sequence[Numbered]], ExportFile]
"""Makes a file of records, oldest first."""

_JSON_LINES: Final = "application/x-ndjson"


def journal_file(rows: Sequence[Numbered]) -> ExportFile:
    """Return the records as a journal."""
    return ExportFile(b"".join(orjson.dumps(record) + b"\n" for _, record in rows), _JSON_LINES, "journal.jsonl")


def recording_file(rows: Sequence[Numbered]) -> ExportFile:
    """Return the messages as a recording that `assay check` judges."""
    made = _RecordingText()
    left_out = sum(not made.add(record) for _, record in rows)
    return ExportFile(made.text(), _JSON_LINES, "recording.jsonl", left_out)


class _RecordingText:
    """The rows of a recording."""

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = [{"event": "recording", "version": VERSION, "assay": __version__}]
        self._talks: dict[tuple[str, ...], int] = {}
        self._owners: dict[tuple[str, ...], int] = {}
        """The first conversation of each server: without sessions all share its tools."""
        self._restarts: dict[int, int] = {}

    def add(self, record: Record) -> bool:
        """Add the message of *record*; return whether it has one."""
        metadata = record["metadata"]
        if metadata.get("kind") == "missing":
            return self._missing(record)
        members = {"frame": "msg", "frameBase64": "base64"}
        payload = {name: metadata[each] for each, name in members.items() if isinstance(metadata.get(each), str)}
        party = metadata.get("party")
        if not payload or party not in {"client", "server"}:
            return False
        number = self._talk(record)
        self._restart(number, metadata.get("restarts"))
        row = {"dir": "c2s" if party == "client" else "s2c", "conversation": number, **payload}
        actions = _actions(record)
        if metadata.get("redacted") is True:
            row |= {"redacted": True, "findings": actions}
        elif actions:
            row["actions"] = actions
        if record["transport"] == "http" and isinstance(metadata.get("revision"), str):
            row["http"] = {"revision": metadata["revision"]}
        self._rows.append(row)
        return True

    def _missing(self, record: Record) -> bool:
        """Add that a request was never answered."""
        metadata, error = record["metadata"], record["error"] or {}
        row = {"event": "unanswered", "conversation": self._talk(record), "dir": "s2c", "id": metadata.get("id")}
        code = error.get("code")
        why = error.get("message") or "no answer came"
        self._rows.append({**row, "code": code if isinstance(code, str) else "TIMEOUT", "why": why})
        return isinstance(metadata.get("id"), str | int)

    def text(self) -> bytes:
        """Return the file."""
        return b"".join(orjson.dumps(each) + b"\n" for each in (*self._rows, {"event": "close"}))

    def _talk(self, record: Record) -> int:
        """Return the number of the conversation, and open it if it is new."""
        metadata = record["metadata"]
        server, session = str(metadata.get("server") or ""), str(metadata.get("session") or "")
        stateless = not session and record["transport"] == "http"
        place = (record["transport"], server, record["route"])
        key = (*place, record["requestId"] if stateless else session)
        number = self._talks.get(key)
        if number is None:
            number = self._talks[key] = len(self._talks) + 1
            revision = metadata.get("revision")
            # Without its handshake, a conversation does not show its revision.
            opened = record["method"] != "initialize" and isinstance(revision, str) and is_known(revision)
            row: dict[str, Any] = {
                "event": "open",
                "conversation": number,
                "server": server,
                "mode": metadata.get("mode") or "audit",
                "revision": revision if opened and (stateless or handshake(str(revision))) else None,
                "lines": record["transport"] == "stdio",
            }
            if isinstance(metadata.get("frameBytes"), int):
                row["frameBytes"] = metadata["frameBytes"]
            if stateless and self._owners.setdefault(place, number) != number:
                row["tools"] = self._owners[place]
            self._rows.append(row)
        return number

    def _restart(self, number: int, restarts: Any) -> None:
        count = restarts if isinstance(restarts, int) else 0
        if count != self._restarts.setdefault(number, count):
            self._restarts[number] = count
            self._rows.append({"event": "restart", "conversation": number})


def _actions(record: Record) -> list[dict[str, Any]]:
    """Return the action for each finding: what the guard has done is repeated."""
    return [{"rule": each.get("rule"), "at": each.get("at"), "action": action_of(each)} for each in faults(record)]


def chosen_seqs(given: Any) -> set[int] | None:
    """Return the numbers of rows in a request; None if it does not choose by number. Raises `ValueError`."""
    if given is None:
        return None
    if not isinstance(given, list) or not all(type(each) is int for each in given) or len(given) > MOST_EXPORTED:
        raise ValueError(f"seqs: expected at most {MOST_EXPORTED:,} numbers")
    return set(given)
