"""
Units of work on the workers of a Dask cluster. Imported only with `--cluster`.

A unit is a pure function of its input, so the scheduler may repeat it: a worker that dies costs time, and no findings.
"""

from __future__ import annotations

import os
import pickle
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Self

import distributed
from distributed.scheduler import KilledWorker

from assay.base.extras import NAME
from assay.cli.checking.executors import AHEAD, ClusterError, is_only_here, packed
from assay.records.line_blocks import is_url

if TYPE_CHECKING:
    from assay.cli.checking.check_terms import CheckTerms
    from assay.cli.checking.work_units import Tick, WorkUnit

_PATIENCE: Final = 10
"""Seconds to wait for the scheduler, and for its first worker."""

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

    def __init__(self, terms: CheckTerms, tick: Tick, address: str) -> None:
        """Connect to the scheduler at *address*. Raises `ClusterError`."""
        self._terms, self._tick, self._address = terms, tick, address
        self._begun: deque[tuple[WorkUnit, Any]] = deque()
        """The units whose results are still to be read, each with its future; None for one to be done here."""
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
    def _jobs(self) -> int:
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

    def map(self, units: Sequence[WorkUnit]) -> Iterator[Iterator[Any]]:
        """Begin with *units*, some of them at a time, and yield the results of each. Raises `ClusterError`."""
        waiting = iter(units)
        self._begin(islice(waiting, max(AHEAD, 2 * self._jobs)))
        while self._begun:
            results = self._results(*self._begun[0])
            self._begun.popleft()
            self._begin(islice(waiting, 1))
            yield results

    def _begin(self, units: Iterable[WorkUnit]) -> None:
        for unit in units:
            is_here = is_only_here(unit.path)
            self._begun.append((unit, None if is_here else self._client.submit(do_unit, self._terms, unit, pure=False)))

    def _results(self, unit: WorkUnit, future: Any) -> Iterator[Any]:
        """Wait for one unit, and return its results. Raises `ClusterError`."""
        if future is None:
            return unit.results(self._terms, self._tick)
        try:
            batches = future.result()
        except KilledWorker:
            # It was begun on several workers, and none survived.
            return unit.results(self._terms, self._tick)
        except (CancelledError, OSError) as error:
            raise ClusterError(f"the connection to {self._address} was lost: {error}") from None
        self._tick(self._sizes.get(unit.path, 0))
        return _unpacked(batches)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End all work of ours, and leave the cluster to others."""
        for _unit, future in self._begun:
            if future is not None:
                future.cancel()
        self._client.close()


def _unpacked(batches: Sequence[bytes]) -> Iterator[Any]:
    for batch in batches:
        # From workers that run our code: who controls them controls the results in any case.
        yield from pickle.loads(zlib.decompress(batch))  # noqa: S301
