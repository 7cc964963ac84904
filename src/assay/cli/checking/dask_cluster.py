"""
Units of work on the workers of a Dask cluster. Imported only with `--cluster`.

A unit is a pure function of its input, so the scheduler may repeat it: a worker that dies costs time, and no findings.
"""

from __future__ import annotations

import os
import pickle
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Final, Self

import distributed
from distributed.scheduler import KilledWorker

from assay.base.extras import NAME
from assay.cli.checking.executors import ClusterError, Spool, is_only_here, packed, spooled
from assay.cli.checking.range_units import FileRange
from assay.cli.checking.recording_split import LARGEST
from assay.cli.checking.work_units import FilePart, WholeFile
from assay.records.line_blocks import is_url

if TYPE_CHECKING:
    from assay.cli.checking.check_terms import CheckTerms
    from assay.cli.checking.work_units import Tick, WorkUnit

_PATIENCE: Final = 10
"""Seconds to wait for the scheduler, and for its first worker."""

_MOST_UNITS: Final = 1 << 30
"""More units than are ever started at a time."""

_LEVEL: Final = 1
"""How much to compress results: findings repeat most of their text, and the fastest level finds that."""


def _client(address: str) -> Any:
    make: Any = distributed.Client
    return make(address, timeout=_PATIENCE, set_as_default=False)


def do_unit(terms: CheckTerms, unit: WorkUnit) -> list[bytes]:
    """Do one unit, on a worker; return its packed results."""
    return [zlib.compress(batch, _LEVEL) for batch in packed(unit.results(terms, lambda _: None))]


def sizes_of(paths: Sequence[str]) -> list[int]:
    """Return the bytes of each file, as a worker sees them; -1 for a file that it does not see."""
    return [os.path.getsize(path) if os.path.isfile(path) else -1 for path in paths]


class DaskCluster:
    """Does units on a Dask cluster."""

    is_shared = True
    largest = LARGEST

    def __init__(self, terms: CheckTerms, tick: Tick, address: str) -> None:
        """Connect to the scheduler at *address*. Raises `ClusterError`."""
        if terms.drafts or terms.settings.guard.draft_revisions:
            raise ClusterError("draft revisions are files of this machine; they cannot be used with --cluster")
        self._terms, self._tick, self._address = terms, tick, address
        self._units: list[WorkUnit] = []
        self._futures: list[Any] = []
        self._starts = 0
        self._spools: dict[int, Spool] = {}
        """Results that were looked at, and are still to be read."""
        self._sizes: dict[str, int] = {}
        try:
            self._client = _client(address)
        except (OSError, ValueError) as error:
            reason = str(error).partition("\n")[0] or type(error).__name__
            raise ClusterError(f"cannot connect to the scheduler at {address}: {reason}") from None
        try:
            self._check_workers()
        except BaseException:
            self._client.close()
            raise

    @property
    def jobs(self) -> int:
        """The number of units that the cluster does at a time."""
        return max(1, int(sum(self._client.nthreads().values())))

    def _check_workers(self) -> None:
        try:
            self._client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError:
            raise ClusterError(f"the cluster at {self._address} has no workers") from None
        ours = version(NAME)
        # A function of the standard library: ours would need the same version there.
        found = self._client.run(version, NAME, on_error="return")
        for worker, theirs in found.items():
            if isinstance(theirs, PackageNotFoundError):
                raise ClusterError(f"the worker {worker} does not have Assay; install {NAME} {ours} there")
            if theirs != ours:
                raise ClusterError(f"the worker {worker} has Assay {theirs}, and this is {ours}; install the same one")

    def check_files(self, sizes: Mapping[str, int]) -> None:
        """Check that all workers see the files with these bytes. Raises `ClusterError`."""
        self._sizes = dict(sizes)
        paths = [path for path in sizes if not is_only_here(path) and not is_url(path)]
        for worker, seen in self._client.run(sizes_of, paths).items():
            for path, size in zip(paths, seen, strict=True):
                if size != os.path.getsize(path):
                    other = "does not see it" if size < 0 else "sees another file"
                    raise ClusterError(
                        f"{path}: the worker {worker} {other}; give a path or a URL that all workers can read"
                    )

    def start(self, units: Sequence[WorkUnit]) -> int:
        """Begin with *units*, before those that still wait."""
        first = len(self._units)
        self._units.extend(units)
        self._starts += 1
        for at, unit in enumerate(units):
            is_here = is_only_here(getattr(unit, "path", None))
            # Of several tasks the one with the highest priority is begun.
            priority = self._starts * _MOST_UNITS - at
            future = None if is_here else self._client.submit(do_unit, self._terms, unit, pure=False, priority=priority)
            self._futures.append(future)
        return first

    def ended(self, indices: Collection[int]) -> tuple[int, Any]:
        """Wait for one of these units. Raises `ClusterError`."""
        index = next((each for each in indices if self._futures[each] is None), None)
        if index is None:
            futures = {self._futures[each]: each for each in indices}
            as_completed: Any = distributed.as_completed
            index = futures[next(as_completed([*futures], loop=self._client.loop))]
        self._spools[index] = spooled(self.stream(index))
        return index, self._spools[index].last

    def drop(self, indices: Collection[int]) -> None:
        """End these units."""
        for index in indices:
            future, self._futures[index] = self._futures[index], None
            if future is not None:
                future.cancel()
            if index in self._spools:
                self._spools.pop(index).drop()
                self._tick(-_share(self._units[index], self._sizes))

    def stream(self, index: int) -> Iterator[Any]:
        """Wait for one unit, and yield its results. Raises `ClusterError`."""
        if index in self._spools:
            return self._spools.pop(index).items()
        unit, future = self._units[index], self._futures[index]
        if future is None:
            return unit.results(self._terms, self._tick)
        try:
            batches = future.result()
        except KilledWorker:
            # It was begun on several workers, and none survived.
            return unit.results(self._terms, self._tick)
        except (CancelledError, OSError) as error:
            raise ClusterError(f"the connection to {self._address} was lost: {error}") from None
        self._futures[index] = None
        self._tick(_share(unit, self._sizes))
        return _unpacked(batches)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End all work of ours, and leave the cluster to others."""
        for future in self._futures:
            if future is not None:
                future.cancel()
        for spool in self._spools.values():
            spool.drop()
        self._client.close()


def _share(unit: WorkUnit, sizes: Mapping[str, int]) -> int:
    """Return the bytes that a unit stands for in the progress."""
    if isinstance(unit, FilePart):
        return unit.share
    if isinstance(unit, FileRange):
        return unit.size
    return sizes.get(unit.path, 0) if isinstance(unit, WholeFile) else 0


def _unpacked(batches: Sequence[bytes]) -> Iterator[Any]:
    for batch in batches:
        # From workers that run our code: who controls them controls the results in any case.
        yield from pickle.loads(zlib.decompress(batch))  # noqa: S301
