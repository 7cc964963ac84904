"""
One `map` over files, for processes of this machine and for the workers of a Dask cluster.

Both do the same function with a file at a time. A file that they lose, because a process has died, is judged here.
"""

import os
import pickle
import signal
import sys
import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from functools import lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Any, Final

from assay.cli.checking.evidence import CheckTerms, StreamItem, Tick, results_of
from assay.cli.checking.files import CheckedFile, is_read_once
from assay.edges.threads import signals_held
from assay.model.errors import UsageError
from assay.records.judged_records import JudgedRecord
from assay.records.lines import is_url
from assay.settings.extras import NAME, missing

_AHEAD: Final = 16
"""
Units that are begun before the results of the first of them are read, beside two for each process: the others have work
while one judges a large file. Their results are kept in memory.
"""

_BATCH: Final = 256
"""Results in a batch, which are unpacked at a time."""

_LARGEST_BATCH: Final = 1 << 20
"""Bytes of messages in a batch, which has at least one."""

_LEVEL: Final = 1
"""How much to compress: findings and paths repeat most of their text, and the fastest level finds that."""

_PAUSE: Final = 0.2
"""Seconds between looks at whether a process has died."""

_PATIENCE: Final = 10
"""Seconds to wait for the scheduler, and for its first worker."""

_OF_A_PROCESS: Final = ("/dev/", "/proc/")
"""Directories with names that mean another file in every process, such as /dev/fd/3."""

_Others = tuple[Callable[..., Any], Callable[[Any], list[bytes] | None], int]
"""
What begins `do_unit` in another process and returns its future, what waits for the future, and the number of units that
are done at a time. For a unit that is lost, the future or its result is None.
"""


def results_elsewhere(
    terms: CheckTerms, units: Sequence[CheckedFile], tick: Tick, jobs: int, address: str | None
) -> Generator[Iterator[StreamItem]]:
    """
    Yield the results of each unit, in order, while others do the next ones. Raises `UsageError`.

    The others are *jobs* processes, or the Dask cluster at *address*, if there is one.
    """
    # Once for all units: there are as many paths in it as there are units.
    given = _packed(terms)
    waiting, begun = iter(units), deque[Any]()
    with _cluster(address, units) if address else _pool(jobs) as (submit, result, number):
        for unit in units:
            begun.extend(
                None if _is_only_here(each) else submit(do_unit, given, each)
                for each in islice(waiting, 2 * number + _AHEAD - len(begun))
            )
            future = begun.popleft()
            batches = None if future is None else result(future)
            if batches is None:
                yield results_of(terms, unit, tick)
            else:
                tick(unit.size)
                yield (item for batch in batches for item in _unpacked(batch))


def _is_only_here(unit: CheckedFile) -> bool:
    """Return whether only this process can read a file: standard input, a pipe, or a name that others give another."""
    if unit.error is not None or is_read_once(unit.path):
        return True
    return not is_url(unit.path) and os.path.abspath(unit.path).startswith(_OF_A_PROCESS)


def do_unit(terms: bytes, unit: CheckedFile) -> list[bytes]:
    """Do one unit in another process; return its results in packed batches."""
    batches, batch, size = [], list[StreamItem](), 0
    for item in results_of(_unpacked_terms(terms), unit, lambda _: None):
        batch.append(item)
        if isinstance(item, JudgedRecord):
            size += item.record.input_bytes
        if len(batch) >= _BATCH or size >= _LARGEST_BATCH:
            batches.append(_packed(batch))
            batch, size = [], 0
    return [*batches, _packed(batch)]


def _packed(value: object) -> bytes:
    return zlib.compress(pickle.dumps(value, pickle.HIGHEST_PROTOCOL), _LEVEL)


def _unpacked(data: bytes) -> Any:
    # From processes that run our code: an attacker who controls them controls the results in any case.
    return pickle.loads(zlib.decompress(data))  # noqa: S301


_unpacked_terms = lru_cache(maxsize=1)(_unpacked)


