"""
Units of work in processes of this machine. A process that dies costs time: its unit is done again.

Each process has a pipe of its own, so it is always known which unit was lost with it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import wait
from queue import Empty, SimpleQueue
from threading import Lock, Thread, current_thread, main_thread
from typing import TYPE_CHECKING, Any, Final, Self

from assay.cli.checking.executors import AHEAD, Spool, is_only_here
from assay.cli.checking.worker_process import FAILED, READ, RESULTS, serve

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

    from assay.cli.checking.check_terms import CheckTerms
    from assay.cli.checking.work_units import Tick, WorkUnit

_TRIES: Final = 3
"""How often a unit is begun in other processes. After that it is done in this one."""

_PAUSE: Final = 0.2
"""Seconds between looks at whether the main thread has ended the work."""


_NEEDED: Final = ("assay.cli.checking.evidence", "assay.core.redaction", "assay.records.recording.judging")
"""Modules that units import."""


class WorkerError(Exception):
    """A process failed because of a fault in Assay; the message has its traceback."""


class _Worker:
    """One process, and the unit that it does."""

    def __init__(self, terms: CheckTerms, before: Sequence[_Worker] | None = None) -> None:
        """
        Start the process. It is forked if *before* is given, the processes that were forked before it: it inherits
        their pipes.
        """
        context: Any = get_context("spawn" if before is None else "fork")
        self.connection, theirs = context.Pipe()
        inherited = () if before is None else (self.connection, *(each.connection for each in before))
        self.process: BaseProcess = context.Process(target=serve, args=(theirs, terms, inherited), daemon=True)
        self.index: int | None = None
        self.process.start()
        theirs.close()

    def begin(self, index: int, unit: WorkUnit) -> None:
        """Give it a unit to do."""
        self.index = index
        with suppress(OSError):
            # A process that is dead already is noticed when its pipe is read.
            self.connection.send(unit)

    def end(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.join()
        self.connection.close()


def may_fork() -> bool:
    """
    Return whether a process can be forked here, which takes a hundredth of the time of starting one.

    A copy of a process has none of its other threads, but their locks.
    """
    try:
        # Libraries may have threads that Python does not know.
        return sys.platform == "linux" and len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False


def _prepare() -> None:
    """Import what units need, so that the copies of this process have it."""
    for name in _NEEDED:
        import_module(name)


@contextmanager
def _without_interrupts(*, is_spawning: bool) -> Iterator[None]:
    """
    Start processes that Ctrl-C does not reach: it ends the main process, which ends them.

    An interrupt in the meantime is raised at the end: a process that is only half started would print a traceback.
    """
    if sys.platform == "win32":
        yield
        return
    if is_spawning:
        from multiprocessing.resource_tracker import ensure_running  # noqa: PLC0415 - not on every platform

        # Started with the first process, it would let interrupts through again.
        ensure_running()
    seen: list[int] = []
    is_main = current_thread() is main_thread()
    handler = signal.signal(signal.SIGINT, lambda number, _: seen.append(number)) if is_main else None
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        # A blocked signal may still arrive in a thread of a library.
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if is_main:
            signal.signal(signal.SIGINT, handler)
    if seen:
        raise KeyboardInterrupt


class LocalWorkers:
    """Does units in up to *jobs* processes."""

    def __init__(self, terms: CheckTerms, tick: Tick, jobs: int) -> None:
        self._terms, self._tick, self._jobs = terms, tick, jobs
        self._units: Sequence[WorkUnit] = ()
        self._workers: list[_Worker] = []
        self._waiting: deque[int] = deque()
        self._tries: Counter[int] = Counter()
        """How often each unit was begun."""
        self._read_now = 0
        """The unit whose results are read."""
        self._spools: dict[int, Spool] = {}
        self._done: dict[int, BaseException | None] = {}
        """The units that are done, with the error that ended them, if any."""
        self._left_over: set[int] = set()
        """Units to be done in this process."""
        self._read: Counter[int] = Counter()
        """Bytes that were reported as read, by unit."""
        self._lock = Lock()
        self._news: SimpleQueue[None] = SimpleQueue()
        """
        Gets something for each unit that is done. With a condition in its place, the lock would be in disorder after
        an interrupt at the wrong moment.
        """
        self._is_over = False
        self._pump: Thread | None = None

    def map(self, units: Sequence[WorkUnit]) -> Iterator[Iterator[Any]]:
        """Begin with *units*, and yield the results of each. Raises `WorkerError`."""
        self._units = units
        self._left_over = {index for index, unit in enumerate(units) if is_only_here(unit.path)}
        self._waiting.extend(index for index in range(len(units)) if index not in self._left_over)
        is_forked = may_fork()
        if is_forked:
            _prepare()
        with _without_interrupts(is_spawning=not is_forked):
            for _ in range(min(self._jobs, len(self._waiting))):
                self._employ(_Worker(self._terms, self._workers if is_forked else None))
            self._assign()
            # With this thread, a process cannot be forked any more.
            self._pump = Thread(target=self._run, name="assay-check-results", daemon=True)
            self._pump.start()
        return map(self._results, range(len(units)))

    def _employ(self, worker: _Worker) -> None:
        with self._lock:
            self._workers.append(worker)

    def _results(self, index: int) -> Iterator[Any]:
        """Wait for one unit, and return its results. Raises `WorkerError`."""
        self._read_now = index
        self._assign()
        self._wait_for(index)
        if index in self._left_over:
            return self._units[index].results(self._terms, self._tick)
        return self._spools.pop(index).items()

    def _wait_for(self, index: int) -> None:
        """Wait until a unit is done, or is to be done here. Raises `WorkerError`."""
        while index not in self._done and index not in self._left_over:
            # With a time-out the main thread notices Ctrl-C on every system.
            with suppress(Empty):
                self._news.get(timeout=_PAUSE)
        error = self._done.get(index)
        if error is not None:
            raise error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End all processes at once."""
        self._is_over = True
        for each in list(self._workers):
            # The thread would wait for results a little longer.
            each.process.kill()
        if self._pump is not None:
            self._pump.join()
        for each in self._workers:
            each.end()
        for spool in self._spools.values():
            spool.drop()

    # ── the thread that takes results ────────────────────────────────────────────────────────────────────────────────

    def _run(self) -> None:
        """Take results, and give the next unit to each process that is free."""
        while not self._is_over:
            busy = {each.connection: each for each in list(self._workers)}
            for ready in wait(list(busy), _PAUSE):
                if not self._is_over:
                    self._take(busy[ready])

    def _assign(self) -> None:
        with self._lock:
            for each in self._workers:
                if each.index is None and self._waiting and self._waiting[0] < self._read_now + AHEAD:
                    index = self._waiting.popleft()
                    self._tries[index] += 1
                    self._spools[index] = Spool()
                    each.begin(index, self._units[index])

    def _take(self, worker: _Worker) -> None:
        """Take one message of a process: a batch of results, the bytes it has read, an error, or the end of a unit."""
        try:
            data = worker.connection.recv_bytes()
        except (EOFError, OSError):
            self._replace(worker)
            return
        index, kind = worker.index, data[:1]
        if index is None:
            return
        if kind == RESULTS:
            self._spools[index].add(data[1:])
        elif kind == READ:
            count = int.from_bytes(data[1:], "big")
            self._read[index] += count
            self._tick(count)
        else:
            with self._lock:
                worker.index = None
            self._done[index] = WorkerError(data[1:].decode()) if kind == FAILED else None
            self._news.put(None)
            self._assign()

    def _replace(self, worker: _Worker) -> None:
        """Start another process for one that has died, and do its unit again."""
        self._workers.remove(worker)
        worker.end()
        index = worker.index
        with self._lock:
            if index is not None:
                self._tick(-self._read.pop(index, 0))
                self._spools.pop(index).drop()
                if self._tries[index] < _TRIES:
                    self._waiting.appendleft(index)
                else:
                    self._left_over.add(index)
                    self._news.put(None)
            needed = bool(self._waiting)
        if needed:
            with _without_interrupts(is_spawning=True):
                self._employ(_Worker(self._terms))
        self._assign()
