"""
Units of work in processes of this machine. A process that dies costs time: its unit is done again.

Each process has a pipe of its own, so it is always known which unit was lost with it.
"""

from __future__ import annotations

import signal
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import wait
from threading import Condition, Thread, current_thread, main_thread
from typing import TYPE_CHECKING, Any, Final, Self

from assay.cli.checking.executors import Spool, is_only_here, packed

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    from assay.cli.checking.check_terms import CheckTerms
    from assay.cli.checking.work_units import Tick, WorkUnit

_TRIES: Final = 3
"""How often a unit is begun in other processes. After that it is done in this one."""

_PAUSE: Final = 0.2
"""Seconds between looks at whether the main thread has ended the work."""


_RESULTS, _READ, _DONE, _FAILED = b"r", b"b", b"d", b"f"
"""The first byte of a message from a process: a batch of results, bytes that it has read, or the end of its unit."""


class WorkerError(Exception):
    """A process failed because of a fault in Assay; the message has its traceback."""


class _Worker:
    """One process, and the unit that it does."""

    def __init__(self, terms: CheckTerms) -> None:
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(target=serve, args=(theirs, terms), daemon=True)
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


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """
    Start processes that Ctrl-C does not reach: it ends the main process, which ends them.

    An interrupt in the meantime is raised at the end: a process that is only half started would print a traceback.
    """
    if sys.platform == "win32":
        yield
        return
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


def serve(connection: Connection, terms: CheckTerms) -> None:
    """Do units until the pipe is closed: the life of a worker process."""
    from assay.cli.checking.tuning import tune  # noqa: PLC0415 - for this process only
    from assay.cli.guard_terms import use_drafts_named  # noqa: PLC0415 - as above

    if sys.platform == "win32":
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    tune()
    use_drafts_named((*terms.settings.guard.draft_revisions, *terms.drafts))
    with suppress(EOFError, OSError):
        while True:
            unit: WorkUnit = connection.recv()
            _serve_one(connection, terms, unit)


def _serve_one(connection: Connection, terms: CheckTerms, unit: WorkUnit) -> None:
    def tick(count: int) -> None:
        connection.send_bytes(_READ + count.to_bytes(8, "big"))

    try:
        for batch in packed(unit.results(terms, tick)):
            connection.send_bytes(_RESULTS + batch)
    except MemoryError:
        # The unit is done again in a new process, which has all of its memory for it.
        raise SystemExit(1) from None
    except OSError:
        raise
    except Exception:
        from traceback import format_exc  # noqa: PLC0415 - for a bug only

        connection.send_bytes(_FAILED + format_exc().encode(errors="replace"))
    else:
        connection.send_bytes(_DONE)


class LocalWorkers:
    """Does units in up to *jobs* processes."""

    is_shared = True

    def __init__(self, terms: CheckTerms, tick: Tick, jobs: int) -> None:
        self._terms, self._tick, self._jobs = terms, tick, jobs
        self._units: Sequence[WorkUnit] = ()
        self._workers: list[_Worker] = []
        self._waiting: deque[int] = deque()
        self._tries: list[int] = []
        self._spools: dict[int, Spool] = {}
        self._done: dict[int, BaseException | None] = {}
        """The units that are done, with the error that ended them, if any."""
        self._left_over: set[int] = set()
        """Units to be done in this process."""
        self._changed = Condition()
        self._is_over = False
        self._pump: Thread | None = None

    def start(self, units: Sequence[WorkUnit]) -> None:
        """Begin with *units*."""
        with self._changed:
            self._units = units
            self._left_over = {index for index, unit in enumerate(units) if is_only_here(getattr(unit, "path", None))}
            self._waiting = deque(index for index in range(len(units)) if index not in self._left_over)
            self._tries, self._done = [0] * len(units), {}
        with _without_interrupts():
            while len(self._workers) < min(self._jobs, len(units)):
                self._workers.append(_Worker(self._terms))
        self._assign()
        if self._pump is None:
            self._pump = Thread(target=self._run, name="assay-check-results", daemon=True)
            self._pump.start()

    def stream(self, index: int) -> Iterator[Any]:
        """Wait for one unit, and yield its results. Raises `WorkerError`."""
        with self._changed:
            while index not in self._done and index not in self._left_over:
                # With a time-out the main thread notices Ctrl-C on every system.
                self._changed.wait(_PAUSE)
            error = self._done.get(index)
        if error is not None:
            raise error
        if index in self._left_over:
            return self._units[index].results(self._terms, self._tick)
        return self._spools.pop(index).items()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End all processes at once."""
        self._is_over = True
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
                self._take(busy[ready])  # type: ignore[index]  # they are connections, as all that we wait for

    def _assign(self) -> None:
        with self._changed:
            for each in self._workers:
                if each.index is None and self._waiting:
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
        if kind == _RESULTS:
            self._spools[index].add(data[1:])
        elif kind == _READ:
            self._tick(int.from_bytes(data[1:], "big"))
        else:
            worker.index = None
            with self._changed:
                self._done[index] = WorkerError(data[1:].decode()) if kind == _FAILED else None
                self._changed.notify_all()
            self._assign()

    def _replace(self, worker: _Worker) -> None:
        """Start another process for one that has died, and do its unit again."""
        self._workers.remove(worker)
        worker.end()
        index = worker.index
        with self._changed:
            if index is not None:
                self._spools.pop(index).drop()
                if self._tries[index] < _TRIES:
                    self._waiting.appendleft(index)
                else:
                    self._left_over.add(index)
                    self._changed.notify_all()
            needed = bool(self._waiting)
        if needed:
            with _without_interrupts():
                self._workers.append(_Worker(self._terms))
        self._assign()
