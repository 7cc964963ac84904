"""Judge a file in parts, as several processes do, and as a whole, and compare what reports can see of it."""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.cli.checking import block_scan, range_units, recording_split, work_plan
from assay.cli.checking.check_stream import ChangedVerdict, StreamItem, UnitEnd
from assay.cli.checking.check_terms import CheckTerms
from assay.cli.checking.evidence_files import Piece
from assay.cli.checking.executors import InOneProcess, spooled
from assay.cli.checking.work_plan import FileWork, WorkPlan, works_of
from assay.cli.reports.check_findings import CheckedMessage
from assay.records import line_blocks
from assay.records.transcript import Meeting
from assay.settings import Settings
from assay.spec.extensions.official import OFFICIAL

TERMS = CheckTerms(Settings(), OFFICIAL)


class Apart(InOneProcess):
    """Does the work of many processes in this one, with everything pickled as for another one."""

    is_shared = True

    def __init__(self, terms: CheckTerms) -> None:
        super().__init__(terms, lambda _: None)
        self.errors: list[str] = []
        """Why units of ranges could not be judged apart."""

    def ended(self, indices: Collection[int]) -> tuple[int, Any]:
        """Do one of these units."""
        index, end = super().ended(indices)
        if end.error is not None:
            self.errors.append(end.error)
        return index, end

    def stream(self, index: int) -> Iterator[Any]:
        """Do one unit, and send its results through a spool."""
        return spooled(super().stream(index)).items()


def shown(items: Iterator[StreamItem]) -> list[Any]:
    """Return all that reports can see of *items*."""
    found: list[Any] = []
    for each in items:
        if isinstance(each, CheckedMessage):
            verdict = each.judged.verdict
            # Without the verdict, which has no equality: its parts are compared.
            rest = each.judged._replace(verdict=None)  # type: ignore[arg-type]  # only here
            found.append((each._replace(judged=rest), verdict.frame, verdict.value))
            found.append((verdict.party, verdict.kind, verdict.method, verdict.tool, verdict.revision, verdict.more))
        elif isinstance(each, UnitEnd):
            end = (each.good, each.is_judged, each.revision, each.is_partial, each.remedy, each.error)
            found.append((*end, *each.all_remarks()))
        else:
            assert isinstance(each, Meeting | ChangedVerdict)
            found.append(each)
    return found


def tiny(monkeypatch: pytest.MonkeyPatch, *, page: int = 400, scanned: int = 3000, unit: int = 2000) -> None:
    """Split even the smallest files."""
    monkeypatch.setattr(work_plan, "SPLIT_FILE", 0)
    monkeypatch.setattr(work_plan, "SMALL_INPUT", 0)
    monkeypatch.setattr(work_plan, "SCANNED", scanned)
    monkeypatch.setattr(block_scan, "PAGE", page)
    monkeypatch.setattr(recording_split, "SMALLEST", unit)
    # Several blocks, so that most rows are read in batches.
    monkeypatch.setattr(line_blocks, "BLOCK", 900)


def in_ranges(monkeypatch: pytest.MonkeyPatch, *, size: int = 1000, behind: int = 1 << 20) -> None:
    """Split even the smallest files, into ranges of *size* bytes; *behind* may be read behind each of them."""
    tiny(monkeypatch)
    monkeypatch.setattr(range_units, "SMALLEST_RANGE", size)
    monkeypatch.setattr(range_units, "LEAST_BEHIND", behind)


def in_parts(
    path: Path, terms: CheckTerms = TERMS, jobs: int = 3, apart: Apart | None = None
) -> tuple[FileWork, list[Any]]:
    """Judge a file in parts."""
    [work] = works_of([Piece(str(path))], lambda name: (name, False))
    plan = WorkPlan(terms, [work], apart or Apart(terms), jobs)
    plan.begin()
    return work, shown(plan.stream(work))


def as_whole(path: Path, terms: CheckTerms = TERMS) -> list[Any]:
    """Judge a file as one unit."""
    [work] = works_of([Piece(str(path))], lambda name: (name, False))
    return shown(work.whole.results(terms, lambda _: None))
