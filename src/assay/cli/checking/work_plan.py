"""
The plan of a run: which units of work the files consist of, and where they are done.

Small inputs are judged in this process: it takes longer to start another one. Whatever the plan is, the reports get the
same messages in the same order.
"""

# ruff: noqa: PLC0415  small inputs need none of it

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from assay.cli.checking.work_units import WholeFile, reason_of
from assay.records.line_blocks import is_url, open_binary, size_of_url

if TYPE_CHECKING:
    from assay.cli.checking.block_scan import ScannedPage, SplitRefused
    from assay.cli.checking.check_stream import StreamItem, UnitEnd
    from assay.cli.checking.check_terms import CheckTerms
    from assay.cli.checking.evidence_files import Piece
    from assay.cli.checking.executors import Executor
    from assay.cli.checking.range_units import FileRange, PlacedRange
    from assay.cli.checking.work_units import FilePart, SharedRows, Tick, WorkUnit

SMALL_INPUT: Final = 32 << 20
"""Bytes of all files up to which one process judges them: it takes a third of a second."""

SPLIT_FILE: Final = 16 << 20
"""Minimal bytes of a file that is split."""

SCANNED: Final = 32 << 20
"""Bytes of a file to scan in one unit of work."""

_LOOKED_AT: Final = 64 << 10
"""Bytes at the start of a file to recognize a recording of ours by. The first rows of a guard are short."""


@dataclass(slots=True)
class FileWork:
    """One file or run to judge."""

    name: str
    """Its name as it was given."""
    whole: WholeFile
    size: int = 0
    error: str | None = None
    """Why it cannot be opened."""
    ranges: Sequence[FileRange] = ()
    """The ranges that it is split into; empty if that is not possible."""
    units: Sequence[SharedRows | FilePart] = ()
    """The parts that it is split into otherwise, after a scan; empty if it is one unit."""
    first: int = 0
    """The index of its first unit in the plan."""

    @property
    def all_units(self) -> Sequence[WorkUnit]:
        """The units of the file."""
        return self.ranges or self.units or (self.whole,)


def works_of(pieces: Sequence[Piece], resolve: Callable[[str], tuple[str, bool]]) -> list[FileWork]:
    """Return the work for *pieces*. *resolve* returns the path behind a name, and whether it stands for a run."""
    from assay.cli.reports.check_findings import shown_path

    works = []
    for piece in pieces:
        shown = shown_path(piece.name)
        try:
            path, is_run = (piece.name, True) if piece.is_run else resolve(piece.name)
            works.append(FileWork(piece.name, WholeFile(path, shown, is_run), _size(path, is_run=is_run)))
        except OSError as error:
            works.append(FileWork(piece.name, WholeFile(piece.name, shown), error=reason_of(error)))
    return works


def _size(path: str, *, is_run: bool) -> int:
    """Return the bytes to read; 0 if they are not known."""
    if path == "-":
        return 0
    try:
        if is_url(path):
            return size_of_url(path) or 0
        if is_run:
            from assay.records.journal.run_files import files_of

            return sum(os.path.getsize(each) for each in files_of(path))
        return os.path.getsize(path)
    except OSError:
        # The process that reads it reports the error.
        return 0


