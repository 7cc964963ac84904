"""Find the lists of tools in the files of a run, for calls that come before the list."""

# ruff: noqa: PLC0415  nearly no run needs it
from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from assay.records.recording.listed_tools import MARK, ListedTools, ListPlace
from assay.records.transcript import TranscriptError, TranscriptRow, conversation_of, frame_of

if TYPE_CHECKING:
    from assay.cli.checking.check_terms import CheckTerms
    from assay.cli.checking.evidence import RecordedLines
    from assay.records.journal.reading import JournalEntry, Pages

_OPENS = b'"event"'
"""A member of each row that names the server of a conversation."""

_Found = tuple[str, ListPlace, bytes]


def tools_of(terms: CheckTerms, path: str) -> ListedTools | None:
    """Return the tools that are listed in the evidence, for judging the file *path*; None if only it is compared."""
    return None if terms.is_compared else ListedTools(path, partial(_all_lists, terms, path))


def _all_lists(terms: CheckTerms, path: str) -> Iterator[_Found]:
    """Yield the lists of all files: those of the file *path* first, which need not be one of the command line."""
    from contextlib import suppress

    files = {path: False, **dict(terms.evidence)}
    for each, is_run in files.items():
        # Standard input cannot be read twice.
        if each != "-":
            # A file that cannot be read is reported where it is judged.
            with suppress(OSError, TranscriptError):
                yield from _lists(terms, each, is_run=is_run)


def _lists(terms: CheckTerms, path: str, *, is_run: bool) -> Iterator[_Found]:
    from assay.cli.checking.evidence import RecordedLines, is_journal, longest_line
    from assay.records.journal.reading import Pages, entries

    longest = longest_line(terms)
    with Pages(path, whole=is_run, longest=longest) as pages:
        if is_journal(terms, pages.peek()):
            yield from _in_journal(path, entries(_marked(pages)))
        else:
            yield from _in_rows(path, _rows(terms, RecordedLines(pages, path, longest)))


def _marked(pages: Pages) -> Iterator[bytes]:
    """Yield a blank line in place of each one that has no list, which is then not parsed."""
    for line in pages:
        yield line if MARK in line else b"\n" * (line.count(b"\n") or 1)


def _in_journal(path: str, entries: Iterable[JournalEntry]) -> Iterator[_Found]:
    from assay.records.journal.reading import recorded_frame, server_of
    from assay.records.journal.replay import conversation_key

    for entry in entries:
        frame = None if entry.record is None else recorded_frame(entry.record["metadata"])
        if entry.record is not None and frame is not None and MARK in frame:
            server = server_in_journal(path, server_of(entry.record), entry.record["route"])
            yield server, ListPlace(path, conversation_key(entry.record), entry.number), frame


def server_in_journal(path: str, name: str, route: str) -> str:
    """Return what a server of a journal is known by: its name, or without one its route."""
    return name or f"{path}{route}"


def _rows(terms: CheckTerms, lines: RecordedLines) -> Iterator[TranscriptRow]:
    from assay.cli.checking.evidence import chosen_importer, import_options
    from assay.records.importers.importer_table import NATIVE
    from assay.records.transcript import read

    importer = chosen_importer(terms) or lines.recognised()
    if importer is NATIVE:
        return read(
            line if MARK in line or _OPENS in line else b"\n" * (line.count(b"\n") or 1)
            for block in lines.blocks()
            for line in block
        )
    text = lines.pieces() if importer.is_document else lines.readable()
    return importer.read(text, import_options(terms))


def _in_rows(path: str, rows: Iterable[TranscriptRow]) -> Iterator[_Found]:
    servers: dict[int, str] = {}
    for row in rows:
        members = row.members
        if members.get("event") == "open":
            servers[conversation_of(members)] = str(members.get("server") or "")
        elif "event" not in members and not row.lacks and ("msg" in members or "base64" in members):
            frame = frame_of(row)
            if MARK in frame:
                number = conversation_of(members)
                yield servers.get(number, ""), ListPlace(path, number, row.line), frame
