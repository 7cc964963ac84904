"""The files of `assay console FILE…`: journals as they were written, any other file judged as `assay check` does."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Generator, Iterator

from assay.base.printable import counted
from assay.cli.checking.evidence import CheckTerms, FileEnd, opened
from assay.cli.checking.files import FoundFiles, resolved
from assay.cli.journal_choice import Chosen, Directories
from assay.console.sources import EvidenceError, FilePump
from assay.console.state import ConsoleState
from assay.records.judged_records import JudgedRecords
from assay.records.reading import Pages, entries
from assay.records.record import Record
from assay.records.rows import Judged, TranscriptError
from assay.settings import Settings


class ConsoleEvidence:
    """One file."""

    def __init__(self, terms: CheckTerms, given: Chosen) -> None:
        self._terms, self._given = terms, given
        self._notes: list[str] = []

    def records(self) -> Generator[Record, None, None]:
        """Yield its records. Raises `EvidenceError`."""
        try:
            name, is_run = resolved(self._given, Directories(self._terms.settings.journal))
            # Standard input can be read only once, and a journal on it is judged.
            is_judged = name == "-"
            if not is_judged:
                with Pages(name, whole=is_run) as pages:
                    is_judged = not self._terms.is_journal(pages.peek())
                    yield from () if is_judged else self._written(pages)
            if is_judged:
                yield from self._judged(name, is_run=is_run)
        except OSError as error:
            raise EvidenceError(error.strerror or "cannot be read") from None
        except TranscriptError as error:
            raise EvidenceError(str(error.args[0])) from None

    def notes(self) -> list[str]:
        """Return remarks about it, after its last record."""
        return self._notes

    def _written(self, pages: Pages) -> Iterator[Record]:
        broken = 0
        for entry in entries(pages):
            if entry.record is None:
                broken += 1
            else:
                yield entry.record
        if broken:
            self._notes.append(f"{counted(broken, 'line')} of the journal: not a record")

    def _judged(self, name: str, *, is_run: bool) -> Iterator[Record]:
        made = JudgedRecords(name, self._terms.settings.journal.redact, whole=True)
        end = FileEnd()
        with opened(self._terms, name, is_run=is_run) as evidence:
            for each in evidence.follow(end):
                if isinstance(each, Judged):
                    yield made.make(each).record
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
    terms = CheckTerms(settings, source=args.source, fields=args.fields, party=args.party, with_messages=True)
    files: dict[str, Chosen] = {}
    wrong: list[str] = []
    for name in args.files:
        found = FoundFiles()
        found.add(name, "no recordings in it")
        files |= {each.name: each for each in found.chosen}
        state.failed += [{"file": name, "why": why} for why in found.passed_over]
        wrong += [f"{name}: {why}" for why in found.passed_over]
    trouble = {name: _trouble(ConsoleEvidence(terms, each)) for name, each in files.items() if name != "-"}
    if all(trouble.values()) and "-" not in files:
        raise NothingToShowError("\n".join([*wrong, *(f"{name}: {why}" for name, why in trouble.items())]))
    return FilePump(state, changed, list(files), lambda name: ConsoleEvidence(terms, files[name]))


def _trouble(evidence: ConsoleEvidence) -> str:
    """Return why a file cannot be shown; "" if its first record can be read."""
    records = evidence.records()
    try:
        next(records, None)
    except EvidenceError as error:
        return str(error)
    finally:
        records.close()
    return ""
