"""The files of `assay console FILE…`: journals as they were written, any other file judged as `assay check` does."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Generator, Iterable, Iterator

from assay.cli.checking.evidence import CheckTerms, FileEnd, opened
from assay.cli.checking.files import Piece, found
from assay.cli.journal_choice import Directories, chosen
from assay.console.sources import EvidenceError, FilePump
from assay.console.state import ConsoleState
from assay.records.importers.journal import is_journal
from assay.records.judged_records import JudgedRecords
from assay.records.reading import Pages, entries
from assay.records.record import Record
from assay.records.rows import Judged, TranscriptError
from assay.settings import Settings


class ConsoleEvidence:
    """One file."""

    def __init__(self, args: argparse.Namespace, settings: Settings, piece: Piece) -> None:
        self._args, self._settings, self._piece = args, settings, piece
        self._terms = CheckTerms(
            settings,
            revision=args.revision,
            is_literal=args.literal,
            source=args.source,
            fields=args.fields,
            party=args.party,
            with_messages=True,
        )
        self._notes: list[str] = []

    @property
    def is_stream(self) -> bool:
        """Whether it is standard input, which can be read only once."""
        return self._piece.name == "-"

    def records(self) -> Generator[Record, None, None]:
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
            terms = self._terms
            journal = is_journal(pages.peek()) and not terms.fields and terms.source in {None, "assay"}
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
        made = JudgedRecords(piece.name, self._settings.journal.redact, whole=True)
        end = FileEnd()
        with opened(self._terms, piece.name, is_run=piece.is_run) as evidence:
            for each in evidence.follow():
                if isinstance(each, Judged):
                    yield made.make(each).record
            evidence.finish(end)
        self._notes += map(made.redactor.text, end.remarks)


class NothingToShowError(Exception):
    """No file of the command line can be shown; the lines of the message have the reasons."""


def file_pump(
    args: argparse.Namespace, settings: Settings, state: ConsoleState, changed: Callable[[], None]
) -> FilePump:
    """
    Return what feeds *state* with the files of the command line; directories are searched.

    Raises `NothingToShowError`.
    """
    pieces: dict[str, Piece] = {}
    wrong: list[str] = []
    for name in args.files:
        each = found(name)
        pieces |= {piece.name: piece for piece in each.pieces}
        lacks = each.passed_over or ([] if each.pieces else ["no recordings in it"])
        state.failed += [{"file": name, "why": why} for why in lacks]
        wrong += [f"{name}: {why}" for why in lacks]
    trouble = {name: _trouble(ConsoleEvidence(args, settings, piece)) for name, piece in pieces.items()}
    if all(trouble.values()):
        raise NothingToShowError("\n".join([*wrong, *(f"{name}: {why}" for name, why in trouble.items())]))
    return FilePump(state, changed, list(pieces), lambda name: ConsoleEvidence(args, settings, pieces[name]))


def _trouble(evidence: ConsoleEvidence) -> str:
    """Return why a file cannot be shown; "" if its first record can be read. Standard input is not touched."""
    if evidence.is_stream:
        return ""
    records = evidence.records()
    try:
        next(records, None)
    except EvidenceError as error:
        return str(error)
    finally:
        records.close()
    return ""
