"""Rows as files that other commands open: recordings, journals, and reports that the command line adds. No I/O."""

import asyncio
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, Final, NamedTuple

import orjson

from assay import __version__
from assay.console.rows import HOW_TO_RECORD
from assay.console.state import ConsoleState
from assay.records.filtering import RecordFilter, answered_requests
from assay.records.importers.journal import RecordRows, conversation_key, is_stateless, place_key
from assay.records.record import Record, read_record, written_record
from assay.records.rows import VERSION

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
    return ExportFile(b"".join(written_record(record) + b"\n" for _, record in rows), _JSON_LINES, "journal.jsonl")


class NoPayloadsError(ValueError):
    """None of the chosen messages is recorded, so that a recording of them could not be judged."""


def recording_of(rows: Sequence[Numbered], wanted: Set[int]) -> ExportFile:
    """
    Return a recording of the *wanted* rows, and of those among all *rows* that `assay check` needs to judge them.

    These are the rest of their exchanges, and the handshakes and lists of tools of their sessions. Where other messages
    are left out, the recording says so, and carries the findings of the guard. Raises `NoPayloadsError`.
    """
    rows_of = RecordRows()
    made: list[dict[str, Any]] = [{"event": "recording", "version": VERSION, "assay": __version__}]
    needed = _Needed([record for seq, record in rows if seq in wanted])
    left_out = 0
    for seq, record in rows:
        if seq in wanted or needed.has(record):
            made += rows_of.add(record)
            left_out += seq in wanted and record.frame is None and record.metadata.kind != "missing"
        else:
            rows_of.pass_over(record)
    if wanted and left_out == len(wanted):
        raise NoPayloadsError(f"none of these messages is recorded, so none could be judged; {HOW_TO_RECORD}")
    text = b"".join(orjson.dumps(each) + b"\n" for each in (*made, {"event": "close"}))
    return ExportFile(text, _JSON_LINES, "recording.jsonl", left_out)


_HANDSHAKE: Final = frozenset({"initialize", "notifications/initialized", "server/discover"})
_LIST: Final = "tools/list"


class _Needed:
    """What has to be known to judge some records."""

    def __init__(self, wanted: Iterable[Record]) -> None:
        self._requests: set[str] = set()
        self._sessions: set[Hashable] = set()
        self._places: set[Hashable] = set()
        for each in wanted:
            self._requests.add(each.request_id)
            self._sessions.add(conversation_key(each))
            if is_stateless(each):
                self._places.add(place_key(each))

    def has(self, record: Record) -> bool:
        """Whether *record* is the rest of an exchange, a handshake, or a list of tools."""
        if record.request_id in self._requests:
            return True
        if record.method == _LIST and is_stateless(record):
            return place_key(record) in self._places
        return (record.method == _LIST or record.method in _HANDSHAKE) and conversation_key(record) in self._sessions


class Exports:
    """The exports of a console, one at a time: all records together take some hundred megabytes as values."""

    def __init__(self, state: ConsoleState, reports: Mapping[str, Exporter]) -> None:
        self._state = state
        self._exporters = {"journal": journal_file, **reports}
        self._exporting = asyncio.Lock()

    @property
    def formats(self) -> list[str]:
        """The names of all formats."""
        return ["recording", *self._exporters]

    async def file(self, given: dict[str, Any]) -> ExportFile:
        """Return the file that a request asks for. Raises `ValueError`."""
        kind = str(given.get("format"))
        if kind not in self.formats:
            raise ValueError(f"format: expected one of {', '.join(self.formats)}")
        words = RecordFilter.parse(str(given.get("filter") or ""))
        seqs = chosen_seqs(given.get("seqs"))
        async with self._exporting:
            return await self._exported(kind, words, seqs)

    async def _exported(self, kind: str, words: RecordFilter, seqs: set[int] | None) -> ExportFile:
        # Taken here: the store changes while a thread makes the file.
        store = self._state.store
        chosen = store.raw_records(seqs)
        # A recording is judged again, which takes more than the chosen rows; and any row may answer a request.
        every = store.raw_records(None) if kind == "recording" or words.asks_for_answers else []
        names = self._state.server_names(seq for seq, _ in chosen) if words.asks_for_server else {}

        def made() -> ExportFile:
            answered = answered_requests(record for _, record in _read(every)) if words.asks_for_answers else set()
            wanted = [
                (seq, record)
                for seq, record in _read(chosen)
                if words.wants(record, server=names.get(seq, ""), is_open=record.request_id not in answered)
            ]
            if kind == "recording":
                file = recording_of(list(_read(every)), {seq for seq, _ in wanted})
            else:
                file = self._exporters[kind](wanted)
            dropped = sum(each is None for _, each in chosen)
            return file._replace(left_out=file.left_out + dropped)

        return await asyncio.to_thread(made)


def _read(raw: Iterable[tuple[int, bytes | None]]) -> Iterator[Numbered]:
    """Yield the records of rows that are still there."""
    for seq, line in raw:
        record = read_record(line) if line is not None else None
        if record is not None:
            yield seq, record


def chosen_seqs(given: Any) -> set[int] | None:
    """Return the numbers of rows in a request; None if it does not choose by number. Raises `ValueError`."""
    if given is None:
        return None
    if not isinstance(given, list) or not all(type(each) is int for each in given) or len(given) > MOST_EXPORTED:
        raise ValueError(f"seqs: expected at most {MOST_EXPORTED:,} numbers")
    return set(given)
