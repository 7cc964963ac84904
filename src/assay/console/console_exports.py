"""Rows as files that other commands open: recordings, journals, and reports that the command line adds. No I/O."""

from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any, Final, NamedTuple

import orjson

from assay import __version__
from assay.console.finding_board import action_of
from assay.console.row_cells import faults
from assay.records.journal.reading import Record, server_of
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


class NoPayloadsError(ValueError):
    """None of the chosen messages is recorded, so that a recording of them could not be judged."""


def recording_file(rows: Sequence[Numbered]) -> ExportFile:
    """Return the messages as a recording that `assay check` judges. Raises `NoPayloadsError`."""
    return recording_of(rows, {seq for seq, _ in rows})


def recording_of(rows: Sequence[Numbered], wanted: Set[int]) -> ExportFile:
    """
    Return a recording of the *wanted* rows, and of those among all *rows* that are needed to judge them.

    These are the rest of their exchanges, and the handshakes and lists of tools of their sessions. Where other messages
    are left out, the recording says so, and carries the findings of the guard. Raises `NoPayloadsError`.
    """
    made = _RecordingText()
    needed = _Needed([record for seq, record in rows if seq in wanted])
    left_out = 0
    for seq, record in rows:
        if seq in wanted:
            left_out += not made.add(record)
        elif needed.has(record):
            made.add(record)
        else:
            made.pass_over(record)
    if wanted and left_out == len(wanted):
        raise NoPayloadsError(f"none of these messages is recorded, so none could be judged; {_REMEDY}")
    return ExportFile(made.text(), _JSON_LINES, "recording.jsonl", left_out)


_REMEDY: Final = "run the guard with --set journal.payloads=true"

_HANDSHAKE: Final = frozenset({"initialize", "notifications/initialized", "server/discover"})
_LIST: Final = "tools/list"


def _place(record: Record) -> tuple[str, ...]:
    """Return the server of *record*: without sessions, all of its requests share its tools."""
    return record["transport"], server_of(record), record["route"]


def _session(record: Record) -> tuple[str, ...]:
    """Return the conversation of *record*; over HTTP without a session each request is one."""
    session = str(record["metadata"].get("session") or "")
    return (*_place(record), session or (record["requestId"] if record["transport"] == "http" else ""))


def _is_stateless(record: Record) -> bool:
    return record["transport"] == "http" and not record["metadata"].get("session")


class _Needed:
    """What has to be known to judge some records."""

    def __init__(self, wanted: Iterable[Record]) -> None:
        self._requests: set[str] = set()
        self._sessions: set[tuple[str, ...]] = set()
        self._places: set[tuple[str, ...]] = set()
        for each in wanted:
            self._requests.add(each["requestId"])
            self._sessions.add(_session(each))
            if _is_stateless(each):
                self._places.add(_place(each))

    def has(self, record: Record) -> bool:
        """Whether *record* is the rest of an exchange, a handshake, or a list of tools."""
        if record["requestId"] in self._requests:
            return True
        if record["method"] == _LIST and _is_stateless(record):
            return _place(record) in self._places
        return (record["method"] == _LIST or record["method"] in _HANDSHAKE) and _session(record) in self._sessions


