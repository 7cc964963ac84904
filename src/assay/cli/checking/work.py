"""The work of `assay check`: a unit is a file, or a run of a journal. It has the same results in any process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from assay.cli.checking.check_stream import StreamItem, UnitEnd
from assay.cli.checking.evidence import opened
from assay.cli.reports.check_findings import FindingMask, KnownFindings, shown_path
from assay.core.redaction import Redactor
from assay.records.journal.run_files import files_of
from assay.records.line_blocks import is_url, size_of_url
from assay.records.transcript import Judged, Meeting, TranscriptError

if TYPE_CHECKING:
    from assay.cli.checking.check_terms import CheckTerms
    from assay.cli.checking.evidence_files import Piece

SMALL_INPUT: Final = 32 << 20
"""Bytes of all files up to which one process judges them: it takes less than a second."""

_NOTHING_KNOWN: Final = KnownFindings()

Tick = Callable[[int], None]
"""Gets the bytes that were read since the last time."""


class ClusterError(Exception):
    """A cluster cannot be used; the message has the reason."""


class WorkUnit(NamedTuple):
    """A file to judge, or a run of a journal in several files. It can be pickled."""

    name: str
    """Its name as it was given."""
    path: str
    shown: str
    """Its name for people."""
    is_run: bool = False
    """Whether it is the first file of a run, which stands for all files of the run."""
    size: int = 0
    """The bytes to read; 0 if they are not known."""
    error: str | None = None
    """Why it cannot be opened."""


def units_of(
    pieces: Sequence[Piece], resolve: Callable[[str], tuple[str, bool]], *, is_absolute: bool
) -> list[WorkUnit]:
    """
    Return the work for *pieces*. *resolve* returns the path behind a name, and whether it stands for a run.

    *is_absolute* is for processes with another working directory.
    """
    units = []
    for piece in pieces:
        shown = shown_path(piece.name)
        try:
            path, is_run = (piece.name, True) if piece.is_run else resolve(piece.name)
            if is_absolute and path != "-" and not is_url(path):
                path = os.path.abspath(path)
            units.append(WorkUnit(piece.name, path, shown, is_run, _size(path, is_run=is_run)))
        except OSError as error:
            units.append(WorkUnit(piece.name, piece.name, shown, error=_reason(error)))
    return units


def _size(path: str, *, is_run: bool) -> int:
    if path == "-":
        return 0
    try:
        if is_url(path):
            return size_of_url(path) or 0
        return sum(os.path.getsize(each) for each in (files_of(path) if is_run else (path,)))
    except OSError:
        # The process that reads it reports the error.
        return 0


def available_jobs() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_for_many(units: Sequence[WorkUnit], jobs: int) -> bool:
    """Return whether several processes are faster: it takes longer to start one than to judge a small input."""
    files = sum(each.error is None for each in units)
    return min(jobs, files) > 1 and sum(each.size for each in units) >= SMALL_INPUT


def results_of(terms: CheckTerms, unit: WorkUnit, tick: Tick) -> Iterator[StreamItem]:
    """Judge a file; yield the findings as they come, feed the digests, and yield the end."""
    if unit.error is not None:
        yield UnitEnd(error=unit.error)
        return
    masking = FindingMask(Redactor(terms.settings.journal.redact), with_messages=terms.every)
    digests = [make() for make in terms.digests]
    end, unlisted, failed, is_judged = UnitEnd(), 0, 0, False
    try:
        with opened(terms, unit.path, tick, is_run=unit.is_run) as evidence:
            try:
                for each in evidence.follow():
                    if isinstance(each, Judged):
                        message = masking.message(each, unit.shown, _NOTHING_KNOWN)
                        for digest in digests:
                            digest.add(message)
                        if terms.with_messages or each.verdict.findings is not None:
                            yield message
                        else:
                            unlisted += 1
                            failed += message.outcome == "failed"
                    elif isinstance(each, Meeting):
                        is_judged = True
                        yield each._replace(server=masking.name(each.server))
                    else:
                        yield each
            finally:
                end = evidence.end()
    except (OSError, TranscriptError) as error:
        # What was judged before the error counts; remarks would be about a file that was read to its end.
        end = UnitEnd(good=end.good, failed=end.failed, error=_reason(error))
    # Its error and its notes may quote the file.
    text = masking.redactor.text
    end.error = None if end.error is None else text(end.error)
    end.notes = [text(note) for note in end.notes]
    end.good += unlisted
    end.failed += failed
    end.is_judged = is_judged
    end.digests = digests
    yield end


def _reason(error: OSError | TranscriptError) -> str:
    """Return why a file cannot be read, without its name."""
    return (error.strerror or "cannot be read") if isinstance(error, OSError) else str(error.args[0])