class WorkPlan:
    """The work of a run, and its executor."""

    def __init__(self, terms: CheckTerms, works: Sequence[FileWork], executor: Executor, jobs: int) -> None:
        self._terms, self._works, self._executor, self._jobs = terms, works, executor, jobs

    def _split(self, works: Sequence[FileWork]) -> None:
        """Scan these large files, and split them into parts."""
        from assay.cli.checking.block_scan import PAGE, BlockScan
        from assay.cli.checking.recording_split import split

        scans = [
            (work, BlockScan(work.whole.path, offset, min(SCANNED, work.size - offset), PAGE))
            for work in works
            for offset in range(0, work.size, SCANNED)
        ]
        first = self._executor.start([scan for _, scan in scans])
        found: dict[int, list[ScannedPage | SplitRefused]] = {}
        for index, (work, _) in enumerate(scans, first):
            found.setdefault(id(work), []).extend(self._executor.stream(index))
        for work in works:
            pages = _only_pages(found.get(id(work), ()))
            if pages:
                work.units = split(work.whole.path, work.whole.shown, pages, self._jobs)

    def begin(self) -> None:
        """Begin with all files; large ones are split, if several processes do the work."""
        if self._executor.is_shared:
            scanned = []
            for work in self._works:
                if head := _split_head(self._terms, work):
                    work.ranges = self._ranges(work, head)
                    if not work.ranges:
                        scanned.append(work)
            if scanned:
                self._split(scanned)
        units: list[WorkUnit] = []
        for work in self._works:
            work.first = len(units)
            if work.error is None:
                units.extend(work.all_units)
        first = self._executor.start(units)
        for work in self._works:
            work.first += first

    def _ranges(self, work: FileWork, head: bytes) -> Sequence[FileRange]:
        """Return the ranges of a large file that begins with *head*, if a try is worth it."""
        from assay.cli.checking.executors import is_only_here
        from assay.cli.checking.range_units import ranges_of, seems_fit

        path = work.whole.path
        # With every message, judging takes so long that a scan does not count; its results would wait for the last one,
        # and a digest needs the numbers of lines.
        if self._terms.every or is_only_here(path) or not seems_fit(head):
            return ()
        return ranges_of(path, work.whole.shown, work.size, self._jobs, self._executor.largest)

    def stream(self, work: FileWork) -> Iterator[StreamItem]:
        """Yield the findings of one file in order, then its end; nothing for a file that cannot be opened."""
        if work.error is not None:
            return iter(())
        if work.ranges:
            ranges = self._judged_ranges(work)
            if ranges is not None:
                from assay.cli.checking.stream_merge import put_together

                return put_together(self._terms, work.whole.shown, ranges, partial(self._unit, work))
            work.ranges = ()
            self._split([work])
            work.first = self._executor.start(work.all_units)
        if not work.units:
            return self._unit(work, 0)
        from assay.cli.checking.stream_merge import merged

        return merged(self._terms, work.whole, work.units, partial(self._unit, work))

    def _unit(self, work: FileWork, index: int) -> Iterator[StreamItem]:
        return self._executor.stream(work.first + index)

    def _judged_ranges(self, work: FileWork) -> list[PlacedRange] | None:
        """Wait for the ranges of a file; return them, or None if they do not give what one process gives."""
        from assay.cli.checking.range_units import placed

        ends: dict[int, UnitEnd] = {}
        indices = range(work.first, work.first + len(work.ranges))
        while left := [each for each in indices if each not in ends]:
            index, ends[index] = self._executor.ended(left)
            if ends[index].error is not None:
                break
        ranges = None if left else placed(work.ranges, [ends[each] for each in indices])
        if ranges is None:
            self._executor.drop(indices)
        return ranges


def _only_pages(found: Sequence[ScannedPage | SplitRefused]) -> list[ScannedPage]:
    """Return the pages of a file; nothing if a part of it could not be scanned."""
    from assay.cli.checking.block_scan import ScannedPage

    pages = [each for each in found if isinstance(each, ScannedPage)]
    return pages if len(pages) == len(found) else []


def available_jobs() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def executor_of(terms: CheckTerms, works: Sequence[FileWork], tick: Tick, jobs: int) -> Executor:
    """Return where the work is done: in other processes if there is enough of it."""
    if jobs < 2 or sum(each.size for each in works) < SMALL_INPUT or not _has_several(terms, works):
        from assay.cli.checking.executors import InOneProcess

        return InOneProcess(terms, tick)
    from assay.cli.checking.local_workers import LocalWorkers

    return LocalWorkers(terms, tick, jobs)


def cluster_executor(terms: CheckTerms, works: Sequence[FileWork], tick: Tick, address: str) -> tuple[Executor, int]:
    """Return the Dask cluster at *address*, and how many units it does at a time. Raises `ClusterError`."""
    from assay.cli.checking.executors import ClusterError

    try:
        from assay.cli.checking.dask_cluster import DaskCluster
    except ImportError as error:
        from assay.base.extras import missing

        raise ClusterError(f"--cluster needs {missing(error, 'cluster')}") from None
    for work in works:
        path = work.whole.path
        if path != "-" and not is_url(path):
            # Workers have another working directory.
            work.whole = work.whole._replace(path=os.path.abspath(path))
    cluster = DaskCluster(terms, tick, address)
    try:
        cluster.check_files({work.whole.path: work.size for work in works if work.error is None})
    except BaseException:
        cluster.__exit__()
        raise
    return cluster, cluster.jobs


def _has_several(terms: CheckTerms, works: Sequence[FileWork]) -> bool:
    """Return whether there is more than one unit of work."""
    return len(works) > 1 or any(_split_head(terms, each) for each in works)


def _split_head(terms: CheckTerms, work: FileWork) -> bytes:
    """Return the start of a large recording in our own format that is not compressed; b"" for all other files."""
    if work.error is not None or work.size < SPLIT_FILE or work.whole.is_run or terms.is_compared:
        return b""
    from assay.cli.checking.evidence import is_native

    try:
        with open_binary(work.whole.path) as file:
            head = file.read(_LOOKED_AT) if file.seekable() else b""
    except OSError:
        return b""
    return head if is_native(terms, head, work.whole.path) else b""