@contextmanager
def _pool(jobs: int) -> Iterator[_Others]:
    """Have up to *jobs* processes, and end them at once at the end. If one of them dies, all are lost."""
    # Windows waits for no more than 64 things at a time.
    jobs = min(jobs, 61) if sys.platform == "win32" else jobs
    try:
        pool = ProcessPoolExecutor(jobs, get_context("spawn"), _begin_process)
    except (NotImplementedError, OSError):
        # The system has no semaphores, as in some sandboxes.
        yield lambda *_: None, lambda _: None, jobs
        return

    def submit(*call: Any) -> Future[list[bytes]] | None:
        try:
            # Ctrl-C ends this process, which ends the others: one that is only half started would print a traceback.
            with signals_held("SIGINT"):
                return pool.submit(*call)
        except (BrokenProcessPool, OSError):
            return None

    def result(future: Future[list[bytes]]) -> list[bytes] | None:
        # Before Python 3.12 a unit that is begun while a process dies may never end.
        while not wait([future], _PAUSE).done:
            if pool._broken:
                return None
        try:
            return future.result()
        except (BrokenProcessPool, MemoryError, OSError):
            # This process needs less memory for the unit: it does not keep the results.
            return None

    try:
        yield submit, result, jobs
    finally:
        # Half a result of a killed process would be waited for as long as anybody could write the rest.
        results: Any = pool._result_queue
        for each in list((pool._processes or {}).values()):
            each.kill()
        results._writer.close()
        pool.shutdown(cancel_futures=True)


def _begin_process() -> None:
    """Prepare another process: it ends with this one, also if this one is killed, and not by Ctrl-C."""
    # Only Windows needs it: elsewhere the signal is held.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent: Any = parent_process()
    # It would wait for the next unit for ever.
    Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()


@contextmanager
def _cluster(address: str, units: Sequence[CheckedFile]) -> Iterator[_Others]:
    """Connect to the scheduler at *address*, and leave the cluster to others at the end. Raises `UsageError`."""
    try:
        import distributed  # noqa: PLC0415 - an extra
        from distributed.scheduler import KilledWorker  # noqa: PLC0415
    except ImportError as error:
        raise UsageError(f"--cluster needs {missing(error, 'cluster')}") from None
    connect: Any = distributed.Client
    try:
        client = connect(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise UsageError(f"cannot connect to the scheduler at {address}: {reason}") from None

    def result(future: Any) -> Any:
        try:
            return future.result()
        except (KilledWorker, MemoryError):
            # The scheduler has tried several workers, and none survived.
            return None
        except (CancelledError, OSError) as error:
            raise UsageError(f"the connection to {address} was lost: {error}") from None

    with closing(client):
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError:
            raise UsageError(f"the cluster at {address} has no workers") from None
        _check_versions(client)
        _check_files(client, [each.path for each in units if not _is_only_here(each) and not is_url(each.path)])
        yield partial(client.submit, pure=False), result, int(sum(client.nthreads().values()))


def _check_versions(client: Any) -> None:
    ours = version(NAME)
    # A function of the standard library: ours would need the same version there.
    for worker, theirs in client.run(version, NAME, on_error="return").items():
        if isinstance(theirs, PackageNotFoundError):
            raise UsageError(f"the worker {worker} does not have Assay; install {NAME} {ours} there")
        if theirs != ours:
            raise UsageError(f"the worker {worker} has Assay {theirs}, and this is {ours}; install the same one")


def _check_files(client: Any, paths: Sequence[str]) -> None:
    ours = sizes_of(paths)
    for worker, theirs in client.run(sizes_of, paths).items():
        for path, size, seen in zip(paths, ours, theirs, strict=True):
            if seen != size:
                other = "does not see it" if seen < 0 else "sees another file"
                raise UsageError(f"{path}: the worker {worker} {other}; give a path or a URL that all workers can read")


def sizes_of(paths: Sequence[str]) -> list[int]:
    """Return the bytes of each file, as a worker sees them; -1 for a file that it does not see."""
    return [os.path.getsize(path) if os.path.isfile(path) else -1 for path in paths]
