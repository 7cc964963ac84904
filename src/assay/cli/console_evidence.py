"""The files of `assay console FILE…`: journals as they were written, any other file judged as `assay check` does."""

from __future__ import annotations

import os
from time import time
from typing import TYPE_CHECKING

from assay.cli.checking.check_terms import CheckTerms
from assay.cli.checking.evidence import is_journal, opened
from assay.cli.checking.evidence_files import Piece, found
from assay.cli.guard_terms import extensions_of
from assay.cli.journal_choice import Directories, chosen
from assay.console.console_sources import EvidenceError, FilePump
from assay.console.judged_records import JudgedRecords
from assay.records.journal.reading import Pages, Record, entries
from assay.records.transcript import Judged, TranscriptError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator

    from assay.console.console_state import ConsoleState
    from assay.settings import Settings


class ConsoleEvidence:
    """One file."""

    def __init__(self, args: argparse.Namespace, settings: Settings, piece: Piece) -> None:
        self._args, self._settings, self._piece = args, settings, piece
        self._terms = CheckTerms(
            settings,
            extensions_of(settings),
            revision=args.revision,
            is_literal=args.literal,
            source=args.source,
            fields=args.fields,
            party=args.party,
            with_messages=True,
        )
        self._notes: list[str] = []

    def records(self) -> Iterator[Record]:
        """Yield its records. Raises `EvidenceError`."""
        try:
            yield from self._records()
        except OSError as error:
            raise EvidenceError(error.strerror or "cannot be read") from None
        except TranscriptError as error:
            raise EvidenceError(str(error.args[0])) from None

    def notes(self) -> Iterable[str]:
        """Return remarks about it, after its last record."""
        return self._notes

    def _records(self) -> Iterator[Record]:
        path, is_run = self._piece.name, self._piece.is_run
        if not is_run and path != "-" and not os.path.isfile(path):
            path, is_run = chosen(path, Directories(self._args, lambda _: None))
        if path == "-":
            # Standard input can be read only once, and a journal on it is judged.
            yield from self._judged(Piece(path))
            return
        with Pages(path, whole=is_run) as pages:
            journal = is_journal(self._terms, pages.peek())
            if journal:
                yield from self._written(pages)
        if not journal:
            yield from self._judged(Piece(path, is_run))

    def _written(self, pages: Pages) -> Iterator[Record]:
        broken = 0
        for entry in entries(pages):
            if entry.record is None:
                broken += 1
            else:
                yield entry.record
        if broken:
            self._notes.append(f"{broken:,} line{'' if broken == 1 else 's'} of the journal: not a record")

    def _judged(self, piece: Piece) -> Iterator[Record]:
        made = JudgedRecords(tuple(self._settings.journal.redact), time())
        with opened(self._terms, piece.name, lambda _: None, is_run=piece.is_run) as evidence:
            for each in evidence.follow():
                if isinstance(each, Judged):
                    yield made.record(each)
        self._notes += evidence.end().all_remarks()


def file_pump(
    args: argparse.Namespace, settings: Settings, state: ConsoleState, changed: Callable[[], None]
) -> FilePump:
    """Return what feeds *state* with the files of the command line; directories are searched."""
    pieces: dict[str, Piece] = {}
    for name in args.files:
        each = found(name)
        pieces |= {piece.name: piece for piece in each.pieces}
        state.failed += [{"file": name, "why": why} for why in each.passed_over]
        if not each.pieces and not each.passed_over:
            state.failed.append({"file": name, "why": "no recordings in it"})
    return FilePump(state, changed, list(pieces), lambda name: ConsoleEvidence(args, settings, pieces[name]))
