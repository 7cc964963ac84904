"""
The plan of a run: the files, and where they are judged.

Small inputs are judged in this process: it takes longer to start another one. Whatever the plan is, the reports get the
same messages in the same order.
"""

# ruff: noqa: PLC0415  small inputs need none of it

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from assay.cli.checking.work_units import WholeFile, reason_of
from assay.records.line_blocks import is_url, size_of_url

if TYPE_CHECKING:
    from assay.cli.checking.check_terms import CheckTerms
    from assay.cli.checking.evidence_files import Piece
    from assay.cli.checking.executors import Executor
    from assay.cli.checking.work_units import Tick

SMALL_INPUT: Final = 32 << 20
"""Bytes of all files up to which one process judges them: it takes less than a second."""


@dataclass(slots=True)
class FileWork:
    """One file or run to judge."""

    name: str
    """Its name as it was given."""
    whole: WholeFile
    size: int = 0
    error: str | None = None
    """Why it cannot be opened."""


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


def available_jobs() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def executor_of(terms: CheckTerms, works: Sequence[FileWork], tick: Tick, jobs: int) -> Executor:
    """Return where the work is done: in other processes if there is enough of it."""
    files = sum(each.error is None for each in works)
    if min(jobs, files) < 2 or sum(each.size for each in works) < SMALL_INPUT:
        from assay.cli.checking.executors import InOneProcess

        return InOneProcess(terms, tick)
    from assay.cli.checking.local_workers import LocalWorkers

    return LocalWorkers(terms, tick, jobs)


def cluster_executor(terms: CheckTerms, works: Sequence[FileWork], tick: Tick, address: str) -> Executor:
    """Return the Dask cluster at *address*. Raises `ClusterError`."""
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
    return cluster