class _RecordingText:
    """The rows of a recording."""

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = [{"event": "recording", "version": VERSION, "assay": __version__}]
        self._talks: dict[tuple[str, ...], int] = {}
        self._owners: dict[tuple[str, ...], int] = {}
        """The first conversation of each server: without sessions all share its tools."""
        self._restarts: dict[int, int] = {}
        self._passed_over: set[tuple[str, ...]] = set()
        self._gaps: set[int] = set()
        """Conversations of which messages are left out, and those for which the recording says so."""
        self._listed: set[tuple[str, ...]] = set()
        """Sessions, and servers without sessions, whose list of tools is in the recording."""

    def pass_over(self, record: Record) -> None:
        """Note that the message of *record* is left out."""
        self._passed_over.add(_session(record))

    def add(self, record: Record) -> bool:
        """Add the message of *record*; return whether it has one. Without one, a row says so."""
        metadata = record["metadata"]
        if metadata.get("kind") == "missing":
            return self._missing(record)
        party = metadata.get("party")
        if party not in {"client", "server"}:
            return False
        number = self._talk(record)
        self._restart(number, metadata.get("restarts"))
        row = {"dir": "c2s" if party == "client" else "s2c", "conversation": number}
        members = {"frame": "msg", "frameBase64": "base64"}
        payload = {name: metadata[each] for each, name in members.items() if isinstance(metadata.get(each), str)}
        self._rows.append({**row, **(self._message(record, number, payload) if payload else _bare(record))})
        if payload and metadata.get("kind") == "result" and record["method"] == _LIST:
            self._listed.add(_place(record) if _is_stateless(record) else _session(record))
        return bool(payload)

    def _message(self, record: Record, number: int, payload: dict[str, str]) -> dict[str, Any]:
        """Return the members of a row with its message, and what the guard found in it."""
        metadata = record["metadata"]
        row: dict[str, Any] = dict(payload)
        actions = _actions(record)
        if metadata.get("redacted") is True:
            row |= {"redacted": True, "findings": actions}
        elif self._is_unlisted(record):
            row |= {"partial": True, "findings": actions}
        elif number in self._gaps:
            row |= {"actions": actions, "findings": actions}
        elif actions:
            row["actions"] = actions
        if record["transport"] == "http" and isinstance(metadata.get("revision"), str):
            row["http"] = {"revision": metadata["revision"]}
        return row

    def _is_unlisted(self, record: Record) -> bool:
        """Whether the guard found a fault by a list of tools that is not in the recording."""
        known = _place(record) if _is_stateless(record) else _session(record)
        if known in self._listed or record["method"] == _LIST:
            return False
        return any(str(each.get("rule")).startswith("contract/") for each in faults(record))

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
        """Return the number of the conversation, open it if it is new, and say if messages of it are left out."""
        metadata, key = record["metadata"], _session(record)
        number = self._talks.get(key)
        if number is None:
            number = self._talks[key] = len(self._talks) + 1
            revision, stateless = metadata.get("revision"), _is_stateless(record)
            # Without its handshake, a conversation does not show its revision.
            opened = record["method"] != "initialize" and isinstance(revision, str) and is_known(revision)
            row: dict[str, Any] = {
                "event": "open",
                "conversation": number,
                "server": server_of(record),
                "mode": metadata.get("mode") or "audit",
                "revision": revision if opened and (stateless or handshake(str(revision))) else None,
                "lines": record["transport"] == "stdio",
            }
            if isinstance(metadata.get("frameBytes"), int):
                row["frameBytes"] = metadata["frameBytes"]
            if stateless and self._owners.setdefault(_place(record), number) != number:
                row["tools"] = self._owners[_place(record)]
            self._rows.append(row)
        if key in self._passed_over and number not in self._gaps:
            self._gaps.add(number)
            self._rows.append({"event": "gap", "conversation": number})
        return number

    def _restart(self, number: int, restarts: Any) -> None:
        count = restarts if isinstance(restarts, int) else 0
        if count != self._restarts.setdefault(number, count):
            self._restarts[number] = count
            self._rows.append({"event": "restart", "conversation": number})


def _bare(record: Record) -> dict[str, Any]:
    """Return the members of a row for a message that is not recorded."""
    metadata = record["metadata"]
    row = {"kind": metadata.get("kind"), "id": metadata.get("id")}
    if metadata.get("omitted") is True:
        return {**row, "omitted": True, "findings": _actions(record)}
    # A verdict without its message is not evidence: such a message is not judged.
    return {**row, "unrecorded": True}


def _actions(record: Record) -> list[dict[str, Any]]:
    """Return the action for each finding: what the guard has done is repeated."""
    return [
        {name: each.get(name) for name in ("rule", "at", "expected", "found")} | {"action": action_of(each)}
        for each in faults(record)
    ]


def chosen_seqs(given: Any) -> set[int] | None:
    """Return the numbers of rows in a request; None if it does not choose by number. Raises `ValueError`."""
    if given is None:
        return None
    if not isinstance(given, list) or not all(type(each) is int for each in given) or len(given) > MOST_EXPORTED:
        raise ValueError(f"seqs: expected at most {MOST_EXPORTED:,} numbers")
    return set(given)
